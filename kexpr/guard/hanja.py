"""Hanja the guard can read: those of KS X 1001, by their Korean reading.

服用 is judged as 복용. A character outside the standard cannot be read here and is refused for its form.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Final

__all__ = ["HANJA", "read_aloud", "reading_of"]

HANJA: Final = "\u3400-\u4dbf\u4e00-\u9fff"
"""As a regular-expression range. Compatibility ideographs are not NFC and never get here."""

_WORD_START: Final = re.compile(f"(?<![가-힣{HANJA}])[{HANJA}]")
_ANY: Final = re.compile(f"[{HANJA}]")
_ROWS: Final = range(0xCA, 0xFE)
_CELLS: Final = range(0xA1, 0xFF)

# The initial law: at the start of a word ㄹ and ㄴ fall before i and y, and ㄹ becomes ㄴ elsewhere.
_NIEUN, _RIEUL, _NULL = 2, 5, 11
_BEFORE_Y: Final = frozenset((2, 3, 6, 7, 12, 17, 20))


@cache
def _readings() -> Mapping[str, str]:
    from kexpr.guard.data_files import data_lines

    characters = (bytes((row, cell)).decode("euc_kr") for row in _ROWS for cell in _CELLS)
    readings: dict[str, str] = {}
    for group in " ".join(data_lines("hanja.txt")).split():
        for _ in range(int(group[1:])):
            character = next(characters)
            if unicodedata.is_normalized("NFC", character):
                readings[character] = group[0]
    return readings


def reading_of(character: str) -> str | None:
    """The reading of one Hanja; None for any other character and for Hanja outside the standard."""
    return _readings().get(character) if "\u3400" <= character <= "\u9fff" else None


def read_aloud(text: str) -> str | None:
    """`text` of the same length with every Hanja read; None if one has no reading."""
    readings = _readings()
    if any(found[0] not in readings for found in _ANY.finditer(text)):
        return None
    text = _WORD_START.sub(lambda found: _at_word_start(readings[found[0]]), text)
    return _ANY.sub(lambda found: readings[found[0]], text)


def _at_word_start(syllable: str) -> str:
    lead, rest = divmod(ord(syllable) - ord("가"), 21 * 28)
    falls = rest // 28 in _BEFORE_Y
    if lead == _RIEUL:
        lead = _NULL if falls else _NIEUN
    elif lead == _NIEUN and falls:
        lead = _NULL
    return chr(ord("가") + lead * 21 * 28 + rest)

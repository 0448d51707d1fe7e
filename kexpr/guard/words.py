"""One word as it is written: what is known of it wherever it stands, worked out once.

A text is split at its spaces. A word may carry brackets, quotation marks and stops, and may be parts that a middle dot
or an ellipsis ties together; a placeholder, with whatever is attached to it, is a word as well.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from kexpr.codes import Reason
from kexpr.guard.form import MARK
from kexpr.guard.lexicon import Kind, Lexicon, Phrases, Reading, denied_category, lexicon
from kexpr.guard.ngrams import weight

__all__ = ["Spelled", "Word", "spelled"]

_WORD: Final = re.compile(r"""['"(]*([가-힣]+)(?:['")]+([가-힣]+))?['")]*([.,!?…:;]*)['")]*""")
_HANGUL: Final = re.compile("[가-힣]+")
_WORD_START: Final = re.compile("(?<![가-힣])[가-힣]")
_PARTS: Final = re.compile("[·…]")
_LONE: Final = frozenset({"-", "…"})
_COMPARES: Final = re.compile("(?:듯|듯이|처럼|처럼요|같이)$")
_COMPARING: Final = frozenset(
    [
        "같은",
        "삼아",
        "듯",
        "듯이",
        "듯한",
        "마음으로",
        "기분으로",
        "느낌으로",
        "심정으로",
        "때처럼",
        "것처럼",
        "모양으로",
    ]
)
_CACHED_WORDS: Final = 4096


class Word(NamedTuple):
    """One that is no placeholder. `fault` is set where it cannot be read as a word."""

    core: str
    reading: Reading | None
    stop: str
    compares: bool
    fault: Reason | None


class Spelled(NamedTuple):
    """`word` is None for a placeholder, which has no `hangul` either; `weight` leans towards refusal."""

    word: Word | None
    weight: int
    begun: tuple[tuple[int, re.Pattern[str], Phrases], ...]
    """(offset, the refused phrases that may begin there: their pattern, and they)."""
    hangul: str
    strange: re.Match[str] | None
    """Its first Hangul, if that is not known."""


@lru_cache(_CACHED_WORDS)
def spelled(text: str) -> Spelled:
    lexis = lexicon()
    if MARK in text:
        return Spelled(None, 0, _begun(lexis, text), "", None)
    first = _HANGUL.search(text)
    strange = first if first and lexis.read(first[0]).kind == Kind.UNKNOWN else None
    return Spelled(_word(lexis, text), weight(text), _begun(lexis, text), "".join(_HANGUL.findall(text)), strange)


def _begun(lexis: Lexicon, text: str) -> tuple[tuple[int, re.Pattern[str], Phrases], ...]:
    padded = f"{text} "
    starts = [found.start() for found in _WORD_START.finditer(text)]
    phrases = [(start, _either(lexis.phrases, padded[start : start + 2])) for start in starts]
    return tuple((start, each.compiled, each) for start, each in phrases if each is not None)


def _either(begun: Mapping[str, Phrases], two: str) -> Phrases | None:
    return begun.get(two) or begun.get(two[0])


def _word(lexis: Lexicon, text: str) -> Word:
    match = _WORD.fullmatch(text)
    if match is not None:
        core = match[1] + (match[2] or "")
        return Word(core, lexis.read(core), match[3], core in _COMPARING or bool(_COMPARES.search(core)), None)
    if text in _LONE:
        return Word("", None, text, False, None)
    parts = [_WORD.fullmatch(part) for part in _PARTS.split(text) if part]
    whole = "".join(part[1] for part in parts if part)
    readable = len(parts) > 1 and denied_category(whole) is None
    if readable and all(part and lexis.read(part[1]).kind == Kind.ALLOWED for part in parts):
        return Word("", None, "", False, None)
    return Word("", None, "", False, Reason.FORM_PUNCTUATION)

"""Which particle may follow a noun placeholder: allomorphs by the last sound of the expansion (guard-policy).

What is read aloud decides. Quotation marks and final punctuation are not read; a bracket at the end is not read either,
so the word before it decides (the rule of the National Institute of Korean Language); digits read Sino-Korean; Latin
letters read by name, the usual units in full. A last sound that cannot be told admits only what fits every sound.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kexpr.guard.hanja import reading_of

__all__ = ["PARTICLES", "LastSound", "is_particle", "last_sound"]


class LastSound(StrEnum):
    VOWEL = "vowel"
    RIEUL = "rieul"
    CONSONANT = "consonant"
    UNKNOWN = "unknown"


_INVARIANT: Final = frozenset(
    [
        "의",
        "에",
        "에는",
        "에도",
        "에서",
        "에서는",
        "에서도",
        "에서부터",
        "도",
        "까지",
        "까지는",
        "까지도",
        "부터",
        "부터는",
        "부터의",
        "까지의",
        "처럼",
        "입니다",
        "이고",
        "이고요",
        "이며",
        "이지요",
        "이죠",
        "이자",
        "이네요",
        "인",
        "이니",
        "이니까",
        "이면서",
        "하고",
    ]
)
_VOWEL: Final = frozenset(
    [
        "는",
        "가",
        "를",
        "와",
        "와는",
        "와도",
        "와의",
        "로",
        "로는",
        "로도",
        "로서",
        "로부터",
        "랑",
        "예요",
        "지요",
        "죠",
        "고",
        "고요",
        "며",
        "네요",
        "라",
        "라는",
        "라고",
        "라고도",
        "라서",
        "란",
        "니",
        "니까",
        "자",
        "면서",
    ]
)
_CLOSED: Final = frozenset(
    [
        "은",
        "이",
        "을",
        "과",
        "과는",
        "과도",
        "과의",
        "이랑",
        "이에요",
        "이라",
        "이라는",
        "이라고",
        "이라고도",
        "이라서",
        "이란",
    ]
)
_RO: Final = frozenset(["로", "로는", "로도", "로서", "로부터"])
_EURO: Final = frozenset(["으로", "으로는", "으로도", "으로서", "으로부터"])

PARTICLES: Final[Mapping[LastSound, frozenset[str]]] = {
    LastSound.VOWEL: _INVARIANT | _VOWEL,
    LastSound.RIEUL: _INVARIANT | _CLOSED | _RO,
    LastSound.CONSONANT: _INVARIANT | _CLOSED | _EURO,
    LastSound.UNKNOWN: _INVARIANT,
}
"""What may be attached. A past copula, a condition, a question or a restriction would change the fact: none is here."""

_ALL: Final = frozenset().union(*PARTICLES.values())

_BRACKETED: Final = re.compile(r"\s*(?:\([^()]*\)|\[[^\[\]]*\]|（[^（）]*）|〔[^〔〕]*〕)$")
_SILENT: Final = " .,!?…·:;'\"‘’“”「」『』《》〈〉()[]（）〔〕~-–—*_"
_UNIT: Final = re.compile(r"(?:^|[^A-Za-z])(kcal|kg|mg|g|km|cm|mm|m|ml|mL|dl|dL|l|L|%|℃|kJ|IU|mmHg|bpm)$")
_UNIT_SOUND: Final = {
    **dict.fromkeys(("kg", "mg", "g"), "램"),
    "kJ": "줄",
    **dict.fromkeys(("km", "cm", "mm", "m", "ml", "mL", "dl", "dL", "l", "L"), "터"),
    "kcal": "리",
    "%": "트",
    "℃": "도",
    "IU": "유",
    "mmHg": "지",
    "bpm": "엠",
}
_DIGIT_SOUND: Final = dict(zip("0123456789", "공일이삼사오육칠팔구", strict=True))
_CLOSED_LETTERS: Final = {"l": "엘", "m": "엠", "n": "엔", "r": "알"}


def is_particle(word: str) -> bool:
    """Whether `word` could only stand attached to the noun before it."""
    return word in _ALL


def last_sound(expansion: str) -> LastSound:
    """The class of the last sound of `expansion` as it is read aloud."""
    read = expansion.rstrip(" .,!?…")
    while (bracket := _BRACKETED.search(read)) and bracket.start() > 0:
        read = read[: bracket.start()].rstrip()
    read = read.rstrip(_SILENT)
    if not read:
        return LastSound.UNKNOWN
    unit = _UNIT.search(read)
    syllable = _UNIT_SOUND[unit[1]] if unit else _spoken(read[-1])
    if not "가" <= syllable <= "힣":
        return LastSound.UNKNOWN
    tail = (ord(syllable) - ord("가")) % 28
    return LastSound.VOWEL if tail == 0 else LastSound.RIEUL if tail == 8 else LastSound.CONSONANT


def _spoken(character: str) -> str:
    """The last syllable of `character` read aloud, or the character itself."""
    if character in _DIGIT_SOUND:
        return _DIGIT_SOUND[character]
    if character.isascii() and character.isalpha():
        return _CLOSED_LETTERS.get(character.lower(), "에")
    return reading_of(character) or unicodedata.normalize("NFC", character)

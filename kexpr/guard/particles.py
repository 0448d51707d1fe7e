"""Which particle may follow a noun placeholder: allomorphs by the last sound of the expansion (guard-policy).

What is read aloud decides, and what cannot be told admits only what fits every sound:

    brackets   what stands in () or [] at the end is not read: the word before it decides, as the National Institute of
               Korean Language has it for particles after a bracket; quotation and title marks are read through
    numbers    Sino-Korean, by place, with a name every four digits (Hangul orthography, article 44): 10 is 십 and
               1,000,000,000,000 일조; by digit after a decimal point and with a leading zero. Fractions and rates
               (1/2 is 이분의 일), times of day and digits after a letter (D3, 오메가3) cannot be told
    units      in full after a number: 20kg is 이십 킬로그램
    Latin      by the names of the letters or as a word where both end alike (PLAN, menu); by name alone what has no
               vowel to be a word (PT); IV may be a number
    Hanja      by its reading; the few that have two that end unlike cannot be told
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


def _words(spelled: str) -> frozenset[str]:
    return frozenset(spelled.split())


_INVARIANT: Final = _words(
    "의 에 에는 에도 에서 에서는 에서도 에서부터 도 까지 까지는 까지도 부터 부터는 부터의 까지의 처럼 하고 "
    "입니다 이고 이고요 이며 이지요 이죠 이자 이네요 인 이니 이니까 이면서 이듯 이듯이"
)
_VOWEL: Final = _words(
    "는 가 를 와 와는 와도 와의 로 로는 로도 로서 로부터 랑 예요 지요 죠 고 고요 며 네요 라 라는 라고 라고도 라서 란 "
    "니 니까 자 면서"
)
_CLOSED: Final = _words("은 이 을 과 과는 과도 과의 이랑 이에요 이라 이라는 이라고 이라고도 이라서 이란")
_RO: Final = _words("로 로는 로도 로서 로부터")
_EURO: Final = _words("으로 으로는 으로도 으로서 으로부터")

PARTICLES: Final[Mapping[LastSound, frozenset[str]]] = {
    LastSound.VOWEL: _INVARIANT | _VOWEL,
    LastSound.RIEUL: _INVARIANT | _CLOSED | _RO,
    LastSound.CONSONANT: _INVARIANT | _CLOSED | _EURO,
    LastSound.UNKNOWN: _INVARIANT,
}
"""What may be attached. A past copula, a condition, a question or a restriction would change the fact: none is here."""

_ALL: Final = frozenset().union(*PARTICLES.values())
_COPULA: Final = re.compile(
    "(?:이었|였|이겠|입니|입디|이에요|이지만|이라면|이라도|이랍니|이더라|이거든).*|인데요?|인가요?|일까요?|이래요|이든지?|이거나"
)


def is_particle(word: str) -> bool:
    """Whether `word` could only stand attached to the noun before it: a particle of the table, or any copula."""
    return word in _ALL or _COPULA.fullmatch(word) is not None


_SILENT: Final = " .,!?…·:;'\"‘’“”「」『』《》〈〉~–—"
_OPENING: Final = {")": "(", "]": "[", "〕": "〔", "】": "【"}
_WIDE: Final = re.compile("[！-～\u3380-\u33df℃℉ℓ]")
"""Full-width forms, and units in one character."""
_SIGNS: Final = "%°"
_NUMBER_END: Final = re.compile(r"[0-9.,]+$")
_INTEGER: Final = re.compile(r"[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_DECIMAL: Final = re.compile(rf"(?:{_INTEGER.pattern})\.[0-9]+")
_BEFORE_NUMBER: Final = re.compile(r"(?:^|[ ~–—+±−·“‘「『《〈(\[〔【]|(?<![0-9])['\"]|(?<![A-Za-z가-힣])-)$")
_RECKONED: Final = re.compile(r"[0-9][^\s/⁄:]*[/⁄:]\S*$")
"""Fractions, rates and times of day."""
_DIGITS: Final = dict(zip("0123456789", "공일이삼사오육칠팔구", strict=True))
_PLACES: Final = "십백천"
_MYRIADS: Final = "만억조경"

_LATIN_END: Final = re.compile("[A-Za-z]+$")
_COUNTED: Final = re.compile("[0-9] ?$")
_ROMAN: Final = re.compile("[IVX]+", re.IGNORECASE)
_UNITS: Final = {
    **dict.fromkeys(("kg", "mg", "g", "mcg"), "램"),
    **dict.fromkeys(("km", "cm", "mm", "m", "ml", "mL", "dl", "dL", "l", "L"), "터"),
    "kcal": "리",
    "kJ": "줄",
    "IU": "유",
    "mmHg": "지",
    "bpm": "엠",
}
_UNIT_LETTERS: Final = frozenset(unit.lower() for unit in _UNITS)
_NAMES: Final = {**dict.fromkeys("abcdefghijkopqstuvwxyz", "에"), "l": "엘", "m": "엠", "n": "엔", "r": "알"}
"""Letter -> a syllable that ends as its name does."""
_ANY_WAY: Final = re.compile(r"(?:[afijlmnosuvwxyz]|(?<!c)h)$", re.IGNORECASE)
"""A word that ends as the name of its last letter does."""
_VOWEL_LETTER: Final = re.compile("[aeiouy]", re.IGNORECASE)
_HANJA_OF_TWO_SOUNDS: Final = frozenset("契龜樂度讀復北不泌數殺說識惡若易刺炙切暴索塞省食射畫宿著告滑")


def last_sound(expansion: str) -> LastSound:
    """The class of the last sound of `expansion` as it is read aloud."""
    read = _read_part(_WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), expansion))
    syllable = "" if not read or _RECKONED.search(read) else _last_syllable(read)
    if not "가" <= syllable <= "힣":
        return LastSound.UNKNOWN
    tail = (ord(syllable) - ord("가")) % 28
    return LastSound.VOWEL if tail == 0 else LastSound.RIEUL if tail == 8 else LastSound.CONSONANT


def _read_part(text: str) -> str:
    """`text` to its last character that is read; nothing if brackets or quotation marks do not pair."""
    if any(text.count(mark) % 2 for mark in "'\""):
        return ""
    while text := text.rstrip(_SILENT):
        if text[-1] not in _OPENING:
            break
        start = _opened(text)
        if start < 0:
            return ""
        text = text[:start].rstrip(_SILENT) or text[start + 1 : -1]
    return "" if any(text.count(opening) > text.count(closing) for closing, opening in _OPENING.items()) else text


def _opened(text: str) -> int:
    """Where the bracket that closes at the end of `text` opens; -1 if nowhere."""
    closing, depth = text[-1], 0
    for start in range(len(text) - 1, -1, -1):
        depth += (text[start] == closing) - (text[start] == _OPENING[closing])
        if depth == 0:
            return start
    return -1


def _last_syllable(read: str) -> str:
    """The last syllable of `read` aloud, or one that ends alike; nothing if it cannot be told."""
    number = _NUMBER_END.search(read)
    if number is not None:
        return _of_number(number[0]) if _BEFORE_NUMBER.search(read, 0, number.start()) else ""
    letters = _LATIN_END.search(read)
    if letters is not None:
        return _of_latin(letters[0], read[: letters.start()])
    if read[-1] in _SIGNS:
        return "트"
    return "" if read[-1] in _HANJA_OF_TWO_SOUNDS else reading_of(read[-1]) or unicodedata.normalize("NFC", read[-1])


def _of_number(number: str) -> str:
    if _DECIMAL.fullmatch(number):
        return _DIGITS[number[-1]]
    if not _INTEGER.fullmatch(number):
        return ""
    digits = number.replace(",", "")
    zeros = len(digits) - len(digits.rstrip("0"))
    if zeros == 0 or digits[0] == "0":
        return _DIGITS[digits[-1]]
    names = _PLACES[zeros - 1 :] if zeros < 4 else _MYRIADS[zeros // 4 - 1 :]
    return names[:1]


def _of_latin(letters: str, before: str) -> str:
    if _COUNTED.search(before):
        if letters in _UNITS:
            return _UNITS[letters]
        named = letters.isupper() and letters.lower() not in _UNIT_LETTERS
    else:
        foreign = before[-1:].isalpha() and not "가" <= before[-1] <= "힣"
        named = not foreign and (letters.lower() not in _UNIT_LETTERS or (len(letters) == 1 and letters.isupper()))
    if not named or _ROMAN.fullmatch(letters):
        return ""
    spelled = len(letters) == 1 or (letters.isupper() and not _VOWEL_LETTER.search(letters))
    told = spelled or (_VOWEL_LETTER.search(letters) and _ANY_WAY.search(letters))
    return _NAMES[letters[-1].lower()] if told else ""

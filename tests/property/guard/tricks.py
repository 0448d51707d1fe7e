"""Spelling tricks as functions: a run of Hangul -> the ways to disguise it (guard-policy, "Spelling tricks")."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from kexpr.guard.hanja import reading_of
from tests.property.guard.pronounce import pronounced, syllable, taken_apart

__all__ = ["JUDGED", "UNFIT", "Trick", "solid"]

Trick = Callable[[str], Iterator[str]]

_MARKS: Final = (".", ",", "·", "-", "'", "…", ":", "!", '"', ";", "(", ")")
_INVISIBLE: Final = ("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u3164", "\u115f", "\u180e", "\ufe0f")
_INITIALS: Final[str] = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS: Final[str] = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_TAILS: Final[tuple[str, ...]] = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
_NULL: Final = 11


def _inserted(run: str, mark: str) -> Iterator[str]:
    """`mark` at each place inside, and at all of them."""
    for at in range(1, len(run)):
        yield run[:at] + mark + run[at:]
    if len(run) > 2:
        yield mark.join(run)


def spaced(run: str) -> Iterator[str]:
    yield from _inserted(run, " ")


def punctuated(run: str) -> Iterator[str]:
    """Every mark, each at a place of its own, and a middle dot, a full stop and a comma at every place."""
    for number, mark in enumerate(_MARKS):
        if len(run) > 1:
            at = number % (len(run) - 1) + 1
            yield run[:at] + mark + run[at:]
    for mark in ".,·":
        yield from _inserted(run, mark)
    for at in range(1, len(run)):
        yield run[:at] + ", " + run[at:]
        yield run[:at] + "' '" + run[at:]


def invisible(run: str) -> Iterator[str]:
    for mark in _INVISIBLE:
        yield from (way for number, way in enumerate(_inserted(run, mark)) if number < 2)


@cache
def _hanja() -> dict[str, str]:
    """Syllable -> the first Hanja that reads so."""
    found: dict[str, str] = {}
    for code in range(0x4E00, 0xA000):
        reading = reading_of(chr(code))
        if reading is not None:
            found.setdefault(reading, chr(code))
    return found


def in_hanja(run: str) -> Iterator[str]:
    """Every syllable that has one, and each alone."""
    table = _hanja()
    written = "".join(table.get(character, character) for character in run)
    if written != run:
        yield written
    for at, character in enumerate(run):
        if character in table:
            yield run[:at] + table[character] + run[at + 1 :]


def stretched(run: str) -> Iterator[str]:
    """복요옹: each syllable alone drawn out by one and by two, and all of them."""
    drawn = [_drawn(character, 1) for character in run]
    for at, longer in enumerate(drawn):
        yield run[:at] + longer + run[at + 1 :]
        yield run[:at] + _drawn(run[at], 2) + run[at + 1 :]
    yield "".join(drawn)


def _drawn(character: str, times: int) -> str:
    lead, vowel, tail = taken_apart(character)
    held = vowel if times > 1 else _HELD.get(vowel, vowel)
    return syllable(lead, vowel, 0) + syllable(_NULL, held, 0) * (times - 1) + syllable(_NULL, held, tail)


_HELD: Final = {2: 0, 3: 1, 6: 4, 7: 5, 9: 0, 10: 1, 12: 8, 14: 4, 15: 5, 16: 20, 17: 13, 19: 20}
"""Vowel -> the one that sounds on when it is held, both as numbers: 요오 and 과아."""


def respelled(run: str) -> Iterator[str]:
    """As it is pronounced, and with letters of one sound traded."""
    heard = pronounced(run)
    if heard != run:
        yield heard
    for trade in (_tensed, _same_vowel):
        traded = "".join(trade(character) for character in run)
        if traded not in (run, heard):
            yield traded


_DOUBLES: Final = {0: 1, 3: 4, 7: 8, 9: 10, 12: 13}
_ALIKE: Final = {1: 5, 5: 1, 11: 10, 10: 15, 15: 10, 3: 7, 7: 3}


def _tensed(character: str) -> str:
    lead, vowel, tail = taken_apart(character)
    return syllable(_DOUBLES.get(lead, lead), vowel, tail)


def _same_vowel(character: str) -> str:
    lead, vowel, tail = taken_apart(character)
    return syllable(lead, _ALIKE.get(vowel, vowel), tail)


def _letters(character: str) -> str:
    lead, vowel, tail = taken_apart(character)
    return _INITIALS[lead] + _VOWELS[vowel] + _TAILS[tail]


def _conjoining(character: str) -> str:
    return unicodedata.normalize("NFD", character)


def in_jamo(run: str) -> Iterator[str]:
    """Compatibility and conjoining letters, of each syllable and of all; initials; a final consonant set apart."""
    for spell in (_letters, _conjoining):
        yield "".join(map(spell, run))
        for at, character in enumerate(run):
            yield run[:at] + spell(character) + run[at + 1 :]
    for at, character in enumerate(run):
        lead, vowel, tail = taken_apart(character)
        yield run[:at] + _INITIALS[lead] + run[at + 1 :]
        if tail:
            yield run[:at] + syllable(lead, vowel, 0) + _TAILS[tail] + run[at + 1 :]
    yield "".join(_INITIALS[taken_apart(character)[0]] for character in run)


def in_width(run: str) -> Iterator[str]:
    """Half-width letters."""
    yield "".join(_HALF.get(letter, letter) for character in run for letter in _letters(character))


_HALF: Final = {chr(0x3131 + offset): chr(0xFFA1 + offset) for offset in range(30)} | dict(
    zip(
        _VOWELS,
        map(chr, (*range(0xFFC2, 0xFFC8), *range(0xFFCA, 0xFFD0), *range(0xFFD2, 0xFFD8), *range(0xFFDA, 0xFFDD))),
        strict=True,
    )
)
"""Compatibility letter -> its half-width form."""


def solid(text: str) -> Iterator[str]:
    """A whole text without one of the spaces between its words, and without any."""
    gaps = list(re.finditer("(?<=[가-힣]) (?=[가-힣])", text))
    for gap in gaps:
        yield text[: gap.start()] + text[gap.end() :]
    if len(gaps) > 1:
        yield re.sub("(?<=[가-힣]) (?=[가-힣])", "", text)


JUDGED: Final[dict[str, Trick]] = {
    "space": spaced,
    "punctuation": punctuated,
    "hanja": in_hanja,
    "stretched": stretched,
    "respelled": respelled,
}
UNFIT: Final[dict[str, Trick]] = {"invisible": invisible, "jamo": in_jamo, "half width": in_width}
"""Whatever the words are, the form is refused."""

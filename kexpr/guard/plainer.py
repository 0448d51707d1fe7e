"""Plainer spellings of a word that may be a respelling: what it is if written as one hears it, or drawn out.

    drawn out    보오오듯 is 보듯 and 복요옹 복용: a vowel, or the end of one, repeated as a syllable of its own
    moved on     기로글 is 기록을: a consonant before a vowel goes back to the syllable that lost it
    joined       긴그피 is 긴급히: so does an aspirate, and leaves ㅎ
    nasal        임니다 is 입니다: a nasal before a nasal was a stop
    tensed       껼꾹 is 결국: a tense consonant is a plain one

These undo the standard pronunciation one syllable at a time, so that the vocabulary can be asked by its own spelling.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

__all__ = ["drawn_in", "plainer"]

_FIRST: Final = ord("가")
_LEADS: Final = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_TAILS: Final = "-ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
_NONE, _NULL = "-", "ㅇ"
_VOWELS: Final = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_LENGTHENED: Final = {
    _VOWELS.index(vowel): _VOWELS.index(end)
    for vowel, end in zip("ㅑㅒㅕㅖㅛㅠㅘㅙㅝㅞㅟㅢ", "ㅏㅐㅓㅔㅗㅜㅏㅐㅓㅔㅣㅣ", strict=True)
}
"""Vowel -> the one that sounds on when it is held."""
_PLAIN: Final = {"ㄲ": "ㄱ", "ㄸ": "ㄷ", "ㅃ": "ㅂ", "ㅆ": "ㅅ", "ㅉ": "ㅈ"}
_BEFORE_VOWEL: Final = {
    **{consonant: [(consonant, _NULL)] for consonant in "ㄱㄲㄷㄹㅁㅂㅅㅆㅈ"},
    "ㄴ": [("ㄴ", _NULL), ("ㄶ", _NULL)],
    "ㅋ": [("ㅋ", _NULL), ("ㄱ", "ㅎ"), ("ㅎ", "ㄱ")],
    "ㅌ": [("ㅌ", _NULL), ("ㄷ", "ㅎ"), ("ㅎ", "ㄷ")],
    "ㅍ": [("ㅍ", _NULL), ("ㅂ", "ㅎ")],
    "ㅊ": [("ㅊ", _NULL), ("ㅌ", _NULL), ("ㅈ", "ㅎ"), ("ㅎ", "ㅈ")],
}
"""Lead after an open syllable -> the (tail, lead) it may have been."""
_STOPS: Final = {"ㅁ": "ㅂㅍ", "ㅇ": "ㄱㄲ", "ㄴ": "ㄷㅅㅌㅎ"}
"""Tail before a nasal -> the tails it may have been."""
_LONGEST: Final = 24
"""Syllables; a longer word has no plainer spelling (and costs no time)."""


class _Syllable(NamedTuple):
    lead: str
    vowel: int
    tail: str


@lru_cache(4096)
def plainer(word: str) -> tuple[str, ...]:
    """The other spellings of `word`, a run of Hangul syllables, that sound like it; each once."""
    if len(word) > _LONGEST:
        return ()
    drawn = drawn_in(word)
    loose = "".join(_written(part._replace(lead=_PLAIN.get(part.lead, part.lead))) for part in _apart(drawn))
    found = dict.fromkeys((drawn, loose, *_undone(drawn), *_undone(loose)))
    found.pop(word, None)
    return tuple(found)


def drawn_in(word: str) -> str:
    """`word` with each vowel that was drawn out in one syllable."""
    parts: list[_Syllable] = []
    for part in _apart(word):
        last = parts[-1] if parts else None
        held = last is not None and part.vowel in (last.vowel, _LENGTHENED.get(last.vowel))
        if last and held and part.lead == _NULL and last.tail == _NONE:
            parts[-1] = last._replace(tail=part.tail)
        else:
            parts.append(part)
    return "".join(map(_written, parts))


def _undone(word: str) -> Iterator[str]:
    """`word` with one sound change between two of its syllables taken back."""
    parts = list(_apart(word))
    for at, (first, second) in enumerate(pairwise(parts)):
        for tail, lead in _before(first.tail, second.lead):
            changed = (first._replace(tail=tail), second._replace(lead=lead))
            yield "".join(map(_written, (*parts[:at], *changed, *parts[at + 2 :])))


def _before(tail: str, lead: str) -> list[tuple[str, str]]:
    if tail == _NONE:
        return _BEFORE_VOWEL.get(lead, [])
    return [(stop, lead) for stop in _STOPS.get(tail, "")] if lead in "ㄴㅁ" else []


def _apart(word: str) -> Iterator[_Syllable]:
    for character in word:
        lead, rest = divmod(ord(character) - _FIRST, 21 * 28)
        yield _Syllable(_LEADS[lead], rest // 28, _TAILS[rest % 28])


def _written(part: _Syllable) -> str:
    return chr(_FIRST + (_LEADS.index(part.lead) * 21 + part.vowel) * 28 + _TAILS.index(part.tail))

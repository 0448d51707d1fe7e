"""The standard pronunciation of Hangul, spelled as it is heard: the sound rules that respellings use.

Rules, in the order in which they apply between two syllables: ㅎ joins or falls, a final consonant moves before a
vowel (and is palatalised before 이), neutral finals, tensing, nasals, ㄴ beside ㄹ. Vowels as they are said today
(의 and 예).
"""

from typing import Final

__all__ = ["pronounced", "syllable", "taken_apart"]

_FIRST: Final = ord("가")
_LEADS: Final = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_TAILS: Final = (" ", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
_YI, _I, _YE, _E = 19, 20, 7, 5

_PARTS: Final = {
    **{"ㄳ": ("ㄱ", "ㅅ"), "ㄵ": ("ㄴ", "ㅈ"), "ㄶ": ("ㄴ", "ㅎ"), "ㄺ": ("ㄹ", "ㄱ"), "ㄻ": ("ㄹ", "ㅁ")},
    **{
        "ㄼ": ("ㄹ", "ㅂ"),
        "ㄽ": ("ㄹ", "ㅅ"),
        "ㄾ": ("ㄹ", "ㅌ"),
        "ㄿ": ("ㄹ", "ㅍ"),
        "ㅀ": ("ㄹ", "ㅎ"),
        "ㅄ": ("ㅂ", "ㅅ"),
    },
}
_NEUTRAL: Final = {
    **dict.fromkeys("ㄲㅋㄳㄺ", "ㄱ"),
    **dict.fromkeys("ㅅㅆㅈㅊㅌㅎ", "ㄷ"),
    **dict.fromkeys("ㅍㅄㄿ", "ㅂ"),
    **dict.fromkeys("ㄵㄶ", "ㄴ"),
    **dict.fromkeys("ㄼㄽㄾㅀ", "ㄹ"),
    "ㄻ": "ㅁ",
}
_ASPIRATED: Final = {"ㄱ": "ㅋ", "ㄷ": "ㅌ", "ㅂ": "ㅍ", "ㅈ": "ㅊ"}
_TENSE: Final = {"ㄱ": "ㄲ", "ㄷ": "ㄸ", "ㅂ": "ㅃ", "ㅅ": "ㅆ", "ㅈ": "ㅉ"}
_NASAL: Final = {"ㄱ": "ㅇ", "ㄷ": "ㄴ", "ㅂ": "ㅁ"}


def taken_apart(character: str) -> tuple[int, int, int]:
    """(lead, vowel, tail) of a syllable, as numbers."""
    lead, rest = divmod(ord(character) - _FIRST, 21 * 28)
    return lead, rest // 28, rest % 28


def syllable(lead: int, vowel: int, tail: int) -> str:
    return chr(_FIRST + (lead * 21 + vowel) * 28 + tail)


def pronounced(run: str) -> str:
    """A run of syllables as it is heard."""
    apart = [taken_apart(character) for character in run]
    leads = [_LEADS[lead] for lead, _, _ in apart]
    vowels = [vowel for _, vowel, _ in apart]
    tails = [_TAILS[tail] for _, _, tail in apart]
    for at in range(len(run)):
        following = leads[at + 1] if at + 1 < len(run) else ""
        tails[at], heard = _meeting(tails[at], following, vowels[at + 1] if following else 0)
        if following:
            leads[at + 1] = heard
    return "".join(
        syllable(_LEADS.index(lead), _vowel(at, lead, vowel), _TAILS.index(tail))
        for at, (lead, vowel, tail) in enumerate(zip(leads, vowels, tails, strict=True))
    )


def _vowel(at: int, lead: str, vowel: int) -> int:
    if vowel == _YI and (at or lead != "ㅇ"):
        return _I
    return _E if vowel == _YE and lead != "ㅇ" else vowel


def _meeting(tail: str, lead: str, vowel: int) -> tuple[str, str]:
    """(tail, lead) as they are heard where a syllable ends in `tail` and the next begins with `lead`."""
    rest, last = _PARTS.get(tail, (" ", tail))
    if not lead:
        return _NEUTRAL.get(tail, tail), ""
    if last == "ㅎ" and lead in _ASPIRATED:
        return rest, _ASPIRATED[lead]
    if last == "ㅎ" and lead == "ㅇ":
        return (" ", rest) if rest != " " else (" ", "ㅇ")
    if last == "ㅎ" and lead == "ㅅ":
        return rest, "ㅆ"
    if lead == "ㅎ" and _NEUTRAL.get(last, last) in _ASPIRATED:
        joined = "ㅊ" if last == "ㅈ" else _ASPIRATED[_NEUTRAL.get(last, last)]
        return rest, joined
    if lead == "ㅇ" and tail not in (" ", "ㅇ"):
        return (rest, "ㅆ") if rest != " " and last == "ㅅ" else (rest, _palatal(last, vowel))
    closed = _NEUTRAL.get(tail, tail)
    if closed in _NASAL and lead in _TENSE:
        return closed, _TENSE[lead]
    if closed in _NASAL and lead in "ㄴㅁㄹ":
        return _NASAL[closed], "ㄴ" if lead == "ㄹ" else lead
    if (closed, lead) in (("ㄴ", "ㄹ"), ("ㄹ", "ㄴ")):
        return "ㄹ", "ㄹ"
    if closed in ("ㅁ", "ㅇ") and lead == "ㄹ":
        return closed, "ㄴ"
    return closed, lead


def _palatal(last: str, vowel: int) -> str:
    return {"ㄷ": "ㅈ", "ㅌ": "ㅊ"}.get(last, last) if vowel == _I else last

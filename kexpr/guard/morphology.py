"""Korean inflection by rule, over conjoining jamo.

A word is decomposed (NFD), so that stem and ending are plain strings even where they share a syllable (보 + ㄹ게요 is
볼게요). A stem yields a few *bases*; each base belongs to *slots* (`P`, `E`, `A`, …) and a slot lists what may follow:
endings that close the word, and links to a further slot (honorific, past, presumptive). Irregular classes differ only
in their bases. Nouns are stems whose endings are particles and the copula.

The tables hold what the discourse of a slot needs. Hearsay (-대요, -더라고요), doubt (-ㄹ지도) and contrast (-지만) are
left out on purpose: a word with such an ending has no reading here.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = [
    "ADVERB",
    "DETERMINER",
    "ENDINGS",
    "HONORIFIC",
    "LINKS",
    "PAST",
    "WHOLE",
    "closed_by",
    "decompose",
    "endings",
    "noun_slot",
    "verb_bases",
]

HONORIFIC: Final = 1
"""Bit of a link: the subject is the reader."""
PAST: Final = 2
"""Bit of a link: the past tense."""

WHOLE: Final = "W"
ADVERB: Final = "D"
DETERMINER: Final = "Q"
BECOMING: Final = "b"
"""Slot of a change that is wished for or describes."""
PERSONAL: Final = "K"
"""Slot of the particles of persons; no word of discourse takes them."""

_VOWELS: Final = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FIRST_VOWEL: Final = 0x1161
_FIRST_TAIL: Final = 0x11A7
_TAILS: Final = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
_TAIL_OF: Final = {compatible: chr(_FIRST_TAIL + index) for index, compatible in enumerate(_TAILS) if index}
_VOWEL_OF: Final = {compatible: chr(_FIRST_VOWEL + index) for index, compatible in enumerate(_VOWELS)}
_COMPATIBLE_VOWEL: Final = {vowel: compatible for compatible, vowel in _VOWEL_OF.items()}

_RIEUL: Final = _TAIL_OF["ㄹ"]
_BRIGHT: Final = ("곱", "돕")
"""How the ㅂ stems end whose infinitive keeps a bright vowel (고와, 도와)."""
_WHITENED: Final = {_VOWEL_OF["ㅑ"]: "ㅒ", _VOWEL_OF["ㅕ"]: "ㅖ"}
"""The vowels of ㅎ stems whose infinitive is not ㅐ (하얘, 허예)."""


def decompose(text: str) -> str:
    """`text` in conjoining jamo; a compatibility consonant at the front of an ending is the tail it becomes."""
    return unicodedata.normalize("NFD", text)


def closed_by(consonant: str) -> list[str]:
    """The syllables whose last sound is `consonant`, a compatibility letter."""
    return [chr(syllable) for syllable in range(ord("가") + _TAILS.index(consonant), ord("힣") + 1, len(_TAILS))]


def _ending(spelled: str) -> str:
    return _TAIL_OF[spelled[0]] + decompose(spelled[1:]) if spelled[0] in _TAIL_OF else decompose(spelled)


def endings(*groups: str) -> frozenset[str]:
    """The endings that `groups` spell, parted by spaces, in jamo; `-` is none at all."""
    return frozenset("" if spelled == "-" else _ending(spelled) for group in groups for spelled in group.split())


_BARE: Final = (
    "고 고서 고서는 고선 고는 고도 고요 고자 고픈 고파서 고파요 지 지요 죠 게 게끔 게도 기 기는 기도 기에 기에는 기에도 기엔 기를 기로 기가 기까지 기만 "
    "기보다 기보다는 긴 길 던 듯 듯이 자 자면 자고 자는 자마자 도록 든 든가 든지 거나 다가 다 다면"
)
_NASAL: Final = "는 는데 는데요 는지 는지가 는지를 는지요 네 네요 노라니 노라면 느라 는구나 는군요"
_MID: Final = "면 면요 면은 면서 며 려 려고 려고요 려면 려는 려니 러 므로"
_SOFT: Final = "니 니까 ㄴ ㄴ가요 ㄴ데 ㄴ데요 ㄴ지 ㄴ지를 ㄴ지요 ㄹ ㄹ게요 ㄹ게 ㄹ까요 ㄹ까 ㄹ까나 ㄹ래요 ㄹ지 ㄹ지요 ㄹ수록 옵니다 옵소서 오며 ㅂ시다"
_FORMAL: Final = "ㅂ니다 ㅂ니다만 ㅂ니까 ㄴ다 ㄴ다면 ㄴ답니다"
_INFINITIVE: Final = "- 서 서는 서요 서도 다 도 도요 요 라 ㅆ으면"
_TENSED: Final = "습니다 습니까 어요 지요 죠 네요 는데 는데요 고 고요 으니 으니까 으며 으면 기에 다 던 을까요 나요 음"
_OPEN: Final = "을 을지 는지 는지요 다면 기를"
"""Endings of the past that claim nothing: a condition, a question, a wish."""

_CASES: Final = (
    "- 의 에 에는 에도 에서 에서는 에서도 에서부터 에까지 에만 에나 에다 에다가 에요 도 만 만은 만큼은 까지 까지는 까지도 까지만 까지의 "
    "까지예요 까지입니다 까지이고 부터 부터는 부터의 처럼 처럼요 같이 마다 마저 대로 대로요 하고 들 들을 들이 들은 들과 들도 들의 들에 "
    "들로 들처럼 들까지 엔 에선"
)
_COPULA: Final = (
    "입니다 입니다만 입니까 이지요 이죠 이고 이고요 이며 이면서 인 인데요 인데 일 일까요 이라 이라서 이라는 이라고 이라고도 이니 이니까 이네요 "
    "인지 인지요 이자 이랄까요 이면 이든 이든지 이기도 이기에 이었습니다 이었어요 이었지요 이었네요 이던 인가요 일지요"
)
_AFTER_VOWEL: Final = (
    "는 가 를 와 와는 와도 와의 로 로는 로도 로요 로부터 로서 로만 랑 나 나마 든 든지 란 라도 예요 지요 죠 고 고요 며 면서 ㄴ데요 ㄴ데 ㄹ까요 라 라서 "
    "라는 라고 라고도 라면 니 니까 네요 자 였습니다 였어요 였지요 였네요 던 ㄴ지 ㄴ ㄹ ㄴ가요 랄까요 야말로"
)
_AFTER_CONSONANT: Final = "은 이 을 과 과는 과도 과의 으로 으로는 으로도 으로요 으로부터 으로서 으로만 이랑 이나 이나마 이란 이라도 이라면 이에요 이야말로"
_AFTER_RIEUL: Final = "로 로는 로도 로요 로부터 로서 로만"

ENDINGS: Final[Mapping[str, frozenset[str]]] = {
    WHOLE: frozenset({""}),
    DETERMINER: frozenset({""}),
    ADVERB: endings("- 도 는 요 만 이요 라도"),
    "P": endings(_BARE),
    "N": endings(_NASAL),
    "M": endings(_MID),
    "E": endings(_SOFT),
    "B": endings(_FORMAL),
    "p": endings("고 고도 고서 게 게끔 게도 듯 듯이 던 지도 기는 면서"),
    "e": endings("ㄴ ㄴ데 면서 며 ㄹ"),
    "a": endings("서 서인지"),
    "S": endings("습니다 습니다만 습니까 는다 는다면 는답니다 답니다 소"),
    "A": endings(_INFINITIVE),
    "H": endings(_BARE, _NASAL, _MID, _SOFT, _FORMAL, "ㅂ시오 나요 ㄹ지요 겠지요"),
    "I": endings("세요 셔요 셔서 셔도 셔도요 셔 소서 셨으면"),
    "T": endings(_TENSED),
    "O": endings(_OPEN),
    "b": endings("기를 길 기 도록 는 듯 듯이 면 시길 시기를 시도록"),
    "K": endings("께 께서 께서는 에게 에게서 에게는 한테 한테서 한테는 더러 보고 님 님께 님이 님은"),
    "V": endings(_CASES, _COPULA, _AFTER_VOWEL),
    "C": endings(_CASES, _COPULA, _AFTER_CONSONANT),
    "L": endings(_CASES, _COPULA, _AFTER_CONSONANT, _AFTER_RIEUL),
    "G": endings("습니다 습니까 어요 지요 죠 네요 고 고요 으니 다는 다고 는데 는데요 는지요 는지"),
}
"""What may close a word after each slot."""

LINKS: Final[Mapping[str, tuple[tuple[str, str, int], ...]]] = {
    "P": ((decompose("겠"), "G", 0),),
    "E": ((decompose("시"), "H", HONORIFIC), ("", "I", HONORIFIC)),
    "A": ((_TAIL_OF["ㅆ"], "O", 0), (_TAIL_OF["ㅆ"], "T", PAST)),
    "H": ((decompose("겠"), "G", HONORIFIC),),
    "I": ((decompose("셨"), "O", HONORIFIC), (decompose("셨"), "T", HONORIFIC | PAST)),
}
"""Slot -> (what is between, the slot after it, the bits it sets)."""


def noun_slot(noun: str) -> str:
    """The particle slot of a noun (composed or decomposed), by its last sound."""
    last = decompose(noun)[-1]
    return "V" if last <= "\u11a7" else "L" if last == _RIEUL else "C"


def verb_bases(stem: str, irregular: str = "") -> list[tuple[str, str]]:
    """(base in jamo, slots) of a verb or adjective stem; `irregular` is one of `ㅂ ㄷ ㅅ ㅎ ㅡ 러` or nothing.

    르 doubles, 하 and ㄹ-final stems alternate without being told. `ㅡ` marks the few stems that lose their vowel instead
    (따르다, 푸다), `러` those that keep it (푸르다).
    """
    jamo = decompose(stem)
    if irregular:
        return _irregular_bases(stem, jamo, irregular)
    if jamo[-1] == _RIEUL:
        return [(jamo, "PM"), (jamo[:-1], "NEB"), (jamo + _suffix_vowel(jamo, "어"), "A")]
    if jamo[-1] > "\u11a7":
        soft = jamo + decompose("으")
        return [(jamo, "PNS"), (soft, "ME"), (jamo + _suffix_vowel(jamo, "어"), "A")]
    return [(jamo, "PNMEB"), *((base, "A") for base in _contracted(stem, jamo))]


def _irregular_bases(stem: str, jamo: str, irregular: str) -> list[tuple[str, str]]:
    body = jamo[:-1]
    if irregular == "러":
        return [(jamo, "PNMEB"), (jamo + decompose("러"), "A")]
    if irregular == "ㅡ":
        return [(jamo, "PNMEB"), (body + _suffix_vowel(jamo[:-2], "어")[1:], "A")]
    soft, infinitive = {
        "ㅂ": (body + decompose("우"), body + decompose("와" if stem.endswith(_BRIGHT) else "워")),
        "ㄷ": (body + _RIEUL + decompose("으"), body + _RIEUL + _suffix_vowel(jamo, "어")),
        "ㅅ": (body + decompose("으"), body + _suffix_vowel(jamo, "어")),
        "ㅎ": (body, body[:-1] + _VOWEL_OF[_WHITENED.get(body[-1], "ㅐ")]),
    }[irregular]
    return [(jamo, "PNS"), (soft, "ME"), (infinitive, "A")]


def _contracted(stem: str, jamo: str) -> Iterable[str]:
    """The infinitives of a vowel stem: contracted, and spelled out where both are written."""
    body, vowel = jamo[:-1], _COMPATIBLE_VOWEL[jamo[-1]]
    if stem.endswith("하"):
        return (body + _VOWEL_OF["ㅐ"], jamo + decompose("여"))
    if stem.endswith("르") and len(stem) > 1:
        doubled = _RIEUL + "\u1105"
        return (body[:-1] + doubled + _suffix_vowel(body[:-1], "어")[1:],)
    if vowel == "ㅡ":
        return (body + _suffix_vowel(body[:-1], "어")[1:],)
    merged = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ"}.get(vowel)
    spelled = jamo + _suffix_vowel(jamo, "어")
    if merged:
        return (body + _VOWEL_OF[merged], spelled)
    if vowel in "ㅐㅔ":
        return (jamo, spelled)
    return (jamo,) if vowel in "ㅏㅓㅕ" else (spelled,)


def _suffix_vowel(jamo: str, closed: str) -> str:
    """아 after a bright vowel, otherwise `closed`."""
    vowels = [_COMPATIBLE_VOWEL[character] for character in jamo if character in _COMPATIBLE_VOWEL]
    return decompose("아" if vowels and vowels[-1] in "ㅏㅗㅑ" else closed)


_ALIKE: Final = str.maketrans(
    {
        **dict.fromkeys("ᄀᄁᄏ", "ᄀ"),
        **dict.fromkeys("ᄃᄄᄐ", "ᄃ"),
        **dict.fromkeys("ᄇᄈᄑ", "ᄇ"),
        **dict.fromkeys("ᄉᄊ", "ᄉ"),
        **dict.fromkeys("ᄌᄍᄎ", "ᄌ"),
        **dict.fromkeys("ᄂᄅ", "ᄂ"),
        **{
            _VOWEL_OF[vowel]: _VOWEL_OF[like]
            for vowel, like in zip("ㅑㅘㅕㅝㅛㅠㅒㅔㅖㅙㅞㅚㅟㅢ", "ㅏㅏㅓㅓㅗㅜㅐㅐㅐㅐㅐㅐㅣㅣ", strict=True)
        },
        **{_TAIL_OF[tail]: _TAIL_OF["ㄱ"] for tail in "ㄲㄳㄺㅋ"},
        **{_TAIL_OF[tail]: _TAIL_OF["ㄷ"] for tail in "ㅅㅆㅈㅊㅌㅎ"},
        **{_TAIL_OF[tail]: _TAIL_OF["ㅂ"] for tail in "ㅄㄿㅍ"},
        **{_TAIL_OF[tail]: _TAIL_OF["ㄴ"] for tail in "ㄵㄶ"},
        **{_TAIL_OF[tail]: _TAIL_OF["ㄹ"] for tail in "ㄼㄽㄾㅀ"},
        **{_TAIL_OF["ㄻ"]: _TAIL_OF["ㅁ"]},
    }
)
_STRETCHED: Final = re.compile("([\u1161-\u1175])\u110b\\1")


def sound(jamo: str) -> str:
    """What `jamo` roughly sounds like: sounds that respellings trade for one another fall together."""
    return _STRETCHED.sub(r"\1", jamo.translate(_ALIKE))

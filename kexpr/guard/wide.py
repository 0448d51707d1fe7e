"""The endings of refused words: nearly all that Korean has, where discourse makes do with few.

A refused stem of one syllable cannot be told from the start of another word by its spelling (속, 속도), so it is found
by what follows it. `morphology` lists what discourse may say; here stand the other endings in common use, also those
left out there on purpose (hearsay, doubt, contrast), and what is often written solid with a verb: auxiliaries
(먹어보고), negation (먹지않고) and dependent nouns (먹을때). `WIDE` turns the slots of a stem into these.

Left out are 가 and 오 as auxiliaries, since 나아가 and its like are words of their own.
"""

from collections.abc import Mapping
from typing import Final

from kexpr.guard import morphology
from kexpr.guard.morphology import decompose, endings, verb_bases

__all__ = ["ENDINGS", "LINKS", "WIDE"]

WIDE: Final[Mapping[int, str]] = str.maketrans(
    {"P": "P1", "N": "N2", "M": "M3", "E": "E4", "B": "B5", "A": "A6", "S": "S7", "V": "V8", "C": "C9", "L": "L9"}
)
"""For `str.translate`: a slot becomes itself and its wide counterpart."""

_TENSED: Final = "t"
_QUOTED: Final = "q"
_HEARD: Final = "h"
_RECALLED: Final = "r"
_OBLIGED: Final = "y"
_DEPENDENT: Final = "d"
_COPULA: Final = "c"

_BARE: Final = (
    "거나 거늘 거니 거니와 거든 거든요 거들랑 거라 거라고 건 건대 건마는 건만 게나 게도 게요 고 고는 고도 고만 고말고 고말고요 고선 고야 고자 "
    "고파 곤 구나 구려 구만 구만요 구먼 구먼요 군 군요 기 긴 길래 나 나요 네 네요 느니 느라 는커녕 다 다가 다가는 다가도 다간 다마는 다만 다시피 "
    "던 던가 던가요 던걸 던걸요 던데 던데도 던데요 던들 던지 데 데요 도록 도록은 되 든 든가 든지 듯 듯이 디 사오니 사옵니다 소 소서 습디다 습죠 자 "
    "자꾸나 자마자 자면서 자며 잖니 잖습니까 잖아 잖아요 지 지는 지도 지를 지마는 지만 지만요 지만은 지야 지요 진 질"
)
_NASAL: Final = (
    "나 나요 네 네요 느냐 느뇨 느니 느니만 느라 느라고 는 는가 는가요 는걸 는걸요 는고 는구나 는구려 는구먼 는군 는군요 는다 는데 는데다 는데도 "
    "는데요 는바 는즉 는지 는지가 는지는 는지도 는지라 는지를 는지요 는커녕 니"
)
_MID: Final = (
    "나 나니 나마 니 니까 니까요 니깐 니라 니만큼 되 라 랴 러 러는 러요 려 려거든 려고 려고도 려고요 려나 려나요 려니 려니와 려다 려다가 려던 "
    "려도 려면 려면은 려면야 려무나 려오 련 련다 련마는 련만 렴 리까 리니 리다 리라 리라고 리만큼 리오 마 매 며 며는 면 면서 면서도 면야 면은 "
    "므로 므로써 시압 오"
)
_SOFT: Final = (
    "ㄴ가 ㄴ가요 ㄴ걸 ㄴ걸요 ㄴ고 ㄴ다손 ㄴ데 ㄴ데다 ㄴ데도 ㄴ데요 ㄴ들 ㄴ바 ㄴ즉 ㄴ지 ㄴ지가 ㄴ지는 ㄴ지도 ㄴ지라 ㄴ지를 ㄴ지요 냐 ㄹ걸 ㄹ걸요 "
    "ㄹ게 ㄹ게요 ㄹ까 ㄹ까봐 ㄹ까요 ㄹ께 ㄹ께요 ㄹ꼬 ㄹ라 ㄹ라고 ㄹ라고요 ㄹ라치면 ㄹ락 ㄹ래 ㄹ래도 ㄹ래야 ㄹ래요 ㄹ런지 ㄹ망정 ㄹ밖에 ㄹ뿐더러 ㄹ세라 "
    "ㄹ수록 ㄹ지 ㄹ지가 ㄹ지는 ㄹ지도 ㄹ지라 ㄹ지라도 ㄹ지를 ㄹ지언정 ㄹ지요 ㄹ진대 ㄹ테니 ㄹ테니까 ㄹ텐데 ㄹ텐데요 ㅂ쇼 ㅂ시다 ㅂ시오 세 세나 세요 세용 "
    "셔요 십시다 십시오 십쇼 오 오나 오니 오니까 오면 옵고 옵나이다 옵니까 옵니다 옵소서 와요"
)
_FORMAL: Final = "ㄴ다 ㄴ다만 ㅂ니까 ㅂ니다 ㅂ니다만 ㅂ디까 ㅂ디다 ㅂ시다 ㅂ죠"
_INFINITIVE: Final = "- 나 다 다가 다가는 다가도 도 도요 라 라고 라도 서 서는 서도 서라 서라도 서야 서요 서인지 야 요 용 지라 ㅆ댔자 ㅆ으면"
_PLAIN: Final = "는다 는다만 는단다 소 습니까 습니다 습니다만 습디까 습디다 습죠"
_PAST: Final = "습니까 습니다 습니다만 습디다 습죠 어 어도 어라 어서 어야 어야지 어요"
_QUOTE: Final = (
    "- 거나 거든 건만 고 고까지 고는 고도 고만 고요 고 구 구요 기보다 기보다는 기에 길래 나 네 네요 뇨 느냐 는 는가 는데 는데도 는데요 는지 니 니까 "
    "니까요 니요 더군 더군요 더니 더라 더라고 더라고요 던 던가 던데 던데요 던지 든가 든지 마는 며 면 면서 면서도 면서요 면야 손 죠 지 지마는 지만 지요 ㄴ "
    "ㄴ다 ㄴ들 ㄴ지 ㄹ ㄹ까 ㄹ까요 ㄹ지 ㄹ지라도 ㅂ니까 ㅂ니다 ㅂ니다만 ㅂ디다 ㅂ시고"
)
_HEARSAY: Final = "- 고 고요 나 나요 니 던데 던데요 더니 더라 더라고요 도 면 서 서는 서야 요 지 지요"
_RECALL: Final = (
    "구나 구려 구먼 구먼요 군 군요 냐 냐고 니 니만 니만은 니라 ㄴ가 ㄴ걸 ㄴ데 ㄴ데도 ㄴ데요 라 라고 라고요 라구요 라니 라니까 라도 라며 라면 라면서요 라지요 "
    "란 란다 랍니다 래 래도 래요 이다"
)
_OBLIGATION: Final = "- 만 죠 지 지만 지요 만이 하고말고"
_DEPENDENTS: Final = (
    "거 건 걸 걸요 것 게 게요 겁니까 겁니다 겨를 겸 기회 길 김 대로 데 동안 듯 듯이 듯싶 따름 때 때문 리 만 만큼 무렵 바 법 뻔 뿐 뿐더러 사람 수 양 "
    "적 전 정도 줄 중 즈음 지경 지도 채 척 체 터 턱 텐데 텐데요 테니 테니까 테지 테지만 통 후"
)
_PARTICLES: Final = (
    "같이 까지나 까지라도 께서도 끼리 는커녕 대로만 더러 ㄴ커녕 마저도 마따나 만으로 만으로는 만으로도 만을 만이 만이라도 만큼 만큼도 만큼이나 말고 말고는 "
    "말고도 밖에 밖에는 보다 보다는 보다도 보단 부터가 부터라도 뿐 뿐만 뿐이 에게 에게만 에게서 에까지도 에는커녕 에도요 에서까지 에서라도 에서만 에서의 "
    "에서조차 에야 에조차 은커녕 이나 이야 이여 조차 조차도 치고 치고는 커녕 하고는 하고도 하고요"
)
_CONTRACTED: Final = (
    "거나 거니와 거든 거든요 건만 구나 군요 ㄴ가 ㄴ걸요 ㄴ데도 ㄴ들 ㄴ지도 ㄴ지요 다 더니 더라고요 더라도 던데 던데요 든가 라거나 라고요 라길래 라네 라네요 라더라 "
    "라던데 라든가 라든지 라며 라면서 라서야 라야 라지만 랍니다 래서 래요 로구나 로군 로군요 로다 로써 로써도 로까지 로도요 ㄹ걸요 ㄹ까 ㄹ수록 ㄹ지 ㄹ지도 ㄹ지라도 "
    "ㄹ지언정 ㅂ니까 ㅂ니다 ㅂ니다만 여서 여도 였던 였다 잖아 잖아요 지만 지만요"
)
_AFTER_COPULA: Final = "네 네요 라 라도 라서 라서야 라야 라야만 로구나 로군 로군요 로다 로되 야 야말로 어요 에요 예요 여서 여도 여요 잖아 잖아요"

ENDINGS: Final[Mapping[str, frozenset[str]]] = {
    **morphology.ENDINGS,
    "1": endings(_BARE),
    "2": endings(_NASAL),
    "3": endings(_MID),
    "4": endings(_SOFT),
    "5": endings(_FORMAL),
    "6": endings(_INFINITIVE),
    "7": endings(_PLAIN),
    "8": endings(_PARTICLES, _CONTRACTED),
    "9": endings(_PARTICLES, "으로까지 으로써 으로써도 으로조차 이다"),
    _TENSED: endings(_PAST),
    _QUOTED: endings(_QUOTE),
    _HEARD: endings(_HEARSAY),
    _RECALLED: endings(_RECALL),
    _OBLIGED: endings(_OBLIGATION),
    _DEPENDENT: frozenset(),
    _COPULA: endings(_AFTER_COPULA),
}
"""Slot -> what may close a word after it, the slots of discourse included."""

_EATEN: Final = "먹 마시 빼 끊 바르 흘리 챙기 줄이 늘리 걸리 고치 아프 쑤시 저리"
"""The verbs written solid with a noun (밥먹고, 배아파서)."""

_Links = tuple[tuple[str, str, int], ...]


def _after(slots: str, *spelled: str) -> _Links:
    return tuple((between, slots, 0) for between in endings(*spelled))


def _verbs(spelled: str, before: str = "") -> _Links:
    """Links to the forms of other verbs written solid, after `before`."""
    return tuple(
        (decompose(before) + base, slots.translate(WIDE), 0)
        for verb in spelled.split()
        for base, slots in verb_bases(*verb.split(":"))
    )


def _nouns(spelled: str) -> _Links:
    return tuple((decompose(noun), morphology.noun_slot(noun).translate(WIDE), 0) for noun in spelled.split())


LINKS: Final[Mapping[str, _Links]] = {
    **morphology.LINKS,
    "1": (
        *_after(_TENSED, "겠"),
        *_after(_RECALLED, "더"),
        *_after(_QUOTED, "다 자 냐"),
        *_after(_HEARD, "대 재 냬"),
        *_after("V8" + _DEPENDENT, "기"),
        *_after(_DEPENDENT, "던"),
        *_verbs("싶 있 나 말 보 보니 살", "고"),
        *_verbs("않 못하 말 마", "지"),
        *_verbs("하 되 만들", "게"),
        *_verbs("하", "고자"),
        *_verbs("하 되", "도록"),
        *_verbs("하", "듯"),
    ),
    "2": (*_after(_QUOTED, "느냐 는다"), *_after(_HEARD, "는대 느냬"), *_after(_DEPENDENT, "는")),
    "3": (
        *_after(_QUOTED, "라"),
        *_after(_HEARD, "래"),
        *_after("C9", "ㅁ"),
        *_verbs("하 들", "려"),
        *_verbs("하", "려고"),
        *_verbs("하 되", "면"),
    ),
    "4": (
        *_after("PNMEB".translate(WIDE), "시"),
        *_after("A6", "셔"),
        *_after(_QUOTED, "냐"),
        *_after(_HEARD, "냬"),
        *_after(_DEPENDENT, "ㄴ ㄹ"),
        *_after("C9", "ㄻ"),
    ),
    "5": (*_after(_QUOTED, "ㄴ다"), *_after(_HEARD, "ㄴ대")),
    "6": (
        *_after(_TENSED, "ㅆ"),
        *_after(_OBLIGED, "야"),
        *_verbs("보 보이 주 버리 두 놓 내 드리 있 지 봐주 하"),
    ),
    "7": (*_after(_QUOTED, "는다"), *_after(_HEARD, "는대")),
    "8": (*_after(_COPULA + "PMEB".translate(WIDE), "이"), *_after(_TENSED, "였"), *_verbs(_EATEN)),
    "9": (*_after(_COPULA + "PMEB".translate(WIDE), "이"), *_after(_TENSED, "이었 였"), *_verbs(_EATEN)),
    _TENSED: (("", "PNS".translate(WIDE), 0), *_after("ME".translate(WIDE), "으")),
    _HEARD: _after(_TENSED, "ㅆ"),
    _OBLIGED: (*_after(_TENSED, "겠"), *_verbs("하 되 지"), *_verbs("하", "만")),
    _DEPENDENT: (*_nouns(_DEPENDENTS), *_verbs("만하 듯하 척하 체하 뻔하 법하 듯싶")),
    _COPULA: (*_after(_QUOTED, "라"), *_after(_HEARD, "래"), *_after(_TENSED, "었")),
}
"""Slot -> (what is between, the slots after it, the bits it sets)."""

"""Our inflection beside that of kiwipiepy, a conjugator of its own: they differ only where a reason is written down.

Every discourse stem takes every ending that its slots allow, every refused stem one ending for each of its bases, and
the refused stems of one syllable the common endings of Korean, which must all be found.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator

import pytest
from kiwipiepy import Kiwi  # type: ignore[import-untyped]

from kexpr.guard.data_files import data_lines, sections
from kexpr.guard.lexicon import denied_category
from kexpr.guard.morphology import ENDINGS, LINKS, decompose, verb_bases

Morphemes = list[tuple[str, str]]

SLOTS = "PNMEBSA"
TAILS = "".join(map(chr, range(0x11A8, 0x11C3)))
TAIL = {"ㅂ": "\u11b8", "ㄷ": "\u11ae", "ㅅ": "\u11ba", "ㅎ": "\u11c2"}
"""The mark of a stem -> how a stem ends that may bear it, in jamo."""
MODELS = ("먹", "읽", "잡")
"""Regular stems that an ending is read after."""
CARRIERS = ("고", "는", "으면", "은", "을", "습니다", "는다", "읍시다", "어", "었습니다", "으세요")
"""Endings that between them need every base of a stem."""

UNREAD = {
    "으옵니다": "letters: kiwi knows 옵니다 only after a vowel",
    "으옵소서": "letters, likewise",
    "으오며": "letters, likewise",
    "으시옵니다": "letters, likewise",
}
MARKED_OTHERWISE = {
    "굽": "굽다 bends (굽은 길); kiwi thinks of grilling (구운)",
    "묻": "묻다 smears (묻어) beside 묻다 asks (묻:ㄷ)",
    "곱다랗:ㅎ": "kiwi does not know it; as 커다랗다",
    "얄따랗:ㅎ": "likewise",
    "잘다랗:ㅎ": "likewise",
}
UNLIKE_KIWI: tuple[tuple[str, Callable[[str, str, str, set[str]], bool]], ...] = (
    (
        "답니다 joins adjectives, and says what others say: only where it came with the formal endings",
        lambda stem, ending, theirs, ours: ending == "답니다" and not ours,
    ),
    ("소 is old, and follows a consonant only", lambda stem, ending, theirs, ours: ending == "소"),
    (
        "before ㄴ kiwi drops this ㅎ; 파랗네 and 파라네 are both right since 2015, 파라는 is no form",
        lambda stem, ending, theirs, ours: _ends_in(stem, TAIL["ㅎ"]) and ending[0] in "네느는노",
    ),
    (
        "contracted and spelled out are both written (봐, 보아; 해, 하여); kiwi makes one of them",
        lambda stem, ending, theirs, ours: theirs in ours and all(_same(stem, theirs, form) for form in ours),
    ),
    (
        "a form listed as it stands, not a stem: kiwi can only add to it (구겨어)",
        lambda stem, ending, theirs, ours: theirs.startswith((stem + "어", stem + "아", stem + "었", stem + "았")),
    ),
)
_SHOWN = 80

# The endings that a refused stem is looked for with, the second after 었 and 겠.
AFTER_STEM = """
고 고는 고도 고서 고자 고야 곤 거나 거든 거든요 거니와 건만 게 게끔 기 기는 기도 기에 길래 구나
군요 느냐 느냐고 는 는가 는걸요 는구나 는군요 는다 는다고 는다네요 는다니까 는다더군요 는다면
는다면서요 는다지만 는다지요 는답니다 는대 는대요 는데 는데도 는데요 는지 는지도 니 냐고 네 네요 나요
다가 다니 다시피 답니다 대요 더군요 더니 더라 더라고요 더라도 더라면 던 던가요 던데 던데요 던지 도록
든지 듯 듯이 되 든가 자 자고 자니 자마자 자면서 재요 잖아 잖아요 지 지는 지도 지를 지만 지요 죠
지마는 습니까 습니다 습니다만 은 은가요 은걸요 은데 은데도 은들 은지 은지도 을 을걸 을걸요 을게요
을까 을까요 을라고요 을래요 을망정 을뿐더러 을수록 을지 을지도 을지라도 을지언정 음 음에도 음을 읍시다
으니 으니까 으라 으라고 으라는 으라니 으랴 으러 으려 으려고 으려는 으려다 으려다가
으려면 으련만 으렴 으려무나 으리라 으마 으며 으면 으면서 으면서도 으므로 으세요 으시길
으시던데 으시지 으신 으실까 으십시오 으십니다 어 어도 어라 어서 어야 어야겠어요 어야지 어야지요
어요 었다 었다가
"""
AFTER_PAST = """
고 거든요 거니와 건만 겠지요 기에 군요 느냐 는데 는데도 는지 는지도 네요 나요 다고 다네요 다니까
다면 다면서요 다지만 답니다 대요 더군요 더니 더라고요 더라도 더라면 던 던데요 든지
듯이 잖아요 지 지만 지요 습니다 습니다만 을걸요 을까요 을지 을지도 을지라도 음 음에도 으나
으니 으니까 으며 으면 으므로 어도 어야 어요
"""


def _same(stem: str, one: str, other: str) -> bool:
    spelled = tuple(stem + vowel for vowel in "아어여았었였")
    return one == other or one.startswith(spelled) or other.startswith(spelled)


def _composed(jamo: str) -> str:
    return unicodedata.normalize("NFC", jamo)


def _after_consonant(slot: str, ending: str) -> str:
    """How `ending` of `slot` is spelled after a regular stem that ends in a consonant: what names it here."""
    if slot == "A":
        return _composed(decompose("어") + ending)
    if slot not in "MEB":
        return _composed(ending)
    spelled = _composed(decompose("으") + ending) if ending[:1] in TAILS else "으" + _composed(ending)
    for soft, hard in (("읍니", "습니"), ("은다", "는다"), ("은답", "는답")) if slot == "B" else ():
        spelled = hard + spelled[2:] if spelled.startswith(soft) else spelled
    return spelled


def _all_endings(slot: str) -> Iterator[str]:
    yield from ENDINGS[slot]
    for between, following, _ in LINKS.get(slot, ()):
        for after in following:
            yield from (between + rest for rest in _all_endings(after))


NAMED = {slot: {_after_consonant(slot, ending): ending for ending in _all_endings(slot)} for slot in SLOTS}
"""Slot -> the name of an ending -> the ending, in jamo."""


def _listed() -> dict[str, set[str]]:
    """Stem as spelled in the data -> the parts of speech (`V`, `A`, `R` for refused) it is listed under."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, lines in sections("discourse.txt"):
        part = {"verb": "V", "auxiliary": "V", "adjective": "A", "root": "V"}.get(name.partition(".")[0])
        for word in " ".join(lines).split() if part else ():
            found[f"{word}하" if name.startswith("root.") else word].add(part or "")
    for line in data_lines("context.txt"):
        word_class, _, word = line.partition("\t")[0].partition(" ")
        if word_class == "v":
            found[word].add("V")
    for name, lines in sections("denied.txt"):
        for word in " ".join(lines).split() if name.endswith(".verb") else ():
            found[word].add("R")
    return found


STEMS = _listed()


@pytest.fixture(scope="module")
def kiwi() -> Kiwi:
    return Kiwi(num_workers=1)


def _morphemes(kiwi: Kiwi, name: str) -> Morphemes | None:
    """What the ending called `name` is made of, as kiwi reads it after a model; it has to lose its 으 after a vowel."""
    for model in MODELS:
        word = model + ("아" + name[1:] if model == "잡" and name.startswith("어") else name)
        stem, *rest = [(token.form, token.tag) for token in kiwi.tokenize(word)]
        if stem[0] != model or not stem[1].startswith("VV") or kiwi.join([stem, *rest]) != word:
            continue
        for tag in (rest[-1][1], "EC", "EF"):
            morphemes = [*rest[:-1], (rest[-1][0], tag)]
            if not kiwi.join([("보", "VV"), *morphemes]).startswith("보으"):
                return morphemes
    return None


def _read(kiwi: Kiwi, names: set[str]) -> dict[str, Morphemes]:
    """The endings that kiwi knows, or knows as another of them with more after it -> what they are made of."""
    known = {name: morphemes for name in sorted(names) if (morphemes := _morphemes(kiwi, name))}
    for name in sorted(names - known.keys()):
        shorter = max((other for other in known if name.startswith(other)), key=len, default=None)
        if shorter is not None:
            known[name] = [*known[shorter], (name[len(shorter) :], "JX")]
    return known


@pytest.fixture(scope="module")
def read(kiwi) -> dict[str, Morphemes]:
    return _read(kiwi, {name for named in NAMED.values() for name in named})


def _tag(stem: str, irregular: str, parts: set[str]) -> str:
    """kiwi's tag of the stem; it has to be told how a stem inflects that two verbs share (걷다)."""
    tag = "VA" if parts == {"A"} else "VV"
    return tag + ("-I" if irregular else "-R") if _ends_in(stem, *TAIL.values()) else tag


def _ends_in(stem: str, *tails: str) -> bool:
    return decompose(stem).endswith(tails)


def _none(found: Collection[str], what: str) -> None:
    """Fails with the words themselves: they are the lexicon's, not a customer's."""
    if found:
        pytest.fail("\n".join([f"{len(found)} {what} differ:", *sorted(found)[:_SHOWN]]), pytrace=False)


def test_kiwi_knows_our_endings(read):
    names = {name for named in NAMED.values() for name in named}
    _none((names - read.keys()) ^ UNREAD.keys(), "endings")


def test_a_stem_is_marked_irregular_where_kiwi_knows_it_so(kiwi):
    wrong = set()
    for spelled in STEMS:
        stem, _, irregular = spelled.partition(":")
        if not _ends_in(stem, *TAIL.values()):
            continue
        tokens = [token for ending in ("고", "는", "다") for token in kiwi.tokenize(stem + ending)]
        known = any(token.tag.endswith("-I") and stem.endswith(token.form) for token in tokens)
        if known != bool(irregular):
            wrong.add(spelled)
    _none(wrong ^ MARKED_OTHERWISE.keys(), "stems")


def test_our_forms_are_those_of_kiwi_but_for_the_reasons_given(kiwi, read):
    used: set[str] = set()
    differences = set()
    for spelled, parts in sorted(STEMS.items()):
        stem, _, irregular = spelled.partition(":")
        tag = _tag(stem, irregular, parts)
        bases = verb_bases(stem, irregular)
        for name in CARRIERS if parts == {"R"} else read:
            theirs = kiwi.join([(stem, tag), *read[name]])
            jamo = {base + NAMED[slot][name] for base, slots in bases for slot in slots if name in NAMED[slot]}
            if jamo == {decompose(theirs)}:
                continue
            ours = {_composed(form) for form in jamo}
            reason = next((why for why, holds in UNLIKE_KIWI if holds(stem, name, theirs, ours)), None)
            if reason is None:
                differences.add(f"{spelled} + {name}: kiwi {theirs}, ours {' '.join(sorted(ours)) or 'none'}")
            else:
                used.add(reason)
    _none(differences, "forms")
    assert used == {why for why, _ in UNLIKE_KIWI}, "a reason that nothing needs any more"


def test_every_common_form_of_a_refused_stem_of_one_syllable_is_found(kiwi):
    names = {*AFTER_STEM.split(), *(tense + ending for tense in "었겠" for ending in AFTER_PAST.split())}
    endings = _read(kiwi, names)
    _none(names - endings.keys(), "endings")
    stems = [spelled.partition(":")[::2] for spelled, parts in sorted(STEMS.items()) if "R" in parts]
    forms = {
        kiwi.join([(stem, _tag(stem, irregular, {"R"})), *morphemes])
        for stem, irregular in stems
        if len(stem) == 1
        for morphemes in endings.values()
    }
    _none({form for form in forms if denied_category(form) is None}, "forms")

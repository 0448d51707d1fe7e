"""The decision on one slot's text.

Theory of operation. After the form layer every word is asked of the lexicon, once, from left to right:

    refused stem or form   the code of its category
    unknown word           its category, if the refused vocabulary has it, also respelled; else one a text is let pass
                           (three that compare: 두루미처럼), and the next is guard.vocabulary: open in how it is put
                           together, not in what it is about
    word of company        its pattern must find the company it needs
    image                  not of a person unless compared to, and not as a time (꽃이 피면)
    auxiliary              carries the verb before it: 읽어 주세요 invites to read, 적어 주세요 asks for a deed

Then the phrases: what is refused although each of its words is discourse. The first refusal decides. Spelling tricks
(inner spaces and punctuation, Hanja, stretched or respelled syllables) turn known words into unknown ones, so they
need no list of their own; where the pieces are words, they are read joined as well.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple

from kexpr.codes import Reason, SlotKind
from kexpr.guard.form import MARK, Refusal, check_form
from kexpr.guard.lexicon import PERSON, Kind, Lexicon, Phrases, Reading, denied_category, lexicon
from kexpr.guard.morphology import HONORIFIC
from kexpr.guard.ngrams import limit, weight
from kexpr.guard.readings import halved, readings
from kexpr.guard.strange import hidden, named, tolerated
from kexpr.manifest import PlaceholderKind, Slot

__all__ = ["Decision", "judge", "warm"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Codes and code-point offsets only: no text. `reason` is None for an accepted text."""

    reason: Reason | None
    layer: str
    span: tuple[int, int] | None

    @property
    def accepted(self) -> bool:
        return self.reason is None


_ACCEPTED: Final = Decision(None, "", None)
_FORM_LAYER: Final = {
    Reason.FORM_NOT_NFC: "unicode",
    Reason.FORM_CHARACTER: "unicode",
    Reason.FORM_JAMO: "unicode",
    Reason.FORM_HANJA: "unicode",
    Reason.FORM_PARTICLE: "particles",
    Reason.FORM_PLACEHOLDER_DETACHED: "particles",
}
_SURFACE_OF: Final = {
    SlotKind.DAILY_STATUS: "daily",
    SlotKind.WEEKLY_INTERPRETATION: "weekly",
    SlotKind.WEEKLY_RATIONALE: "weekly",
    SlotKind.DUAL_JUDGMENT: "adaptive",
    SlotKind.DUAL_REASON: "adaptive",
    SlotKind.PHYSIQUE_NOTICE: "adaptive",
}
_WORD: Final = re.compile(r"""['"(]*([가-힣]+)(?:['")]+([가-힣]+))?['")]*([.,!?…:;]*)['")]*""")
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
_STRANGERS: Final = {False: 1, True: 3}
"""Whether it compares -> the unknown words that a text may hold."""
_COMPANY: Final = 3
_LONGEST_RUN: Final = 24
_NO_QUOTES: Final = str.maketrans("", "", "'\"()")
_IMAGE_REACH: Final = 6
_CACHED_WORDS: Final = 4096


class _Word(NamedTuple):
    """One word as written. `fault` is set where it cannot be read as one; `weight` leans towards refusal."""

    core: str
    reading: Reading | None
    stop: str
    compares: bool
    fault: Reason | None
    weight: int


@cache
def warm() -> None:
    """Load and compile everything that a first call would; some 0.3 s."""
    lexicon().warm()
    limit()
    named("")


def judge(text: str, slot: Slot, tokens: Sequence[str]) -> Decision:
    """Whether `text` may stand in `slot`; `tokens` are its placeholders as issued. Never raises on any text."""
    prose = check_form(text, slot, tokens)
    if isinstance(prose, Refusal):
        return Decision(prose.reason, _FORM_LAYER.get(prose.reason, "form"), prose.span)
    lexis = lexicon()
    written = prose.split(" ")
    words = list(map(_word, written))
    return (
        _words(lexis, text, written, words, slot)
        or _phrase(lexis, prose, written)
        or _likeness(written, words)
        or _otherwise(lexis, prose, written, slot)
        or _ACCEPTED
    )


def _otherwise(lexis: Lexicon, prose: str, written: list[str], slot: Slot) -> Decision | None:
    """Refused for what it says when it is read otherwise."""
    for reading, known in readings(prose, written):
        anew = reading.split(" ")
        refused = _phrase(lexis, reading, anew)
        if refused is None and known:
            refused = _words(lexis, reading, anew, list(map(_word, anew)), slot)
        if refused is not None:
            return Decision(refused.reason, refused.layer, None)
    return Decision(Reason.FORM_RESPELLING, "unicode", None) if halved(written) else None


_WORD_START: Final = re.compile("(?<![가-힣])[가-힣]")


def _phrase(lexis: Lexicon, prose: str, written: list[str]) -> Decision | None:
    found = lexis.open_phrases.search(prose)
    start = 0
    for word in written:
        for offset, phrases in _begun(word):
            found = found or phrases.match(prose, start + offset)
        if found is not None:
            return Decision(found[0], "phrases", found[1])
        start += len(word) + 1
    return None


@lru_cache(_CACHED_WORDS)
def _begun(word: str) -> tuple[tuple[int, Phrases], ...]:
    """(offset, the refused phrases that may begin there) of one word as written."""
    begun = lexicon().phrases
    starts = [found.start() for found in _WORD_START.finditer(word)]
    phrases = [(start, begun.get(f"{word} "[start : start + 2]) or begun.get(word[start])) for start in starts]
    return tuple((start, each) for start, each in phrases if each is not None)


def _likeness(written: list[str], words: list[_Word | None]) -> Decision | None:
    """Refused for looking like refused text as a whole; the span is the word that does so most."""
    weights = [word.weight if word else 0 for word in words]
    if sum(weights) <= limit():
        return None
    heaviest = max(range(len(weights)), key=weights.__getitem__)
    start = len(" ".join(written[:heaviest])) + (heaviest > 0)
    return Decision(Reason.GUARD_VOCABULARY, "ngrams", (start, start + len(written[heaviest])))


def _words(lexis: Lexicon, text: str, written: list[str], words: list[_Word | None], slot: Slot) -> Decision | None:
    alone = slot.placeholders[0].kind is PlaceholderKind.SENTENCE
    carried: int | None = None
    strangers = {False: 0, True: 0}
    start = 0
    for index, (spelled, word) in enumerate(zip(written, words, strict=True)):
        span = (start, start + len(spelled))
        start += len(spelled) + 1
        if word is None or word.reading is None:
            fault = _fault(words, index, alone)
            if fault is not None:
                return Decision(fault, "form", span)
            carried = None
            continue
        reading = word.reading
        if reading.kind == Kind.ALLOWED and carried is None and len(word.core) > 1:
            carried = reading.bears if reading.infinitive else None
            continue
        if carried is not None and reading.auxiliary is not None:
            form, infinitive = reading.auxiliary
            if not form & ~carried:
                carried = carried if infinitive else None
                continue
            return Decision(_deed(form & ~carried), "lexicon", span)
        if reading.kind == Kind.UNKNOWN:
            if text[slice(*span)] != spelled:
                return Decision(Reason.FORM_HANJA, "unicode", span)
            strangers[word.compares] += 1
            few = strangers[word.compares] <= _STRANGERS[word.compares]
            if few and tolerated(word.core) and not _split(words, index):
                carried = None
                continue
            return Decision(*named(word.core), span)
        refused = _standing(lexis, reading, slot, written, words, index)
        if refused is not None:
            return Decision(refused[0], refused[1], span)
        if len(word.core) == 1 and (joined := _joined(words, index)) is not None:
            return Decision(joined, "lexicon", span)
        carried = reading.bears if reading.infinitive else None
    return None


@lru_cache(_CACHED_WORDS)
def _word(text: str) -> _Word | None:
    """None for a placeholder."""
    if MARK in text:
        return None
    lexis = lexicon()
    leaning = weight(text)
    match = _WORD.fullmatch(text)
    if match is not None:
        core = match[1] + (match[2] or "")
        return _Word(
            core, lexis.read(core), match[3], core in _COMPARING or bool(_COMPARES.search(core)), None, leaning
        )
    if text in _LONE:
        return _Word("", None, text, False, None, leaning)
    parts = [_WORD.fullmatch(part) for part in _PARTS.split(text) if part]
    whole = "".join(part[1] for part in parts if part)
    readable = len(parts) > 1 and denied_category(whole) is None
    if readable and all(part and lexis.read(part[1]).kind == Kind.ALLOWED for part in parts):
        return _Word("", None, "", False, None, leaning)
    return _Word("", None, "", False, Reason.FORM_PUNCTUATION, leaning)


def _fault(words: list[_Word | None], index: int, alone: bool) -> Reason | None:
    """What is wrong with a placeholder, if it stands `alone`, or with what cannot be read as a word."""
    word = words[index]
    if word is not None:
        return word.fault
    return Reason.FORM_PLACEHOLDER_UNCLOSED if alone and index and not _closed(words[index - 1]) else None


def _closed(word: _Word | None) -> bool:
    """Whether a sentence placeholder may follow `word`: a closed sentence, a connective, or another placeholder."""
    return word is None or bool(word.stop) or (word.reading is not None and word.reading.connects)


def _deed(excess: int) -> Reason:
    return Reason.GUARD_DECISION if excess & HONORIFIC else Reason.GUARD_EVIDENTIAL


def _standing(
    lexis: Lexicon, reading: Reading, slot: Slot, written: list[str], words: list[_Word | None], index: int
) -> tuple[Reason, str] | None:
    """(reason, layer) if the word may not stand where it does."""
    if reading.kind == Kind.ALLOWED:
        return None
    if reading.kind == Kind.DENIED:
        return Reason(f"guard.{reading.tag}"), "lexicon"
    if reading.kind == Kind.IMAGE:
        return None if _pictured(words, index, reading.tag == PERSON) else (Reason.GUARD_VOCABULARY, "images")
    word = words[index]
    core = word.core if word else ""
    window = " ".join(
        (
            _SURFACE_OF[slot.kind],
            slot.kind.value,
            *written[max(0, index - _COMPANY) : index],
            written[index].replace(core, f"<{core}>", 1),
            *written[index + 1 : index + 1 + _COMPANY],
        )
    ).translate(_NO_QUOTES)
    return None if lexis.contexts[reading.tag].compiled.search(window) else (Reason.GUARD_VOCABULARY, "context")


_SUBJECT: Final = re.compile("[가-힣](?:이|가|도|은|는)$")
_CONDITION: Final = re.compile("(?:면|때|때에|때는|무렵|즈음)$")


def _pictured(words: list[_Word | None], index: int, compared_only: bool) -> bool:
    """Whether an image is one. A person is one only when compared to; a scene is none when it names a time (꽃이 피면)."""
    ahead = _sentence_from(words, index)
    if any(word.compares for word in ahead):
        return True
    if compared_only:
        return False
    return not (_SUBJECT.search(ahead[0].core) and any(_CONDITION.search(word.core) for word in ahead[1:4]))


def _sentence_from(words: list[_Word | None], index: int) -> list[_Word]:
    """The words from `index` that an image can reach: to the end of its sentence, at most `_IMAGE_REACH`."""
    reached: list[_Word] = []
    for word in words[index : index + _IMAGE_REACH]:
        if word is None:
            break
        reached.append(word)
        if word.stop.strip(","):
            break
    return reached


_PAUSE: Final = ("", ",")


def _split(words: list[_Word | None], index: int) -> bool:
    """Whether the unknown word at `index` is half of one that is known."""
    word = words[index]
    before = words[index - 1] if index else None
    after = words[index + 1] if index + 1 < len(words) else None
    return word is not None and (
        (before is not None and before.stop in _PAUSE and hidden(before.core, word.core))
        or (after is not None and word.stop in _PAUSE and hidden(word.core, after.core))
    )


def _joined(words: list[_Word | None], index: int) -> Reason | None:
    """A refused word spelled with inner spaces: one-syllable words in a row, and the word after them, read joined."""
    row = 0
    run = ""
    for word in words[index : index + _LONGEST_RUN]:
        if word is None or word.reading is None:
            break
        run += word.core
        if len(word.core) > 1 or word.stop or len(run) > _LONGEST_RUN:
            break
        row += 1
    category = denied_category(run) if row > 1 else None
    return None if category is None else Reason(f"guard.{category}")

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
from functools import cache
from typing import Final, NamedTuple, Self

from kexpr.codes import Reason, SlotKind
from kexpr.guard.form import Refusal, check_form
from kexpr.guard.lexicon import PERSON, Kind, Lexicon, Reading, denied_category, lexicon
from kexpr.guard.morphology import HONORIFIC
from kexpr.guard.ngrams import limit
from kexpr.guard.readings import halved, readings
from kexpr.guard.strange import hidden, named, tolerated
from kexpr.guard.words import Spelled, Word, spelled
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
_PLACE_OF: Final = {
    kind: f"{surface} {kind.value}"
    for surface, kinds in {
        "daily": [SlotKind.DAILY_STATUS],
        "weekly": [SlotKind.WEEKLY_INTERPRETATION, SlotKind.WEEKLY_RATIONALE],
        "adaptive": [SlotKind.DUAL_JUDGMENT, SlotKind.DUAL_REASON, SlotKind.PHYSIQUE_NOTICE],
    }.items()
    for kind in kinds
}
_STRANGERS: Final = {False: 1, True: 3}
"""Whether it compares -> the unknown words that a text may hold."""
_COMPANY: Final = 3
_LONGEST_RUN: Final = 24
_QUOTES: Final = re.compile("""['"()]""")
_IMAGE_REACH: Final = 6


class _Prose(NamedTuple):
    """A text and its words, as written and as they are known."""

    text: str
    written: list[str]
    spelled: list[Spelled]
    words: list[Word | None]

    @classmethod
    def of(cls, text: str) -> Self:
        written = text.split(" ")
        known = list(map(spelled, written))
        return cls(text, written, known, [each.word for each in known])

    def span(self, index: int) -> tuple[int, int]:
        """Where the word at `index` stands."""
        start = sum(map(len, self.written[:index])) + index
        return start, start + len(self.written[index])


@cache
def warm() -> None:
    """Load and compile everything that a first call would; some 0.3 s."""
    lexicon().warm()
    limit()
    named("")


def judge(text: str, slot: Slot, tokens: Sequence[str]) -> Decision:
    """Whether `text` may stand in `slot`; `tokens` are its placeholders as issued. Never raises on any text."""
    checked = check_form(text, slot, tokens)
    if isinstance(checked, Refusal):
        return Decision(checked.reason, _FORM_LAYER.get(checked.reason, "form"), checked.span)
    lexis = lexicon()
    prose = _Prose.of(checked)
    return (
        _words(lexis, text, prose, slot)
        or _phrase(lexis, prose)
        or _likeness(prose)
        or _otherwise(lexis, prose, slot)
        or _ACCEPTED
    )


def _otherwise(lexis: Lexicon, prose: _Prose, slot: Slot) -> Decision | None:
    """Refused for what it says when it is read otherwise."""
    for reading, known in readings(prose.text, prose.written, prose.spelled):
        anew = _Prose.of(reading)
        refused = _phrase(lexis, anew) or (_words(lexis, reading, anew, slot) if known else None)
        if refused is not None:
            return Decision(refused.reason, refused.layer, None)
    return Decision(Reason.FORM_RESPELLING, "unicode", None) if halved(prose.written, prose.spelled) else None


def _phrase(lexis: Lexicon, prose: _Prose) -> Decision | None:
    if found := lexis.open_phrases.compiled.search(prose.text):
        return Decision(lexis.open_phrases.reason(found), "phrases", found.span())
    start = 0
    for written, known in zip(prose.written, prose.spelled, strict=True):
        for offset, pattern, phrases in known.begun:
            if found := pattern.match(prose.text, start + offset):
                return Decision(phrases.reason(found), "phrases", found.span())
        start += len(written) + 1
    return None


def _likeness(prose: _Prose) -> Decision | None:
    """Refused for looking like refused text as a whole; the span is the word that does so most."""
    weights = [known.weight for known in prose.spelled]
    if sum(weights) <= limit():
        return None
    heaviest = max(range(len(weights)), key=weights.__getitem__)
    return Decision(Reason.GUARD_VOCABULARY, "ngrams", prose.span(heaviest))


def _words(lexis: Lexicon, text: str, prose: _Prose, slot: Slot) -> Decision | None:
    words = prose.words
    alone = slot.placeholders[0].kind is PlaceholderKind.SENTENCE
    carried: int | None = None
    strangers = {False: 0, True: 0}
    for index, word in enumerate(words):
        if word is None or word.reading is None:
            fault = _fault(words, index, alone)
            if fault is not None:
                return Decision(fault, "form", prose.span(index))
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
            return Decision(_deed(form & ~carried), "lexicon", prose.span(index))
        if reading.kind == Kind.UNKNOWN:
            span = prose.span(index)
            if text[slice(*span)] != prose.written[index]:
                return Decision(Reason.FORM_HANJA, "unicode", span)
            strangers[word.compares] += 1
            few = strangers[word.compares] <= _STRANGERS[word.compares]
            if few and tolerated(word.core) and not _split(words, index):
                carried = None
                continue
            return Decision(*named(word.core), span)
        refused = _standing(lexis, reading, slot, prose, index)
        if refused is not None:
            return Decision(refused[0], refused[1], prose.span(index))
        if len(word.core) == 1 and (joined := _joined(words, index)) is not None:
            return Decision(joined, "lexicon", prose.span(index))
        carried = reading.bears if reading.infinitive else None
    return None


def _fault(words: list[Word | None], index: int, alone: bool) -> Reason | None:
    """What is wrong with a placeholder, if it stands `alone`, or with what cannot be read as a word."""
    word = words[index]
    if word is not None:
        return word.fault
    return Reason.FORM_PLACEHOLDER_UNCLOSED if alone and index and not _closed(words[index - 1]) else None


def _closed(word: Word | None) -> bool:
    """Whether a sentence placeholder may follow `word`: a closed sentence, a connective, or another placeholder."""
    return word is None or bool(word.stop) or (word.reading is not None and word.reading.connects)


def _deed(excess: int) -> Reason:
    return Reason.GUARD_DECISION if excess & HONORIFIC else Reason.GUARD_EVIDENTIAL


def _standing(lexis: Lexicon, reading: Reading, slot: Slot, prose: _Prose, index: int) -> tuple[Reason, str] | None:
    """(reason, layer) if the word may not stand where it does."""
    if reading.kind == Kind.ALLOWED:
        return None
    if reading.kind == Kind.DENIED:
        return Reason(f"guard.{reading.tag}"), "lexicon"
    if reading.kind == Kind.IMAGE:
        return None if _pictured(prose.words, index, reading.tag == PERSON) else (Reason.GUARD_VOCABULARY, "images")
    word, written = prose.words[index], prose.written
    core = word.core if word else ""
    window = " ".join(
        (
            _PLACE_OF[slot.kind],
            *written[max(0, index - _COMPANY) : index],
            written[index].replace(core, f"<{core}>", 1),
            *written[index + 1 : index + 1 + _COMPANY],
        )
    )
    return (
        None
        if lexis.contexts[reading.tag].compiled.search(_QUOTES.sub("", window))
        else (Reason.GUARD_VOCABULARY, "context")
    )


_SUBJECT: Final = re.compile("[가-힣](?:이|가|도|은|는)$")
_CONDITION: Final = re.compile("(?:면|때|때에|때는|무렵|즈음)$")


def _pictured(words: list[Word | None], index: int, compared_only: bool) -> bool:
    """Whether an image is one. A person is one only when compared to; a scene is none when it names a time (꽃이 피면)."""
    ahead = _sentence_from(words, index)
    if any(word.compares for word in ahead):
        return True
    if compared_only:
        return False
    return not (_SUBJECT.search(ahead[0].core) and any(_CONDITION.search(word.core) for word in ahead[1:4]))


def _sentence_from(words: list[Word | None], index: int) -> list[Word]:
    """The words from `index` that an image can reach: to the end of its sentence, at most `_IMAGE_REACH`."""
    reached: list[Word] = []
    for word in words[index : index + _IMAGE_REACH]:
        if word is None:
            break
        reached.append(word)
        if word.stop.strip(","):
            break
    return reached


_PAUSE: Final = ("", ",")


def _split(words: list[Word | None], index: int) -> bool:
    """Whether the unknown word at `index` is half of one that is known."""
    word = words[index]
    before = words[index - 1] if index else None
    after = words[index + 1] if index + 1 < len(words) else None
    return word is not None and (
        (before is not None and before.stop in _PAUSE and hidden(before.core, word.core))
        or (after is not None and word.stop in _PAUSE and hidden(word.core, after.core))
    )


def _joined(words: list[Word | None], index: int) -> Reason | None:
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

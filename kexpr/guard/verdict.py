"""The decision on one slot's text.

Theory of operation. After the form layer every word is asked of the lexicon, once, from left to right:

    refused stem or form   the code of its category
    unknown word           guard.vocabulary: prose is open in how it is put together, not in what it is about
    word of company        its pattern must find the company it needs
    image                  only inside a comparison (찻집에 앉은 듯, 햇살처럼)
    auxiliary              carries the verb before it: 읽어 주세요 invites to read, 적어 주세요 asks for a deed

Then the phrases: what is refused although each of its words is discourse. The first refusal decides. Spelling tricks
(inner spaces and punctuation, Hanja, stretched or respelled syllables) turn known words into unknown ones, so they
need no list of their own; where the pieces are words, they are read joined as well.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from kexpr.codes import Reason, SlotKind
from kexpr.guard.form import MARK, Refusal, check_form
from kexpr.guard.lexicon import Kind, Lexicon, Reading, lexicon
from kexpr.guard.morphology import HONORIFIC
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
    ["같은", "삼아", "듯", "듯이", "듯한", "마음으로", "기분으로", "느낌으로", "심정으로", "때처럼", "것처럼", "모양으로"]
)
_COMPANY: Final = 3
_IMAGE_REACH: Final = 6
_CACHED_WORDS: Final = 4096


class _Word(NamedTuple):
    """One word as written. `fault` is set where it cannot be read as one."""

    core: str
    reading: Reading | None
    stop: str
    compares: bool
    fault: Reason | None


def warm() -> None:
    """Load and compile everything that a first call would."""
    lexicon()


def judge(text: str, slot: Slot, tokens: Sequence[str]) -> Decision:
    """Whether `text` may stand in `slot`; `tokens` are its placeholders as issued. Never raises on any text."""
    prose = check_form(text, slot, tokens)
    if isinstance(prose, Refusal):
        return Decision(prose.reason, _FORM_LAYER.get(prose.reason, "form"), prose.span)
    lexis = lexicon()
    refused = _words(lexis, prose, slot)
    if refused is not None:
        return refused
    found = lexis.phrases.search(prose)
    if found is not None and found.lastindex is not None:
        return Decision(lexis.phrase_reasons[found.lastindex - 1], "phrases", found.span())
    return _ACCEPTED


def _words(lexis: Lexicon, prose: str, slot: Slot) -> Decision | None:
    written = prose.split(" ")
    words = [_word(word) for word in written]
    alone = slot.placeholders[0].kind is PlaceholderKind.SENTENCE
    carried: int | None = None
    start = 0
    for index, (text, word) in enumerate(zip(written, words, strict=True)):
        span = (start, start + len(text))
        start += len(text) + 1
        if word is None:
            if alone and index and not _closed(words[index - 1]):
                return Decision(Reason.FORM_PLACEHOLDER_UNCLOSED, "form", span)
            carried = None
            continue
        if word.reading is None:
            if word.fault is not None:
                return Decision(word.fault, "form", span)
            carried = None
            continue
        reading = word.reading
        if carried is not None and reading.auxiliary is not None:
            form, infinitive = reading.auxiliary
            if not form & ~carried:
                carried = carried if infinitive else None
                continue
            if reading.kind == Kind.UNKNOWN:
                return Decision(_deed(form & ~carried), "lexicon", span)
        refused = _standing(lexis, reading, slot, written, words, index)
        if refused is not None:
            return Decision(refused[0], refused[1], span)
        if len(word.core) == 1 and (joined := _joined(lexis, words, index)) is not None:
            return Decision(joined, "lexicon", span)
        carried = reading.bears if reading.infinitive else None
    return None


@lru_cache(_CACHED_WORDS)
def _word(text: str) -> _Word | None:
    """None for a placeholder."""
    if MARK in text:
        return None
    lexis = lexicon()
    match = _WORD.fullmatch(text)
    if match is not None:
        core = match[1] + (match[2] or "")
        return _Word(core, lexis.read(core), match[3], core in _COMPARING or bool(_COMPARES.search(core)), None)
    if text in _LONE:
        return _Word("", None, text, False, None)
    parts = [_WORD.fullmatch(part) for part in _PARTS.split(text) if part]
    whole = lexis.read("".join(part[1] for part in parts if part))
    readable = len(parts) > 1 and whole.kind != Kind.DENIED
    if readable and all(part and lexis.read(part[1]).kind == Kind.ALLOWED for part in parts):
        return _Word("", None, "", False, None)
    return _Word("", None, "", False, Reason.FORM_PUNCTUATION)


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
        return Reason(f"guard.{reading.tag.removeprefix('~')}"), "lexicon"
    if reading.kind == Kind.UNKNOWN:
        return Reason.GUARD_VOCABULARY, "vocabulary"
    if reading.kind == Kind.IMAGE:
        compared = any(word is not None and word.compares for word in words[index : index + _IMAGE_REACH])
        return None if compared else (Reason.GUARD_VOCABULARY, "images")
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
    )
    return None if lexis.contexts[reading.tag].search(window) else (Reason.GUARD_VOCABULARY, "context")


def _joined(lexis: Lexicon, words: list[_Word | None], index: int) -> Reason | None:
    """A refused word spelled with inner spaces: one-syllable words read joined with what follows."""
    run = ""
    for word in words[index:]:
        if word is None or word.reading is None:
            break
        run += word.core
        if len(word.core) > 1 or word.stop:
            break
    reading = lexis.read(run)
    if len(run) > 1 and reading.kind == Kind.DENIED and not reading.tag.startswith("~"):
        return Reason(f"guard.{reading.tag}")
    return None

"""The form of one slot's text: characters, spacing, caps, and where its placeholders stand.

Nothing here knows a word of Korean but the particles a noun placeholder takes. The result is the text as the later
layers read it: Hanja read aloud and each placeholder a bare `⟦` word, all code points at their places.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from kexpr.codes import Reason
from kexpr.guard.hanja import HANJA, read_aloud
from kexpr.guard.particles import PARTICLES, is_particle, last_sound
from kexpr.guard.plainer import plainer
from kexpr.manifest import Placeholder, PlaceholderKind, Slot

__all__ = ["MARK", "Refusal", "check_form"]

MARK: Final = "⟦"

_CACHED_WORDS: Final = 4096
_Span = tuple[int, int] | None


class Refusal(NamedTuple):
    """A reason and code-point offsets in the text as it came."""

    reason: Reason
    span: _Span


_PLAIN: Final = re.compile(f"[ {MARK}]*[가-힣][가-힣 .,!?…{MARK}]*")
_FOREIGN: Final = re.compile(f"[^가-힣 .,!?…·:;()'\"{HANJA}{MARK}-]")
_JAMO: Final = re.compile("[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\ud7b0-\ud7fb\uffa0-\uffdc]")
_ANY_HANJA: Final = re.compile(f"[{HANJA}]")
_SPACING: Final = re.compile(r" (?: |$|(?<=^ )|(?=[.,!?…:;)]))|\( ")
_PAIRED_MARK: Final = re.compile("""[()'"]""")
_CLOSING: Final = {"(": ")", "'": "'", '"': '"'}
_BRACKETED: Final = re.compile("⟦[^⟦⟧]*⟧")
_SYLLABLE: Final = re.compile("[가-힣]")
_AFTER_NOUN: Final = re.compile(r"""['")]*([가-힣]*)['")]*[.,!?…:;]*(?:$| )""")
_NEXT_WORD: Final = re.compile(r"""['")]*([.,!?…:;]*)['")]* ['"(]*([가-힣]+)""")
_ALSO_A_WORD: Final = frozenset(["이", "자", "가", "와", "하고"])
"""Particles that are words as well, where a sentence may begin: 이 이야기, 자, 이제, 와 주셔서."""


def check_form(text: str, slot: Slot, tokens: Sequence[str]) -> str | Refusal:
    """The text for the later layers, or why its form is refused."""
    spans = _placed(text, tokens)
    if isinstance(spans, Refusal):
        return spans
    prose = _masked(text, spans)
    plain = _PLAIN.fullmatch(prose) is not None
    refusal = (
        _length(prose, slot)
        or (None if plain else _characters(text, prose))
        or _spacing(text)
        or (None if plain else _pairs(prose))
    )
    if refusal is not None:
        return refusal
    if not plain and _ANY_HANJA.search(prose):
        read = read_aloud(prose)
        if read is None:
            return Refusal(Reason.FORM_HANJA, None)
        prose = read
    for placeholder, span in zip(slot.placeholders, spans, strict=True):
        attached = _sentence if placeholder.kind is PlaceholderKind.SENTENCE else _noun
        refusal = attached(prose, span, placeholder)
        if refusal is not None:
            return refusal
    return prose


def _placed(text: str, tokens: Sequence[str]) -> list[tuple[int, int]] | Refusal:
    """Where the tokens stand: each exactly once, in order, and no other bracket of their kind."""
    spans: list[tuple[int, int]] = []
    end = 0
    for token in tokens:
        start = text.find(token, end)
        end = start + len(token)
        spans.append((start, end))
        if start < 0:
            return _misplaced(text, tokens)
    return spans if text.count("⟦") == text.count("⟧") == len(spans) else _misplaced(text, tokens)


def _misplaced(text: str, tokens: Sequence[str]) -> Refusal:
    """Why the tokens do not stand as they should."""
    found = [(match.span(), match[0]) for match in _BRACKETED.finditer(text)]
    for span, token in found:
        if token not in tokens:
            return Refusal(Reason.FORM_PLACEHOLDER_UNKNOWN, span)
    if text.count("⟦") != len(found) or text.count("⟧") != len(found):
        return Refusal(Reason.FORM_PLACEHOLDER_UNKNOWN, None)
    written = [token for _, token in found]
    for token in tokens:
        times = written.count(token)
        if times != 1:
            return Refusal(
                Reason.FORM_PLACEHOLDER_REPEATED if times else Reason.FORM_PLACEHOLDER_MISSING,
                found[-1][0] if times else None,
            )
    return Refusal(Reason.FORM_PLACEHOLDER_ORDER, None)


def _masked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + MARK * (end - start) + text[end:]
    return text


def _length(prose: str, slot: Slot) -> Refusal | None:
    """The generated cap counts neither a token nor the one space that sets a sentence placeholder off."""
    beyond = len(prose) - prose.count(MARK) - slot.caps.generated
    if beyond > 0 and beyond > sum(placeholder.kind is PlaceholderKind.SENTENCE for placeholder in slot.placeholders):
        return Refusal(Reason.FORM_TOO_LONG, None)
    return None if prose else Refusal(Reason.FORM_EMPTY, None)


def _characters(text: str, prose: str) -> Refusal | None:
    foreign = _FOREIGN.search(prose)
    if foreign is None:
        if prose.strip(MARK) and not _SYLLABLE.search(prose) and not _ANY_HANJA.search(prose):
            return Refusal(Reason.FORM_PUNCTUATION, None)
        return None
    if _JAMO.search(foreign[0]):
        return Refusal(Reason.FORM_JAMO, foreign.span())
    if not unicodedata.is_normalized("NFC", text):
        return Refusal(Reason.FORM_NOT_NFC, foreign.span())
    return Refusal(Reason.FORM_CHARACTER, foreign.span())


def _spacing(text: str) -> Refusal | None:
    found = _SPACING.search(text)
    return None if found is None else Refusal(Reason.FORM_SPACING, found.span())


def _pairs(prose: str) -> Refusal | None:
    """A bracket or quotation mark opens before a word and closes after one, and never parts one (복"용)."""
    opened = [-1]
    for mark in _PAIRED_MARK.finditer(prose):
        at, last = mark.start(), opened[-1]
        if last >= 0 and mark[0] == _CLOSING[prose[last]] and at > last + 1 and prose[at - 1] != " ":
            opened.pop()
        elif mark[0] in _CLOSING and (at == last + 1 or prose[at - 1] == " ") and prose[at + 1 : at + 2] != " ":
            opened.append(at)
        else:
            return Refusal(Reason.FORM_PUNCTUATION, mark.span())
    return None if len(opened) == 1 else Refusal(Reason.FORM_PUNCTUATION, (opened[1], opened[1] + 1))


def _sentence(prose: str, span: tuple[int, int], _: Placeholder) -> Refusal | None:
    """Alone: the text's edge or a space on both sides, and no particle after the space."""
    start, end = span
    if (start and prose[start - 1] != " ") or (end < len(prose) and prose[end] != " "):
        return Refusal(Reason.FORM_PLACEHOLDER_GLUED, span)
    return _detached(prose, end, begins=True)


def _noun(prose: str, span: tuple[int, int], placeholder: Placeholder) -> Refusal | None:
    """A particle or copula may follow directly, as the expansion's last sound has it; nothing is glued before."""
    start, end = span
    if start and prose[start - 1] not in " ('\"":
        return Refusal(Reason.FORM_PLACEHOLDER_GLUED, span)
    after = _AFTER_NOUN.match(prose, end)
    if after is None:
        return Refusal(Reason.FORM_PARTICLE, span)
    if after[1]:
        if after[1] in PARTICLES[last_sound(placeholder.expansion)]:
            return None
        return Refusal(Reason.FORM_PARTICLE, after.span(1))
    return _detached(prose, end, begins=False)


def _detached(prose: str, end: int, *, begins: bool) -> Refusal | None:
    """A particle or copula set off by a space, however spelled.

    `begins`: what follows begins a sentence even without a stop.
    """
    following = _NEXT_WORD.match(prose, end)
    if following is None or not _reads_as_particle(following[2]):
        return None
    if (begins or following[1]) and following[2] in _ALSO_A_WORD:
        return None
    return Refusal(Reason.FORM_PLACEHOLDER_DETACHED, following.span(2))


@lru_cache(_CACHED_WORDS)
def _reads_as_particle(word: str) -> bool:
    return any(map(is_particle, (word, *plainer(word))))

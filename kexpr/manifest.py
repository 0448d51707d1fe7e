"""Manifests: what is frozen, what a model may write around, and how accepted prose is put back.

A manifest is an ordered list of frozen segments and slots. Everything content-bearing is left out of every `repr`.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kexpr.codes import Reason, SlotKind, Surface
from kexpr.errors import Rejected

__all__ = [
    "CAPS",
    "TELEGRAM_UTF16_LIMIT",
    "Caps",
    "Frozen",
    "Manifest",
    "Placeholder",
    "PlaceholderKind",
    "Slot",
    "SlotText",
    "compose",
    "utf16_length",
]

TELEGRAM_UTF16_LIMIT: Final = 4096


class PlaceholderKind(StrEnum):
    SENTENCE = "sentence"
    NOUN = "noun"


@dataclass(frozen=True, slots=True)
class Caps:
    """Code points: generated (placeholder tokens not counted) and after local expansion."""

    generated: int
    expanded: int


CAPS: Final = {
    SlotKind.DAILY_STATUS: Caps(120, 450),
    SlotKind.WEEKLY_INTERPRETATION: Caps(180, 600),
    SlotKind.WEEKLY_RATIONALE: Caps(180, 600),
    SlotKind.DUAL_JUDGMENT: Caps(120, 450),
    SlotKind.DUAL_REASON: Caps(90, 350),
    SlotKind.PHYSIQUE_NOTICE: Caps(120, 450),
}
"""The slot table of contract section 2."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A code-owned proposition or noun phrase; `expansion` is exact and NFC."""

    kind: PlaceholderKind
    expansion: str = field(repr=False)

    def __post_init__(self) -> None:
        if not self.expansion or not unicodedata.is_normalized("NFC", self.expansion):
            raise ValueError("a placeholder expansion is nonempty NFC text")


@dataclass(frozen=True, slots=True)
class Frozen:
    """Bytes no one but code may touch."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Slot:
    """One place for prose. `canonical` is the text that stands there when nothing is selected."""

    local_id: str = field(repr=False)
    kind: SlotKind
    semantic_ids: tuple[str, ...] = field(repr=False)
    action_ids: tuple[str, ...] = field(repr=False)
    placeholders: tuple[Placeholder, ...]
    canonical: str = field(repr=False)

    @property
    def caps(self) -> Caps:
        return CAPS[self.kind]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Frozen segments and slots of one message, in order."""

    surface: Surface
    segments: tuple[Frozen | Slot, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(segment for segment in self.segments if isinstance(segment, Slot))

    @property
    def canonical_body(self) -> str:
        return "".join(s.text if isinstance(s, Frozen) else s.canonical for s in self.segments)


@dataclass(frozen=True, slots=True)
class SlotText:
    """Model text of one slot: `text` holds each of `tokens` (one a placeholder, in order) where an expansion goes."""

    text: str = field(repr=False)
    tokens: tuple[str, ...] = field(repr=False)


def utf16_length(text: str) -> int:
    """UTF-16 code units, the unit of Telegram's limit."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def expand(slot: Slot, text: SlotText) -> str:
    """The slot's text with each token replaced by its expansion, exactly once and in order."""
    if len(text.tokens) != len(slot.placeholders):
        raise Rejected(Reason.COMPOSE_EXPANSION)
    prose: list[str] = []
    pieces: list[str] = []
    rest = text.text
    for token, placeholder in zip(text.tokens, slot.placeholders, strict=True):
        if not token or text.text.count(token) != 1 or token not in rest:
            raise Rejected(Reason.COMPOSE_EXPANSION)
        before, _, rest = rest.partition(token)
        prose.append(before)
        pieces += (before, placeholder.expansion)
    if _has_numeric("".join((*prose, rest))):
        raise Rejected(Reason.COMPOSE_NUMERIC_TOKEN)
    expanded = "".join((*pieces, rest))
    if len(expanded) > slot.caps.expanded:
        raise Rejected(Reason.COMPOSE_EXPANDED_CAP)
    return expanded


_ALPHANUMERIC_BUT_HANGUL: Final = re.compile(r"[^\W가-힣]")


def _has_numeric(prose: str) -> bool:
    return _ALPHANUMERIC_BUT_HANGUL.search(prose) is not None and any(map(str.isnumeric, prose))


def compose(manifest: Manifest, texts: Sequence[SlotText]) -> str:
    """The message body with `texts` in the slots; raises `Rejected` unless every frozen byte and bound holds."""
    slots = manifest.slots
    if len(texts) != len(slots):
        raise Rejected(Reason.COMPOSE_FROZEN_CHANGED)
    expanded = iter([expand(slot, text) for slot, text in zip(slots, texts, strict=True)])
    body = "".join(s.text if isinstance(s, Frozen) else next(expanded) for s in manifest.segments)
    if utf16_length(body) > TELEGRAM_UTF16_LIMIT:
        raise Rejected(Reason.COMPOSE_UTF16_BOUND)
    return body

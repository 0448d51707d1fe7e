"""What the four surfaces share: how host text is taken, how a slot is made, how a manifest is accepted.

A presentation is host input: nothing about it is believed. Whatever is not exactly as expected raises
`UnknownPresentation`, which carries no content, and the host's canonical text stands.
"""

from collections.abc import Mapping
from typing import Final

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import TELEGRAM_UTF16_LIMIT, Frozen, Manifest, Placeholder, PlaceholderKind, Slot, utf16_length

__all__ = [
    "PIECES_MAX",
    "bullets",
    "coded",
    "line",
    "lines",
    "manifest_of",
    "noun_slot",
    "require",
    "sentence_slot",
    "text",
]

PIECES_MAX: Final = 32
"""Facts, actions or segments in one message; the message bound would refuse far more anyway."""


def require(condition: bool) -> None:
    """Refuse the presentation unless `condition` holds."""
    if not condition:
        raise UnknownPresentation


def text(value: object) -> str:
    """`value` if it is exactly a nonempty `str` of at most one message; a subclass could change under our hands."""
    if type(value) is not str or not 0 < len(value) <= TELEGRAM_UTF16_LIMIT:
        raise UnknownPresentation
    return value


def line(value: object) -> str:
    """`value` if it is one line of text: a line break in a piece would let a fact look like a heading."""
    piece = text(value)
    require(piece.splitlines() == [piece])
    return piece


def lines(values: object, least: int = 1, most: int = PIECES_MAX) -> tuple[str, ...]:
    """`values` if it is exactly a tuple of `least` to `most` lines."""
    if type(values) is not tuple or not least <= len(values) <= most:
        raise UnknownPresentation
    return tuple(line(value) for value in values)


def bullets(pieces: tuple[str, ...]) -> str:
    """The list layout of every surface: one `- ` line a piece, no line break at the end."""
    return "\n".join(f"- {piece}" for piece in pieces)


def coded(table: Mapping[str, str], code: object) -> str:
    """The table's text for a code: the enum member or its value, as a host stores it; nothing else."""
    if not isinstance(code, str) or type(code) not in {str, *map(type, table)}:
        raise UnknownPresentation
    value = table.get(code)
    if value is None:
        raise UnknownPresentation
    return value


def sentence_slot(local_id: str, kind: SlotKind, code: str, sentence: str) -> Slot:
    """A slot around one code-owned sentence."""
    return _slot(local_id, kind, code, Placeholder(PlaceholderKind.SENTENCE, sentence))


def noun_slot(local_id: str, kind: SlotKind, code: str, noun_phrase: str) -> Slot:
    """A slot around one code-owned noun phrase."""
    return _slot(local_id, kind, code, Placeholder(PlaceholderKind.NOUN, noun_phrase))


def _slot(local_id: str, kind: SlotKind, code: str, placeholder: Placeholder) -> Slot:
    """One semantic id and one action id in every slot of every kind, so that their counts say nothing."""
    return Slot(
        local_id=local_id,
        kind=kind,
        semantic_ids=(f"{kind.value}.{code}",),
        action_ids=(f"{kind.value}.present",),
        placeholders=(placeholder,),
        canonical=placeholder.expansion,
    )


def manifest_of(surface: Surface, canonical_payload: object, *segments: Frozen | Slot) -> Manifest:
    """The manifest, if its canonical body is the host's payload byte for byte and fits one message."""
    manifest = Manifest(surface, segments)
    body = manifest.canonical_body
    require(text(canonical_payload) == body)
    require(_is_encodable(body) and utf16_length(body) <= TELEGRAM_UTF16_LIMIT)
    return manifest


def _is_encodable(body: str) -> bool:
    """No lone surrogate: it compares equal, and then fails on its way out."""
    return not any("\ud800" <= character <= "\udfff" for character in body)

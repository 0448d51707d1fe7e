"""Manifests from final canonical texts alone, for the anchor-grammar contract (contract, sections 2 and 8).

A text is taken apart at its separator, a blank line, and every block must be what its place asks for: a known code
text, a heading, a list. What was taken apart is put together again and must be the text. Anything else, such as a view,
a menu, a terminal message, a later schema or another order, raises `UnknownPresentation`: canonical, no call.

A slot's expansions drop the period that the grammar adds. The slot of a dual judgment is its whole line.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import Frozen, Manifest, Placeholder, PlaceholderKind, Slot
from kexpr.surfaces import daily, dualcoachtest, physique, weekly
from kexpr.surfaces.base import line, lines, manifest_of, require, text

__all__ = ["AdaptiveSurfaceAdapter", "CanonicalText", "anchor_segments"]

_SEPARATOR: Final = "\n\n"
_BULLET: Final = "- "
_CARD_SURFACES: Final = frozenset({Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE})


@dataclass(frozen=True, slots=True)
class CanonicalText:
    """A final canonical text of a surface, as the host would publish it."""

    surface: Surface
    text: str = field(repr=False)


class AdaptiveSurfaceAdapter:
    """Takes the two enveloped card texts by their wire schema, and nothing else."""

    def manifest(self, schema: object, card: object) -> Manifest:
        """The manifest of a card of `schema` (`adaptive.dualcoachtest.card.v1`, `adaptive.physique.card.v1`).

        Raises `UnknownPresentation`.
        """
        surface = _SURFACE_OF_SCHEMA.get(schema) if type(schema) is str else None
        if surface is None:
            raise UnknownPresentation
        return anchor_segments(CanonicalText(surface, text(card)))


def anchor_segments(presentation: object) -> Manifest:
    """The manifest of a `CanonicalText`, or of a typed presentation's canonical payload.

    Raises `UnknownPresentation`, and nothing else.
    """
    source = _source_of(presentation)
    body = text(source.text)
    require(unicodedata.is_normalized("NFC", body) and "\r" not in body)
    parts = _PARSERS[source.surface](body.split(_SEPARATOR))
    return manifest_of(source.surface, body, *parts)


def _source_of(presentation: object) -> CanonicalText:
    if type(presentation) is CanonicalText:
        require(type(presentation.surface) is Surface)
        return presentation
    surface = _SURFACE_OF_TYPE.get(type(presentation))
    if surface is None:
        raise UnknownPresentation
    return CanonicalText(surface, text(getattr(presentation, "canonical_payload", None)))


Part = Frozen | Slot


def _daily(blocks: list[str]) -> tuple[Part, ...]:
    title, facts, status, actions = _exactly(blocks, 4)
    require(title == daily.TITLE)
    rows = _bullets(facts)
    require(len(rows) == len(daily.FACT_LABELS))
    values = []
    for label, row in zip(daily.FACT_LABELS, rows, strict=True):
        require(row.startswith(f"{label}: "))
        values.append(line(row.removeprefix(f"{label}: ")))
    branch = daily.DailyBranch.PARTIAL if daily.MISSING_FACT in values else daily.DailyBranch.COMPLETE
    require(status == daily.STATUS_SENTENCES[branch])
    heading, _, listed = actions.partition("\n")
    require(heading == daily.ACTIONS_HEADING and len(_bullets(listed)) > 0)
    slot = _statements("daily.status", SlotKind.DAILY_STATUS, (status,))
    return Frozen(_joined(title, facts) + _SEPARATOR), slot, Frozen(_SEPARATOR + actions)


def _weekly(blocks: list[str]) -> tuple[Part, ...]:
    title, facts, interpretation, judged, rationale = _exactly(blocks, 5)
    line(title)
    require(len(_bullets(facts)) > 0)
    judgment, _, actions = judged.partition("\n")
    require(judgment.startswith(weekly.JUDGMENT_LABEL) and len(judgment) > len(weekly.JUDGMENT_LABEL))
    require(len(_bullets(actions)) > 0)
    require(rationale in weekly.RATIONALES.values())
    return (
        Frozen(_joined(title, facts) + _SEPARATOR),
        _statements("weekly.interpretation", SlotKind.WEEKLY_INTERPRETATION, _interpretations(interpretation)),
        Frozen(f"{_SEPARATOR}{judged}{_SEPARATOR}"),
        _statements("weekly.rationale", SlotKind.WEEKLY_RATIONALE, (rationale,)),
    )


def _interpretations(paragraph: str) -> tuple[str, ...]:
    """One or two known sentences, in order."""
    known = tuple(weekly.INTERPRETATIONS.values())
    if paragraph in known:
        return (paragraph,)
    pairs = [(first, second) for first in known for second in known if first != second]
    found = [pair for pair in pairs if " ".join(pair) == paragraph]
    require(len(found) == 1)
    return found[0]


def _dual(blocks: list[str]) -> tuple[Part, ...]:
    envelope, title, judgment, heading, recommended, *rest = _at_least(blocks, 6)
    _envelope(envelope)
    require(line(title).startswith(dualcoachtest.TITLE))
    decision = judgment.removeprefix(dualcoachtest.JUDGMENT_LABEL)
    require(decision != judgment and decision in dualcoachtest.DECISIONS.values())
    require(_SEPARATOR + heading + _SEPARATOR == dualcoachtest.RECOMMENDATION_BLOCK)
    require(len(_bullets(recommended)) > 0)
    reasons = _named_block(rest, dualcoachtest.REVIEW_BLOCK)
    details = _named_block(rest, dualcoachtest.DETAIL_BLOCK)
    require(rest == [dualcoachtest.NOT_DELIVERED])
    require(details is None or len(_bullets(details)) > 0)
    tail = f"{dualcoachtest.DETAIL_BLOCK}{details}" if details is not None else ""
    between = f"{dualcoachtest.RECOMMENDATION_BLOCK}{recommended}"
    closing = f"{tail}{_SEPARATOR}{dualcoachtest.NOT_DELIVERED}"
    slots = (_judgment(judgment, decision), *_reviews(reasons))
    head = Frozen(_joined(envelope, title) + _SEPARATOR)
    if len(slots) == 1:
        return head, slots[0], Frozen(between + closing)
    reviewed: list[Part] = [Frozen(between + dualcoachtest.REVIEW_BLOCK)]
    for number, slot in enumerate(slots[1:]):
        reviewed += [Frozen("\n"), slot] if number else [slot]
    return (head, slots[0], *reviewed, Frozen(closing))


def _named_block(rest: list[str], block: str) -> str | None:
    """Take a heading and its content off the front, if that heading is there."""
    if len(rest) < 2 or _SEPARATOR + rest[0] + _SEPARATOR != block:
        return None
    content = rest[1]
    del rest[:2]
    return content


def _judgment(whole: str, decision: str) -> Slot:
    placeholder = Placeholder(PlaceholderKind.NOUN, decision)
    return _slot("adaptive.dual.judgment", SlotKind.DUAL_JUDGMENT, (placeholder,), whole)


def _reviews(reasons: str | None) -> tuple[Slot, ...]:
    if reasons is None:
        return ()
    sentences = reasons.split("\n")
    require(len(sentences) <= dualcoachtest.REASONS_MAX and len(set(sentences)) == len(sentences))
    require(all(sentence in dualcoachtest.REASONS.values() for sentence in sentences))
    return tuple(
        _statements(f"adaptive.dual.review.{number}", SlotKind.DUAL_REASON, (sentence,))
        for number, sentence in enumerate(sentences, start=1)
    )


def _physique(blocks: list[str]) -> tuple[Part, ...]:
    envelope, source, heading, notice, status = _exactly(blocks, 5)
    _envelope(envelope)
    rows = lines(tuple(source.split("\n")), least=3)
    require(physique.DAY_MARK in rows[0])
    decision = rows[1].removeprefix(physique.DECISION_LABEL)
    require(decision != rows[1] and decision in physique.REVIEW_DECISIONS.values())
    require(rows[2].startswith(physique.BASIS_LABEL) and len(rows[2]) > len(physique.BASIS_LABEL))
    labels = [next((label for label in physique.OPTIONAL_LABELS if row.startswith(label)), "") for row in rows[3:]]
    require(all(labels))
    order = [physique.OPTIONAL_LABELS.index(label) for label in labels]
    require(order == sorted(set(order)))
    require((heading, notice, status) == (physique.NOTICE_HEADING, physique.NOTICE, physique.STATUS))
    return (
        Frozen(_joined(envelope, source, heading) + _SEPARATOR),
        _statements("adaptive.physique.review_instruction", SlotKind.PHYSIQUE_NOTICE, (notice,)),
        Frozen(_SEPARATOR + status),
    )


def _envelope(first: str) -> None:
    """One line of the host's own, which is no part of a card."""
    line(first)
    require(not first.startswith((dualcoachtest.TITLE, dualcoachtest.JUDGMENT_LABEL, physique.DECISION_LABEL)))


def _statements(local_id: str, kind: SlotKind, sentences: tuple[str, ...]) -> Slot:
    placeholders = tuple(Placeholder(PlaceholderKind.SENTENCE, _without_period(sentence)) for sentence in sentences)
    return _slot(local_id, kind, placeholders, " ".join(sentences))


def _slot(local_id: str, kind: SlotKind, placeholders: tuple[Placeholder, ...], canonical: str) -> Slot:
    return Slot(local_id, kind, (kind.value,), (f"{kind.value}.present",), placeholders, canonical)


def _without_period(sentence: str) -> str:
    stem = sentence.removesuffix(".")
    require(stem != sentence and not stem.endswith("."))
    return stem


def _bullets(block: str) -> tuple[str, ...]:
    rows = lines(tuple(block.split("\n")))
    require(all(row.startswith(_BULLET) and len(row) > len(_BULLET) for row in rows))
    return tuple(row.removeprefix(_BULLET) for row in rows)


def _joined(*blocks: str) -> str:
    return _SEPARATOR.join(blocks)


def _exactly(blocks: list[str], count: int) -> list[str]:
    require(len(blocks) == count)
    return blocks


def _at_least(blocks: list[str], count: int) -> list[str]:
    require(len(blocks) >= count)
    return blocks


_PARSERS: Final[Mapping[Surface, Callable[[list[str]], tuple[Part, ...]]]] = MappingProxyType(
    {
        Surface.DAILY: _daily,
        Surface.WEEKLY: _weekly,
        Surface.ADAPTIVE_DUALCOACHTEST: _dual,
        Surface.ADAPTIVE_PHYSIQUE: _physique,
    }
)

_SURFACE_OF_TYPE: Final[Mapping[type, Surface]] = MappingProxyType(
    {
        daily.DailyPresentationV1: Surface.DAILY,
        weekly.WeeklyPresentationV1: Surface.WEEKLY,
        dualcoachtest.DualCoachCardPresentationV1: Surface.ADAPTIVE_DUALCOACHTEST,
        physique.PhysiqueCardPresentationV1: Surface.ADAPTIVE_PHYSIQUE,
    }
)

_SURFACE_OF_SCHEMA: Final[Mapping[str, Surface]] = MappingProxyType({s.wire: s for s in _CARD_SURFACES})

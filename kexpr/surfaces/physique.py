"""Physique: the operator's card, with a projected notice. The notice's sentence is the one slot.

    <envelope>

    <customer · day · D+>
    결정: …
    근거: …
    목표: … 주기: … 식사: … 메모: …      optional, one a line

    검토 안내                             projected by code right before the status line

    <notice>

    상태: 운영자 승인 전 · 고객에게 자동 전달하지 않음

Every source line is frozen. The notice derives no field of the proposal and changes no approval or delivery state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import Frozen, Manifest
from kexpr.surfaces.base import coded, line, lines, manifest_of, require, sentence_slot, text

__all__ = [
    "NOTICE",
    "OPTIONAL_LABELS",
    "REVIEW_DECISIONS",
    "SCHEMA_VERSION",
    "STATUS",
    "PhysiqueCardPresentationV1",
    "PhysiqueReviewDecision",
    "physique_card_presentation",
    "physique_segments",
    "render_physique_source",
]

SCHEMA_VERSION: Final = "physique.operator-card.v1"
DAY_MARK: Final = "D+"
DECISION_LABEL: Final = "결정: "
BASIS_LABEL: Final = "근거: "
OPTIONAL_LABELS: Final = ("목표: ", "주기: ", "식사: ", "메모: ")
NOTICE_HEADING: Final = "검토 안내"
NOTICE: Final = "제안의 구조화된 항목을 확인한 뒤 승인 여부를 결정하세요."
STATUS: Final = "상태: 운영자 승인 전 · 고객에게 자동 전달하지 않음"


class PhysiqueReviewDecision(StrEnum):
    """The decision the operator is asked to review."""

    KEEP = "keep"
    INCREASE = "increase"
    DECREASE = "decrease"
    REDISTRIBUTE = "redistribute"
    REFEED = "refeed"
    DIET_BREAK = "diet_break"
    OBSERVE = "observe"
    RECHECK = "recheck"


REVIEW_DECISIONS: Final[Mapping[str, str]] = {
    PhysiqueReviewDecision.KEEP: "현재 목표 유지",
    PhysiqueReviewDecision.INCREASE: "섭취 목표 상향",
    PhysiqueReviewDecision.DECREASE: "섭취 목표 하향",
    PhysiqueReviewDecision.REDISTRIBUTE: "영양소 비율 조정",
    PhysiqueReviewDecision.REFEED: "고탄수 주기 배치",
    PhysiqueReviewDecision.DIET_BREAK: "감량 주기 일시 중단",
    PhysiqueReviewDecision.OBSERVE: "추가 관찰",
    PhysiqueReviewDecision.RECHECK: "기록 재확인",
}
"""The `결정:` value of each code: a card whose line says something else is not the card of that code."""


@dataclass(frozen=True, slots=True)
class PhysiqueCardPresentationV1:
    """A fresh operator card.

    `frozen_segments` are the two texts around the notice; `canonical_payload` is the whole enveloped text with the
    projected notice. Buttons are not part of it.
    """

    schema_version: str = field(repr=False)
    review_decision_code: str = field(repr=False)
    frozen_segments: tuple[str, ...] = field(repr=False)
    canonical_payload: str = field(repr=False)


def render_physique_source(
    *, envelope: str, subject: str, review_decision_code: str, basis: str, optional: tuple[str, ...] = ()
) -> str:
    """The host's own enveloped card, before the projection; raises `UnknownPresentation`.

    `subject` is the customer/day/D+ line; `optional` are whole lines that begin with one of `OPTIONAL_LABELS`.
    """
    decision = coded(REVIEW_DECISIONS, review_decision_code)
    rows = (line(subject), f"{DECISION_LABEL}{decision}", f"{BASIS_LABEL}{line(basis)}", *lines(optional, least=0))
    return f"{line(envelope)}\n\n" + "\n".join(rows) + f"\n\n{STATUS}"


def physique_card_presentation(review_decision_code: str, source: str) -> PhysiqueCardPresentationV1:
    """The presentation of the host's own card text: the notice goes right before its exact last line."""
    lead = text(source).removesuffix(STATUS)
    require(lead != source)
    segments = (f"{lead}{NOTICE_HEADING}\n\n", f"\n\n{STATUS}")
    return PhysiqueCardPresentationV1(SCHEMA_VERSION, review_decision_code, segments, NOTICE.join(segments))


def physique_segments(presentation: PhysiqueCardPresentationV1) -> Manifest:
    """The manifest; raises `UnknownPresentation`."""
    require(line(presentation.schema_version) == SCHEMA_VERSION)
    decision = coded(REVIEW_DECISIONS, presentation.review_decision_code)
    before, after = _segments(presentation.frozen_segments, decision)
    return manifest_of(
        Surface.ADAPTIVE_PHYSIQUE,
        presentation.canonical_payload,
        Frozen(before),
        sentence_slot(
            "adaptive.physique.review_instruction",
            SlotKind.PHYSIQUE_NOTICE,
            presentation.review_decision_code,
            NOTICE,
        ),
        Frozen(after),
    )


def _segments(segments: object, decision: str) -> tuple[str, str]:
    """The two frozen segments, if they are a physique card with this decision around a projected notice."""
    if type(segments) is not tuple or len(segments) != 2:
        raise UnknownPresentation
    before, after = map(text, segments)
    require(after == f"\n\n{STATUS}")
    lead = before.removesuffix(f"\n{NOTICE_HEADING}\n\n")
    require(lead != before)
    rows = lead.partition("\n\n")[2].rstrip("\n").split("\n")
    require(len(rows) >= 3 and DAY_MARK in rows[0] and rows[1] == f"{DECISION_LABEL}{decision}")
    require(rows[2].startswith(BASIS_LABEL) and all(row.startswith(OPTIONAL_LABELS) for row in rows[3:]))
    return before, after

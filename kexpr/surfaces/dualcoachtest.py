"""Dualcoachtest: the operator's card. The judgment's value and each review reason are slots; the rest is frozen.

    <envelope>

    적응형 영양 검토 …

    현재 판단: <decision>

    권장안

    - …

    검토 필요            only with reasons, one a line

    <reason>

    상세 근거            only with details

    - …

    고객에게는 아직 전달되지 않았습니다.

The codes are the authority for what stands in the slots. The frozen segments are checked only where a slot begins and
ends, so that a slot can never stand outside its block.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import Frozen, Manifest
from kexpr.surfaces.base import bullets, coded, line, lines, manifest_of, noun_slot, require, sentence_slot, text

__all__ = [
    "DECISIONS",
    "NOT_DELIVERED",
    "REASONS",
    "REASONS_MAX",
    "SCHEMA_VERSION",
    "DualCoachCardPresentationV1",
    "DualDecision",
    "DualReason",
    "dual_card_presentation",
    "dual_segments",
]

SCHEMA_VERSION: Final = "dualcoachtest.operator-card.v1"
TITLE: Final = "적응형 영양 검토"
JUDGMENT_LABEL: Final = "현재 판단: "
RECOMMENDATION_BLOCK: Final = "\n\n권장안\n\n"
REVIEW_BLOCK: Final = "\n\n검토 필요\n\n"
DETAIL_BLOCK: Final = "\n\n상세 근거\n\n"
NOT_DELIVERED: Final = "고객에게는 아직 전달되지 않았습니다."
REASONS_MAX: Final = 4

_Segment = TypeVar("_Segment")
_Slot = TypeVar("_Slot")


class DualDecision(StrEnum):
    """The proposal's decision."""

    MAINTAIN = "maintain"
    PLAN_CHECK = "plan_check"
    PROTEIN_UP = "protein_up"
    MEAL_ADJUSTMENT = "meal_adjustment"
    PORTION_CONTROL = "portion_control"
    INTENSITY_DOWN = "intensity_down"
    KEEP_OBSERVING = "keep_observing"
    HOLD = "hold"
    RECORDS_REQUEST = "records_request"
    CONSULTATION = "consultation"


class DualReason(StrEnum):
    """Why an operator has to look."""

    SPARSE_RECORDS = "sparse_records"
    SHORT_WINDOW = "short_window"
    WEIGHT_VARIATION = "weight_variation"
    INTAKE_GAP = "intake_gap"
    TRAINING_CHANGED = "training_changed"
    SLEEP_NOTE = "sleep_note"
    DIGESTION_NOTE = "digestion_note"
    PLAN_EXPIRED = "plan_expired"
    CUSTOMER_QUESTION = "customer_question"
    SOURCE_CHANGED = "source_changed"


DECISIONS: Final[Mapping[str, str]] = {
    DualDecision.MAINTAIN: "유지 검토",
    DualDecision.PLAN_CHECK: "현행 계획 점검",
    DualDecision.PROTEIN_UP: "단백질 목표 상향",
    DualDecision.MEAL_ADJUSTMENT: "식단 조정",
    DualDecision.PORTION_CONTROL: "식사량 조절",
    DualDecision.INTENSITY_DOWN: "훈련 강도 완화",
    DualDecision.KEEP_OBSERVING: "관찰 지속",
    DualDecision.HOLD: "판단 보류",
    DualDecision.RECORDS_REQUEST: "기록 보완 요청",
    DualDecision.CONSULTATION: "상담 일정 제안",
}
REASONS: Final[Mapping[str, str]] = {
    DualReason.SPARSE_RECORDS: "최근 기록이 부족합니다.",
    DualReason.SHORT_WINDOW: "비교할 기간이 짧습니다.",
    DualReason.WEIGHT_VARIATION: "체중 변동 폭이 큽니다.",
    DualReason.INTAKE_GAP: "목표와 섭취 기록의 차이가 큽니다.",
    DualReason.TRAINING_CHANGED: "훈련 구성이 최근에 바뀌었습니다.",
    DualReason.SLEEP_NOTE: "수면 기록을 함께 보아야 합니다.",
    DualReason.DIGESTION_NOTE: "소화 관련 메모가 있습니다.",
    DualReason.PLAN_EXPIRED: "현재 계획의 적용 기간이 끝났습니다.",
    DualReason.CUSTOMER_QUESTION: "고객이 남긴 질문이 있습니다.",
    DualReason.SOURCE_CHANGED: "제안을 만든 뒤에 원본 기록이 바뀌었습니다.",
}


@dataclass(frozen=True, slots=True)
class DualCoachCardPresentationV1:
    """A fresh operator card.

    `frozen_segments` are the texts around the slots in order, one more than there are slots (one decision and zero to
    four reasons); `canonical_payload` is the whole enveloped text. Buttons are not part of it.
    """

    schema_version: str = field(repr=False)
    decision_code: str = field(repr=False)
    reason_codes: tuple[str, ...] = field(repr=False)
    frozen_segments: tuple[str, ...] = field(repr=False)
    canonical_payload: str = field(repr=False)


def dual_card_presentation(
    *,
    envelope: str,
    title: str,
    decision_code: str,
    recommendations: tuple[str, ...],
    reason_codes: tuple[str, ...] = (),
    details: tuple[str, ...] = (),
) -> DualCoachCardPresentationV1:
    """The presentation of a card of these pieces; raises `UnknownPresentation`.

    `title` starts with `적응형 영양 검토`; every piece is one line; no `details`, no `상세 근거` block.
    """
    decision = coded(DECISIONS, decision_code)
    reasons = _reasons(reason_codes)
    recommended = f"{RECOMMENDATION_BLOCK}{bullets(lines(recommendations))}"
    detailed = f"{DETAIL_BLOCK}{bullets(lines(details))}" if details else ""
    head = f"{line(envelope)}\n\n{line(title)}\n\n{JUDGMENT_LABEL}"
    tail = f"{detailed}\n\n{NOT_DELIVERED}"
    between = ("\n",) * (len(reasons) - 1)
    segments = (head, recommended + REVIEW_BLOCK, *between, tail) if reasons else (head, recommended + tail)
    payload = "".join(_interleaved(segments, (decision, *reasons)))
    return DualCoachCardPresentationV1(SCHEMA_VERSION, decision_code, reason_codes, segments, payload)


def dual_segments(presentation: DualCoachCardPresentationV1) -> Manifest:
    """The manifest; raises `UnknownPresentation`."""
    require(line(presentation.schema_version) == SCHEMA_VERSION)
    decision = coded(DECISIONS, presentation.decision_code)
    slots = (
        noun_slot("adaptive.dual.judgment", SlotKind.DUAL_JUDGMENT, presentation.decision_code, decision),
        *(
            sentence_slot(f"adaptive.dual.review.{number}", SlotKind.DUAL_REASON, code, sentence)
            for number, (code, sentence) in enumerate(
                zip(presentation.reason_codes, _reasons(presentation.reason_codes), strict=True), start=1
            )
        ),
    )
    segments = _segments(presentation.frozen_segments, len(slots))
    return manifest_of(
        Surface.ADAPTIVE_DUALCOACHTEST,
        presentation.canonical_payload,
        *_interleaved(tuple(Frozen(segment) for segment in segments), slots),
    )


def _reasons(codes: object) -> tuple[str, ...]:
    """The sentences of zero to four different reason codes."""
    if type(codes) is not tuple or len(codes) > REASONS_MAX:
        raise UnknownPresentation
    sentences = tuple(coded(REASONS, code) for code in codes)
    require(len(set(sentences)) == len(sentences))
    return sentences


def _segments(segments: object, slot_count: int) -> tuple[str, ...]:
    """The frozen segments, if each begins and ends where a card of `slot_count` slots has its slots."""
    if type(segments) is not tuple or len(segments) != slot_count + 1:
        raise UnknownPresentation
    head, recommended, *rest = map(text, segments)
    body = head.partition("\n\n")[2]
    require(body.startswith(TITLE) and body.endswith(f"\n{JUDGMENT_LABEL}"))
    require(body.count(f"\n{JUDGMENT_LABEL}") == 1)
    require(recommended.startswith(RECOMMENDATION_BLOCK) and (REVIEW_BLOCK in recommended) == bool(rest))
    tail = recommended
    if rest:
        *between, tail = rest
        require(recommended.endswith(REVIEW_BLOCK) and all(segment == "\n" for segment in between))
        require(tail.startswith((DETAIL_BLOCK, f"\n\n{NOT_DELIVERED}")))
    require(tail.endswith(f"\n\n{NOT_DELIVERED}"))
    return (head, recommended, *rest)


def _interleaved(segments: tuple[_Segment, ...], slots: tuple[_Slot, ...]) -> tuple[_Segment | _Slot, ...]:
    """Segment, slot, segment, …, segment."""
    pairs = zip(segments, slots, strict=False)
    return (*(part for pair in pairs for part in pair), segments[-1])

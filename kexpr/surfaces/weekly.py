"""Weekly: the report of a week. Interpretation and rationale are slots; everything else is frozen.

<title>

- …                  facts

<interpretation>

이번 주 판단: …
- …                  actions

<rationale>
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kexpr.codes import SlotKind, Surface
from kexpr.manifest import Frozen, Manifest
from kexpr.surfaces.base import bullets, coded, line, lines, manifest_of, require, sentence_slot

__all__ = [
    "INTERPRETATIONS",
    "RATIONALES",
    "REPORT_SCHEMA",
    "WeeklyInterpretation",
    "WeeklyPresentationV1",
    "WeeklyRationale",
    "render_weekly_canonical",
    "weekly_presentation",
    "weekly_segments",
]

REPORT_SCHEMA: Final = "nutrition.weekly-report.v1"
JUDGMENT_LABEL: Final = "이번 주 판단: "


class WeeklyInterpretation(StrEnum):
    """What the week's records show."""

    WITHIN_RANGE = "within_range"
    ABOVE_RANGE = "above_range"
    BELOW_RANGE = "below_range"
    VARIABLE = "variable"
    SPARSE_RECORDS = "sparse_records"
    PLAN_CHANGED = "plan_changed"
    FIRST_WEEK = "first_week"


class WeeklyRationale(StrEnum):
    """Why the week's judgment stands."""

    CONSECUTIVE_WEEKS = "consecutive_weeks"
    SINGLE_WEEK = "single_week"
    RECORDS_MISSING = "records_missing"
    TREND_AND_INTAKE = "trend_and_intake"
    OPERATOR_PLAN = "operator_plan"
    CONDITION_NOTES = "condition_notes"
    BASELINE_ONLY = "baseline_only"


INTERPRETATIONS: Final[Mapping[str, str]] = {
    WeeklyInterpretation.WITHIN_RANGE: "이번 주 평균은 계획한 범위 안에 있습니다.",
    WeeklyInterpretation.ABOVE_RANGE: "이번 주 평균은 계획한 범위보다 높습니다.",
    WeeklyInterpretation.BELOW_RANGE: "이번 주 평균은 계획한 범위보다 낮습니다.",
    WeeklyInterpretation.VARIABLE: "이번 주 기록은 날짜별 차이가 큽니다.",
    WeeklyInterpretation.SPARSE_RECORDS: "이번 주는 기록이 적어 흐름을 판단하지 않습니다.",
    WeeklyInterpretation.PLAN_CHANGED: "이번 주 중간에 계획이 바뀌어 앞뒤를 나누어 보았습니다.",
    WeeklyInterpretation.FIRST_WEEK: "첫 주 기록이므로 비교할 이전 기록이 없습니다.",
}
RATIONALES: Final[Mapping[str, str]] = {
    WeeklyRationale.CONSECUTIVE_WEEKS: "연속된 주간 평균의 방향을 근거로 삼았습니다.",
    WeeklyRationale.SINGLE_WEEK: "한 주의 변화만으로는 계획을 바꾸지 않습니다.",
    WeeklyRationale.RECORDS_MISSING: "빠진 기록이 있어 다음 주에 다시 판단합니다.",
    WeeklyRationale.TREND_AND_INTAKE: "체중 흐름과 섭취 기록을 함께 비교했습니다.",
    WeeklyRationale.OPERATOR_PLAN: "운영자가 정한 현재 계획을 기준으로 삼았습니다.",
    WeeklyRationale.CONDITION_NOTES: "컨디션과 소화 기록도 함께 살폈습니다.",
    WeeklyRationale.BASELINE_ONLY: "이번 주 기록을 앞으로의 기준으로 저장했습니다.",
}


@dataclass(frozen=True, slots=True)
class WeeklyPresentationV1:
    """A weekly report as the host shows it.

    `title` and `judgment` are one line each, `facts` and `actions` at least one line each; the two paragraphs come
    from their enums. `report_schema` is `REPORT_SCHEMA`.
    """

    report_schema: str = field(repr=False)
    interpretation_enum: str = field(repr=False)
    rationale_enum: str = field(repr=False)
    title: str = field(repr=False)
    facts: tuple[str, ...] = field(repr=False)
    judgment: str = field(repr=False)
    actions: tuple[str, ...] = field(repr=False)
    canonical_payload: str = field(repr=False)


def weekly_presentation(
    *,
    interpretation_enum: str,
    rationale_enum: str,
    title: str,
    facts: tuple[str, ...],
    judgment: str,
    actions: tuple[str, ...],
) -> WeeklyPresentationV1:
    """The presentation of these pieces with the payload that follows from them."""
    payload = render_weekly_canonical(
        interpretation_enum=interpretation_enum,
        rationale_enum=rationale_enum,
        title=title,
        facts=facts,
        judgment=judgment,
        actions=actions,
    )
    return WeeklyPresentationV1(
        REPORT_SCHEMA, interpretation_enum, rationale_enum, title, facts, judgment, actions, payload
    )


def render_weekly_canonical(
    *,
    interpretation_enum: str,
    rationale_enum: str,
    title: str,
    facts: tuple[str, ...],
    judgment: str,
    actions: tuple[str, ...],
) -> str:
    """The canonical text; raises `UnknownPresentation` for an unknown code or a piece that is not a line."""
    head, middle = _frozen(title, facts, judgment, actions)
    return head + coded(INTERPRETATIONS, interpretation_enum) + middle + coded(RATIONALES, rationale_enum)


def weekly_segments(presentation: WeeklyPresentationV1) -> Manifest:
    """The manifest; raises `UnknownPresentation`."""
    require(line(presentation.report_schema) == REPORT_SCHEMA)
    head, middle = _frozen(presentation.title, presentation.facts, presentation.judgment, presentation.actions)
    return manifest_of(
        Surface.WEEKLY,
        presentation.canonical_payload,
        Frozen(head),
        sentence_slot(
            "weekly.interpretation",
            SlotKind.WEEKLY_INTERPRETATION,
            presentation.interpretation_enum,
            coded(INTERPRETATIONS, presentation.interpretation_enum),
        ),
        Frozen(middle),
        sentence_slot(
            "weekly.rationale",
            SlotKind.WEEKLY_RATIONALE,
            presentation.rationale_enum,
            coded(RATIONALES, presentation.rationale_enum),
        ),
    )


def _frozen(title: str, facts: tuple[str, ...], judgment: str, actions: tuple[str, ...]) -> tuple[str, str]:
    """The text before the interpretation, and between it and the rationale."""
    head = f"{line(title)}\n\n{bullets(lines(facts))}\n\n"
    return head, f"\n\n{JUDGMENT_LABEL}{line(judgment)}\n{bullets(lines(actions))}\n\n"

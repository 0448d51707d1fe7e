"""The weekly report: golden text, two slots from code tables, and everything that is not a weekly report."""

from dataclasses import replace

import pytest

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import PlaceholderKind
from kexpr.surfaces import WeeklyPresentationV1, presentation_segments_v1
from kexpr.surfaces.weekly import (
    INTERPRETATIONS,
    RATIONALES,
    WeeklyInterpretation,
    WeeklyRationale,
    render_weekly_canonical,
    weekly_presentation,
)

GOLDEN = """주간 영양 리포트 · 가상

- 평균 체중: 61.2kg
- 기록한 날: 6일

이번 주 기록은 날짜별 차이가 큽니다.

이번 주 판단: 현재 계획 유지
- 취침 시간 적기
- 체중 재기

빠진 기록이 있어 다음 주에 다시 판단합니다."""

REPORT = weekly_presentation(
    interpretation_enum=WeeklyInterpretation.VARIABLE,
    rationale_enum=WeeklyRationale.RECORDS_MISSING,
    title="주간 영양 리포트 · 가상",
    facts=("평균 체중: 61.2kg", "기록한 날: 6일"),
    judgment="현재 계획 유지",
    actions=("취침 시간 적기", "체중 재기"),
)


def test_golden() -> None:
    assert presentation_segments_v1(REPORT).canonical_body == REPORT.canonical_payload == GOLDEN


def test_the_two_paragraphs_are_the_slots() -> None:
    manifest = presentation_segments_v1(REPORT)
    assert manifest.surface is Surface.WEEKLY
    assert [s.kind for s in manifest.slots] == [SlotKind.WEEKLY_INTERPRETATION, SlotKind.WEEKLY_RATIONALE]
    assert [s.canonical for s in manifest.slots] == [
        INTERPRETATIONS[WeeklyInterpretation.VARIABLE],
        RATIONALES[WeeklyRationale.RECORDS_MISSING],
    ]
    for slot in manifest.slots:
        assert [(p.kind, p.expansion) for p in slot.placeholders] == [(PlaceholderKind.SENTENCE, slot.canonical)]
        assert len(slot.semantic_ids) == len(slot.action_ids) == 1


def test_every_code_has_one_sentence_of_its_own() -> None:
    assert set(INTERPRETATIONS) == set(WeeklyInterpretation)
    assert set(RATIONALES) == set(WeeklyRationale)
    sentences = [*INTERPRETATIONS.values(), *RATIONALES.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.endswith(".") and sentence.count(".") == 1 for sentence in sentences)


@pytest.mark.parametrize("interpretation", WeeklyInterpretation)
@pytest.mark.parametrize("rationale", WeeklyRationale)
def test_every_pair_of_codes_is_a_report(interpretation: WeeklyInterpretation, rationale: WeeklyRationale) -> None:
    payload = GOLDEN.replace(INTERPRETATIONS["variable"], INTERPRETATIONS[interpretation])
    payload = payload.replace(RATIONALES["records_missing"], RATIONALES[rationale])
    stored = replace(
        REPORT,
        interpretation_enum=interpretation.value,
        rationale_enum=rationale.value,
        canonical_payload=payload,
    )
    assert presentation_segments_v1(stored).canonical_body == payload


@pytest.mark.parametrize(
    "presentation",
    [
        replace(REPORT, report_schema="nutrition.weekly-report.v2"),
        replace(REPORT, report_schema=""),
        replace(REPORT, interpretation_enum="single_week"),
        replace(REPORT, rationale_enum="variable"),
        replace(REPORT, interpretation_enum=WeeklyRationale.RECORDS_MISSING),
        replace(REPORT, interpretation_enum=WeeklyInterpretation.WITHIN_RANGE),
        replace(REPORT, title="주간\n리포트"),
        replace(REPORT, facts=()),
        replace(REPORT, judgment=""),
        replace(REPORT, actions=("체중 재기", "취침 시간 적기")),
        replace(REPORT, canonical_payload=GOLDEN.replace("- 체중 재기", "• 체중 재기")),
        replace(REPORT, canonical_payload=GOLDEN.replace("\n\n이번", "\n이번", 1)),
    ],
    ids=lambda _: "",
)
def test_anything_else_is_unknown(presentation: WeeklyPresentationV1) -> None:
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(presentation)


def test_rendering_refuses_an_unknown_code() -> None:
    with pytest.raises(UnknownPresentation):
        render_weekly_canonical(
            interpretation_enum="guess",
            rationale_enum="single_week",
            title="제목",
            facts=("사실",),
            judgment="판단",
            actions=("행동",),
        )

"""The daily message: golden text, the branch that follows from the facts, and all that is not a daily message."""

from dataclasses import replace

import pytest

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import PlaceholderKind
from kexpr.surfaces import DailyPresentationV1, presentation_segments_v1
from kexpr.surfaces.daily import DailyBranch, daily_presentation, render_daily_canonical

FACTS = ("61.4kg", "1980kcal", "210g·120g·55g", "걷기 40분", "7시간 10분", "보통", "편안함")
ACTIONS = ("물 자주 마시기", "저녁 산책하기")
GOLDEN = """오늘 체크인 완료

- 체중: 61.4kg
- 섭취: 1980kcal
- 탄수화물·단백질·지방: 210g·120g·55g
- 운동: 걷기 40분
- 수면: 7시간 10분
- 컨디션: 보통
- 소화: 편안함

저장된 오늘 기록을 확인했습니다.

오늘 할 일
- 물 자주 마시기
- 저녁 산책하기"""

COMPLETE = daily_presentation("event-1", FACTS, ACTIONS)
PARTIAL = daily_presentation("event-1", (*FACTS[:6], "기록 없음"), ACTIONS)


def test_golden_complete() -> None:
    assert presentation_segments_v1(COMPLETE).canonical_body == COMPLETE.canonical_payload == GOLDEN


def test_golden_partial() -> None:
    expected = GOLDEN.replace("소화: 편안함", "소화: 기록 없음").replace(
        "저장된 오늘 기록을 확인했습니다.", "일부 항목이 기록되지 않아 저장된 내용만 안내합니다."
    )
    assert presentation_segments_v1(PARTIAL).canonical_body == PARTIAL.canonical_payload == expected


def test_the_status_paragraph_is_the_one_slot() -> None:
    manifest = presentation_segments_v1(COMPLETE)
    (slot,) = manifest.slots
    assert manifest.surface is Surface.DAILY
    assert slot.kind is SlotKind.DAILY_STATUS
    assert [p.kind for p in slot.placeholders] == [PlaceholderKind.SENTENCE]
    assert slot.canonical == slot.placeholders[0].expansion == "저장된 오늘 기록을 확인했습니다."
    assert len(slot.semantic_ids) == len(slot.action_ids) == 1


@pytest.mark.parametrize("position", range(7))
def test_any_missing_fact_makes_the_branch_partial(position: int) -> None:
    facts = (*FACTS[:position], "기록 없음", *FACTS[position + 1 :])
    presentation = daily_presentation("event-1", facts, ACTIONS)
    assert presentation.branch is DailyBranch.PARTIAL
    assert presentation_segments_v1(presentation).slots[0].canonical.startswith("일부 항목이")


def test_a_host_may_give_the_code_as_its_stored_value() -> None:
    assert presentation_segments_v1(replace(COMPLETE, branch="complete")).canonical_body == GOLDEN


@pytest.mark.parametrize(
    "presentation",
    [
        replace(COMPLETE, branch=DailyBranch.PARTIAL),
        replace(PARTIAL, branch=DailyBranch.COMPLETE),
        replace(COMPLETE, branch=DailyBranch.PARTIAL, canonical_payload=PARTIAL.canonical_payload),
        DailyPresentationV1(
            "event-1",
            DailyBranch.PARTIAL,
            FACTS,
            ACTIONS,
            GOLDEN.replace("저장된 오늘 기록을 확인했습니다.", "일부 항목이 기록되지 않아 저장된 내용만 안내합니다."),
        ),
        replace(COMPLETE, branch="Complete"),
        replace(COMPLETE, branch="unknown"),
        replace(COMPLETE, finalized_event_id=""),
        replace(COMPLETE, finalized_event_id="e" * 4097),
        replace(COMPLETE, facts=list(FACTS)),  # type: ignore[arg-type]
        replace(COMPLETE, facts=FACTS[:6]),
        replace(COMPLETE, facts=(*FACTS, "하나 더")),
        replace(COMPLETE, facts=("", *FACTS[1:])),
        replace(COMPLETE, facts=("61.4kg\n- 섭취: 0kcal", *FACTS[1:])),
        replace(COMPLETE, facts=("61.4kg\u2028", *FACTS[1:])),
        replace(COMPLETE, actions=()),
        replace(COMPLETE, actions=("할 일",) * 33),
        replace(COMPLETE, canonical_payload=GOLDEN + "\n"),
        replace(COMPLETE, canonical_payload=GOLDEN.replace("1980", "1981")),
        replace(COMPLETE, canonical_payload=""),
    ],
    ids=lambda _: "",
)
def test_anything_else_is_unknown(presentation: DailyPresentationV1) -> None:
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(presentation)


def test_a_payload_in_another_normal_form_is_not_the_same_bytes() -> None:
    import unicodedata

    decomposed = unicodedata.normalize("NFD", GOLDEN)
    assert decomposed != GOLDEN
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(replace(COMPLETE, canonical_payload=decomposed))


@pytest.mark.parametrize("facts", [None, list(FACTS), FACTS[:3], (None, *FACTS[1:])])
def test_rendering_refuses_what_is_not_seven_lines(facts: object) -> None:
    with pytest.raises(UnknownPresentation):
        render_daily_canonical(facts, ACTIONS)  # type: ignore[arg-type]
    with pytest.raises(UnknownPresentation):
        daily_presentation("event-1", facts, ACTIONS)  # type: ignore[arg-type]

"""The physique card: golden text with the projected notice, and every card that is not this card."""

from dataclasses import replace

import pytest

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import PlaceholderKind
from kexpr.surfaces import PhysiqueCardPresentationV1, presentation_segments_v1
from kexpr.surfaces.physique import (
    NOTICE,
    REVIEW_DECISIONS,
    PhysiqueReviewDecision,
    physique_card_presentation,
    render_physique_source,
)

SOURCE = """[연습] 카드

가상고객 · 훈련일 · D+12
결정: 현재 목표 유지
근거: 주간 평균 비교
목표: 하루 2100kcal
메모: 연습용 메모

상태: 운영자 승인 전 · 고객에게 자동 전달하지 않음"""
GOLDEN = """[연습] 카드

가상고객 · 훈련일 · D+12
결정: 현재 목표 유지
근거: 주간 평균 비교
목표: 하루 2100kcal
메모: 연습용 메모

검토 안내

제안의 구조화된 항목을 확인한 뒤 승인 여부를 결정하세요.

상태: 운영자 승인 전 · 고객에게 자동 전달하지 않음"""

CARD = physique_card_presentation(PhysiqueReviewDecision.KEEP, SOURCE)
BEFORE, AFTER = CARD.frozen_segments


def test_the_rendered_source_is_golden() -> None:
    rendered = render_physique_source(
        envelope="[연습] 카드",
        subject="가상고객 · 훈련일 · D+12",
        review_decision_code=PhysiqueReviewDecision.KEEP,
        basis="주간 평균 비교",
        optional=("목표: 하루 2100kcal", "메모: 연습용 메모"),
    )
    assert rendered == SOURCE


def test_the_notice_is_projected_right_before_the_status_line() -> None:
    assert presentation_segments_v1(CARD).canonical_body == CARD.canonical_payload == GOLDEN


def test_without_the_projection_every_source_byte_is_there() -> None:
    assert GOLDEN.replace("검토 안내\n\n" + NOTICE + "\n\n", "") == SOURCE


def test_the_notice_is_the_one_slot() -> None:
    manifest = presentation_segments_v1(CARD)
    (slot,) = manifest.slots
    assert manifest.surface is Surface.ADAPTIVE_PHYSIQUE
    assert slot.kind is SlotKind.PHYSIQUE_NOTICE
    assert [(p.kind, p.expansion) for p in slot.placeholders] == [(PlaceholderKind.SENTENCE, NOTICE)]
    assert slot.canonical == NOTICE == "제안의 구조화된 항목을 확인한 뒤 승인 여부를 결정하세요."
    assert len(slot.semantic_ids) == len(slot.action_ids) == 1


@pytest.mark.parametrize("code", PhysiqueReviewDecision)
def test_every_code_is_a_card_with_its_own_decision_line(code: PhysiqueReviewDecision) -> None:
    source = SOURCE.replace("현재 목표 유지", REVIEW_DECISIONS[code])
    presentation = physique_card_presentation(code.value, source)
    assert f"\n결정: {REVIEW_DECISIONS[code]}\n" in presentation_segments_v1(presentation).canonical_body


def test_tables_are_complete_and_their_texts_distinct() -> None:
    assert set(REVIEW_DECISIONS) == set(PhysiqueReviewDecision)
    assert len(set(REVIEW_DECISIONS.values())) == len(REVIEW_DECISIONS)


@pytest.mark.parametrize(
    "presentation",
    [
        replace(CARD, schema_version="physique.operator-card.v2"),
        replace(CARD, schema_version="dualcoachtest.operator-card.v1"),
        replace(CARD, review_decision_code="unknown"),
        replace(CARD, review_decision_code=PhysiqueReviewDecision.INCREASE),
        replace(CARD, frozen_segments=(BEFORE,)),
        replace(CARD, frozen_segments=[BEFORE, AFTER]),  # type: ignore[arg-type]
        replace(CARD, frozen_segments=(BEFORE, "", AFTER)),
        replace(CARD, canonical_payload=SOURCE),
        replace(CARD, canonical_payload=GOLDEN + " "),
    ],
    ids=lambda _: "",
)
def test_anything_else_is_unknown(presentation: PhysiqueCardPresentationV1) -> None:
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(presentation)


@pytest.mark.parametrize(
    "segments",
    [
        (BEFORE, AFTER + "."),
        (BEFORE, AFTER.replace("승인 전", "승인 후")),
        (BEFORE.replace("검토 안내", "안내"), AFTER),
        (BEFORE.replace("검토 안내\n\n", ""), AFTER),
        ("[연습] 카드\n\n가상고객 · D+12\n\n검토 안내\n\n", AFTER),
        ("[연습] 카드\n\n가상고객 · D+12\n결정: 현재 목표 유지\n\n검토 안내\n\n", AFTER),
        ("검토 안내\n\n", AFTER),
        (BEFORE.replace("[연습] 카드\n\n", ""), AFTER),
        (BEFORE.replace("D+12", "12일"), AFTER),
        (BEFORE.replace("결정: 현재 목표 유지\n", ""), AFTER),
        (BEFORE.replace("근거:", "이유:"), AFTER),
        (BEFORE.replace("목표:", "비고:"), AFTER),
        (BEFORE.replace("근거: 주간 평균 비교\n", ""), AFTER),
    ],
)
def test_a_payload_of_another_shape_is_unknown_even_when_the_bytes_agree(segments: tuple[str, ...]) -> None:
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(replace(CARD, frozen_segments=segments, canonical_payload=NOTICE.join(segments)))


@pytest.mark.parametrize("source", [SOURCE[:-1], SOURCE + "\n", "", None, b"", SOURCE.replace("상태", "현황")])
def test_only_a_card_that_ends_in_the_exact_status_line_gets_a_notice(source: object) -> None:
    with pytest.raises(UnknownPresentation):
        physique_card_presentation(PhysiqueReviewDecision.KEEP, source)  # type: ignore[arg-type]

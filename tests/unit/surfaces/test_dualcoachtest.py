"""The dualcoachtest card: golden texts with zero to four reasons, and every card that is not this card."""

from dataclasses import replace

import pytest

from kexpr.codes import SlotKind, Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import PlaceholderKind
from kexpr.surfaces import DualCoachCardPresentationV1, presentation_segments_v1
from kexpr.surfaces.dualcoachtest import (
    DECISIONS,
    REASONS,
    DualDecision,
    DualReason,
    dual_card_presentation,
)

GOLDEN = """[연습] 카드

적응형 영양 검토 · 가상고객

현재 판단: 유지 검토

권장안

- 현재 섭취 목표 유지

검토 필요

최근 기록이 부족합니다.
비교할 기간이 짧습니다.

상세 근거

- 주간 평균 비교표

고객에게는 아직 전달되지 않았습니다."""
GOLDEN_WITHOUT_REASONS = """[연습] 카드

적응형 영양 검토 · 가상고객

현재 판단: 식사량 조절

권장안

- 현재 섭취 목표 유지

고객에게는 아직 전달되지 않았습니다."""


def card(
    decision: DualDecision, reasons: tuple[str, ...] = (), details: tuple[str, ...] = ()
) -> DualCoachCardPresentationV1:
    return dual_card_presentation(
        envelope="[연습] 카드",
        title="적응형 영양 검토 · 가상고객",
        decision_code=decision,
        recommendations=("현재 섭취 목표 유지",),
        reason_codes=reasons,
        details=details,
    )


CARD = card(DualDecision.MAINTAIN, (DualReason.SPARSE_RECORDS, DualReason.SHORT_WINDOW), ("주간 평균 비교표",))
BARE = card(DualDecision.PORTION_CONTROL)
HEAD, RECOMMENDED, BETWEEN, TAIL = CARD.frozen_segments


def test_golden() -> None:
    assert presentation_segments_v1(CARD).canonical_body == CARD.canonical_payload == GOLDEN


def test_golden_without_reasons_has_no_review_block() -> None:
    assert presentation_segments_v1(BARE).canonical_body == BARE.canonical_payload == GOLDEN_WITHOUT_REASONS


def test_the_value_of_the_judgment_is_a_noun_and_each_reason_a_sentence() -> None:
    manifest = presentation_segments_v1(CARD)
    assert manifest.surface is Surface.ADAPTIVE_DUALCOACHTEST
    assert [(s.kind, s.placeholders[0].kind, s.canonical) for s in manifest.slots] == [
        (SlotKind.DUAL_JUDGMENT, PlaceholderKind.NOUN, "유지 검토"),
        (SlotKind.DUAL_REASON, PlaceholderKind.SENTENCE, "최근 기록이 부족합니다."),
        (SlotKind.DUAL_REASON, PlaceholderKind.SENTENCE, "비교할 기간이 짧습니다."),
    ]
    for slot in manifest.slots:
        assert slot.placeholders[0].expansion == slot.canonical
        assert len(slot.placeholders) == len(slot.semantic_ids) == len(slot.action_ids) == 1
    assert len({slot.local_id for slot in manifest.slots}) == 3


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("details", [(), ("주간 평균 비교표",)])
def test_zero_to_four_reasons(count: int, details: tuple[str, ...]) -> None:
    presentation = card(DualDecision.HOLD, tuple(DualReason)[:count], details)
    manifest = presentation_segments_v1(presentation)
    assert len(manifest.slots) == count + 1
    assert ("검토 필요" in manifest.canonical_body) == bool(count)
    assert ("상세 근거" in manifest.canonical_body) == bool(details)
    assert manifest.canonical_body.endswith("\n\n고객에게는 아직 전달되지 않았습니다.")


def test_five_reasons_are_not_a_card() -> None:
    with pytest.raises(UnknownPresentation):
        card(DualDecision.HOLD, tuple(DualReason)[:5])


def test_one_reason_twice_is_not_a_card() -> None:
    with pytest.raises(UnknownPresentation):
        card(DualDecision.HOLD, (DualReason.SLEEP_NOTE, DualReason.SLEEP_NOTE))


def test_tables_are_complete_and_their_texts_distinct() -> None:
    assert set(DECISIONS) == set(DualDecision)
    assert set(REASONS) == set(DualReason)
    assert len(set(DECISIONS.values())) == len(DECISIONS)
    assert len(set(REASONS.values())) == len(REASONS)
    assert all(sentence.endswith(".") and sentence.count(".") == 1 for sentence in REASONS.values())


def test_decision_nouns_end_in_every_way_a_particle_cares_about() -> None:
    """No final consonant, ㄹ (로, not 으로) and another one."""
    finals = {(ord(noun[-1]) - 0xAC00) % 28 for noun in DECISIONS.values()}
    assert 0 in finals
    assert 8 in finals
    assert len(finals - {0, 8}) >= 3


@pytest.mark.parametrize(
    "presentation",
    [
        replace(CARD, schema_version="dualcoachtest.operator-card.v2"),
        replace(CARD, schema_version="physique.operator-card.v1"),
        replace(CARD, decision_code="sparse_records"),
        replace(CARD, decision_code=DualReason.SPARSE_RECORDS),
        replace(CARD, decision_code=DualDecision.HOLD),
        replace(CARD, reason_codes=(DualReason.SPARSE_RECORDS, "maintain")),
        replace(CARD, reason_codes=(DualReason.SPARSE_RECORDS, DualReason.SPARSE_RECORDS)),
        replace(CARD, reason_codes=(DualReason.SHORT_WINDOW, DualReason.SPARSE_RECORDS)),
        replace(CARD, reason_codes=(DualReason.SPARSE_RECORDS,)),
        replace(CARD, reason_codes=()),
        replace(CARD, frozen_segments=CARD.frozen_segments[:3]),
        replace(CARD, frozen_segments=(*CARD.frozen_segments, "끝")),
        replace(CARD, frozen_segments=(HEAD, RECOMMENDED, BETWEEN, BETWEEN, TAIL)),
        replace(CARD, frozen_segments=[*CARD.frozen_segments]),  # type: ignore[arg-type]
        replace(CARD, reason_codes=[*CARD.reason_codes]),  # type: ignore[arg-type]
        replace(CARD, canonical_payload=GOLDEN[1:]),
        replace(BARE, decision_code=DualDecision.MAINTAIN),
    ],
    ids=lambda _: "",
)
def test_anything_else_is_unknown(presentation: DualCoachCardPresentationV1) -> None:
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(presentation)


@pytest.mark.parametrize(
    "segments",
    [
        (HEAD.replace("\n\n", "\n", 1), RECOMMENDED, BETWEEN, TAIL),
        (HEAD.replace("적응형", "새로운"), RECOMMENDED, BETWEEN, TAIL),
        (HEAD + " ", RECOMMENDED, BETWEEN, TAIL),
        (HEAD.replace("현재", "지난"), RECOMMENDED, BETWEEN, TAIL),
        (HEAD.replace("\n\n현재", "\n\n현재 판단: 유지\n현재"), RECOMMENDED, BETWEEN, TAIL),
        (HEAD, RECOMMENDED.replace("권장안", "권고안"), BETWEEN, TAIL),
        (HEAD, RECOMMENDED.replace("검토 필요", "검토"), BETWEEN, TAIL),
        (HEAD, RECOMMENDED + "먼저 ", BETWEEN, TAIL),
        (HEAD, RECOMMENDED, " 그리고 ", TAIL),
        (HEAD, RECOMMENDED, BETWEEN, TAIL.replace("상세 근거", "상세")),
        (HEAD, RECOMMENDED, BETWEEN, TAIL.replace("아직 전달되지 않았습니다", "전달되었습니다")),
        (HEAD, RECOMMENDED, BETWEEN, TAIL + "\n다음"),
    ],
)
def test_a_payload_of_another_shape_is_unknown_even_when_the_bytes_agree(segments: tuple[str, ...]) -> None:
    slots = ("유지 검토", "최근 기록이 부족합니다.", "비교할 기간이 짧습니다.")
    payload = "".join(part for pair in zip(segments, (*slots, ""), strict=True) for part in pair)
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(replace(CARD, frozen_segments=segments, canonical_payload=payload))


def test_frozen_reasons_without_their_codes_are_unknown() -> None:
    """The same bytes as the golden card, but the reasons would no longer be slots."""
    _, body = GOLDEN.split("현재 판단: 유지 검토")
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(replace(CARD, reason_codes=(), frozen_segments=(HEAD, body)))


@pytest.mark.parametrize(
    "pieces",
    [
        {"envelope": ""},
        {"envelope": "두\n줄"},
        {"recommendations": ()},
        {"recommendations": ("둘\n\n검토 필요",)},
        {"decision_code": "guess"},
        {"reason_codes": ["sparse_records"]},
        {"details": ("",)},
    ],
)
def test_building_refuses_a_piece_that_is_not_one(pieces: dict[str, object]) -> None:
    good: dict[str, object] = {
        "envelope": "[연습]",
        "title": "적응형 영양 검토",
        "decision_code": "hold",
        "recommendations": ("권장",),
    }
    dual_card_presentation(**good)  # type: ignore[arg-type]
    with pytest.raises(UnknownPresentation):
        dual_card_presentation(**{**good, **pieces})  # type: ignore[arg-type]

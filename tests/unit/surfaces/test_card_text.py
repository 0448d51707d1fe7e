"""Strict parsers of final canonical texts: goldens for what is a card, and everything that is not."""

from collections.abc import Callable

import pytest

from harness.manifests import synthetic
from kexpr.codes import Surface
from kexpr.errors import UnknownPresentation
from kexpr.manifest import Frozen, Slot
from kexpr.surfaces import presentation_segments_v1
from kexpr.surfaces.card_text import AdaptiveSurfaceAdapter, CanonicalText, anchor_segments
from tests.unit.wire.anchor_support import (
    DAILY,
    DUAL,
    DUAL_BARE,
    PHYSIQUE,
    TEXTS,
    WEEKLY,
    WEEKLY_TWO,
    issued_of,
    manifest_of,
)

DUALCOACH = "adaptive.dualcoachtest.card.v1"
PHYSIQUE_SCHEMA = "adaptive.physique.card.v1"


def shown(surface: Surface, text: str) -> list[tuple[str, ...]]:
    """Each slot with what it is, and the exact text around it."""
    segments = manifest_of(surface, text).segments
    return [
        ("frozen", part.text)
        if isinstance(part, Frozen)
        else (part.local_id, part.kind.value, part.canonical, *(p.expansion for p in part.placeholders))
        for part in segments
    ]


def test_golden_dual_card() -> None:
    assert shown(Surface.ADAPTIVE_DUALCOACHTEST, DUAL) == [
        ("frozen", "[연습] 카드\n\n적응형 영양 검토 · 3주차\n\n"),
        ("adaptive.dual.judgment", "dual.judgment", "현재 판단: 유지 검토", "유지 검토"),
        ("frozen", "\n\n권장안\n\n- 현재 목표를 유지\n- 다음 주 재검토\n\n검토 필요\n\n"),
        ("adaptive.dual.review.1", "dual.reason", "최근 기록이 부족합니다.", "최근 기록이 부족합니다"),
        ("frozen", "\n"),
        ("adaptive.dual.review.2", "dual.reason", "체중 변동 폭이 큽니다.", "체중 변동 폭이 큽니다"),
        ("frozen", "\n\n상세 근거\n\n- 평균 71.0kg\n\n고객에게는 아직 전달되지 않았습니다."),
    ]


def test_golden_dual_card_without_reasons() -> None:
    assert shown(Surface.ADAPTIVE_DUALCOACHTEST, DUAL_BARE) == [
        ("frozen", "[연습] 카드\n\n적응형 영양 검토\n\n"),
        ("adaptive.dual.judgment", "dual.judgment", "현재 판단: 판단 보류", "판단 보류"),
        ("frozen", "\n\n권장안\n\n- 대기\n\n고객에게는 아직 전달되지 않았습니다."),
    ]


def test_golden_physique_card() -> None:
    sentence = "제안의 구조화된 항목을 확인한 뒤 승인 여부를 결정하세요"
    lead, status = PHYSIQUE.split(f"{sentence}.")
    assert shown(Surface.ADAPTIVE_PHYSIQUE, PHYSIQUE) == [
        ("frozen", lead),
        ("adaptive.physique.review_instruction", "physique.notice", f"{sentence}.", sentence),
        ("frozen", status),
    ]


def test_golden_weekly_with_two_statements() -> None:
    slots = manifest_of(Surface.WEEKLY, WEEKLY_TWO).slots
    assert [len(slot.placeholders) for slot in slots] == [2, 1]
    assert [slot.local_id for slot in slots] == ["weekly.interpretation", "weekly.rationale"]
    assert [slot.tokens for slot in issued_of(Surface.WEEKLY, WEEKLY_TWO).slots] == [
        ("[[S:01]]", "[[S:02]]"),
        ("[[S:03]]",),
    ]


@pytest.mark.parametrize(("surface", "text"), TEXTS)
def test_the_canonical_body_is_the_text(surface: Surface, text: str) -> None:
    assert manifest_of(surface, text).canonical_body == text


@pytest.mark.parametrize("surface", Surface)
def test_typed_presentations_are_read_as_their_text(surface: Surface) -> None:
    for ordinal in range(40):
        presentation = synthetic(surface, ordinal, identity="one")
        manifest = anchor_segments(presentation)
        assert manifest.canonical_body == presentation.canonical_payload
        kinds = [slot.kind for slot in presentation_segments_v1(presentation).slots]
        assert [slot.kind for slot in manifest.slots] == kinds


def test_the_adapter_takes_the_two_schemas_and_no_other() -> None:
    adapter = AdaptiveSurfaceAdapter()
    assert adapter.manifest(DUALCOACH, DUAL).surface is Surface.ADAPTIVE_DUALCOACHTEST
    assert adapter.manifest(PHYSIQUE_SCHEMA, PHYSIQUE).surface is Surface.ADAPTIVE_PHYSIQUE
    for schema, card in (
        (DUALCOACH, PHYSIQUE),
        (PHYSIQUE_SCHEMA, DUAL),
        ("adaptive.dualcoachtest.card.v2", DUAL),
        ("adaptive.dualcoachtest.view.v1", DUAL),
        ("daily.v1", DAILY),
        (None, DUAL),
        (Surface.ADAPTIVE_DUALCOACHTEST, DUAL),
        (DUALCOACH, None),
        (DUALCOACH, DUAL.encode()),
    ):
        with pytest.raises(UnknownPresentation):
            adapter.manifest(schema, card)


def swap(text: str, one: str, other: str) -> str:
    assert one in text
    return text.replace(one, other, 1)


NOT_CARDS: list[tuple[Surface, str, Callable[[], str]]] = (
    [
        (Surface.ADAPTIVE_DUALCOACHTEST, name, change)
        for name, change in {
            "empty": lambda: "",
            "a menu": lambda: "메뉴를 선택하세요.",
            "a view": lambda: swap(DUAL, "적응형 영양 검토 · 3주차", "적응형 영양 보기"),
            "terminal": lambda: "처리가 끝났습니다.\n\n고객에게 전달되었습니다.",
            "delivered": lambda: swap(DUAL, "아직 전달되지 않았습니다", "전달되었습니다"),
            "no envelope": lambda: DUAL.partition("\n\n")[2],
            "two envelopes": lambda: f"[연습]\n\n{DUAL}",
            "envelope of two lines": lambda: swap(DUAL, "[연습] 카드", "[연습]\n카드"),
            "unknown decision": lambda: swap(DUAL, "유지 검토", "유지"),
            "two decisions": lambda: swap(DUAL, "현재 판단: 유지 검토", "현재 판단: 유지 검토\n현재 판단: 판단 보류"),
            "decision after": lambda: swap(
                swap(DUAL, "현재 판단: 유지 검토\n\n", ""), "\n\n검토 필요", "\n\n현재 판단: 유지 검토\n\n검토 필요"
            ),
            "label spelled": lambda: swap(DUAL, "현재 판단: ", "현재 판단:"),
            "no recommendation": lambda: swap(DUAL_BARE, "권장안\n\n- 대기\n\n", ""),
            "recommendation no list": lambda: swap(DUAL, "- 현재 목표를 유지", "현재 목표를 유지"),
            "unknown reason": lambda: swap(DUAL, "최근 기록이 부족합니다.", "기록이 부족합니다."),
            "reason twice": lambda: swap(DUAL, "체중 변동 폭이 큽니다.", "최근 기록이 부족합니다."),
            "five reasons": lambda: swap(
                DUAL,
                "최근 기록이 부족합니다.",
                "최근 기록이 부족합니다.\n비교할 기간이 짧습니다.\n"
                "수면 기록을 함께 보아야 합니다.\n소화 관련 메모가 있습니다.",
            ),
            "reasons empty": lambda: swap(DUAL, "최근 기록이 부족합니다.\n체중 변동 폭이 큽니다.\n\n", ""),
            "details before reasons": lambda: swap(
                swap(DUAL, "\n\n상세 근거\n\n- 평균 71.0kg", ""), "검토 필요", "상세 근거\n\n- 평균\n\n검토 필요"
            ),
            "three line breaks": lambda: swap(DUAL, "\n\n권장안", "\n\n\n권장안"),
            "one line break": lambda: swap(DUAL, "\n\n권장안", "\n권장안"),
            "trailing line": lambda: DUAL + "\n",
            "trailing block": lambda: DUAL + "\n\n버튼",
            "carriage return": lambda: DUAL.replace("\n", "\r\n"),
            "separator character": lambda: swap(DUAL, "[연습] 카드", "[연습]\u2028카드"),
            "not NFC": lambda: swap(DUAL, "카드", "\u110f\u1161드"),
            "surrogate": lambda: swap(DUAL, "카드", "카드\ud800"),
            "too long": lambda: swap(DUAL, "- 평균", "- " + "가" * 4_096),
        }.items()
    ]
    + [
        (Surface.ADAPTIVE_PHYSIQUE, name, change)
        for name, change in {
            "no notice": lambda: swap(PHYSIQUE, "검토 안내\n\n제안의", "제안의"),
            "other notice": lambda: swap(PHYSIQUE, "승인 여부를 결정하세요", "승인하세요"),
            "approved": lambda: swap(PHYSIQUE, "운영자 승인 전", "운영자 승인됨"),
            "status not last": lambda: PHYSIQUE + "\n\n끝",
            "unknown decision": lambda: swap(PHYSIQUE, "현재 목표 유지", "목표 유지"),
            "no day": lambda: swap(PHYSIQUE, "D+17", "17"),
            "no basis": lambda: swap(PHYSIQUE, "근거: 최근 7일 평균\n", ""),
            "basis empty": lambda: swap(PHYSIQUE, "근거: 최근 7일 평균", "근거: "),
            "unknown line": lambda: swap(PHYSIQUE, "메모: ", "비고: "),
            "optional order": lambda: swap(
                PHYSIQUE, "목표: 2,100kcal\n메모: 저녁 운동", "메모: 저녁 운동\n목표: 2,100kcal"
            ),
            "optional twice": lambda: swap(PHYSIQUE, "메모: ", "목표: "),
        }.items()
    ]
    + [
        (Surface.DAILY, name, change)
        for name, change in {
            "other title": lambda: swap(DAILY, "오늘 체크인 완료", "오늘 체크인"),
            "fact gone": lambda: swap(DAILY, "- 소화: 양호\n", ""),
            "facts swapped": lambda: swap(swap(DAILY, "- 수면: ", "- X: "), "- 컨디션: ", "- 수면: "),
            "branch": lambda: swap(DAILY, "7시간", "기록 없음"),
            "no actions": lambda: DAILY.partition("\n- 저녁")[0],
            "already selected": lambda: swap(DAILY, "저장된 오늘", "정리하면, 저장된 오늘"),
        }.items()
    ]
    + [
        (Surface.WEEKLY, name, change)
        for name, change in {
            "three statements": lambda: swap(
                WEEKLY_TWO, "큽니다.", "큽니다. 첫 주 기록이므로 비교할 이전 기록이 없습니다."
            ),
            "statement twice": lambda: swap(
                WEEKLY, "있습니다.\n", "있습니다. 이번 주 평균은 계획한 범위 안에 있습니다.\n"
            ),
            "unknown statement": lambda: swap(WEEKLY, "범위 안에", "범위 밖에"),
            "unknown rationale": lambda: swap(WEEKLY, "연속된", "계속된"),
            "no judgment": lambda: swap(WEEKLY, "이번 주 판단: 유지", "이번 주 판단: "),
            "no actions": lambda: swap(WEEKLY, "\n- 현재 식단 유지", ""),
        }.items()
    ]
)


@pytest.mark.parametrize(
    ("surface", "change"),
    [pytest.param(surface, change, id=f"{surface}-{name}") for surface, name, change in NOT_CARDS],
)
def test_what_is_no_such_text_is_unknown(surface: Surface, change: Callable[[], str]) -> None:
    with pytest.raises(UnknownPresentation):
        anchor_segments(CanonicalText(surface, change()))


@pytest.mark.parametrize("value", [None, "text", 1, object(), CanonicalText("daily", DAILY)])  # type: ignore[arg-type]
def test_what_is_no_presentation_is_unknown(value: object) -> None:
    with pytest.raises(UnknownPresentation):
        anchor_segments(value)


def test_every_text_is_of_one_surface_only() -> None:
    for surface, text in TEXTS:
        for other in set(Surface) - {surface}:
            with pytest.raises(UnknownPresentation):
                anchor_segments(CanonicalText(other, text))


def test_texts_are_left_out_of_every_repr() -> None:
    for surface, text in TEXTS:
        presentation = CanonicalText(surface, text)
        manifest = anchor_segments(presentation)
        said = repr(presentation) + repr(manifest) + repr(manifest.slots)
        assert all(slot.canonical not in said for slot in manifest.slots)
        assert all(isinstance(part, Slot) or part.text not in said for part in manifest.segments)

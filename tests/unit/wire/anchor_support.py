"""Manifests, issued requests and exact answers of the anchor-grammar contract."""

import json
from typing import Any

from kexpr.codes import Surface
from kexpr.manifest import Manifest
from kexpr.surfaces.card_text import CanonicalText, anchor_segments
from kexpr.wire.anchor_grammar import GRAMMAR_OF, issue
from kexpr.wire.kexp_wire import Issued

KEY = bytes(range(32))
IDENTITY = ("event-1",)

DAILY = """\
오늘 체크인 완료

- 체중: 71.2kg
- 섭취: 1,850kcal
- 탄수화물·단백질·지방: 200g · 120g · 55g
- 운동: 하체 50분
- 수면: 7시간
- 컨디션: 4/5
- 소화: 양호

저장된 오늘 기록을 확인했습니다.

오늘 할 일
- 저녁 기록 남기기
- 물 2L"""

WEEKLY = """\
주간 영양 리포트

- 평균 체중: 71.0kg

이번 주 평균은 계획한 범위 안에 있습니다.

이번 주 판단: 유지
- 현재 식단 유지

연속된 주간 평균의 방향을 근거로 삼았습니다."""

WEEKLY_TWO = WEEKLY.replace(
    "이번 주 평균은 계획한 범위 안에 있습니다.",
    "이번 주 평균은 계획한 범위 안에 있습니다. 이번 주 기록은 날짜별 차이가 큽니다.",
)

DUAL = """\
[연습] 카드

적응형 영양 검토 · 3주차

현재 판단: 유지 검토

권장안

- 현재 목표를 유지
- 다음 주 재검토

검토 필요

최근 기록이 부족합니다.
체중 변동 폭이 큽니다.

상세 근거

- 평균 71.0kg

고객에게는 아직 전달되지 않았습니다."""

DUAL_BARE = """\
[연습] 카드

적응형 영양 검토

현재 판단: 판단 보류

권장안

- 대기

고객에게는 아직 전달되지 않았습니다."""

PHYSIQUE = """\
[연습] 카드

홍길동 · 3일차 · D+17
결정: 현재 목표 유지
근거: 최근 7일 평균
목표: 2,100kcal
메모: 저녁 운동

검토 안내

제안의 구조화된 항목을 확인한 뒤 승인 여부를 결정하세요.

상태: 운영자 승인 전 · 고객에게 자동 전달하지 않음"""

TEXTS = [
    (Surface.DAILY, DAILY),
    (Surface.WEEKLY, WEEKLY),
    (Surface.WEEKLY, WEEKLY_TWO),
    (Surface.ADAPTIVE_DUALCOACHTEST, DUAL),
    (Surface.ADAPTIVE_DUALCOACHTEST, DUAL_BARE),
    (Surface.ADAPTIVE_PHYSIQUE, PHYSIQUE),
]


def manifest_of(surface: Surface, text: str) -> Manifest:
    return anchor_segments(CanonicalText(surface, text))


def issued_of(surface: Surface, text: str) -> Issued:
    return issue(manifest_of(surface, text), identity_key=KEY, artifact_identity=IDENTITY)


def answer_of(issued: Issued, lead: str = "정리하면, ", join: str = " 또한 ") -> dict[str, Any]:
    """The exact answer with `lead` in every slot, written down from the request alone."""
    request = json.loads(issued.content)
    return {
        "schema_version": request["schema_version"],
        "surface": request["surface"],
        "artifact_key": request["artifact_key"],
        "slots": [
            {
                "slot_id": slot["slot_id"],
                "grammar_id": slot["grammar_id"],
                "anchors": [anchor["anchor"] for anchor in slot["anchors"]],
                "generated_ko": text_of(slot, lead, join),
            }
            for slot in request["slots"]
        ],
    }


def text_of(slot: dict[str, Any], lead: str, join: str) -> str:
    anchors = [anchor["anchor"] for anchor in slot["anchors"]]
    if slot["grammar_id"] == "JUDGMENT":
        return f"{lead}현재 판단은 {anchors[0]}입니다."
    return lead + join.join(f"{anchor}." for anchor in anchors)


def dumps(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def grammars(issued: Issued) -> list[str]:
    return [GRAMMAR_OF[slot.kind].grammar_id.value for slot in issued.manifest.slots]

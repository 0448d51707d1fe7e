"""Synthetic presentations: what the controlled proof and the observation drive through the real paths.

Every value is invented and says so; no record of a person goes in. `(surface, ordinal, seed)` decides every byte, so
that evidence need name only the ordinal, and two ordinals never give the same presentation. The digest covers what the
generator, and the surfaces behind it, give out: a promotion candidate is pinned to it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kexpr.codes import Surface
from kexpr.surfaces import Presentation
from kexpr.surfaces.daily import MISSING_FACT, daily_presentation
from kexpr.surfaces.dualcoachtest import DECISIONS, REASONS, REASONS_MAX, dual_card_presentation
from kexpr.surfaces.physique import REVIEW_DECISIONS, physique_card_presentation, render_physique_source
from kexpr.surfaces.weekly import INTERPRETATIONS, RATIONALES, weekly_presentation

__all__ = ["GENERATOR_SEED", "GENERATOR_VERSION", "PROOF_ORDINALS", "generator_digest", "synthetic"]

GENERATOR_VERSION: Final = "kexpr-manifests-1"
GENERATOR_SEED: Final = 20260301
PROOF_ORDINALS: Final = 12
"""Distinct manifests a surface in the controlled proof; observation goes on from there."""

_EXERCISES: Final = ("걷기", "스쿼트", "자전거", "수영", "스트레칭", "로잉")
_CONDITIONS: Final = ("보통", "가벼움", "무거움", "평소와 비슷함")
_DIGESTIONS: Final = ("편안함", "보통", "더부룩함")
_ACTIONS: Final = ("물 자주 마시기", "저녁 산책하기", "식사 사진 남기기", "취침 시간 적기", "스트레칭하기", "체중 재기")
_JUDGMENTS: Final = ("현재 계획 유지", "다음 주에 다시 확인", "섭취 기록 보완", "운동 구성 유지", "계획 점검")
_RECOMMENDATIONS: Final = (
    "현재 섭취 목표 유지",
    "단백질 배분 점검",
    "주간 운동 구성 확인",
    "기록 항목 보완",
    "식사 간격 점검",
)
_DETAILS: Final = ("주간 평균 비교표", "섭취 기록 요약", "운동 기록 요약", "수면 기록 요약")
_BASES: Final = ("주간 평균 비교", "섭취 기록 비교", "운동 기록 비교", "컨디션 기록 비교")
_DAYS: Final = ("훈련일", "휴식일", "고탄수일", "저탄수일")
_OPTIONAL: Final = ("목표: 하루 {kcal}kcal", "주기: {days}일", "식사: 하루 {meals}회", "메모: 연습용 메모 {ordinal}")


@dataclass(frozen=True, slots=True)
class _Source:
    """The numbers and choices of one presentation, each drawn by name."""

    surface: Surface
    ordinal: int
    seed: int

    @property
    def label(self) -> str:
        """What makes two ordinals differ whatever else is drawn, and marks the message as invented."""
        return f"가상 자료 {self.ordinal:04d}"

    def draw(self, name: str, bound: int) -> int:
        """A number in `0 … bound-1`."""
        seed = f"{GENERATOR_VERSION}|{self.seed}|{self.surface}|{self.ordinal}|{name}"
        return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % bound

    def between(self, name: str, low: int, high: int) -> int:
        return low + self.draw(name, high - low + 1)

    def pick(self, name: str, pool: tuple[str, ...]) -> str:
        return pool[self.draw(name, len(pool))]

    def run(self, name: str, pool: tuple[str, ...], count: int) -> tuple[str, ...]:
        """`count` different members in a row, from a drawn start."""
        start = self.draw(name, len(pool))
        return tuple(pool[(start + step) % len(pool)] for step in range(count))

    def walk(self, table: Mapping[str, str], stride: int = 1) -> str:
        """A code of the table; ordinals in a row take every code in turn, so that none is missed by chance."""
        return tuple(table)[(self.seed + self.ordinal * stride) % len(table)]


def synthetic(
    surface: Surface, ordinal: int, *, identity: str = "synthetic", seed: int = GENERATOR_SEED
) -> Presentation:
    """The presentation number `ordinal` (0, 1, …) of a surface; `identity` is the caller's event id, daily only.

    Raises `ValueError` for a negative ordinal.
    """
    if ordinal < 0:
        raise ValueError("an ordinal is not negative")
    return _GENERATORS[surface](_Source(surface, ordinal, seed), identity)


def generator_digest(seed: int = GENERATOR_SEED) -> str:
    """SHA-256 (hex) over the version, the seed and the canonical payloads of the proof's ordinals."""
    payloads = [synthetic(s, n, seed=seed).canonical_payload for s in Surface for n in range(PROOF_ORDINALS)]
    material = json.dumps([GENERATOR_VERSION, seed, payloads], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(material.encode()).hexdigest()


def _daily(source: _Source, identity: str) -> Presentation:
    """Two in three ordinals are complete; the others miss one fact or two."""
    facts = [
        f"{source.between('kg', 48, 95)}.{source.draw('g', 10)}kg",
        f"{source.between('kcal', 1300, 3200)}kcal",
        f"{source.between('c', 120, 420)}g·{source.between('p', 60, 190)}g·{source.between('f', 30, 95)}g",
        f"{source.pick('exercise', _EXERCISES)} {source.between('min', 10, 90)}분",
        f"{source.between('h', 4, 9)}시간 {source.between('m', 0, 59)}분",
        source.pick("condition", _CONDITIONS),
        source.pick("digestion", _DIGESTIONS),
    ]
    if source.ordinal % 3 == 2:
        for name in ("missing", "missing too"):
            facts[source.draw(name, len(facts))] = MISSING_FACT
    actions = (*source.run("actions", _ACTIONS, source.between("count", 1, 3)), f"{source.label} 읽기")
    return daily_presentation(identity, tuple(facts), actions)


def _weekly(source: _Source, _: str) -> Presentation:
    return weekly_presentation(
        interpretation_enum=source.walk(INTERPRETATIONS),
        rationale_enum=source.walk(RATIONALES, stride=3),
        title=f"주간 영양 리포트 · {source.label}",
        facts=(
            f"평균 체중: {source.between('kg', 48, 95)}.{source.draw('g', 10)}kg",
            f"평균 섭취: {source.between('kcal', 1300, 3200)}kcal",
            f"기록한 날: {source.between('days', 2, 7)}일",
        ),
        judgment=source.pick("judgment", _JUDGMENTS),
        actions=source.run("actions", _ACTIONS, source.between("count", 1, 3)),
    )


def _dual(source: _Source, _: str) -> Presentation:
    """Zero to four reasons in turn, with and without the detail block."""
    return dual_card_presentation(
        envelope=f"[연습] {source.label}",
        title=f"적응형 영양 검토 · 가상고객 {source.between('customer', 100, 999)}",
        decision_code=source.walk(DECISIONS),
        recommendations=source.run("recommendations", _RECOMMENDATIONS, source.between("count", 1, 3)),
        reason_codes=source.run("reasons", tuple(REASONS), source.ordinal % (REASONS_MAX + 1)),
        details=source.run("details", _DETAILS, source.draw("detail count", 3)),
    )


def _physique(source: _Source, _: str) -> Presentation:
    """Zero to four of the optional lines in turn, in the card's order."""
    code = source.walk(REVIEW_DECISIONS)
    values = {
        "kcal": source.between("kcal", 1300, 3200),
        "days": source.between("days", 3, 14),
        "meals": source.between("meals", 2, 5),
        "ordinal": source.ordinal,
    }
    card = render_physique_source(
        envelope=f"[연습] {source.label}",
        subject=f"가상고객 {source.between('customer', 100, 999)} · {source.pick('day', _DAYS)} · "
        f"D+{source.between('since', 1, 120)}",
        review_decision_code=code,
        basis=source.pick("basis", _BASES),
        optional=tuple(row.format(**values) for row in _OPTIONAL[: source.ordinal % (len(_OPTIONAL) + 1)]),
    )
    return physique_card_presentation(code, card)


_GENERATORS: Final[Mapping[Surface, Callable[[_Source, str], Presentation]]] = {
    Surface.DAILY: _daily,
    Surface.WEEKLY: _weekly,
    Surface.ADAPTIVE_DUALCOACHTEST: _dual,
    Surface.ADAPTIVE_PHYSIQUE: _physique,
}

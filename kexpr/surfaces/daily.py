"""Daily: the message after a finished check-in. One status paragraph is a slot; title, facts and actions are frozen.

오늘 체크인 완료

- 체중: …            seven facts, in this order
…

<status>

오늘 할 일
- …
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kexpr.codes import SlotKind, Surface
from kexpr.manifest import Frozen, Manifest
from kexpr.surfaces.base import bullets, coded, line, lines, manifest_of, require, sentence_slot

__all__ = [
    "FACT_LABELS",
    "MISSING_FACT",
    "STATUS_SENTENCES",
    "TITLE",
    "DailyBranch",
    "DailyPresentationV1",
    "daily_presentation",
    "daily_segments",
    "render_daily_canonical",
]

TITLE: Final = "오늘 체크인 완료"
ACTIONS_HEADING: Final = "오늘 할 일"
FACT_LABELS: Final = ("체중", "섭취", "탄수화물·단백질·지방", "운동", "수면", "컨디션", "소화")
MISSING_FACT: Final = "기록 없음"


class DailyBranch(StrEnum):
    """Whether all seven facts were recorded."""

    COMPLETE = "complete"
    PARTIAL = "partial"


STATUS_SENTENCES: Final[Mapping[str, str]] = {
    DailyBranch.COMPLETE: "저장된 오늘 기록을 확인했습니다.",
    DailyBranch.PARTIAL: "일부 항목이 기록되지 않아 저장된 내용만 안내합니다.",
}
"""The code-owned status of contract section 2."""


@dataclass(frozen=True, slots=True)
class DailyPresentationV1:
    """A finished check-in as the host shows it.

    `facts` are the seven values in the order of `FACT_LABELS`, each one line; a missing one is `MISSING_FACT`.
    `actions` are the lines under `오늘 할 일`, at least one. `branch` must follow from the facts.
    """

    finalized_event_id: str = field(repr=False)
    branch: str = field(repr=False)
    facts: tuple[str, ...] = field(repr=False)
    actions: tuple[str, ...] = field(repr=False)
    canonical_payload: str = field(repr=False)


def daily_presentation(
    finalized_event_id: str, facts: tuple[str, ...], actions: tuple[str, ...]
) -> DailyPresentationV1:
    """The presentation of these facts and actions with the branch and the payload that follow from them."""
    payload = render_daily_canonical(facts, actions)
    return DailyPresentationV1(finalized_event_id, _branch_of(facts), facts, actions, payload)


def render_daily_canonical(facts: tuple[str, ...], actions: tuple[str, ...]) -> str:
    """The canonical text; raises `UnknownPresentation` for anything but seven facts and at least one action."""
    before, after = _frozen(facts, actions)
    return before + STATUS_SENTENCES[_branch_of(facts)] + after


def daily_segments(presentation: DailyPresentationV1) -> Manifest:
    """The manifest; raises `UnknownPresentation`."""
    line(presentation.finalized_event_id)
    before, after = _frozen(presentation.facts, presentation.actions)
    sentence = coded(STATUS_SENTENCES, presentation.branch)
    require(presentation.branch == _branch_of(presentation.facts))
    return manifest_of(
        Surface.DAILY,
        presentation.canonical_payload,
        Frozen(before),
        sentence_slot("daily.status", SlotKind.DAILY_STATUS, presentation.branch, sentence),
        Frozen(after),
    )


def _branch_of(facts: tuple[str, ...]) -> DailyBranch:
    return DailyBranch.PARTIAL if MISSING_FACT in facts else DailyBranch.COMPLETE


def _frozen(facts: tuple[str, ...], actions: tuple[str, ...]) -> tuple[str, str]:
    """The text before and after the status paragraph."""
    values = lines(facts, least=len(FACT_LABELS), most=len(FACT_LABELS))
    rows = tuple(f"{label}: {value}" for label, value in zip(FACT_LABELS, values, strict=True))
    return f"{TITLE}\n\n{bullets(rows)}\n\n", f"\n\n{ACTIONS_HEADING}\n{bullets(lines(actions))}"

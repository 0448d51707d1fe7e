"""Fourteen days as data: what became of each UTC day. Pure."""

from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from harness.evidence.summary import PairEvidence
from harness.readiness.window import observed, sum_of

__all__ = ["DayState", "strip_of"]


class DayState(StrEnum):
    """`before`: the observation had not begun. `open`: the day of the report, without a call yet."""

    COVERED = "covered"
    FAILED = "failed"
    MISSED = "missed"
    OPEN = "open"
    BEFORE = "before"


def strip_of(evidence: PairEvidence, as_of: str, days: int) -> list[dict[str, Any]]:
    """The last `days` UTC days up to `as_of`, or up to the day before while `as_of` has no call yet.

    A failure, an orphan and a failure in the gateway's mirror each make a day `failed`, whatever else it has.
    """
    seen = {cell.date for cell, calls in evidence.cells.items() if observed(cell, as_of) and calls.intents}
    end = date.fromisoformat(as_of)
    if as_of not in seen and min(seen, default=as_of) < as_of:
        end -= timedelta(days=1)
    dates = [(end - timedelta(days=back)).isoformat() for back in reversed(range(days))]
    return [_day(evidence, day, as_of, min(seen, default=None)) for day in dates]


def _day(evidence: PairEvidence, day: str, as_of: str, first: str | None) -> dict[str, Any]:
    calls = sum_of(calls for cell, calls in evidence.cells.items() if observed(cell, as_of) and cell.date == day)
    mirrored = sum(count.failures for count in evidence.mirror if count.date == day)
    if calls.failures or mirrored:
        state = DayState.FAILED
    elif calls.accepted:
        state = DayState.COVERED
    elif first is None or day < first:
        state = DayState.BEFORE
    else:
        state = DayState.OPEN if day == as_of else DayState.MISSED
    return {
        "date": day,
        "state": state.value,
        "calls": calls.intents,
        "accepted": calls.accepted,
        "failures": calls.failures,
        "mirror_failures": mirrored,
    }

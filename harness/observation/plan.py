"""What is due on a UTC day: a pure table. The evidence decides what of it was done."""

from datetime import date, timedelta
from typing import Final

from harness.evidence.rows import RunKind, Slot
from harness.manifests import PROOF_ORDINALS
from harness.profiles import PAIRS, PATHS

__all__ = ["CALLS_PER_DAY_MAX", "days_between", "due_slots"]

CALLS_PER_DAY_MAX: Final = 100
_FIRST_DAY: Final = date(2026, 1, 1)


def due_slots(day: date, calls_per_day: int = 1) -> tuple[Slot, ...]:
    """The slots of all pairs on a UTC day. Card producers take turns by day, and by call within a day.

    Ordinals go on behind the proof's and never come again, so that each call has a manifest of its own.
    """
    number = (day - _FIRST_DAY).days
    return tuple(
        Slot(
            kind=RunKind.OBSERVATION,
            pair=pair,
            path=PATHS[pair.surface][(number + call) % len(PATHS[pair.surface])],
            ordinal=PROOF_ORDINALS + number * CALLS_PER_DAY_MAX + call,
            date=day.isoformat(),
        )
        for call in range(calls_per_day)
        for pair in PAIRS
    )


def days_between(first: date, end: date) -> tuple[date, ...]:
    """The days from `first` until the day before `end`."""
    return tuple(first + timedelta(days=offset) for offset in range((end - first).days))

"""Coverage of UTC days by the calls of one pair. Pure."""

from collections.abc import Callable, Iterable
from datetime import date, timedelta

from harness.evidence.rows import RunKind
from harness.evidence.summary import NO_CALLS, Calls, Cell, PairEvidence
from harness.readiness.model import Window
from kexpr.codes import Mode

__all__ = ["cells_in", "observed", "sum_of", "window_of"]

_DAY = timedelta(days=1)


def sum_of(calls: Iterable[Calls]) -> Calls:
    """Adds counts, not objects: a candidate may have thousands of cells."""
    intents = outcomes = accepted = requests = orphans = 0
    for it in calls:
        intents += it.intents
        outcomes += it.outcomes
        accepted += it.accepted
        requests += it.requests
        orphans += it.orphans
    return Calls(intents, outcomes, accepted, requests, orphans)


def observed(cell: Cell, as_of: str) -> bool:
    """Whether a cell is of the shadow observation, not later than `as_of`. Dates compare as text."""
    return cell.run_kind is RunKind.OBSERVATION and cell.mode is Mode.SHADOW and cell.date <= as_of


def cells_in(evidence: PairEvidence, window: Window, as_of: str, days: int) -> dict[Cell, Calls]:
    """The cells of the `days` calendar days that end with the window, and of the days after it until `as_of`."""
    start = "" if window.last is None else _earlier(window.last, days - 1)
    return {cell: calls for cell, calls in evidence.cells.items() if observed(cell, as_of) and cell.date >= start}


def window_of(evidence: PairEvidence, as_of: str, days: int) -> Window:
    """The last consecutive covered days, at most `days` of them, and what was called meanwhile."""
    covered = _days_with(evidence, as_of, lambda calls: calls.accepted)
    touched = _days_with(evidence, as_of, lambda calls: calls.intents)
    last = max(covered, default=None)
    length = 0
    while last is not None and length < days and _earlier(last, length) in covered:
        length += 1
    empty = Window(
        first=None if last is None else _earlier(last, length - 1),
        last=last,
        days=length,
        calls=NO_CALLS,
        gaps=_gaps(covered, touched, as_of),
    )
    calls = sum_of(cells_in(evidence, empty, as_of, days).values())
    return Window(empty.first, empty.last, empty.days, calls, empty.gaps)


def _days_with(evidence: PairEvidence, as_of: str, count: Callable[[Calls], int]) -> set[str]:
    return {cell.date for cell, calls in evidence.cells.items() if observed(cell, as_of) and count(calls)}


def _gaps(covered: set[str], touched: set[str], as_of: str) -> int:
    """Days not covered, from the first day with a call until the day before `as_of`, which is not over."""
    if not touched:
        return 0
    first = date.fromisoformat(min(touched))
    whole = (date.fromisoformat(as_of) - first).days
    return sum((first + offset * _DAY).isoformat() not in covered for offset in range(whole))


def _earlier(day: str, days: int) -> str:
    return (date.fromisoformat(day) - days * _DAY).isoformat()

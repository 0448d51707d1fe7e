"""One observation run over the evidence: what is due today and not done yet, each slot once.

No scheduler runs a job exactly once, so the evidence does: a slot is unique and durable before its request. A failed
call ends nothing, and an orphan is left as one; both count. A day that was missed stays missed, also when the clock
goes back: nothing is due before the newest observed day.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from harness.calls import Intents, World, make_call
from harness.candidate import Pin
from harness.evidence.ledger import EvidenceLedger, EvidenceRefused, RunSpec
from harness.evidence.rows import Check, RunKind, Slot, Traffic
from harness.evidence.state import Refusal
from harness.evidence.summary import EvidenceSummary
from harness.observation.plan import days_between, due_slots
from harness.profiles import PAIRS
from kexpr.clock import Clock
from kexpr.codes import Mode, Outcome, ProviderKind

__all__ = ["DueResult", "Word", "missed_days", "run_due", "utc_day"]


class Word(StrEnum):
    """How `observe run --due` went, in one word."""

    RAN = "ran"
    NOTHING_DUE = "nothing_due"
    LOCKED = "locked"
    MISSED_DAY = "missed_day"


@dataclass(frozen=True, slots=True)
class DueResult:
    """`missed` are the UTC days between the last observed one and today; the word says so whenever there are any."""

    word: Word
    day: str
    calls: int = 0
    accepted: int = 0
    missed: tuple[str, ...] = ()


def utc_day(clock: Clock) -> date:
    return datetime.fromtimestamp(clock.now().utc_ms / 1000, UTC).date()


def newest_day(summary: EvidenceSummary) -> date | None:
    """The last UTC day of the schedule on which anything was called."""
    observed = [
        cell.date
        for evidence in summary.pairs.values()
        for cell in evidence.cells
        if cell.run_kind is RunKind.OBSERVATION and cell.traffic is Traffic.SYNTHETIC
    ]
    return date.fromisoformat(max(observed)) if observed else None


def missed_days(newest: date | None, today: date) -> tuple[str, ...]:
    """Days after the newest observed one and before `today`, on which nothing was called."""
    if newest is None:
        return ()
    return tuple(day.isoformat() for day in days_between(newest + timedelta(days=1), today))


def run_due(
    evidence: EvidenceLedger,
    pin: Pin,
    *,
    provider: ProviderKind,
    clock: Clock,
    calls_per_day: int,
    checks: Mapping[Check, bool],
    open_world: Callable[[Intents], World],
    starting: Callable[[Slot], None] = lambda _: None,
    stopping: Callable[[], bool] = lambda: False,
) -> DueResult:
    """Make the calls of today that were not made. `starting` hears of each; `stopping` is asked before each.

    Raises `CallNotMade`, and what the evidence raises but for a run of somebody else, which is the word `locked`.
    """
    today = utc_day(clock)
    try:
        candidate = evidence.ensure_candidate(pin)
        newest = newest_day(evidence.summary())
        went_back = newest is not None and today < newest
        due = () if went_back else evidence.untaken(due_slots(today, calls_per_day))
        if not due:
            return DueResult(Word.NOTHING_DUE, today.isoformat())
        run = evidence.begin_run(RunSpec(RunKind.OBSERVATION, provider, Mode.SHADOW, PAIRS))
    except EvidenceRefused as refused:
        if refused.code is not Refusal.RUN_LOCKED:
            raise
        return DueResult(Word.LOCKED, today.isoformat())
    missed = missed_days(newest, today)
    calls = accepted = 0
    try:
        evidence.record_checks(checks)
        intents = Intents(evidence)
        world = open_world(intents)
        for slot in due:
            if stopping():
                break
            starting(slot)
            identity = f"{candidate.id}/{run}/{slot.pair}/{slot.date}/{slot.ordinal}"
            outcome = make_call(evidence, intents, world, slot, identity)
            calls += 1
            accepted += outcome is Outcome.SHADOW_SELECTED
    finally:
        evidence.finish_run()
    return DueResult(Word.MISSED_DAY if missed else Word.RAN, today.isoformat(), calls, accepted, missed)

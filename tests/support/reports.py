"""Evidence in many states for tests of reports: folded by hand, and on disk as live calls would leave it."""

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

from harness.candidate import Pin
from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import Check, EndReason, RunKind, Slot, Traffic
from harness.evidence.summary import Cell, EvidenceSummary, MirrorCount
from harness.observation.run import utc_day
from harness.observation.simulate import SimulatedCalendar
from harness.policy import POLICY
from harness.profiles import PAIRS, PATHS, Pair, Profile
from harness.readiness.assess import assess
from harness.readiness.model import LADDERS
from harness.report.source import Judged
from kexpr.codes import Mode, Outcome, ProviderKind, Reason
from kexpr.ledger.protocol import Head
from tests.support.summaries import PIN, add_calls, approved, clean_summary, day, empty_summary, failed, one_call

__all__ = ["LIVE_PIN", "STATES", "State", "judged", "live_state", "observe_failure", "write_live"]

LIVE_PIN = replace(PIN, policy_digest=POLICY.digest)
FIRST = PAIRS[0]
ANCHOR = Head(400, "a" * 64)


@dataclass(frozen=True, slots=True)
class State:
    """Evidence, the day it is judged on, and the anchor with what the chain says to it."""

    summary: EvidenceSummary
    as_of: str = day(13)
    anchor: Head | None = None
    holds: bool = True


def judged(name: str) -> Judged:
    state = STATES[name]
    readiness = assess(state.summary, POLICY, state.as_of, state.anchor, anchor_holds=state.holds)
    return Judged(readiness, POLICY, state.holds)


def _failures() -> EvidenceSummary:
    """One timeout, one orphan, one mirrored failure, organic traffic, and a candidate that ended before."""
    summary = failed(clean_summary(range(9)), FIRST, day(9))
    summary = failed(summary, FIRST, day(10), outcomes=0, orphans=1)
    organic = Cell(
        RunKind.OBSERVATION, day(11), PATHS[FIRST.surface][0], ProviderKind.LIVE, Traffic.ORGANIC, Mode.SHADOW
    )
    summary = add_calls(summary, FIRST, organic, one_call())
    evidence = summary.pairs[FIRST]
    evidence = replace(
        evidence,
        outcomes={**evidence.outcomes, Outcome.CANONICAL_TIMEOUT: 1},
        reasons={Reason.TIMEOUT_DEADLINE: 1},
        mirror=(MirrorCount(day(5), 7, 2),),
        latency=(*evidence.latency[:-1], 1),
    )
    (newest,) = summary.candidates
    ended = replace(newest, ended=EndReason.CALL_FAILED, orphans=1)
    newest = replace(newest, candidate=replace(newest.candidate, restart=1))
    return replace(summary, pairs={**summary.pairs, FIRST: evidence}, candidates=(ended, newest))


def _everything_approved() -> EvidenceSummary:
    summary = clean_summary()
    for pair in PAIRS:
        summary = approved(summary, pair, LADDERS[pair][-1].value)
    return summary


def _rehearsed() -> EvidenceSummary:
    return clean_summary(provider=ProviderKind.REHEARSAL)


STATES = {
    "empty": State(empty_summary()),
    "nothing": State(replace(empty_summary(), candidates=(), head=Head(0, "0" * 64))),
    "audited": State(clean_summary(())),
    "ready": State(clean_summary(), anchor=ANCHOR),
    "enabled": State(_everything_approved()),
    "failures": State(_failures()),
    "lapsed": State(clean_summary(), as_of=day(20)),
    "today_open": State(clean_summary(), as_of=day(14)),
    "ended": State(clean_summary(ended=EndReason.OPERATOR)),
    "rehearsal": State(_rehearsed()),
    "broken": State(clean_summary(), anchor=ANCHOR, holds=False),
}


def write_live(directory: Path, days: int = 14, pin: Pin = LIVE_PIN) -> EvidenceLedger:
    """As live calls leave it: audits, checks, 48 of 48, and `days` days that end today. The caller closes it."""
    calendar = SimulatedCalendar()
    today = utc_day(calendar)
    calendar.go_to(today - timedelta(days=days - 1))
    evidence = EvidenceLedger.open(directory, calendar)
    for profile in Profile:
        evidence.record_audit(profile, "1" * 64, ready=True)
    evidence.ensure_candidate(pin)
    for check in Check:
        evidence.record_check(check, passed=True)
    proof = [
        Slot(RunKind.PROOF, pair, PATHS[pair.surface][turn % len(PATHS[pair.surface])], turn)
        for pair in PAIRS
        for turn in range(POLICY.calls_of(pair))
    ]
    _run(evidence, RunKind.PROOF, proof)
    for back in reversed(range(days)):
        calendar.go_to(today - timedelta(days=back))
        _run(evidence, RunKind.OBSERVATION, [_observed(pair, today - timedelta(days=back)) for pair in PAIRS])
    return evidence


def observe_failure(evidence: EvidenceLedger, pair: Pair = FIRST) -> None:
    """One more call of today that times out."""
    today = utc_day(SimulatedCalendar())
    _run(evidence, RunKind.OBSERVATION, [replace(_observed(pair, today), ordinal=9_999)], Reason.TIMEOUT_DEADLINE)


def _observed(pair: Pair, on: date) -> Slot:
    paths = PATHS[pair.surface]
    return Slot(RunKind.OBSERVATION, pair, paths[on.toordinal() % len(paths)], on.toordinal() % 1000, on.isoformat())


def _run(evidence: EvidenceLedger, kind: RunKind, slots: list[Slot], reason: Reason | None = None) -> None:
    outcome = Outcome.CANONICAL_TIMEOUT if reason else Outcome.SHADOW_SELECTED
    evidence.begin_run(RunSpec(kind, ProviderKind.LIVE, Mode.SHADOW, PAIRS))
    for slot in slots:
        evidence.intent(slot)
        evidence.outcome(slot, outcome, reason, duration_ms=700, requests=1)
    evidence.finish_run()


def live_state(root: Path) -> Path:
    """A state directory below `root` with live evidence; returns it."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(write_live(root / "evidence")):
        pass
    return root

"""Every gate as one small pure function over the same facts, and the table of who asks which."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from harness.evidence.rows import RunKind
from harness.evidence.summary import Calls, Cell, Check, EvidenceSummary, PairEvidence
from harness.policy import GatePolicy
from harness.profiles import PAIRS, Pair
from harness.readiness.model import Gate, GateCode, GateReason, GateVerdict, Phase, Window
from harness.readiness.window import cells_in, sum_of, window_of
from kexpr.codes import ANCHOR_SURFACE_OF, ProviderKind, WireVersion

__all__ = ["GATES", "Facts", "gates_of", "judge_gate", "proof_of", "wire_of"]

_HOUR_MS: Final = 3_600_000

_PASSED, _REHEARSAL = GateVerdict.PASSED, GateVerdict.REHEARSAL
_FAILED, _MISSING, _BROKEN = GateVerdict.FAILED, GateVerdict.MISSING, GateVerdict.BROKEN


@dataclass(frozen=True, slots=True)
class Facts:
    """What the gates of one pair read. `proof` has the proof's calls of all pairs, since it passes as a whole;
    `in_window` the observed ones of this pair that count (`harness.readiness.window.cells_in`)."""

    summary: EvidenceSummary
    policy: GatePolicy
    as_of: str
    pair: Pair
    evidence: PairEvidence
    window: Window
    anchor_holds: bool
    proof: Mapping[tuple[Pair, Cell], Calls]
    in_window: Mapping[Cell, Calls]


def wire_of(summary: EvidenceSummary) -> WireVersion | None:
    """The wire that the newest candidate is pinned to."""
    return summary.candidate.pin.wire_version if summary.candidate else None


def proof_of(summary: EvidenceSummary) -> dict[tuple[Pair, Cell], Calls]:
    """The calls of the proof of all pairs."""
    return {
        (pair, cell): calls
        for pair, evidence in summary.pairs.items()
        for cell, calls in evidence.cells.items()
        if cell.run_kind is RunKind.PROOF
    }


Judgement = tuple[int, int, GateVerdict, GateReason | None]
"""Required, observed, verdict and reason of a gate."""


def _yes(holds: bool, verdict: GateVerdict, reason: GateReason) -> Judgement:
    return (1, 1, _PASSED, None) if holds else (1, 0, verdict, reason)


def _chain_intact(facts: Facts) -> Judgement:
    return _yes(facts.anchor_holds, _BROKEN, GateReason.ANCHOR_MISMATCH)


def _config_audit(facts: Facts) -> Judgement:
    audit = facts.summary.audits.get(facts.pair.profile)
    if audit is None:
        return 1, 0, _MISSING, GateReason.NO_AUDIT
    return _yes(audit.ready, _FAILED, GateReason.AUDIT_NOT_READY)


def _candidate_open(facts: Facts) -> Judgement:
    candidate = facts.summary.candidate
    if candidate is None:
        return 1, 0, _MISSING, GateReason.NO_CANDIDATE
    if candidate.pin.policy_digest != facts.policy.digest:
        return 1, 0, _FAILED, GateReason.POLICY_CHANGED
    return _yes(candidate.ended is None, _FAILED, GateReason.CANDIDATE_ENDED)


def _check(check: Check) -> Callable[[Facts], Judgement]:
    def judge(facts: Facts) -> Judgement:
        if check not in facts.summary.checks:
            return 1, 0, _MISSING, GateReason.NOT_CHECKED
        return _yes(facts.summary.checks[check], _FAILED, GateReason.CHECK_FAILED)

    return judge


def _rehearsed(judgement: Judgement, cells: list[Cell]) -> Judgement:
    """A gate that would pass on evidence of which a part is rehearsal does not."""
    required, observed, verdict, _ = judgement
    if verdict is _PASSED and any(cell.provider is ProviderKind.REHEARSAL for cell in cells):
        return required, observed, _REHEARSAL, GateReason.REHEARSAL_ONLY
    return judgement


def _equal_requests(calls: Calls) -> Judgement:
    due = calls.intents - calls.in_progress
    if calls.requests > calls.intents:
        return calls.intents, calls.requests, _BROKEN, GateReason.MORE_REQUESTS_THAN_INTENTS
    if calls.requests < due:
        return calls.intents, calls.requests, _FAILED, GateReason.FEWER_REQUESTS_THAN_INTENTS
    return calls.intents, calls.requests, _PASSED, None


def _none_of(count: int, reason: GateReason) -> Judgement:
    return (0, 0, _PASSED, None) if not count else (0, count, _FAILED, reason)


def _proof_calls(facts: Facts) -> Judgement:
    """No pair makes up for another: of each, only as many calls count as are asked of it."""
    calls, required = sum_of(facts.proof.values()), facts.policy.proof_total
    accepted = dict.fromkeys(PAIRS, 0)
    for (pair, _), of_cell in facts.proof.items():
        accepted[pair] += of_cell.accepted
    counted = sum(min(count, facts.policy.calls_of(pair)) for pair, count in accepted.items())
    if calls.intents > required:
        return required, calls.intents, _FAILED, GateReason.CALLS_EXTRA
    if calls.failures:
        return required, calls.accepted, _FAILED, GateReason.CALLS_FAILED
    if counted < required:
        return required, counted, _MISSING, GateReason.CALLS_MISSING
    return _rehearsed((required, counted, _PASSED, None), [cell for _, cell in facts.proof])


def _proof_window(facts: Facts) -> Judgement:
    hours = facts.policy.proof_window_hours
    firsts = [it.proof_first_utc_ms for it in facts.summary.pairs.values() if it.proof_first_utc_ms is not None]
    lasts = [it.proof_last_utc_ms for it in facts.summary.pairs.values() if it.proof_last_utc_ms is not None]
    if not firsts or not lasts:
        return hours, 0, _MISSING, GateReason.CALLS_MISSING
    taken = -((min(firsts) - max(lasts)) // _HOUR_MS)
    return (hours, taken, _PASSED, None) if taken <= hours else (hours, taken, _FAILED, GateReason.WINDOW_EXCEEDED)


def _days_covered(facts: Facts) -> Judgement:
    required, days = facts.policy.observation_days, facts.window.days
    if days < required:
        return required, days, _MISSING, GateReason.DAYS_MISSING
    return _rehearsed((required, days, _PASSED, None), list(facts.in_window))


def _accepted(facts: Facts) -> Judgement:
    required, accepted = facts.policy.observation_accepted, facts.window.accepted
    if accepted < required:
        return required, accepted, _MISSING, GateReason.TOO_FEW_ACCEPTED
    return _rehearsed((required, accepted, _PASSED, None), list(facts.in_window))


def _every_surface_accepted(facts: Facts) -> Judgement:
    """The anchor grammar's own rule: each of its surfaces has an accepted call in its window."""
    required, cells = set(ANCHOR_SURFACE_OF.values()), list[Cell]()
    accepted = set()
    for pair, evidence in facts.summary.pairs.items():
        window = window_of(evidence, facts.as_of, facts.policy.observation_days)
        if window.accepted:
            accepted.add(ANCHOR_SURFACE_OF[pair.surface])
            cells += cells_in(evidence, window, facts.as_of, facts.policy.observation_days)
    if accepted < required:
        return len(required), len(accepted), _MISSING, GateReason.TOO_FEW_ACCEPTED
    return _rehearsed((len(required), len(accepted), _PASSED, None), cells)


def _no_failure_of_any_surface(facts: Facts) -> Judgement:
    """And no surface has a failure in its window: the surfaces of that contract are promoted together or not."""
    windows = (window_of(it, facts.as_of, facts.policy.observation_days) for it in facts.summary.pairs.values())
    return _none_of(sum(window.failures for window in windows), GateReason.CALLS_FAILED)


def _recent(facts: Facts) -> Judgement:
    allowed = facts.policy.lapse_days
    if facts.window.last is None:
        return allowed, 0, _MISSING, GateReason.DAYS_MISSING
    age = (date.fromisoformat(facts.as_of) - date.fromisoformat(facts.window.last)).days
    return (allowed, age, _PASSED, None) if age <= allowed else (allowed, age, _MISSING, GateReason.LAPSED)


def _both_producers(facts: Facts) -> Judgement:
    producers = len({cell.path for cell, calls in facts.in_window.items() if calls.accepted})
    return (2, producers, _PASSED, None) if producers >= 2 else (2, producers, _MISSING, GateReason.PRODUCER_MISSING)


def _mirror_clean(facts: Facts) -> Judgement:
    since = facts.window.first or ""
    failures = sum(count.failures for count in facts.evidence.mirror if since <= count.date <= facts.as_of)
    return _none_of(failures, GateReason.MIRROR_FAILURE)


def _approval(facts: Facts, phase: Phase) -> Judgement:
    candidate = facts.summary.candidate
    approved = candidate is not None and any(
        (it.candidate, it.pair, it.phase) == (candidate.candidate.id, facts.pair, phase)
        for it in facts.summary.approvals
    )
    return _yes(approved, _MISSING, GateReason.NOT_APPROVED)


_JUDGES: Final[Mapping[GateCode, Callable[[Facts], Judgement]]] = {
    GateCode.CHAIN_INTACT: _chain_intact,
    GateCode.CONFIG_AUDIT: _config_audit,
    GateCode.CANDIDATE_OPEN: _candidate_open,
    GateCode.BUDGET_FEASIBLE: _check(Check.BUDGET),
    GateCode.GUARD_AT_BAR: _check(Check.GUARD),
    GateCode.CANARIES_CLEAN: _check(Check.CANARIES),
    GateCode.PROOF_CALLS: _proof_calls,
    GateCode.PROOF_WINDOW: _proof_window,
    GateCode.PROOF_REQUESTS: lambda facts: _equal_requests(sum_of(facts.proof.values())),
    GateCode.PROOF_NO_ORPHAN: lambda facts: _none_of(sum_of(facts.proof.values()).orphans, GateReason.ORPHANED),
    GateCode.DAYS_COVERED: _days_covered,
    GateCode.ACCEPTED: _accepted,
    GateCode.NO_FAILURE: lambda facts: _none_of(facts.window.failures, GateReason.CALLS_FAILED),
    GateCode.NO_ORPHAN: lambda facts: _none_of(facts.window.calls.orphans, GateReason.ORPHANED),
    GateCode.REQUESTS_EQUAL_INTENTS: lambda facts: _equal_requests(facts.window.calls),
    GateCode.RECENT: _recent,
    GateCode.BOTH_PRODUCERS: _both_producers,
    GateCode.MIRROR_CLEAN: _mirror_clean,
}

_ANCHOR_JUDGES: Final[Mapping[GateCode, Callable[[Facts], Judgement]]] = {
    **_JUDGES,
    GateCode.ACCEPTED: _every_surface_accepted,
    GateCode.NO_FAILURE: _no_failure_of_any_surface,
}
_JUDGES_OF: Final = {WireVersion.ANCHOR_GRAMMAR: _ANCHOR_JUDGES}
"""Whose gates are judged otherwise than those of open prose."""

_PREFLIGHT: Final = (GateCode.BUDGET_FEASIBLE, GateCode.GUARD_AT_BAR, GateCode.CANARIES_CLEAN)
_ENABLING: Final = (
    GateCode.CHAIN_INTACT,
    GateCode.PREVIOUS_PHASE,
    GateCode.CANDIDATE_OPEN,
    GateCode.CONFIG_AUDIT,
    GateCode.APPROVAL,
)

GATES: Final[Mapping[Phase, tuple[GateCode, ...]]] = {
    Phase.P0: (GateCode.CHAIN_INTACT, GateCode.CONFIG_AUDIT),
    Phase.P1: (
        GateCode.CHAIN_INTACT,
        GateCode.PREVIOUS_PHASE,
        GateCode.CANDIDATE_OPEN,
        *_PREFLIGHT,
        GateCode.PROOF_CALLS,
        GateCode.PROOF_WINDOW,
        GateCode.PROOF_REQUESTS,
        GateCode.PROOF_NO_ORPHAN,
    ),
    Phase.P2: (
        GateCode.CHAIN_INTACT,
        GateCode.PREVIOUS_PHASE,
        GateCode.CANDIDATE_OPEN,
        *_PREFLIGHT,
        GateCode.DAYS_COVERED,
        GateCode.ACCEPTED,
        GateCode.NO_FAILURE,
        GateCode.NO_ORPHAN,
        GateCode.REQUESTS_EQUAL_INTENTS,
        GateCode.RECENT,
        GateCode.MIRROR_CLEAN,
    ),
    Phase.P3: _ENABLING,
    Phase.P4: _ENABLING,
    Phase.P5: (*_ENABLING, GateCode.BOTH_PRODUCERS),
}
"""The gates of each phase in the order of a report (harness, "Phases" and "Readiness")."""


def gates_of(phase: Phase, wire: WireVersion | None) -> tuple[GateCode, ...]:
    """The gates of a phase for one contract: no guard judges the anchor grammar, so that its bar is not asked."""
    unasked = {GateCode.GUARD_AT_BAR} if wire is WireVersion.ANCHOR_GRAMMAR else set()
    return tuple(code for code in GATES[phase] if code not in unasked)


def judge_gate(code: GateCode, phase: Phase, previous: GateVerdict, facts: Facts) -> Gate:
    """One gate of a phase; `previous` is what the phase before it counts as."""
    if code is GateCode.PREVIOUS_PHASE:
        judgement = _previous_phase(previous)
    elif code is GateCode.APPROVAL:
        judgement = _approval(facts, phase)
    else:
        wire = wire_of(facts.summary)
        judgement = (_JUDGES_OF.get(wire, _JUDGES) if wire else _JUDGES)[code](facts)
    return Gate(code, *judgement)


def _previous_phase(verdict: GateVerdict) -> Judgement:
    if verdict is _PASSED:
        return 1, 1, _PASSED, None
    reason = GateReason.REHEARSAL_ONLY if verdict is _REHEARSAL else GateReason.PREVIOUS_NOT_PASSED
    return 1, 0, verdict, reason

"""The readiness function: evidence, policy and day in, a verdict for each pair and phase out. Pure.

Each phase asks its gates after the phase before it, and the worst gate decides: broken evidence before a failed gate,
that before missing evidence, that before a rehearsal. Adding a failed call therefore turns no gate green; the order of
rows cannot matter, since only their counts are read.
"""

from collections.abc import Mapping
from typing import Final

from harness.evidence.rows import RunKind
from harness.evidence.summary import Calls, Cell, EvidenceSummary, PairEvidence
from harness.policy import GatePolicy
from harness.profiles import PAIRS, Pair
from harness.readiness.gates import Facts, gates_of, judge_gate, proof_of, wire_of
from harness.readiness.model import (
    LADDERS,
    WORST_FIRST,
    Bounds,
    Gate,
    GateVerdict,
    PairReadiness,
    Phase,
    PhaseReadiness,
    Readiness,
)
from harness.readiness.window import cells_in, sum_of, window_of
from harness.statistics import anytime_upper, clean_calls_for, clopper_pearson_upper, e_value, is_rate_below
from harness.verdict import Verdict
from kexpr.ledger.protocol import Head

__all__ = ["assess"]

_VERDICT_OF: Final = {
    GateVerdict.BROKEN: Verdict.INVALID,
    GateVerdict.FAILED: Verdict.NOT_READY,
    GateVerdict.MISSING: Verdict.INSUFFICIENT,
    GateVerdict.REHEARSAL: Verdict.REHEARSAL,
    GateVerdict.PASSED: Verdict.READY,
}
_AS_GATE: Final[Mapping[Verdict, GateVerdict]] = {verdict: gate for gate, verdict in _VERDICT_OF.items()}

_RATES: Final = (0.05, 0.01)
"""Failure rates that a report says how many clean calls rule out."""


def assess(
    summary: EvidenceSummary, policy: GatePolicy, as_of: str, anchor: Head | None = None, *, anchor_holds: bool = True
) -> Readiness:
    """Judge every pair on the UTC day `as_of` (`YYYY-MM-DD`); calls of later days are not seen.

    `anchor` is the newest head kept elsewhere; `anchor_holds` whether the chain contains it, which only who has the
    rows can say. An anchor beyond the head never holds.
    """
    holds = anchor_holds and (anchor is None or _may_contain(summary.head, anchor))
    proof = proof_of(summary)
    pairs = tuple(_assess_pair(summary, policy, as_of, pair, proof, anchor_holds=holds) for pair in PAIRS)
    return Readiness(as_of, anchor, summary, pairs)


def _may_contain(head: Head, anchor: Head) -> bool:
    return head == anchor or head.sequence > anchor.sequence


def _assess_pair(
    summary: EvidenceSummary,
    policy: GatePolicy,
    as_of: str,
    pair: Pair,
    proof: Mapping[tuple[Pair, Cell], Calls],
    *,
    anchor_holds: bool,
) -> PairReadiness:
    evidence = summary.pairs[pair]
    window = window_of(evidence, as_of, policy.observation_days)
    in_window = cells_in(evidence, window, as_of, policy.observation_days)
    facts = Facts(summary, policy, as_of, pair, evidence, window, anchor_holds, proof, in_window)
    phases: list[PhaseReadiness] = []
    previous = GateVerdict.PASSED
    for phase in LADDERS[pair]:
        gates = tuple(judge_gate(code, phase, previous, facts) for code in gates_of(phase, wire_of(summary)))
        verdict = _verdict(gates)
        phases.append(PhaseReadiness(phase, verdict, gates))
        previous = _AS_GATE[verdict]
    begun = _furthest(facts)
    verdict = next(it.verdict for it in phases if it.phase is begun)
    return PairReadiness(pair, begun, verdict, tuple(phases), window, _bounds(evidence, policy))


def _verdict(gates: tuple[Gate, ...]) -> Verdict:
    seen = {gate.verdict for gate in gates}
    return next(_VERDICT_OF[verdict] for verdict in WORST_FIRST if verdict in seen)


def _furthest(facts: Facts) -> Phase:
    """The furthest phase that has begun: by an approval, by an observed call, by a call of the proof."""
    p0, p1, p2, last = LADDERS[facts.pair]
    candidate = facts.summary.candidate
    of_candidate = candidate.candidate.id if candidate else None
    if any((it.candidate, it.pair, it.phase) == (of_candidate, facts.pair, last) for it in facts.summary.approvals):
        return last
    if any(cell.run_kind is RunKind.OBSERVATION for cell in facts.evidence.cells):
        return p2
    return p1 if facts.proof else p0


def _bounds(evidence: PairEvidence, policy: GatePolicy) -> Bounds:
    total = sum_of(evidence.cells.values())
    calls, confidence = total.outcomes + total.orphans, policy.confidence_permille / 1000
    to_rates = (_still_clean(total.failures, calls, rate, confidence) for rate in _RATES)
    return Bounds(
        calls,
        total.failures,
        evidence.proof_manifests + evidence.observation_manifests,
        clopper_pearson_upper(total.failures, calls, confidence),
        anytime_upper(total.failures, calls, confidence),
        e_value(total.failures, calls, _RATES[0]),
        *to_rates,
    )


def _still_clean(failures: int, calls: int, rate: float, confidence: float) -> int:
    """How many more calls without a failure bring the upper bound under `rate`."""
    low, high = 0, clean_calls_for(rate, confidence)
    while not is_rate_below(rate, failures, calls + high, confidence):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if is_rate_below(rate, failures, calls + middle, confidence):
            high = middle
        else:
            low = middle + 1
    return low

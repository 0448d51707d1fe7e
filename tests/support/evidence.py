"""Hand-made evidence summaries and readings for tests of what shows them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from harness.candidate import Candidate
from harness.evidence.rows import RunKind, Traffic
from harness.evidence.state import CandidateView
from harness.evidence.summary import Calls, Cell, EvidenceSummary, OutcomeSeries, ReasonSeries
from harness.policy import GatePolicy
from harness.profiles import PAIRS, PATHS, Pair
from harness.readiness.model import (
    LADDERS,
    Bounds,
    Gate,
    GateCode,
    GateReason,
    GateVerdict,
    PairReadiness,
    PhaseReadiness,
    Readiness,
    Window,
)
from harness.reading import NO_EVIDENCE, Reading
from harness.verdict import Verdict
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, WireVersion
from kexpr.ledger.protocol import Head
from tests.unit.harness.evidence_samples import PIN

__all__ = ["FIRST_UTC_MS", "judged", "reading", "summary"]

FIRST_UTC_MS: Final = 1_790_000_000_000
FAILED: Final = (Outcome.CANONICAL_TIMEOUT, Reason.TIMEOUT_DEADLINE)


def summary(*, proof_calls: Mapping[Pair, Calls] | None = None, failures: int = 1, **changes: Any) -> EvidenceSummary:
    """One candidate, twelve good shadow calls a pair and `failures` timeouts of the first pair."""
    good = {
        OutcomeSeries(pair.profile, pair.surface, Mode.SHADOW, Outcome.SHADOW_SELECTED, WireVersion.KEXP_2): 12
        for pair in PAIRS
    }
    first = PAIRS[0]
    bad = OutcomeSeries(first.profile, first.surface, Mode.SHADOW, FAILED[0], WireVersion.KEXP_2)
    pairs = {
        pair: replace(
            evidence,
            cells={
                Cell(
                    RunKind.PROOF, "-", PATHS[pair.surface][0], ProviderKind.LIVE, Traffic.SYNTHETIC, Mode.SHADOW
                ): calls
            },
            proof_first_utc_ms=FIRST_UTC_MS,
        )
        for (pair, evidence), calls in zip(
            NO_EVIDENCE.pairs.items(), (proof_calls or dict.fromkeys(PAIRS, Calls())).values(), strict=True
        )
    }
    whole = replace(
        NO_EVIDENCE,
        head=Head(100, "a" * 64),
        candidates=(CandidateView(Candidate(PIN.digest, 0), PIN, None, 1, 48, 48, 48, 0),),
        pairs=pairs,
        outcome_totals={**good, bad: failures},
        reason_totals={ReasonSeries(first.surface, FAILED[1]): failures},
        durations=dict.fromkeys(PAIRS, (1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4)),
        duration_sums_ms=dict.fromkeys(PAIRS, 12_345),
        last_outcome_utc_ms={pair: FIRST_UTC_MS + number for number, pair in enumerate(PAIRS)},
    )
    return replace(whole, **changes)


def judged(seen: EvidenceSummary, policy: GatePolicy, as_of: str, anchor: Head | None) -> Readiness:
    """Every phase asks the same two gates, of which the second fails."""
    gates = (
        Gate(GateCode.CHAIN_INTACT, 1, 1, GateVerdict.PASSED, None),
        Gate(GateCode.ACCEPTED, 10, 9, GateVerdict.MISSING, GateReason.TOO_FEW_ACCEPTED),
    )
    pairs = tuple(
        PairReadiness(
            pair=pair,
            phase=LADDERS[pair][0],
            verdict=Verdict.INSUFFICIENT,
            phases=tuple(PhaseReadiness(phase, Verdict.INSUFFICIENT, gates) for phase in LADDERS[pair]),
            window=Window("2026-09-01", "2026-09-09", 9, 9, 0, 0),
            bounds=Bounds(9, 0, 9, 0.3, 0.4, 1.5, 50, 290),
        )
        for pair in PAIRS
    )
    return Readiness(as_of, anchor, seen, pairs)


def reading(seen: EvidenceSummary, **changes: Any) -> Reading:
    return replace(Reading(judged(seen, GATES, "2026-09-10", None), None, FIRST_UTC_MS), **changes)


GATES: Final = GatePolicy(1, (12, 6, 6, 12, 12), 24, 14, 10, 920, 800, 30, 950)

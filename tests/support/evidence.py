"""Hand-made evidence summaries and readings for tests of what shows them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

from harness.candidate import Candidate
from harness.evidence.rows import RunKind, Traffic
from harness.evidence.state import CandidateView
from harness.evidence.summary import Calls, Cell, EvidenceSummary, OutcomeSeries, PairEvidence, ReasonSeries
from harness.policy import POLICY
from harness.profiles import PAIRS, PATHS, Pair
from harness.readiness.assess import assess
from harness.reading import NO_EVIDENCE, Reading
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, WireVersion
from kexpr.ledger.protocol import Head
from tests.unit.harness.evidence_samples import PIN

__all__ = ["FIRST_UTC_MS", "TODAY", "reading", "summary"]

FIRST_UTC_MS: Final = 1_790_000_000_000
TODAY: Final = "2026-09-22"
FAILED: Final = (Outcome.CANONICAL_TIMEOUT, Reason.TIMEOUT_DEADLINE)


def summary(
    *, proof_calls: Mapping[Pair, Calls] | None = None, days: int = 9, failures: int = 1, **changes: Any
) -> EvidenceSummary:
    """One candidate: twelve good calls a pair, `failures` timeouts of the first pair, and `days` observed days."""
    good = {
        OutcomeSeries(pair.profile, pair.surface, Mode.SHADOW, Outcome.SHADOW_SELECTED, WireVersion.KEXP_2): 12
        for pair in PAIRS
    }
    first = PAIRS[0]
    bad = OutcomeSeries(first.profile, first.surface, Mode.SHADOW, FAILED[0], WireVersion.KEXP_2)
    proofs = proof_calls or dict.fromkeys(PAIRS, Calls())
    whole = replace(
        NO_EVIDENCE,
        head=Head(100, "a" * 64),
        candidates=(CandidateView(Candidate(PIN.digest, 0), PIN, None, 1, 48, 48, 48, 0),),
        pairs={pair: _pair(pair, proofs[pair], days) for pair in PAIRS},
        outcome_totals={**good, bad: failures},
        reason_totals={ReasonSeries(first.surface, FAILED[1]): failures},
        durations=dict.fromkeys(PAIRS, (1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4)),
        duration_sums_ms=dict.fromkeys(PAIRS, 12_345),
        last_outcome_utc_ms={pair: FIRST_UTC_MS + number for number, pair in enumerate(PAIRS)},
    )
    return replace(whole, **changes)


def _pair(pair: Pair, proof: Calls, days: int) -> PairEvidence:
    """The last of `days` is the day before `TODAY`."""
    dates = [(date.fromisoformat(TODAY) - timedelta(days=back + 1)).isoformat() for back in range(days)]
    observed = {_cell(RunKind.OBSERVATION, day, pair): Calls(1, 1, 1, 1, 0) for day in dates}
    cells = {_cell(RunKind.PROOF, "-", pair): proof, **observed}
    return replace(NO_EVIDENCE.pairs[pair], cells=cells, proof_first_utc_ms=FIRST_UTC_MS)


def _cell(kind: RunKind, day: str, pair: Pair) -> Cell:
    return Cell(kind, day, PATHS[pair.surface][0], ProviderKind.LIVE, Traffic.SYNTHETIC, Mode.SHADOW)


def reading(seen: EvidenceSummary, **changes: Any) -> Reading:
    return replace(Reading(assess(seen, POLICY, TODAY), None, FIRST_UTC_MS), **changes)

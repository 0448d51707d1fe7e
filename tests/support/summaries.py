"""Evidence summaries made by hand: a clean live promotion by default, changed where a test says so."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta

from harness.candidate import Candidate
from harness.evidence.rows import EndReason, RunKind, Traffic
from harness.evidence.state import CandidateView
from harness.evidence.summary import (
    Approval,
    Audit,
    Calls,
    Cell,
    Check,
    EvidenceSummary,
    MirrorCount,
    PairEvidence,
)
from harness.policy import POLICY
from harness.profiles import PAIRS, PATHS, Pair, Profile
from kexpr.codes import Mode, Outcome, ProviderKind
from kexpr.ledger.protocol import Head
from kexpr.telemetry.record import LATENCY_BOUNDS_MS
from tests.unit.harness.evidence_samples import PIN as SAMPLE_PIN

__all__ = ["DAY_ONE", "PIN", "add_calls", "approved", "clean_summary", "day", "empty_summary", "failed", "one_call"]

DAY_ONE = date(2026, 3, 1)
PIN = replace(SAMPLE_PIN, policy_digest=POLICY.digest)
CANDIDATE = Candidate(PIN.digest, 0)
_START_MS = 1_770_000_000_000


def day(offset: int) -> str:
    return (DAY_ONE + timedelta(days=offset)).isoformat()


def one_call(*, accepted: bool = True) -> Calls:
    return Calls(1, 1, int(accepted), 1, 0)


def failed(evidence: EvidenceSummary, pair: Pair, on: str, **changes: int) -> EvidenceSummary:
    """The evidence with one more call of `pair` that was not accepted on day `on`."""
    return add_calls(evidence, pair, _cell(pair, on), replace(one_call(accepted=False), **changes))


def add_calls(summary: EvidenceSummary, pair: Pair, cell: Cell, calls: Calls) -> EvidenceSummary:
    evidence = summary.pairs[pair]
    cells = dict(evidence.cells)
    cells[cell] = cells.get(cell, Calls()) + calls
    return replace(summary, pairs={**summary.pairs, pair: replace(evidence, cells=cells)})


def approved(summary: EvidenceSummary, pair: Pair, phase: str) -> EvidenceSummary:
    approval = Approval(CANDIDATE.id, pair, phase, "d" * 64, "e" * 64, "approver-one", _START_MS)
    return replace(summary, approvals=(*summary.approvals, approval))


def empty_summary() -> EvidenceSummary:
    nothing = PairEvidence({}, {}, {}, (0,) * (len(LATENCY_BOUNDS_MS) + 1), None, None, 0, 0, ())
    return EvidenceSummary(
        head=Head(1, "f" * 64),
        candidates=(CandidateView(CANDIDATE, PIN, None, 0, 0, 0, 0, 0),),
        pairs=dict.fromkeys(PAIRS, nothing),
        checks={},
        audits={},
        approvals=(),
        outcome_totals={},
        reason_totals={},
        durations={},
        duration_sums_ms={},
        last_outcome_utc_ms={},
        last_run_utc_ms=None,
        in_progress=0,
    )


def clean_summary(
    days: Iterable[int] = range(14),
    *,
    provider: ProviderKind = ProviderKind.LIVE,
    ended: EndReason | None = None,
) -> EvidenceSummary:
    """Audited, checked, 48 of 48, and one accepted call a pair on each of `days`."""
    days = tuple(days)
    summary = empty_summary()
    return replace(
        summary,
        head=Head(500, "f" * 64),
        candidates=(CandidateView(CANDIDATE, PIN, ended, 2, 118, 118, 118, 0),),
        pairs={pair: _evidence(pair, days, provider) for pair in PAIRS},
        checks=dict.fromkeys(Check, True),
        audits={profile: Audit("1" * 64, True, _START_MS) for profile in Profile},
        outcome_totals={},
        last_run_utc_ms=_START_MS,
    )


def _evidence(pair: Pair, days: tuple[int, ...], provider: ProviderKind) -> PairEvidence:
    calls = POLICY.calls_of(pair)
    paths = PATHS[pair.surface]
    cells = {
        Cell(RunKind.PROOF, "-", path, provider, Traffic.SYNTHETIC, Mode.SHADOW): Calls(*[calls // len(paths)] * 4)
        for path in paths
    }
    cells |= {_cell(pair, day(offset), offset, provider): one_call() for offset in days}
    return PairEvidence(
        cells=cells,
        outcomes={Outcome.SHADOW_SELECTED: calls + len(days)},
        reasons={},
        latency=(0, calls + len(days)) + (0,) * (len(LATENCY_BOUNDS_MS) - 1),
        proof_first_utc_ms=_START_MS,
        proof_last_utc_ms=_START_MS + 60_000,
        proof_manifests=calls,
        observation_manifests=len(days),
        mirror=(),
    )


def mirrored(summary: EvidenceSummary, pair: Pair, on: str, failures: int) -> EvidenceSummary:
    evidence = replace(summary.pairs[pair], mirror=(MirrorCount(on, failures + 3, failures),))
    return replace(summary, pairs={**summary.pairs, pair: evidence})


def _cell(pair: Pair, on: str, turn: int = 0, provider: ProviderKind = ProviderKind.LIVE) -> Cell:
    paths = PATHS[pair.surface]
    return Cell(RunKind.OBSERVATION, on, paths[turn % len(paths)], provider, Traffic.SYNTHETIC, Mode.SHADOW)

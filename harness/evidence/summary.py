"""What readiness, reports and metrics read of the evidence: counts, folded once, whatever the number of rows.

Everything is of the newest candidate unless it says otherwise. A summary is the same for the same rows, in whatever
run, process or order of slots they were written; a summary of a prefix is that of the evidence when it was that long.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness.evidence.rows import Check, RunKind, Traffic
from harness.evidence.state_views import CandidateView
from harness.profiles import Pair, PathKind, Profile
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, Surface, WireVersion
from kexpr.ledger.protocol import Head

__all__ = [
    "Approval",
    "Audit",
    "Calls",
    "Cell",
    "Check",
    "EvidenceSummary",
    "MirrorCount",
    "OutcomeSeries",
    "PairEvidence",
    "ReasonSeries",
]


@dataclass(frozen=True, slots=True)
class Calls:
    """Counts of a set of calls. `accepted` ended `shadow_selected`; an orphan has no outcome and never will."""

    intents: int = 0
    outcomes: int = 0
    accepted: int = 0
    requests: int = 0
    orphans: int = 0

    @property
    def failures(self) -> int:
        """Calls that ended otherwise, and orphans."""
        return self.outcomes - self.accepted + self.orphans

    @property
    def in_progress(self) -> int:
        return self.intents - self.outcomes - self.orphans

    def __add__(self, other: "Calls") -> "Calls":
        return Calls(
            self.intents + other.intents,
            self.outcomes + other.outcomes,
            self.accepted + other.accepted,
            self.requests + other.requests,
            self.orphans + other.orphans,
        )


NO_CALLS: Final = Calls()


@dataclass(frozen=True, slots=True)
class Cell:
    """What calls of one pair are told apart by. `date` is the slot's UTC day, `-` in a proof."""

    run_kind: RunKind
    date: str
    path: PathKind
    provider: ProviderKind
    traffic: Traffic
    mode: Mode


@dataclass(frozen=True, slots=True)
class MirrorCount:
    """Rows of a gateway's audit mirror that count against readiness, and all that were read, by UTC day."""

    date: str
    rows: int
    failures: int


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """One pair. Times are UTC milliseconds of the ledger's rows; `latency` has one count for each of
    `LATENCY_BOUNDS_MS` (not cumulative) and one for what took longer; manifests are distinct synthetic ordinals."""

    cells: Mapping[Cell, Calls]
    outcomes: Mapping[Outcome, int]
    reasons: Mapping[Reason, int]
    latency: tuple[int, ...]
    proof_first_utc_ms: int | None
    proof_last_utc_ms: int | None
    proof_manifests: int
    observation_manifests: int
    mirror: tuple[MirrorCount, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """Newest strict audit of one profile's configuration."""

    config_digest: str
    ready: bool
    utc_ms: int


@dataclass(frozen=True, slots=True)
class Approval:
    """A person approved that `pair` goes on to `phase`, having read one report."""

    candidate: str
    pair: Pair
    phase: str
    report_digest: str
    config_digest: str
    approver: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class OutcomeSeries:
    """Labels of the outcome counter; over all candidates, so that counters never fall."""

    profile: Profile
    surface: Surface
    mode: Mode
    outcome: Outcome
    contract_version: WireVersion


@dataclass(frozen=True, slots=True)
class ReasonSeries:
    surface: Surface
    reason: Reason


@dataclass(frozen=True, slots=True)
class EvidenceSummary:
    """Evidence up to `head`.

    `pairs` has every one of `PAIRS`. The totals, `durations` (buckets as in `PairEvidence.latency`), their sums and the
    times are over all candidates, since a counter never falls. `in_progress` counts calls that a live run holds open.
    """

    head: Head
    candidates: tuple[CandidateView, ...]
    pairs: Mapping[Pair, PairEvidence]
    checks: Mapping[Check, bool]
    audits: Mapping[Profile, Audit]
    approvals: tuple[Approval, ...]
    outcome_totals: Mapping[OutcomeSeries, int]
    reason_totals: Mapping[ReasonSeries, int]
    durations: Mapping[Pair, tuple[int, ...]]
    duration_sums_ms: Mapping[Pair, int]
    last_outcome_utc_ms: Mapping[Pair, int]
    last_run_utc_ms: int | None
    in_progress: int

    @property
    def candidate(self) -> CandidateView | None:
        """The newest one, ended or not."""
        return self.candidates[-1] if self.candidates else None

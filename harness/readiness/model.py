"""Words of readiness: phases, gates and verdicts, as data (harness, "Phases" and "Readiness")."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness.evidence.summary import Calls, EvidenceSummary
from harness.profiles import PAIRS, Pair
from harness.verdict import Verdict
from kexpr.codes import Surface
from kexpr.ledger.protocol import Head

__all__ = [
    "LADDERS",
    "WORST_FIRST",
    "Bounds",
    "Gate",
    "GateCode",
    "GateReason",
    "GateVerdict",
    "PairReadiness",
    "Phase",
    "PhaseReadiness",
    "Readiness",
    "Window",
]


class Phase(StrEnum):
    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"
    P4 = "P4"
    P5 = "P5"


_ENABLING: Final = {
    Surface.DAILY: Phase.P3,
    Surface.WEEKLY: Phase.P4,
    Surface.ADAPTIVE_DUALCOACHTEST: Phase.P5,
    Surface.ADAPTIVE_PHYSIQUE: Phase.P5,
}

LADDERS: Final[Mapping[Pair, tuple[Phase, ...]]] = {
    pair: (Phase.P0, Phase.P1, Phase.P2, _ENABLING[pair.surface]) for pair in PAIRS
}
"""The phases of each pair in order: disabled, controlled shadow, observed shadow, and the one that enables it."""


class GateCode(StrEnum):
    """One thing that is asked. A phase asks those of `harness.readiness.gates.GATES`, after the phase before it."""

    CHAIN_INTACT = "chain_intact"
    PREVIOUS_PHASE = "previous_phase"
    CONFIG_AUDIT = "config_audit"
    CANDIDATE_OPEN = "candidate_open"
    BUDGET_FEASIBLE = "budget_feasible"
    GUARD_AT_BAR = "guard_at_bar"
    CANARIES_CLEAN = "canaries_clean"
    REQUESTS_EQUAL_INTENTS = "requests_equal_intents"
    NO_ORPHAN = "no_orphan"
    PROOF_CALLS = "proof_calls"
    PROOF_WINDOW = "proof_window"
    PROOF_REQUESTS = "proof_requests"
    PROOF_NO_ORPHAN = "proof_no_orphan"
    DAYS_COVERED = "days_covered"
    ACCEPTED = "accepted"
    NO_FAILURE = "no_failure"
    RECENT = "recent"
    BOTH_PRODUCERS = "both_producers"
    MIRROR_CLEAN = "mirror_clean"
    APPROVAL = "approval"


class GateVerdict(StrEnum):
    """`rehearsal`: it would pass, but rehearsal evidence satisfies no gate. `missing`: evidence that may still come.
    `broken`: the evidence itself cannot be trusted."""

    PASSED = "passed"
    REHEARSAL = "rehearsal"
    FAILED = "failed"
    MISSING = "missing"
    BROKEN = "broken"


WORST_FIRST: Final = (
    GateVerdict.BROKEN,
    GateVerdict.FAILED,
    GateVerdict.MISSING,
    GateVerdict.REHEARSAL,
    GateVerdict.PASSED,
)


class GateReason(StrEnum):
    """Why a gate is not passed."""

    REHEARSAL_ONLY = "rehearsal_only"
    ANCHOR_MISMATCH = "anchor_mismatch"
    PREVIOUS_NOT_PASSED = "previous_not_passed"
    NO_AUDIT = "no_audit"
    AUDIT_NOT_READY = "audit_not_ready"
    NO_CANDIDATE = "no_candidate"
    CANDIDATE_ENDED = "candidate_ended"
    POLICY_CHANGED = "policy_changed"
    NOT_CHECKED = "not_checked"
    CHECK_FAILED = "check_failed"
    MORE_REQUESTS_THAN_INTENTS = "more_requests_than_intents"
    FEWER_REQUESTS_THAN_INTENTS = "fewer_requests_than_intents"
    ORPHANED = "orphaned"
    CALLS_MISSING = "calls_missing"
    CALLS_FAILED = "calls_failed"
    CALLS_EXTRA = "calls_extra"
    WINDOW_EXCEEDED = "window_exceeded"
    DAYS_MISSING = "days_missing"
    TOO_FEW_ACCEPTED = "too_few_accepted"
    LAPSED = "lapsed"
    PRODUCER_MISSING = "producer_missing"
    MIRROR_FAILURE = "mirror_failure"
    NOT_APPROVED = "not_approved"


@dataclass(frozen=True, slots=True)
class Gate:
    """What was required and what was seen, in the gate's own unit (calls, days, hours, or 1 and 0 for yes and no).

    `reason` is None exactly when the verdict is `passed`.
    """

    code: GateCode
    required: int
    observed: int
    verdict: GateVerdict
    reason: GateReason | None


@dataclass(frozen=True, slots=True)
class PhaseReadiness:
    phase: Phase
    verdict: Verdict
    gates: tuple[Gate, ...]

    @property
    def deciding(self) -> Gate:
        """The gate that decides the verdict: the first of the worst."""
        return min(self.gates, key=lambda gate: WORST_FIRST.index(gate.verdict))


@dataclass(frozen=True, slots=True)
class Window:
    """The observation window of a pair: its last consecutive covered UTC days, at most those of the policy.

    A day is covered by an accepted call, so that a failure never covers one. `first` and `last` are dates, None without
    a covered day. `calls`, `accepted` and `failures` are those of the policy's number of calendar days up to `last`,
    failures also of the days after it. `gaps` counts the days without a covering call from the first observed day of
    the candidate until the day before `as_of`.
    """

    first: str | None
    last: str | None
    days: int
    calls: Calls
    gaps: int

    @property
    def accepted(self) -> int:
        return self.calls.accepted

    @property
    def failures(self) -> int:
        return self.calls.failures


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much `calls` calls with `failures` prove, over proof and observation of the candidate.

    `upper` is the exact one-sided Clopper-Pearson bound at the policy's confidence, `anytime_upper` the bound that
    holds however often one looks; `e_value` is the evidence against a failure rate of 5 % or more.
    """

    calls: int
    failures: int
    manifests: int
    upper: float
    anytime_upper: float
    e_value: float
    clean_calls_to_5_percent: int
    clean_calls_to_1_percent: int


@dataclass(frozen=True, slots=True)
class PairReadiness:
    """`phase` is the furthest of the ladder that has begun (an approval begins the last), `verdict` that phase's.

    READY therefore says: the pair may go on to the phase after it, or in the last one: its enabling is approved.
    """

    pair: Pair
    phase: Phase
    verdict: Verdict
    phases: tuple[PhaseReadiness, ...]
    window: Window
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Readiness:
    """Of one evidence prefix on one UTC day `as_of` (`YYYY-MM-DD`). `anchor` is the newest known head, if any."""

    as_of: str
    anchor: Head | None
    summary: EvidenceSummary
    pairs: tuple[PairReadiness, ...]

"""What a caller sees of the evidence and its candidates."""

from dataclasses import dataclass

from harness.candidate import Candidate, Pin
from harness.evidence.rows import EndReason, OutcomeRow, RunRow, Slot
from kexpr.codes import ProviderKind
from kexpr.ledger.protocol import Head

__all__ = ["CandidateView", "EvidenceView", "RunView", "SlotView"]


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One candidate and what became of it; `ended` is None while it may go on. Orphans are those seen for good."""

    candidate: Candidate
    pin: Pin
    ended: EndReason | None
    runs: int
    intents: int
    outcomes: int
    requests: int
    orphans: int


@dataclass(frozen=True, slots=True)
class RunView:
    """The newest run of the newest candidate. Times are UTC milliseconds of the rows."""

    row: RunRow
    started_utc_ms: int
    resumes: int


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot of the newest candidate's proofs; `outcome` is None while the call is open, or when it is an orphan."""

    call: Slot
    run: int
    provider: ProviderKind
    intended_utc_ms: int
    outcome: OutcomeRow | None


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """A consistent reading of the evidence up to `head`; `slots` are those of the newest candidate's proofs."""

    head: Head
    candidates: tuple[CandidateView, ...]
    run: RunView | None
    slots: tuple[SlotView, ...]
    orphans: tuple[str, ...]
    in_progress: tuple[str, ...]

    @property
    def candidate(self) -> CandidateView | None:
        """The newest one, ended or not."""
        return self.candidates[-1] if self.candidates else None

    @property
    def intents(self) -> int:
        return sum(candidate.intents for candidate in self.candidates)

    @property
    def outcomes(self) -> int:
        return sum(candidate.outcomes for candidate in self.candidates)

    @property
    def requests(self) -> int:
        return sum(candidate.requests for candidate in self.candidates)

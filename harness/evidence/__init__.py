"""Content-free, chained evidence of what a promotion candidate did (harness, "Promotion candidate and evidence")."""

from harness.evidence.ledger import EvidenceLedger, EvidenceRefused, RunSpec
from harness.evidence.rows import EndReason, OutcomeRow, RunKind, RunRow, Slot, Traffic
from harness.evidence.state import CandidateView, EvidenceView, Refusal, RunView, SlotView

__all__ = [
    "CandidateView",
    "EndReason",
    "EvidenceLedger",
    "EvidenceRefused",
    "EvidenceView",
    "OutcomeRow",
    "Refusal",
    "RunKind",
    "RunRow",
    "RunSpec",
    "RunView",
    "Slot",
    "SlotView",
    "Traffic",
]

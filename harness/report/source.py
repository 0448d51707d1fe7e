"""From evidence on disk to documents: as it is now, or as it was when a report was written."""

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from harness.evidence.ledger import EvidenceLedger, read_prefix
from harness.evidence.rows import RunKind
from harness.evidence.summary import EvidenceSummary
from harness.policy import POLICY, GatePolicy
from harness.profiles import Pair
from harness.readiness.assess import assess
from harness.readiness.model import PairReadiness, Readiness
from harness.report.document import Document, index_document, pair_document
from harness.report.names import INDEX, stem_of
from harness.report.reference import Reference
from kexpr.errors import KexprError, LedgerFailed, StoreFault
from kexpr.ledger.protocol import Head

__all__ = ["Judged", "ReportRefused", "Why", "judge_now", "judge_then", "last_day"]


class Why(StrEnum):
    """Why there is no report."""

    NO_EVIDENCE = "no_evidence"
    CALL_IN_PROGRESS = "call_in_progress"
    OTHER_POLICY = "other_policy"
    DAY_BEFORE_EVIDENCE = "day_before_evidence"


class ReportRefused(KexprError):
    """The evidence gives no report now; nothing was written."""

    def __init__(self, code: Why) -> None:
        super().__init__(code.value)
        self.code = code


@dataclass(frozen=True, slots=True)
class Judged:
    """Readiness, and what a document needs besides."""

    readiness: Readiness
    policy: GatePolicy
    anchor_holds: bool

    def pair(self, pair: Pair) -> PairReadiness:
        return next(it for it in self.readiness.pairs if it.pair == pair)

    def document(self, pair: Pair | None) -> Document:
        """The report of a pair, or the index."""
        if pair is None:
            return index_document(self.readiness, self.policy, anchor_holds=self.anchor_holds)
        return pair_document(self.readiness, self.pair(pair), self.policy, anchor_holds=self.anchor_holds)

    def documents(self) -> dict[str, Document]:
        """All of them, by the stem of their file names."""
        pairs = {stem_of(it.pair.profile, it.pair.surface): self.document(it.pair) for it in self.readiness.pairs}
        return {INDEX: self.document(None), **pairs}


def judge_now(directory: Path, as_of: str | None, anchor: Head | None, policy: GatePolicy = POLICY) -> Judged:
    """Judge the evidence in `directory` (UTC day `as_of`, by default its own last day), without writing to it.

    Raises `ReportRefused`, and `LedgerFailed` for evidence that cannot be verified. While a call is in progress there
    is no report, since nobody could tell later that it was not an orphan.
    """
    if not directory.is_dir():
        raise ReportRefused(Why.NO_EVIDENCE)
    summary, holds = _read(directory, anchor)
    if summary.in_progress:
        raise ReportRefused(Why.CALL_IN_PROGRESS)
    last = last_day(summary)
    if last is None:
        raise ReportRefused(Why.NO_EVIDENCE)
    return _judge(summary, as_of or last, anchor, holds, policy)


def judge_then(directory: Path, reference: Reference, policy: GatePolicy = POLICY) -> Judged:
    """Judge as a report did: the prefix, the day and the anchor that it names. Raises as `judge_now`.

    A head that the evidence does not contain is `LedgerFailed(HEAD_MISMATCH)`.
    """
    summary = read_prefix(directory, reference.head)
    anchor = reference.anchor
    holds = anchor is None or (anchor.sequence <= reference.head.sequence and _contains(directory, anchor))
    return _judge(summary, reference.as_of, anchor, holds, policy)


def last_day(summary: EvidenceSummary) -> str | None:
    """The UTC day of the newest call, run, audit or approval, so that a report does not depend on the clock."""
    days = {
        cell.date
        for evidence in summary.pairs.values()
        for cell in evidence.cells
        if cell.run_kind is RunKind.OBSERVATION
    }
    days |= {count.date for evidence in summary.pairs.values() for count in evidence.mirror}
    times = [
        summary.last_run_utc_ms or 0,
        *summary.last_outcome_utc_ms.values(),
        *(audit.utc_ms for audit in summary.audits.values()),
        *(approval.utc_ms for approval in summary.approvals),
    ]
    if any(times):
        days.add(datetime.fromtimestamp(max(times) / 1000, UTC).date().isoformat())
    return max(days, default=None)


def _judge(summary: EvidenceSummary, as_of: str, anchor: Head | None, holds: bool, policy: GatePolicy) -> Judged:
    last = last_day(summary)
    if last is not None and as_of < last:
        raise ReportRefused(Why.DAY_BEFORE_EVIDENCE)
    pinned = summary.candidate
    if pinned is not None and pinned.pin.policy_digest != policy.digest:
        raise ReportRefused(Why.OTHER_POLICY)
    return Judged(assess(summary, policy, as_of, anchor, anchor_holds=holds), policy, holds)


def _read(directory: Path, anchor: Head | None) -> tuple[EvidenceSummary, bool]:
    """The evidence, and whether it contains the anchor."""
    try:
        return _summary(directory, anchor), True
    except LedgerFailed as failed:
        if anchor is None or failed.code is not StoreFault.HEAD_MISMATCH:
            raise
    return _summary(directory, None), False


def _summary(directory: Path, expected: Head | None) -> EvidenceSummary:
    with closing(EvidenceLedger.open(directory, expected=expected)) as evidence:
        return evidence.summary()


def _contains(directory: Path, head: Head) -> bool:
    try:
        read_prefix(directory, head)
    except LedgerFailed as failed:
        if failed.code is not StoreFault.HEAD_MISMATCH:
            raise
        return False
    return True

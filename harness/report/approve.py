"""Recording that a person approved a phase: only of a report that the evidence gives, that is ready, and still is."""

from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from harness.audit import phases_of
from harness.evidence.ledger import EvidenceLedger
from harness.profiles import Pair
from harness.readiness.model import Phase
from harness.report.source import Judged, judge_now
from harness.report.verify import Verified, verify
from harness.verdict import Verdict
from kexpr.codes import WireVersion
from kexpr.cutover import audit_physique_checkin_cutover, read_extra
from kexpr.errors import KexprError
from kexpr.ledger.protocol import Head

__all__ = ["APPROVED_PHASES", "ApprovalRefused", "Approved", "Refusal", "Request", "approve"]

APPROVED_PHASES: Final = (Phase.P3, Phase.P4, Phase.P5)
"""Those that turn something on: each is a separate approval (harness, "Phases")."""


class Refusal(StrEnum):
    """Why nothing was approved."""

    REPORT_DIFFERS = "report_differs"
    REPORT_OF_NO_PAIR = "report_of_no_pair"
    REPORT_NOT_READY = "report_not_ready"
    NOT_THE_NEXT_PHASE = "not_the_next_phase"
    NO_LONGER_READY = "no_longer_ready"
    CANDIDATE_CHANGED = "candidate_changed"
    CONFIG_NOT_READY = "config_not_ready"
    CONFIG_OF_OTHER_PHASE = "config_of_other_phase"


class ApprovalRefused(KexprError):
    """`verdict` is the one that stands in the way, where one does."""

    def __init__(self, code: Refusal, verdict: Verdict | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class Request:
    """`approver` is opaque and matches `APPROVER_PATTERN`; `today` is the UTC day of the approval."""

    phase: Phase
    approver: str
    config: Path
    today: str


@dataclass(frozen=True, slots=True)
class Approved:
    """`head` is the evidence's new head: keep it elsewhere."""

    pair: Pair
    report_digest: str
    config_digest: str
    head: Head


def approve(directory: Path, report: bytes, request: Request) -> Approved:
    """Check everything, then append one row.

    Raises `ApprovalRefused`, `ReportRefused`, `EvidenceRefused`, `LedgerFailed` and `YamlInvalid`; nothing is written
    then. `config_digest` is over the bytes of the configuration file.
    """
    verified = verify(report, directory)
    if verified is None:
        raise ApprovalRefused(Refusal.REPORT_DIFFERS)
    pair = _check_report(verified, request.phase)
    now = judge_now(directory, request.today, verified.reference.head)
    _check_now(now, verified, pair)
    config_digest = _check_config(request, pair, now)
    with closing(EvidenceLedger.open(directory, expected=now.readiness.summary.head)) as evidence:
        evidence.record_approval(
            verified.document["candidate"]["id"],
            pair,
            request.phase,
            report_digest=verified.digest,
            config_digest=config_digest,
            approver=request.approver,
        )
        return Approved(pair, verified.digest, config_digest, evidence.head())


def _check_report(verified: Verified, phase: Phase) -> Pair:
    pair, document = verified.reference.pair, verified.document
    if pair is None:
        raise ApprovalRefused(Refusal.REPORT_OF_NO_PAIR)
    verdict = Verdict(document["verdict"])
    if verdict is not Verdict.READY or document["rehearsal"]:
        raise ApprovalRefused(Refusal.REPORT_NOT_READY, verdict)
    if document["next_phase"] != phase or phase not in APPROVED_PHASES:
        raise ApprovalRefused(Refusal.NOT_THE_NEXT_PHASE)
    return pair


def _check_now(now: Judged, verified: Verified, pair: Pair) -> None:
    """What the report says must still hold today, of the same candidate and in the same phase."""
    today, document = now.document(pair), verified.document
    if today["candidate"]["id"] != document["candidate"]["id"]:
        raise ApprovalRefused(Refusal.CANDIDATE_CHANGED)
    if today["verdict"] != Verdict.READY or today["rehearsal"]:
        raise ApprovalRefused(Refusal.NO_LONGER_READY, Verdict(today["verdict"]))
    if today["next_phase"] != document["next_phase"]:
        raise ApprovalRefused(Refusal.NOT_THE_NEXT_PHASE)


def _check_config(request: Request, pair: Pair, now: Judged) -> str:
    extra, digest = read_extra(request.config)
    if not audit_physique_checkin_cutover(extra).ready:
        raise ApprovalRefused(Refusal.CONFIG_NOT_READY)
    if request.phase not in phases_of(extra, pair.profile, _wire(now)):
        raise ApprovalRefused(Refusal.CONFIG_OF_OTHER_PHASE)
    return digest


def _wire(now: Judged) -> WireVersion:
    candidate = now.readiness.summary.candidate
    assert candidate is not None  # a pair is READY of a candidate only, past P0
    return candidate.pin.wire_version

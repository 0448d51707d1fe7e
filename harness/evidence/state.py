"""The evidence folded into state, and the one set of rules for what may follow what.

Theory of operation. `refusal` says why a row may not come next. A writer asks it before it appends and refuses the
caller; a reader asks it for every row it reads, where the answer means that the history is not one this code wrote.

    pin -> run -> (intent -> outcome)* -> [run, resumed -> ...] -> end -> pin of the next restart

An intent without outcome is open. When the next run starts, or the next candidate, nobody can bring its outcome any
more (one run at a time holds the run lock), so it is an orphan for good. Slots of past candidates are forgotten, since
an ended candidate takes no intent: memory is that of one candidate, whatever the length of the evidence.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from harness.candidate import Candidate
from harness.evidence.counts import Counts, OpenCall
from harness.evidence.rows import (
    ORGANIC_ORDINALS,
    ApprovalRow,
    AuditRow,
    CheckRow,
    EndReason,
    EndRow,
    EvidenceRow,
    IntentRow,
    MirrorRow,
    OutcomeRow,
    PinRow,
    RunKind,
    RunRow,
    Slot,
    decode,
)
from harness.evidence.state_views import CandidateView, EvidenceView, RunView, SlotView
from harness.evidence.summary import EvidenceSummary
from harness.profiles import Pair, Profile
from kexpr.codes import ProviderKind
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Head, Row
from kexpr.telemetry.record import is_reachable

__all__ = ["CandidateView", "EvidenceState", "EvidenceView", "Refusal", "RunView", "SlotView"]


class Refusal(StrEnum):
    """Why a row may not be written now."""

    NO_CANDIDATE = "no_candidate"
    CANDIDATE_OPEN = "candidate_open"
    CANDIDATE_ENDED = "candidate_ended"
    RESTART_OUT_OF_ORDER = "restart_out_of_order"
    DIRTY_CHECKOUT = "dirty_checkout"
    ORPHANED = "orphaned"
    NO_RUN = "no_run"
    RUN_OUT_OF_ORDER = "run_out_of_order"
    RUN_LOCKED = "run_locked"
    NOT_IN_RUN = "not_in_run"
    DUPLICATE_SLOT = "duplicate_slot"
    UNKNOWN_SLOT = "unknown_slot"
    UNREACHABLE_OUTCOME = "unreachable_outcome"
    MIRROR_OUT_OF_ORDER = "mirror_out_of_order"


class _CandidateState:
    def __init__(self, row: PinRow) -> None:
        self.candidate = Candidate(row.pin_digest, row.restart)
        self.pin = row.pin
        self.ended: EndReason | None = None
        self.runs = 0
        self.intents = 0
        self.outcomes = 0
        self.requests = 0
        self.orphans = 0

    def view(self) -> CandidateView:
        counts = (self.runs, self.intents, self.outcomes, self.requests, self.orphans)
        return CandidateView(self.candidate, self.pin, self.ended, *counts)


class EvidenceState:
    """Folds rows. `apply` is the ledger's projection."""

    def __init__(self) -> None:
        self._candidates: list[_CandidateState] = []
        self._run: RunView | None = None
        self._runs = 0
        self._taken: dict[tuple[RunKind, Pair, str], set[int]] = {}
        self._proof_slots: dict[str, SlotView] = {}
        self._open: dict[str, OpenCall] = {}
        self._orphans: list[str] = []
        self._orphaned_proofs = 0
        self._mirrors: dict[tuple[Profile, str], MirrorRow] = {}
        self._counts = Counts()

    @property
    def candidate(self) -> Candidate | None:
        """The candidate that may go on, if there is one."""
        return self._candidates[-1].candidate if self._refuse_closed() is None else None

    @property
    def next_restart(self) -> int:
        return len(self._candidates)

    @property
    def run(self) -> RunRow | None:
        return self._run.row if self._run else None

    @property
    def next_run(self) -> int:
        return self._runs + 1

    @property
    def open_slots(self) -> tuple[str, ...]:
        return tuple(self._open)

    @property
    def orphans(self) -> tuple[str, ...]:
        """Orphans for good, in order."""
        return tuple(self._orphans)

    def next_organic(self, pair: Pair, date: str) -> int:
        """The ordinal of the next organic call of a day."""
        taken = self._taken.get((RunKind.OBSERVATION, pair, date), set())
        return max(ORGANIC_ORDINALS, max(taken, default=0) + 1)

    def is_taken(self, slot: Slot) -> bool:
        """Whether the newest candidate has intended the slot."""
        return slot.ordinal in self._taken.get((slot.kind, slot.pair, slot.date), ())

    def apply(self, row: Row) -> None:
        """Fold one verified row; raises `LedgerFailed(ILLEGAL_HISTORY)` when it may not stand where it does."""
        decoded = decode(row.record)
        if self.refusal(decoded) is not None:
            raise LedgerFailed(StoreFault.ILLEGAL_HISTORY)
        self._FOLDS[type(decoded)](self, decoded, _utc_ms(row.utc))

    def refusal(self, row: EvidenceRow) -> Refusal | None:
        """Why `row` may not come next, or None."""
        return self._RULES[type(row)](self, row)

    def view(self, head: Head, *, run_in_progress: bool) -> EvidenceView:
        """`run_in_progress`: somebody holds the run lock, so that open intents are not orphans."""
        return EvidenceView(
            head=head,
            candidates=tuple(candidate.view() for candidate in self._candidates),
            run=self._run,
            slots=tuple(self._proof_slots.values()),
            orphans=self.orphans if run_in_progress else self.orphans + self.open_slots,
            in_progress=self.open_slots if run_in_progress else (),
        )

    def summary(self, head: Head, *, run_in_progress: bool) -> EvidenceSummary:
        """The counts up to `head`; see `view` for `run_in_progress`."""
        return self._counts.summary(
            head,
            tuple(candidate.view() for candidate in self._candidates),
            in_progress=len(self._open) if run_in_progress else 0,
            orphaned=() if run_in_progress else self._open.values(),
        )

    def mirrored(self, profile: Profile, month: str) -> MirrorRow | None:
        """The newest row of a profile's mirror of a month."""
        return self._mirrors.get((profile, month))

    def _refuse_closed(self) -> Refusal | None:
        if not self._candidates:
            return Refusal.NO_CANDIDATE
        return Refusal.CANDIDATE_ENDED if self._candidates[-1].ended else None

    def _refuse_other(self, candidate: str) -> Refusal | None:
        closed = self._refuse_closed()
        if closed is None and candidate != self._candidates[-1].candidate.id:
            return Refusal.NO_CANDIDATE
        return closed

    def _refuse_pin(self, row: PinRow) -> Refusal | None:
        if self._refuse_closed() is None:
            return Refusal.CANDIDATE_OPEN
        return None if row.restart == self.next_restart else Refusal.RESTART_OUT_OF_ORDER

    def _refuse_run(self, row: RunRow) -> Refusal | None:
        closed = self._refuse_other(row.candidate)
        if closed is not None:
            return closed
        if row.provider is ProviderKind.LIVE and self._candidates[-1].pin.dirty:
            return Refusal.DIRTY_CHECKOUT
        open_proofs = sum(opened.row.run_kind is RunKind.PROOF for opened in self._open.values())
        if row.run_kind is RunKind.PROOF and self._orphaned_proofs + open_proofs:
            return Refusal.ORPHANED
        return None if self._follows(row) else Refusal.RUN_OUT_OF_ORDER

    def _follows(self, row: RunRow) -> bool:
        """A new run has the next number; a resumed one is the newest run in everything but that."""
        if not row.resumed:
            return row.run == self.next_run
        last = self.run
        return last is not None and row == RunRow(**{**_fields_of(last), "resumed": True})

    def _refuse_intent(self, row: IntentRow) -> Refusal | None:
        closed = self._refuse_other(row.candidate)
        if closed is not None:
            return closed
        run = self.run
        if run is None or row.run != run.run:
            return Refusal.NO_RUN
        same = (row.run_kind, row.provider, row.traffic, row.mode) == (
            run.run_kind,
            run.provider,
            run.traffic,
            run.mode,
        )
        pair = row.pair
        if not same or pair not in run.surfaces:
            return Refusal.NOT_IN_RUN
        taken = self._taken.get((row.run_kind, pair, row.date), ())
        return Refusal.DUPLICATE_SLOT if row.ordinal in taken else None

    def _refuse_outcome(self, row: OutcomeRow) -> Refusal | None:
        """A candidate that ended meanwhile still takes the outcome of a call that was under way."""
        opened = self._open.get(row.slot)
        if opened is None or (opened.row.candidate, opened.row.run) != (row.candidate, row.run):
            return Refusal.UNKNOWN_SLOT
        return None if is_reachable(opened.row.mode, row.outcome) else Refusal.UNREACHABLE_OUTCOME

    def _refuse_of_other_candidate(self, row: EndRow | CheckRow | ApprovalRow) -> Refusal | None:
        return self._refuse_other(row.candidate)

    def _refuse_nothing(self, row: AuditRow) -> Refusal | None:
        """An audit is about the gateway's configuration, whatever candidate there is."""
        return None

    def _refuse_mirror(self, row: MirrorRow) -> Refusal | None:
        """Lines are counted once, in order."""
        before = self.mirrored(row.profile, row.month)
        return Refusal.MIRROR_OUT_OF_ORDER if before is not None and row.lines <= before.lines else None

    def _fold_pin(self, row: PinRow, utc_ms: int) -> None:
        self._abandon_open()
        self._candidates.append(_CandidateState(row))
        self._run = None
        self._taken.clear()
        self._proof_slots.clear()
        self._orphaned_proofs = 0
        self._counts.pin(row.pin.wire_version)

    def _fold_run(self, row: RunRow, utc_ms: int) -> None:
        self._abandon_open()
        self._counts.run(utc_ms)
        if row.resumed and self._run is not None:
            self._run = RunView(self._run.row, self._run.started_utc_ms, self._run.resumes + 1)
            return
        self._runs += 1
        self._candidates[-1].runs += 1
        self._run = RunView(row, utc_ms, 0)

    def _fold_intent(self, row: IntentRow, utc_ms: int) -> None:
        self._candidates[-1].intents += 1
        pair = row.pair
        self._taken.setdefault((row.run_kind, pair, row.date), set()).add(row.ordinal)
        self._open[row.slot] = self._counts.intent(row, pair, utc_ms)
        if row.run_kind is RunKind.PROOF:
            self._proof_slots[row.slot] = SlotView(row.call, row.run, row.provider, utc_ms, None)

    def _fold_outcome(self, row: OutcomeRow, utc_ms: int) -> None:
        opened = self._open.pop(row.slot)
        candidate = self._candidates[-1]
        candidate.outcomes += 1
        candidate.requests += row.requests
        if row.slot in self._proof_slots:
            self._proof_slots[row.slot] = replace(self._proof_slots[row.slot], outcome=row)
        self._counts.outcome(opened, row, utc_ms)

    def _fold_end(self, row: EndRow, utc_ms: int) -> None:
        self._candidates[-1].ended = row.end_reason

    def _fold_check(self, row: CheckRow, utc_ms: int) -> None:
        self._counts.check(row)

    def _fold_audit(self, row: AuditRow, utc_ms: int) -> None:
        self._counts.audit(row, utc_ms)

    def _fold_approval(self, row: ApprovalRow, utc_ms: int) -> None:
        self._counts.approval(row, utc_ms)

    def _fold_mirror(self, row: MirrorRow, utc_ms: int) -> None:
        self._mirrors[row.profile, row.month] = row
        self._counts.mirror(row)

    def _abandon_open(self) -> None:
        """Nobody can bring these outcomes any more. All open intents are the newest candidate's."""
        for opened in self._open.values():
            self._candidates[-1].orphans += 1
            self._orphaned_proofs += opened.row.run_kind is RunKind.PROOF
            self._counts.orphan(opened)
        self._orphans += self._open
        self._open.clear()

    _RULES: Final[Mapping[type[Any], Callable[["EvidenceState", Any], Refusal | None]]] = {
        PinRow: _refuse_pin,
        RunRow: _refuse_run,
        IntentRow: _refuse_intent,
        OutcomeRow: _refuse_outcome,
        EndRow: _refuse_of_other_candidate,
        CheckRow: _refuse_of_other_candidate,
        AuditRow: _refuse_nothing,
        ApprovalRow: _refuse_of_other_candidate,
        MirrorRow: _refuse_mirror,
    }
    _FOLDS: Final[Mapping[type[Any], Callable[["EvidenceState", Any, int], None]]] = {
        PinRow: _fold_pin,
        RunRow: _fold_run,
        IntentRow: _fold_intent,
        OutcomeRow: _fold_outcome,
        EndRow: _fold_end,
        CheckRow: _fold_check,
        AuditRow: _fold_audit,
        ApprovalRow: _fold_approval,
        MirrorRow: _fold_mirror,
    }


def _fields_of(row: RunRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def _utc_ms(utc: str) -> int:
    return round(datetime.fromisoformat(utc).timestamp() * 1000)

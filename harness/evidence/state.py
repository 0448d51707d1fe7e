"""The evidence folded into state, and the one set of rules for what may follow what.

Theory of operation. `refusal` says why a row may not come next. A writer asks it before it appends and refuses the
caller; a reader asks it for every row it reads, where the answer means that the history is not one this code wrote.

    pin -> run -> (intent -> outcome)* -> [run, resumed -> ...] -> end -> pin of the next restart

An intent without outcome is open. When the next run starts, or the next candidate, nobody can bring its outcome any
more (one run at a time holds the run lock), so it is an orphan for good. Slots of past candidates are forgotten, since
an ended candidate takes no intent: memory is that of one candidate, whatever the length of the evidence.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from harness.candidate import Candidate, Pin
from harness.evidence.rows import (
    EndReason,
    EndRow,
    EvidenceRow,
    IntentRow,
    OutcomeRow,
    PinRow,
    RunKind,
    RunRow,
    Slot,
    decode,
)
from harness.profiles import Pair
from kexpr.codes import Outcome, ProviderKind, Reason
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Head, Row
from kexpr.telemetry.record import is_reachable

__all__ = ["CandidateView", "EvidenceState", "EvidenceView", "Refusal", "RunView", "SlotView", "Tally"]


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


@dataclass(frozen=True, slots=True)
class Tally:
    """What outcomes are counted by."""

    candidate: str
    run: int
    pair: Pair
    outcome: Outcome
    reason: Reason | None


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
    """One slot of the newest candidate; `outcome` is None while the call is open, or when it is an orphan."""

    call: Slot
    run: int
    provider: ProviderKind
    intended_utc_ms: int
    outcome: OutcomeRow | None


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """A consistent reading of the evidence up to `head`."""

    head: Head
    candidates: tuple[CandidateView, ...]
    run: RunView | None
    slots: tuple[SlotView, ...]
    orphans: tuple[str, ...]
    in_progress: tuple[str, ...]
    tallies: Mapping[Tally, int]

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
        self._slots: dict[str, tuple[IntentRow, int]] = {}
        self._results: dict[str, OutcomeRow] = {}
        self._open: dict[str, IntentRow] = {}
        self._orphans: list[str] = []
        self._orphaned_proofs = 0
        self._tallies: Counter[Tally] = Counter()

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
            slots=tuple(
                SlotView(intent.call, intent.run, intent.provider, utc_ms, self._results.get(slot))
                for slot, (intent, utc_ms) in self._slots.items()
            ),
            orphans=self.orphans if run_in_progress else self.orphans + self.open_slots,
            in_progress=self.open_slots if run_in_progress else (),
            tallies=MappingProxyType(dict(self._tallies)),
        )

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
        open_proofs = sum(intent.run_kind is RunKind.PROOF for intent in self._open.values())
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
        if not same or row.pair not in run.surfaces:
            return Refusal.NOT_IN_RUN
        return Refusal.DUPLICATE_SLOT if row.slot in self._slots else None

    def _refuse_outcome(self, row: OutcomeRow) -> Refusal | None:
        """A candidate that ended meanwhile still takes the outcome of a call that was under way."""
        intent = self._open.get(row.slot)
        if intent is None or (intent.candidate, intent.run) != (row.candidate, row.run):
            return Refusal.UNKNOWN_SLOT
        return None if is_reachable(intent.mode, row.outcome) else Refusal.UNREACHABLE_OUTCOME

    def _refuse_end(self, row: EndRow) -> Refusal | None:
        return self._refuse_other(row.candidate)

    def _fold_pin(self, row: PinRow, utc_ms: int) -> None:
        self._abandon_open()
        self._candidates.append(_CandidateState(row))
        self._run = None
        self._slots.clear()
        self._results.clear()
        self._orphaned_proofs = 0

    def _fold_run(self, row: RunRow, utc_ms: int) -> None:
        self._abandon_open()
        if row.resumed and self._run is not None:
            self._run = RunView(self._run.row, self._run.started_utc_ms, self._run.resumes + 1)
            return
        self._runs += 1
        self._candidates[-1].runs += 1
        self._run = RunView(row, utc_ms, 0)

    def _fold_intent(self, row: IntentRow, utc_ms: int) -> None:
        self._candidates[-1].intents += 1
        self._slots[row.slot] = (row, utc_ms)
        self._open[row.slot] = row

    def _fold_outcome(self, row: OutcomeRow, utc_ms: int) -> None:
        intent = self._open.pop(row.slot)
        candidate = self._candidates[-1]
        candidate.outcomes += 1
        candidate.requests += row.requests
        self._results[row.slot] = row
        self._tallies[Tally(row.candidate, row.run, intent.pair, row.outcome, row.reason)] += 1

    def _fold_end(self, row: EndRow, utc_ms: int) -> None:
        self._candidates[-1].ended = row.end_reason

    def _abandon_open(self) -> None:
        """Nobody can bring these outcomes any more. All open intents are the newest candidate's."""
        if self._open:
            self._candidates[-1].orphans += len(self._open)
            self._orphaned_proofs += sum(intent.run_kind is RunKind.PROOF for intent in self._open.values())
            self._orphans += self._open
            self._open.clear()

    _RULES: Final[Mapping[type[Any], Callable[["EvidenceState", Any], Refusal | None]]] = {
        PinRow: _refuse_pin,
        RunRow: _refuse_run,
        IntentRow: _refuse_intent,
        OutcomeRow: _refuse_outcome,
        EndRow: _refuse_end,
    }
    _FOLDS: Final[Mapping[type[Any], Callable[["EvidenceState", Any, int], None]]] = {
        PinRow: _fold_pin,
        RunRow: _fold_run,
        IntentRow: _fold_intent,
        OutcomeRow: _fold_outcome,
        EndRow: _fold_end,
    }


def _fields_of(row: RunRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def _utc_ms(utc: str) -> int:
    return round(datetime.fromisoformat(utc).timestamp() * 1000)

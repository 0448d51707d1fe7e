"""The chained evidence of one directory: what was pinned, run, intended and seen.

An intent is durable before its call, and its slot is unique: whatever crashes, no slot is called twice. A run holds the
run lock (`flock`), which tells a call in progress from an orphan. Nothing is written that the rules refuse.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from harness.candidate import Candidate, Pin
from harness.evidence.rows import (
    ApprovalRow,
    AuditRow,
    Check,
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
    Traffic,
    encode,
)
from harness.evidence.state import EvidenceState, EvidenceView, Refusal
from harness.evidence.summary import EvidenceSummary
from harness.profiles import Pair, PathKind, Profile
from kexpr.clock import Clock, SystemClock
from kexpr.codes import Mode, Outcome, ProviderKind, Reason
from kexpr.errors import KexprError, LedgerFailed, StoreFault
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.locking import WAIT_SECONDS
from kexpr.ledger.protocol import Head, Ledger, Row, Transaction
from kexpr.private_files import PrivateDirectory, coded

__all__ = ["RUN_LOCK_NAME", "EvidenceLedger", "EvidenceRefused", "RunSpec", "read_prefix"]

RUN_LOCK_NAME: Final = "run.lock"


class EvidenceRefused(KexprError):
    """The evidence does not take this now; nothing was written."""

    def __init__(self, code: Refusal) -> None:
        super().__init__(code.value)
        self.code = code


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a run is. `provider` comes from the transport that was built, never from a flag; `surfaces` are ordered."""

    kind: RunKind
    provider: ProviderKind
    mode: Mode
    surfaces: tuple[Pair, ...]
    traffic: Traffic = Traffic.SYNTHETIC

    def row(self, candidate: Candidate, run: int, *, resumed: bool) -> RunRow:
        return RunRow(
            candidate=candidate.id,
            run=run,
            resumed=resumed,
            run_kind=self.kind,
            provider=self.provider,
            traffic=self.traffic,
            mode=self.mode,
            surfaces=self.surfaces,
        )


class EvidenceLedger:
    """Thread-safe; one run at a time over all processes.

    Every method may raise `LedgerFailed`, and those that write `EvidenceRefused`.
    """

    def __init__(self, ledger: Ledger, state: EvidenceState, directory: PrivateDirectory) -> None:
        """Use `open`. `state` is what the ledger projects into; `directory` holds the run lock."""
        self._ledger = ledger
        self._state = state
        self._run_lock = _RunLock(directory)
        self._under_way: set[str] = set()
        self._closed = False

    @classmethod
    def open(
        cls,
        directory: Path,
        clock: Clock | None = None,
        *,
        expected: Head | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> Self:
        """Open or create the evidence in `directory` (0700), and verify and fold all of it.

        `expected` is a head kept elsewhere: the chain must contain it. `wait_seconds` bounds a wait for other writers.
        """
        private = PrivateDirectory.open(directory)
        state = EvidenceState()
        try:
            ledger = JsonlLedger.open(
                directory,
                projection=state.apply,
                clock=clock or SystemClock(),
                expected=expected,
                wait_seconds=wait_seconds,
            )
        except BaseException:
            private.close()
            raise
        return cls(ledger, state, private)

    def pin(self, candidate: Candidate, pin: Pin) -> None:
        """Write the first row of a candidate. Refused while another one is open, or out of order of the restarts."""
        with self._idle() as transaction:
            self._write(transaction, PinRow.of(candidate, pin))

    def ensure_candidate(self, pin: Pin) -> Candidate:
        """The open candidate of `pin`, or a new one with the next restart number.

        An open candidate of another pin ends, since what it was to prove has changed.
        """
        with self._idle() as transaction:
            current = self._state.candidate
            if current is not None and current.pin_digest == pin.digest:
                return current
            if current is not None:
                self._write(transaction, EndRow(current.id, EndReason.PIN_CHANGED))
            candidate = Candidate(pin.digest, self._state.next_restart)
            self._write(transaction, PinRow.of(candidate, pin))
            return candidate

    def begin_run(self, spec: RunSpec, pin_digest: str | None = None) -> int:
        """Take the run lock and write the run; returns its number. With `pin_digest` the open candidate must be of it.

        Refused: `run_locked`, `no_candidate`, `candidate_ended`, `dirty_checkout` (live), `orphaned` (a proof after a
        call that nobody saw end).
        """
        return self._start(spec, resumed=False, pin_digest=pin_digest)

    def resume_run(self, spec: RunSpec) -> int:
        """Go on with the newest run, which must be the same in everything; returns its number. Refused as above."""
        return self._start(spec, resumed=True)

    def finish_run(self) -> None:
        """Release the run lock. Intents without outcome are orphans from now on."""
        with self._ledger.transaction():
            self._under_way.clear()
            self._run_lock.release()

    def intent(self, slot: Slot) -> None:
        """Make the slot durable before its call.

        Refused: `duplicate_slot`, `not_in_run`, `no_run`, `candidate_ended`.
        """
        with self._ledger.transaction() as transaction:
            self._intend(transaction, slot)

    def intent_organic(self, pair: Pair, path: PathKind, date: str) -> Slot:
        """Make the next organic slot of a UTC day durable before its call. Refused as `intent` is."""
        with self._ledger.transaction() as transaction:
            slot = Slot(RunKind.OBSERVATION, pair, path, self._state.next_organic(pair, date), date)
            self._intend(transaction, slot)
            return slot

    def outcome(self, slot: Slot, outcome: Outcome, reason: Reason | None, *, duration_ms: int, requests: int) -> None:
        """Record how the call of a slot ended. Refused with `unknown_slot` unless this object made the intent."""
        with self._ledger.transaction() as transaction:
            run = self._running()
            key = slot.key(run.candidate)
            if key not in self._under_way:
                raise EvidenceRefused(Refusal.UNKNOWN_SLOT)
            self._write(transaction, OutcomeRow(run.candidate, run.run, key, outcome, reason, duration_ms, requests))
            self._under_way.discard(key)

    def end_candidate(self, reason: EndReason) -> None:
        """The candidate takes no further run or intent. Refused when another process is running it."""
        with self._unlocked_elsewhere() as transaction:
            self._write(transaction, EndRow(self._candidate().id, reason))

    def record_check(self, check: Check, *, passed: bool) -> None:
        """What preflight found, before the calls that it lets through."""
        with self._ledger.transaction() as transaction:
            self._write(transaction, CheckRow(self._candidate().id, check, passed))

    def record_checks(self, checks: Mapping[Check, bool]) -> None:
        """Those of `checks` that the candidate's evidence does not say already."""
        known = self.summary().checks
        for check, passed in checks.items():
            if known.get(check) is not passed:
                self.record_check(check, passed=passed)

    def untaken(self, slots: Sequence[Slot]) -> tuple[Slot, ...]:
        """Those of `slots` that the newest candidate has not intended, in order."""
        with self._ledger.transaction():
            return tuple(slot for slot in slots if not self._state.is_taken(slot))

    def record_audit(self, profile: Profile, config_digest: str, *, ready: bool) -> None:
        """A strict audit of the profile's configuration file."""
        with self._ledger.transaction() as transaction:
            self._write(transaction, AuditRow(profile, config_digest, ready))

    def record_approval(
        self, candidate: str, pair: Pair, phase: str, *, report_digest: str, config_digest: str, approver: str
    ) -> None:
        """A person approved `phase` for `pair` and `candidate` (its id). What was approved is for the caller to judge.

        Refused with `no_candidate` or `candidate_ended` unless that is the open candidate.
        """
        with self._ledger.transaction() as transaction:
            digests = (report_digest, config_digest)
            self._write(transaction, ApprovalRow(candidate, pair.profile, pair.surface, phase, *digests, approver))

    def record_mirror(self, row: MirrorRow) -> None:
        """What is new in a mirror. Refused with `mirror_out_of_order` unless it goes on behind the row before it."""
        with self._ledger.transaction() as transaction:
            self._write(transaction, row)

    def mirrored(self, profile: Profile, month: str) -> MirrorRow | None:
        """The newest row of a profile's mirror of a month, up to which it was counted."""
        with self._ledger.transaction():
            return self._state.mirrored(profile, month)

    def summary(self) -> EvidenceSummary:
        """The counts of everything written until now, also by other processes; costs what is new."""
        with self._ledger.transaction():
            return self._state.summary(self._ledger.head(), run_in_progress=not self._run_lock.is_idle())

    def orphans(self) -> tuple[str, ...]:
        """Keys of slots that were intended and never seen to end, and are not in progress, oldest first."""
        return self.view().orphans

    def view(self) -> EvidenceView:
        """A consistent reading of everything written until now, also by other processes."""
        with self._ledger.transaction():
            return self._state.view(self._ledger.head(), run_in_progress=not self._run_lock.is_idle())

    def head(self) -> Head:
        """Sequence and digest of the newest row: print it, and keep it elsewhere as an anchor."""
        with self._ledger.transaction():
            return self._ledger.head()

    def close(self) -> None:
        """Release everything; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._run_lock.close()
            self._ledger.close()

    def _intend(self, transaction: Transaction, slot: Slot) -> None:
        row = IntentRow.of(self._running(), slot)
        self._write(transaction, row)
        self._under_way.add(row.slot)

    def _start(self, spec: RunSpec, *, resumed: bool, pin_digest: str | None = None) -> int:
        with self._ledger.transaction() as transaction:
            if self._run_lock.is_held or not self._run_lock.acquire():
                raise EvidenceRefused(Refusal.RUN_LOCKED)
            try:
                candidate = self._candidate()
                if pin_digest not in (None, candidate.pin_digest):
                    raise EvidenceRefused(Refusal.NO_CANDIDATE)
                last = self._state.run
                run = last.run if resumed and last else self._state.next_run
                self._write(transaction, spec.row(candidate, run, resumed=resumed))
            except BaseException:
                self._run_lock.release()
                raise
            return run

    def _candidate(self) -> Candidate:
        candidate = self._state.candidate
        if candidate is None:
            raise EvidenceRefused(Refusal.CANDIDATE_ENDED if self._state.next_restart else Refusal.NO_CANDIDATE)
        return candidate

    def _running(self) -> RunRow:
        run = self._state.run
        if run is None or not self._run_lock.is_held:
            raise EvidenceRefused(Refusal.NO_RUN)
        return run

    @contextmanager
    def _unlocked_elsewhere(self) -> Iterator[Transaction]:
        """A transaction while no other process, and no other object of this one, is in a run."""
        with self._ledger.transaction() as transaction:
            if not self._run_lock.is_held and not self._run_lock.is_idle():
                raise EvidenceRefused(Refusal.RUN_LOCKED)
            yield transaction

    @contextmanager
    def _idle(self) -> Iterator[Transaction]:
        """A transaction while nobody is in a run."""
        with self._unlocked_elsewhere() as transaction:
            if self._run_lock.is_held:
                raise EvidenceRefused(Refusal.RUN_LOCKED)
            yield transaction

    def _write(self, transaction: Transaction, row: EvidenceRow) -> None:
        record = encode(row)
        refusal = self._state.refusal(row)
        if refusal is not None:
            raise EvidenceRefused(refusal)
        transaction.append(record)


def read_prefix(directory: Path, head: Head) -> EvidenceSummary:
    """The summary as it was when the evidence in `directory` ended at `head`; an open call counts as an orphan.

    Reads only, also while others write. Raises `LedgerFailed`, with `HEAD_MISMATCH` when the chain has no such row.
    """
    if not directory.exists():
        raise LedgerFailed(StoreFault.HEAD_MISMATCH)
    state = EvidenceState()

    def project(row: Row) -> None:
        if row.sequence <= head.sequence:
            state.apply(row)

    JsonlLedger.open(directory, projection=project, clock=SystemClock(), expected=head).close()
    return state.summary(head, run_in_progress=False)


class _RunLock:
    """`flock` on a file of the evidence directory. Used under the ledger's lock only: a probe disturbs nobody."""

    def __init__(self, directory: PrivateDirectory) -> None:
        self._directory = directory
        self._fd: int | None = None

    @property
    def is_held(self) -> bool:
        """By this object."""
        return self._fd is not None

    def is_idle(self) -> bool:
        """Nobody holds it."""
        if self.is_held or not self.acquire():
            return False
        self.release()
        return True

    @coded
    def acquire(self) -> bool:
        """False when somebody else has it."""
        fd = self._directory.open_file(RUN_LOCK_NAME, os.O_RDWR | os.O_CREAT)
        try:
            self._directory.files.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._directory.holds(RUN_LOCK_NAME, fd):
                raise LedgerFailed(StoreFault.HEAD_MISMATCH)
        except BlockingIOError:
            self._directory.files.close(fd)
            return False
        except BaseException:
            self._directory.files.close(fd)
            raise
        self._fd = fd
        return True

    def release(self) -> None:
        if self._fd is not None:
            self._directory.files.close(self._fd)
            self._fd = None

    def close(self) -> None:
        self.release()
        self._directory.close()

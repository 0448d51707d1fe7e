"""Weekly: the schedule-delivery ledger (authorities, "Weekly").

`ready -> presentation_claimed -> prepared -> sending -> delivered | unknown | abandoned`; without a presentation
`ready -> prepared`. Only a durable `prepared` is sent, from `load_prepared_customer_task_delivery`, never from memory.

Two marks outside the ledger say what an older copy of it would have forgotten. `claimed` is durable before the claim
row: with a ledger that says ready it means that a request may have been made, so the text is canonical and no call is
made. `sending` is durable before the sending row: with a ledger that says less it means that the task may have been
sent, and everything stops.

A stop stays for the life of this object: of the task when it is about the task, of the authority when its ledger or its
tombstones failed.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from kexpr.attempt import Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.finalise import EXPIRED, Asked, Found, decide
from kexpr.authority.records import deadline_of, digest_of, to_record
from kexpr.authority.recovery import Absent, Durable, InFlight, Recovered
from kexpr.authority.steps import LedgerOpener, append, ask, holds, new_attempt_id, require_attempting
from kexpr.authority.transitions import WEEKLY, WeeklyEvent, WeeklyState
from kexpr.authority.weekly_records import (
    DELIVERY_EVENT,
    HeldTask,
    PinnedScheduledDelivery,
    Pins,
    PreparedV1,
    PresentedV2,
    ScheduledDeliveryReceipt,
    StepV1,
    WeeklyTask,
    fold,
)
from kexpr.clock import lease_from
from kexpr.codes import Mode, Outcome, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, HardStop, IllegalTransition, LedgerFailed, StoreFault
from kexpr.failpoints import reach
from kexpr.ledger.protocol import Row, Transaction
from kexpr.ledger.tombstones import Mark

__all__ = [
    "PinnedScheduledDelivery",
    "Pins",
    "ScheduledDeliveryReceipt",
    "TaskMarks",
    "WeeklyArtifact",
    "WeeklyAuthority",
    "WeeklyTask",
]

_SENT: Final = frozenset(DELIVERY_EVENT)
_OF_THE_TASK: Final = frozenset({StoreFault.LOCKED_OUT, StoreFault.LOCK_ORDER, StoreFault.ROW_INVALID})
"""Ledger faults that say nothing about the ledger itself."""


class TaskMarks(Protocol):
    """`kexpr.ledger.tombstones.Tombstones`."""

    def mark(self, task_digest: str, mark: Mark) -> None: ...

    def marks(self, task_digest: str) -> frozenset[Mark]: ...


class WeeklyAuthority:
    """The schedule-delivery ledger with its tombstones. Thread-safe, and safe between processes.

    Every method raises `HardStop` once ledger, tombstones, a pin or a final append failed. `IllegalTransition` and
    `ClaimRefused` stop nothing.
    """

    def __init__(self, open_ledger: LedgerOpener, tombstones: TaskMarks, ready_fence: Callable[[str], bool]) -> None:
        """`ready_fence(task_digest)`: whether the schedule still stands behind the task. Asked under the lock; it must
        not call back into this authority.
        """
        self._tombstones = tombstones
        self._ready_fence = ready_fence
        self._tasks: dict[str, HeldTask] = {}
        self._stopped: StoreFault | None = None
        self._stopped_tasks: dict[str, StoreFault] = {}
        self._ledger = open_ledger(projection=self._fold)

    def artifact(
        self, task: WeeklyTask, *, canonical_body: str, destination: str, current_pins: Callable[[], Pins]
    ) -> "WeeklyArtifact":
        """What the coordinator drives for one task. `current_pins` is asked under the lock, at claim and end."""
        return WeeklyArtifact(self, task, canonical_body, destination, current_pins)

    def reserve_customer_task_delivery(
        self, task: WeeklyTask, *, body: str, destination: str, pins: Pins
    ) -> ScheduledDeliveryReceipt:
        """`ready -> prepared` with the canonical body and no presentation: the direct canonical edge.

        Open while there is no row on the task, also when a `claimed` mark says that a request may have been made.
        """
        with self._exclusive(task.digest) as transaction:
            state = WEEKLY.step(self._state(task.digest), WeeklyEvent.RESERVE)
            self._require_ready(task.digest)
            prepared = PreparedV1(
                1,
                task.digest,
                state.value,
                body,
                destination,
                digest_of(body),
                pins.template_digest,
                pins.destination_digest,
                pins.registry_digest,
                pins.config_digest,
            )
            append(transaction, "weekly.reserve", to_record(prepared))
            return self._tasks[task.digest].receipt

    def claim_customer_task_presentation(
        self,
        task: WeeklyTask,
        *,
        canonical_body: str,
        destination: str,
        current_pins: Callable[[], Pins],
        mode: Mode,
    ) -> Ticket:
        """`ready -> presentation_claimed` with body, destination and pins. Raises `ClaimRefused` when not fresh."""
        require_attempting(mode)
        with self._exclusive(task.digest) as transaction:
            if not self._is_fresh(task.digest):
                raise ClaimRefused
            state = WEEKLY.step(WeeklyState.READY, WeeklyEvent.CLAIM)
            self._require_ready(task.digest)
            pins = ask(current_pins)
            self._mark(task.digest, Mark.CLAIMED)
            lease = lease_from(transaction.now)
            digest = digest_of(canonical_body)
            claimed = PresentedV2(
                2,
                task.digest,
                state.value,
                canonical_body,
                destination,
                digest,
                pins.template_digest,
                pins.destination_digest,
                pins.registry_digest,
                pins.config_digest,
                digest,
                Surface.WEEKLY.wire,
                new_attempt_id(),
                deadline_of(lease),
                None,
            )
            append(transaction, "weekly.claim", to_record(claimed), lease=lease, mode=mode)
            return Ticket(claimed.presentation_attempt_id, mode, lease)

    def finalize_customer_task_presentation(
        self,
        task: WeeklyTask,
        ticket: Ticket,
        ruling: Ruling,
        cancellation: Cancellation,
        *,
        current_pins: Callable[[], Pins],
    ) -> Finalized:
        """`presentation_claimed -> prepared`; see `ArtifactAuthority.finalize`. Changed pins: canonical."""
        with self._exclusive(task.digest) as transaction:
            held = self._tasks.get(task.digest)
            found = Found(
                WEEKLY.name,
                self._state(task.digest),
                held.claim if held else None,
                _final_of(held),
                transaction.now,
            )
            pins_hold = holds(lambda: held is not None and current_pins() == _pins_of(held.receipt))
            decision = decide(found, Asked(ticket.attempt_id, ruling, cancellation.is_set(), pins_hold))
            if held and decision.is_new:
                self._prepare(transaction, held, decision.finalized.outcome, decision.finalized.body)
            return decision.finalized

    def expire_customer_task_presentation(self, task: WeeklyTask) -> Recovered:
        """Prepare canonical from the claimed row if the claim has expired; say what is there then."""
        with self._exclusive(task.digest) as transaction:
            self._expire(transaction, task.digest)
            return self._look(transaction, task.digest)

    recover = expire_customer_task_presentation
    """What a path asks first, also after a restart, and before any report is built."""

    def state(self, task: WeeklyTask) -> Recovered:
        """What is there; appends nothing, so that an expired claim still is `InFlight(0)`."""
        with self._exclusive(task.digest) as transaction:
            return self._look(transaction, task.digest)

    def is_fresh(self, task: WeeklyTask) -> bool:
        """No row and no mark on the task."""
        with self._exclusive(task.digest):
            return self._is_fresh(task.digest)

    def receipt(self, task: WeeklyTask) -> ScheduledDeliveryReceipt:
        """The receipt of a task that is `prepared` or further; raises `IllegalTransition` before that."""
        with self._exclusive(task.digest):
            held = self._tasks.get(task.digest)
            if held is None or held.state is WeeklyState.PRESENTATION_CLAIMED:
                raise IllegalTransition(WEEKLY.name, self._state(task.digest), "receipt")
            return held.receipt

    def load_prepared_customer_task_delivery(
        self,
        receipt: ScheduledDeliveryReceipt,
        *,
        expected_registry_digest: str,
        expected_config_digest: str,
        expected_destination_digest: str,
    ) -> PinnedScheduledDelivery:
        """The exact durable material of a prepared delivery, if everything about it still holds. Read-only.

        Raises `HardStop`: `NOT_READY` (ready fence), `TOMBSTONE_AHEAD`, `TOMBSTONE_MISSING`, `PIN_CHANGED` (receipt or
        one of the three current pins); `IllegalTransition` when the task is not `prepared`.
        """
        with self._exclusive(receipt.task_digest):
            held, pinned = self._sendable(receipt)
            current = (expected_registry_digest, expected_config_digest, expected_destination_digest)
            if current != (pinned.registry_digest, pinned.config_digest, pinned.destination_digest):
                raise HardStop(StoreFault.PIN_CHANGED)
            return PinnedScheduledDelivery(
                pinned.body,
                pinned.destination,
                pinned.body_digest,
                pinned.canonical_body_digest,
                pinned.template_digest,
                pinned.destination_digest,
                pinned.registry_digest,
                pinned.config_digest,
                held.outcome,
            )

    def mark_customer_task_sending(self, receipt: ScheduledDeliveryReceipt) -> None:
        """`prepared -> sending`, once ever: whoever returns from this, and no one else, sends the loaded material."""
        with self._exclusive(receipt.task_digest) as transaction:
            self._sendable(receipt)
            self._mark(receipt.task_digest, Mark.SENDING)
            self._append_step(transaction, receipt, WeeklyEvent.MARK_SENDING)

    def mark_customer_task_delivered(self, receipt: ScheduledDeliveryReceipt) -> None:
        self._step(receipt, WeeklyEvent.MARK_DELIVERED)

    def mark_customer_task_unknown(self, receipt: ScheduledDeliveryReceipt) -> None:
        """The send failed or its end is not known: never sent again."""
        self._step(receipt, WeeklyEvent.MARK_UNKNOWN)

    def mark_customer_task_abandoned(self, receipt: ScheduledDeliveryReceipt) -> None:
        self._step(receipt, WeeklyEvent.MARK_ABANDONED)

    def mark_customer_task_sent_audited(self, receipt: ScheduledDeliveryReceipt) -> None:
        """An operator found out that an unknown send was one."""
        self._step(receipt, WeeklyEvent.MARK_SENT_AUDITED)

    def outstanding(self) -> tuple[str, ...]:
        """Opaque attempt ids of claims without an outcome."""
        with self._exclusive(None):
            return tuple(held.claim.attempt_id for held in self._claimed().values() if held.claim)

    def outcomes(self) -> Counter[Outcome]:
        """How many presentations ended with each outcome, ever."""
        with self._exclusive(None):
            return Counter(held.outcome for held in self._tasks.values() if held.outcome)

    def expire_outstanding(self) -> int:
        """Prepare canonical for every expired claim; how many. Tasks that are stopped stay as they are."""
        ended = 0
        with self._exclusive(None):
            claimed = tuple(self._claimed())
        for task_digest in claimed:
            try:
                with self._exclusive(task_digest) as transaction:
                    ended += self._expire(transaction, task_digest)
            except HardStop:
                if self._stopped:
                    raise
        return ended

    def close(self) -> None:
        self._ledger.close()

    @contextmanager
    def _exclusive(self, task_digest: str | None) -> Iterator[Transaction]:
        """The schedule lock, for a task that is not stopped; whatever fails in it is a stop that stays."""
        stopped = self._stopped or self._stopped_tasks.get(task_digest or "")
        if stopped:
            raise HardStop(stopped)
        try:
            with self._ledger.transaction() as transaction:
                if task_digest is not None:
                    self._require_no_mark_ahead(task_digest)
                yield transaction
        except HardStop as stop:
            self._stop(task_digest, stop.code)
            raise
        except LedgerFailed as failed:
            code = failed.code
        else:
            return
        if code not in _OF_THE_TASK:
            self._stopped = code
        self._stop(task_digest, code)
        raise HardStop(code)

    def _stop(self, task_digest: str | None, code: StoreFault) -> None:
        if task_digest is not None:
            self._stopped_tasks[task_digest] = code

    def _require_no_mark_ahead(self, task_digest: str) -> None:
        """A `sending` mark with a ledger that says less: an older copy, or a crash between the two. It may be sent."""
        if self._state(task_digest) not in _SENT and Mark.SENDING in self._tombstones.marks(task_digest):
            raise HardStop(StoreFault.TOMBSTONE_AHEAD)

    def _require_ready(self, task_digest: str) -> None:
        if not ask(self._ready_fence, task_digest):
            raise AuthorityFailed(StoreFault.NOT_READY)

    def _sendable(self, receipt: ScheduledDeliveryReceipt) -> tuple[HeldTask, PreparedV1 | PresentedV2]:
        """The prepared task of a receipt, after every check but that of the current pins."""
        held = self._tasks.get(receipt.task_digest)
        if held is None or held.state is not WeeklyState.PREPARED or held.pinned is None:
            raise IllegalTransition(WEEKLY.name, self._state(receipt.task_digest), "send")
        if not ask(self._ready_fence, receipt.task_digest):
            raise HardStop(StoreFault.NOT_READY)
        if held.receipt != receipt:
            raise HardStop(StoreFault.PIN_CHANGED)
        if held.claim and Mark.CLAIMED not in self._tombstones.marks(receipt.task_digest):
            raise HardStop(StoreFault.TOMBSTONE_MISSING)
        return held, held.pinned

    def _state(self, task_digest: str) -> WeeklyState:
        held = self._tasks.get(task_digest)
        return held.state if held else WeeklyState.READY

    def _is_fresh(self, task_digest: str) -> bool:
        return task_digest not in self._tasks and not self._tombstones.marks(task_digest)

    def _claimed(self) -> dict[str, HeldTask]:
        claimed = WeeklyState.PRESENTATION_CLAIMED
        return {digest: held for digest, held in self._tasks.items() if held.state is claimed}

    def _look(self, transaction: Transaction, task_digest: str) -> Recovered:
        held = self._tasks.get(task_digest)
        if held is None:
            return Absent()
        if held.state is WeeklyState.PRESENTATION_CLAIMED and held.claim:
            return InFlight(held.claim.remaining_ms(transaction.now))
        return Durable(held.outcome, held.pinned.body if held.pinned else None, held.state)

    def _expire(self, transaction: Transaction, task_digest: str) -> bool:
        held = self._tasks.get(task_digest)
        if held is None or held.state is not WeeklyState.PRESENTATION_CLAIMED or held.claim is None:
            return False
        if held.claim.remaining_ms(transaction.now):
            return False
        self._prepare(transaction, held, EXPIRED.outcome, None)
        return True

    def _prepare(self, transaction: Transaction, held: HeldTask, outcome: Outcome, selected: str | None) -> None:
        """Replace the body once, if one was selected, and nothing else."""
        event = WeeklyEvent.ending(outcome)
        state = WEEKLY.step(held.state, event)
        record = to_record(held.pinned)
        record |= {"state": state.value, "outcome": outcome.value}
        if selected is not None:
            record |= {"body": selected, "body_digest": digest_of(selected)}
        append(transaction, f"weekly.{event}", record)

    def _step(self, receipt: ScheduledDeliveryReceipt, event: WeeklyEvent) -> None:
        with self._exclusive(receipt.task_digest) as transaction:
            held = self._tasks.get(receipt.task_digest)
            if held and held.receipt != receipt:
                raise HardStop(StoreFault.PIN_CHANGED)
            self._append_step(transaction, receipt, event)

    def _append_step(self, transaction: Transaction, receipt: ScheduledDeliveryReceipt, event: WeeklyEvent) -> None:
        state = WEEKLY.step(self._state(receipt.task_digest), event)
        append(transaction, f"weekly.{event}", to_record(StepV1(1, receipt.task_digest, state.value)))

    def _mark(self, task_digest: str, mark: Mark) -> None:
        reach(f"weekly.tombstone_{mark}.before")
        self._tombstones.mark(task_digest, mark)
        reach(f"weekly.tombstone_{mark}.after")

    def _fold(self, row: Row) -> None:
        task_digest = str(row.record["task_digest"])
        self._tasks[task_digest] = fold(self._tasks.get(task_digest), row)


@dataclass(frozen=True, slots=True)
class WeeklyArtifact:
    """One task, bound; an `ArtifactAuthority`."""

    authority: WeeklyAuthority
    task: WeeklyTask
    canonical_body: str = field(repr=False)
    destination: str = field(repr=False)
    current_pins: Callable[[], Pins] = field(repr=False)

    @property
    def surface(self) -> Surface:
        return Surface.WEEKLY

    def is_fresh(self) -> bool:
        return self.authority.is_fresh(self.task)

    def claim(self, mode: Mode) -> Ticket:
        return self.authority.claim_customer_task_presentation(
            self.task,
            canonical_body=self.canonical_body,
            destination=self.destination,
            current_pins=self.current_pins,
            mode=mode,
        )

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        return self.authority.finalize_customer_task_presentation(
            self.task, ticket, ruling, cancellation, current_pins=self.current_pins
        )


def _pins_of(receipt: ScheduledDeliveryReceipt) -> Pins:
    return Pins(receipt.destination_digest, receipt.registry_digest, receipt.config_digest, receipt.template_digest)


def _final_of(held: HeldTask | None) -> Finalized | None:
    """What a final row says; its body only while it is the durable text to send."""
    if held is None or held.outcome is None:
        return None
    selected = held.pinned.body if held.pinned and held.outcome is Outcome.SELECTED else None
    return Finalized(held.outcome, body=selected)

"""Weekly: only what is durably `prepared` is sent, once.

A task that already has a row is handled before any report is built; `render` runs at most once, for a task without one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from kexpr.attempt import Cancellation
from kexpr.authority.ports import WeeklyStore
from kexpr.authority.recovery import Absent, InFlight
from kexpr.authority.transitions import WeeklyState
from kexpr.authority.weekly import Pins, ScheduledDeliveryReceipt, WeeklyTask
from kexpr.coordinator import Coordinator, Job
from kexpr.paths.base import Path, stopping
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import (
    STOPPED,
    Preparation,
    Publication,
    Timers,
    publication_of,
    publish,
    publish_async,
)

__all__ = ["WeeklyDelivery", "WeeklyPath", "WeeklyReport"]

Send = Callable[[str, str], None]
AsyncSend = Callable[[str, str], Awaitable[None]]
"""`send(destination, body)`."""

_UNCERTAIN: Final = (WeeklyState.SENDING, WeeklyState.UNKNOWN)
"""It may have been sent, and only an operator can find out."""


@dataclass(frozen=True, slots=True)
class WeeklyReport:
    """What the host rendered: the typed presentation (any other object is canonical) and the canonical text."""

    presentation: object = field(repr=False)
    canonical_payload: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class WeeklyDelivery:
    """One scheduled task. `current_pins` is asked under the authority's lock and must not call back into it."""

    task: WeeklyTask
    destination: str = field(repr=False)
    current_pins: Callable[[], Pins] = field(repr=False)
    render: Callable[[], WeeklyReport] = field(repr=False)


class WeeklyPath(Path):
    """Canonical body → pins → claim → attempt → durable `prepared` → `sending` → one send."""

    def __init__(
        self,
        coordinator: Coordinator,
        authority: WeeklyStore,
        locks: PublicationLocks,
        timers: Timers | None = None,
    ) -> None:
        super().__init__(coordinator, locks, timers)
        self._authority = authority

    def deliver(self, delivery: WeeklyDelivery, send: Send) -> Publication:
        """Bring one task as far as it goes: a new one, after a restart, or again. `stopped`: an operator must look."""
        publication = publish(self.preparation(delivery), lambda ready: send(ready.destination or "", ready.text or ""))
        return self._watched(publication, lambda: self.deliver(delivery, send))

    async def deliver_async(self, delivery: WeeklyDelivery, send: AsyncSend) -> Publication:
        """`deliver` for asyncio hosts; `wait_ms` > 0 in the result asks for another call after that long."""
        return await publish_async(
            self._coordinator,
            self.preparation(delivery),
            lambda ready: send(ready.destination or "", ready.text or ""),
        )

    def preparation(self, delivery: WeeklyDelivery) -> Preparation:
        """The durable part up to `prepared`. The task becomes `sending` only when the publication is delivered."""
        return lambda flag: self._held(
            ("weekly", delivery.task.digest), stopping(lambda: self._prepared(delivery, flag)), lambda: STOPPED
        )

    def _prepared(self, delivery: WeeklyDelivery, flag: Cancellation) -> Publication:
        found = self._authority.recover(delivery.task)
        if isinstance(found, InFlight):
            return Publication(None, wait_ms=max(1, found.remaining_ms))
        if isinstance(found, Absent):
            return self._presented(delivery, flag)
        if found.state != WeeklyState.PREPARED:
            return Publication(None, stopped=found.state in _UNCERTAIN)
        return self._loaded(delivery, Publication(None))

    def _presented(self, delivery: WeeklyDelivery, flag: Cancellation) -> Publication:
        report = delivery.render()
        artifact = self._authority.artifact(
            delivery.task,
            canonical_body=report.canonical_payload,
            destination=delivery.destination,
            current_pins=delivery.current_pins,
        )
        identity = ("weekly", delivery.task.identity)
        presented = self._coordinator.present(
            Job(report.presentation, report.canonical_payload, artifact, identity), flag
        )
        attempt = publication_of(presented, None)
        if presented.broken:
            return attempt
        if not presented.claimed:
            self._authority.reserve_customer_task_delivery(
                delivery.task,
                body=report.canonical_payload,
                destination=delivery.destination,
                pins=delivery.current_pins(),
            )
        return self._loaded(delivery, attempt)

    def _loaded(self, delivery: WeeklyDelivery, attempt: Publication) -> Publication:
        """The exact durable material under the current pins, never the bytes in memory."""
        receipt = self._authority.receipt(delivery.task)
        pins = delivery.current_pins()
        pinned = self._authority.load_prepared_customer_task_delivery(
            receipt,
            expected_registry_digest=pins.registry_digest,
            expected_config_digest=pins.config_digest,
            expected_destination_digest=pins.destination_digest,
        )
        return replace(
            attempt,
            text=pinned.body,
            destination=pinned.destination,
            stopped=False,
            before=lambda: self._authority.mark_customer_task_sending(receipt),
            after=lambda delivered: self._settle(receipt, delivered),
        )

    def _settle(self, receipt: ScheduledDeliveryReceipt, delivered: bool) -> None:
        if delivered:
            self._authority.mark_customer_task_delivered(receipt)
        else:
            self._authority.mark_customer_task_unknown(receipt)

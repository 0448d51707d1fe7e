"""What the paths ask of a store: the port behind each surface, for the authorities here and for a host's own stores.

A store is opened once a process; several handles on the same state, in threads and in processes, are the normal case.
Methods mean what their namesakes in `daily`, `weekly` and `adaptive` say and raise `AuthorityFailed` when the store
cannot be used. `kexpr.testing.conformance` is the suite that a store of a host has to pass.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from kexpr.attempt import ArtifactAuthority
from kexpr.authority.adaptive_records import CardPresentationOrigin
from kexpr.authority.recovery import Durable, Recovered
from kexpr.authority.weekly_records import PinnedScheduledDelivery, Pins, ScheduledDeliveryReceipt, WeeklyTask
from kexpr.codes import Outcome, Surface

__all__ = ["AdaptiveStore", "DailyStore", "Store", "WeeklyStore"]


class Store(Protocol):
    def outstanding(self) -> tuple[str, ...]:
        """Opaque attempt ids of claims without an outcome."""
        ...

    def outcomes(self) -> Counter[Outcome]:
        """How many presentations ended with each outcome, ever."""
        ...

    def expire_outstanding(self) -> int:
        """End every expired claim; how many were ended."""
        ...

    def close(self) -> None: ...


class DailyStore(Store, Protocol):
    def artifact(self, event_id: str) -> ArtifactAuthority: ...

    def recover(self, event_id: str) -> Recovered: ...


class WeeklyStore(Store, Protocol):
    def artifact(
        self, task: WeeklyTask, *, canonical_body: str, destination: str, current_pins: Callable[[], Pins]
    ) -> ArtifactAuthority: ...

    def recover(self, task: WeeklyTask) -> Recovered: ...

    def reserve_customer_task_delivery(
        self, task: WeeklyTask, *, body: str, destination: str, pins: Pins
    ) -> ScheduledDeliveryReceipt: ...

    def receipt(self, task: WeeklyTask) -> ScheduledDeliveryReceipt: ...

    def load_prepared_customer_task_delivery(
        self,
        receipt: ScheduledDeliveryReceipt,
        *,
        expected_registry_digest: str,
        expected_config_digest: str,
        expected_destination_digest: str,
    ) -> PinnedScheduledDelivery: ...

    def mark_customer_task_sending(self, receipt: ScheduledDeliveryReceipt) -> None: ...

    def mark_customer_task_delivered(self, receipt: ScheduledDeliveryReceipt) -> None: ...

    def mark_customer_task_unknown(self, receipt: ScheduledDeliveryReceipt) -> None: ...


class AdaptiveStore(Store, Protocol):
    def artifact(
        self, origin: CardPresentationOrigin, *, canonical_payload: str, surface: Surface, binding_digest: str
    ) -> ArtifactAuthority: ...

    def recover(self, origin: CardPresentationOrigin) -> Recovered: ...

    def mark_publish_pending(self, origin: CardPresentationOrigin, *, payload: str) -> Durable: ...

    def mark_publish_claimed(self, origin: CardPresentationOrigin) -> None: ...

    def mark_published(self, origin: CardPresentationOrigin) -> None: ...

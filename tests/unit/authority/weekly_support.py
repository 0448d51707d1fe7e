"""What the weekly tests share."""

from kexpr.attempt import Cancellation, Ruling
from kexpr.authority.weekly import (
    PinnedScheduledDelivery,
    ScheduledDeliveryReceipt,
    WeeklyArtifact,
    WeeklyAuthority,
    WeeklyTask,
)
from kexpr.clock import Lease
from kexpr.codes import Mode, Surface
from tests.unit.authority.support import (
    CANONICAL,
    DESTINATION,
    PINS,
    TASK,
    World,
    wins,
)

NOT_CANCELLED = Cancellation()
LEASE = Lease(0, 0, None)
OTHER_TASK = WeeklyTask("another task")
CURRENT = {
    "expected_registry_digest": PINS.registry_digest,
    "expected_config_digest": PINS.config_digest,
    "expected_destination_digest": PINS.destination_digest,
}


def bind(world: World, authority: WeeklyAuthority, task: WeeklyTask = TASK) -> WeeklyArtifact:
    return authority.artifact(task, canonical_body=CANONICAL, destination=DESTINATION, current_pins=lambda: world.pins)


def reserve(authority: WeeklyAuthority, task: WeeklyTask = TASK) -> ScheduledDeliveryReceipt:
    return authority.reserve_customer_task_delivery(task, body=CANONICAL, destination=DESTINATION, pins=PINS)


def prepare(
    world: World, authority: WeeklyAuthority, ruling: Ruling | None = None, task: WeeklyTask = TASK
) -> ScheduledDeliveryReceipt:
    artifact = bind(world, authority, task)
    artifact.finalize(artifact.claim(Mode.ENABLED), ruling or wins(Surface.WEEKLY), NOT_CANCELLED)
    return authority.receipt(task)


def load(authority: WeeklyAuthority, receipt: ScheduledDeliveryReceipt) -> PinnedScheduledDelivery:
    return authority.load_prepared_customer_task_delivery(receipt, **CURRENT)

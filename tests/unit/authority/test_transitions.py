"""Every state with every event, on the tables and on the authorities: illegal ones raise and append nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kexpr.attempt import Cancellation, Ruling, Ticket
from kexpr.authority.adaptive import AdaptiveAuthority
from kexpr.authority.adaptive_records import PendingCardV2
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.diagram import render
from kexpr.authority.recovery import Absent, Durable, InFlight
from kexpr.authority.transitions import (
    ADAPTIVE,
    DAILY,
    MACHINES,
    WEEKLY,
    AdaptiveEvent,
    AdaptiveState,
    DailyEvent,
    DailyState,
    Machine,
    WeeklyEvent,
    WeeklyState,
)
from kexpr.authority.weekly import ScheduledDeliveryReceipt, WeeklyAuthority
from kexpr.clock import Lease
from kexpr.codes import Mode, Outcome, Surface
from kexpr.errors import ClaimRefused, IllegalTransition
from tests.unit.authority.support import (
    BINDING,
    CANONICAL,
    DESTINATION,
    EVENT,
    LOST,
    PINS,
    TASK,
    World,
    origin,
)

STRANGER = Ticket("f" * 32, Mode.ENABLED, Lease(0, 0, None))
UNKNOWN_RECEIPT = ScheduledDeliveryReceipt(TASK.digest, "b", "t", "d", "r", "c")


def states_of(machine: Machine[Any, Any]) -> list[Any]:
    kind: Any = type(machine.initial)
    return list(kind)


def events_of(machine: Machine[Any, Any]) -> list[Any]:
    kind: Any = type(next(iter(machine.table[machine.initial])))
    return list(kind)


def reached_from(machine: Machine[Any, Any]) -> dict[Any, list[Any]]:
    """A shortest list of events to every state."""
    paths: dict[Any, list[Any]] = {machine.initial: []}
    queue = [machine.initial]
    for state in queue:
        for event, after in machine.table[state].items():
            if after not in paths:
                paths[after] = [*paths[state], event]
                queue.append(after)
    return paths


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_tables_are_total_reachable_and_without_cycles(machine: Machine[Any, Any]) -> None:
    order = states_of(machine)
    assert machine.table.keys() == set(order)
    assert {event for row in machine.table.values() for event in row} == set(events_of(machine))
    assert reached_from(machine).keys() == set(order)
    assert all(
        order.index(after) > order.index(state) for state, row in machine.table.items() for after in row.values()
    )


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_step_is_in_the_table_or_raises(machine: Machine[Any, Any]) -> None:
    for state in machine.table:
        for event in events_of(machine):
            if event in machine.table[state]:
                assert machine.step(state, event) is machine.table[state][event]
            else:
                with pytest.raises(IllegalTransition) as illegal:
                    machine.step(state, event)
                assert (illegal.value.state, illegal.value.event) == (state, event)


def test_the_specified_chains() -> None:
    assert list(DAILY.table) == ["absent", "claimed", "finalized"]
    assert WEEKLY.table[WeeklyState.PRESENTATION_CLAIMED].keys() == {WeeklyEvent.FINALIZE, WeeklyEvent.EXPIRE}
    assert set(WEEKLY.table[WeeklyState.PRESENTATION_CLAIMED].values()) == {WeeklyState.PREPARED}
    assert set(WEEKLY.table[WeeklyState.READY].values()) == {WeeklyState.PRESENTATION_CLAIMED, WeeklyState.PREPARED}
    assert list(WEEKLY.table[WeeklyState.PREPARED].values()) == [WeeklyState.SENDING]
    assert set(ADAPTIVE.table[AdaptiveState.CONSUMED].values()) == {
        AdaptiveState.PRESENTATION_CLAIMED,
        AdaptiveState.PUBLISH_PENDING,
    }
    assert list(ADAPTIVE.table[AdaptiveState.PUBLISH_PENDING].values()) == [AdaptiveState.PUBLISH_CLAIMED]
    assert list(ADAPTIVE.table[AdaptiveState.PUBLISH_CLAIMED].values()) == [AdaptiveState.PUBLISHED]


def test_the_page_is_what_the_tables_say() -> None:
    page = Path(__file__).parents[3] / "docs" / "state-machines.md"
    assert page.read_text("utf-8") == render()
    for machine in MACHINES:
        for state, row in machine.table.items():
            assert all(f"{state} --> {after}: {event}\n" in render() for event, after in row.items())


class DailyDriver:
    """Takes each event to the daily authority."""

    machine = DAILY

    def __init__(self, world: World) -> None:
        self.world = world
        self.authority: DailyAuthority = world.daily()
        self.ticket = STRANGER

    def do(self, event: DailyEvent) -> object:
        return {
            DailyEvent.CLAIM: self._claim,
            DailyEvent.FINALIZE: lambda: self._finalize(LOST),
            DailyEvent.EXPIRE: self._expire,
        }[event]()

    def _claim(self) -> None:
        self.ticket = self.authority.claim_finalized_presentation(EVENT, Mode.ENABLED)

    def _finalize(self, ruling: Ruling) -> object:
        return self.authority.finalize_finalized_presentation(EVENT, self.ticket, ruling, Cancellation())

    def _expire(self) -> object:
        self.world.clock.expire()
        return self.authority.expire_finalized_presentation(EVENT)

    def state(self) -> DailyState:
        found = self.authority.state(EVENT)
        if isinstance(found, Absent):
            return DailyState.ABSENT
        return DailyState.CLAIMED if isinstance(found, InFlight) else DailyState(found.state)


class WeeklyDriver:
    """Takes each event to the weekly authority."""

    machine = WEEKLY

    def __init__(self, world: World) -> None:
        self.world = world
        self.authority: WeeklyAuthority = world.weekly()
        self.artifact = self.authority.artifact(
            TASK, canonical_body=CANONICAL, destination=DESTINATION, current_pins=lambda: world.pins
        )
        self.ticket = STRANGER

    def do(self, event: WeeklyEvent) -> object:
        authority = self.authority
        calls: dict[WeeklyEvent, Callable[[], object]] = {
            WeeklyEvent.RESERVE: lambda: authority.reserve_customer_task_delivery(
                TASK, body=CANONICAL, destination=DESTINATION, pins=PINS
            ),
            WeeklyEvent.CLAIM: self._claim,
            WeeklyEvent.FINALIZE: lambda: self.artifact.finalize(self.ticket, LOST, Cancellation()),
            WeeklyEvent.EXPIRE: self._expire,
            WeeklyEvent.MARK_SENDING: lambda: authority.mark_customer_task_sending(self._receipt()),
            WeeklyEvent.MARK_DELIVERED: lambda: authority.mark_customer_task_delivered(self._receipt()),
            WeeklyEvent.MARK_UNKNOWN: lambda: authority.mark_customer_task_unknown(self._receipt()),
            WeeklyEvent.MARK_ABANDONED: lambda: authority.mark_customer_task_abandoned(self._receipt()),
            WeeklyEvent.MARK_SENT_AUDITED: lambda: authority.mark_customer_task_sent_audited(self._receipt()),
        }
        return calls[event]()

    def _claim(self) -> None:
        self.ticket = self.artifact.claim(Mode.ENABLED)

    def _expire(self) -> object:
        self.world.clock.expire()
        return self.authority.expire_customer_task_presentation(TASK)

    def _receipt(self) -> ScheduledDeliveryReceipt:
        if self.state() in (WeeklyState.READY, WeeklyState.PRESENTATION_CLAIMED):
            with pytest.raises(IllegalTransition):
                self.authority.receipt(TASK)
            return (
                self.authority._tasks[TASK.digest].receipt if TASK.digest in self.authority._tasks else UNKNOWN_RECEIPT
            )
        return self.authority.receipt(TASK)

    def state(self) -> WeeklyState:
        found = self.authority.state(TASK)
        if isinstance(found, Absent):
            return WeeklyState.READY
        return WeeklyState.PRESENTATION_CLAIMED if isinstance(found, InFlight) else WeeklyState(found.state)


class AdaptiveDriver:
    """Takes each event to the adaptive authority."""

    machine = ADAPTIVE

    def __init__(self, world: World) -> None:
        self.world = world
        self.authority: AdaptiveAuthority = world.adaptive()
        self.artifact = self.authority.artifact(
            origin(), canonical_payload=CANONICAL, surface=Surface.ADAPTIVE_PHYSIQUE, binding_digest=BINDING
        )
        self.ticket = STRANGER

    def do(self, event: AdaptiveEvent) -> object:
        authority = self.authority
        calls: dict[AdaptiveEvent, Callable[[], object]] = {
            AdaptiveEvent.MARK_PUBLISH_PENDING: lambda: authority.mark_publish_pending(origin(), payload=CANONICAL),
            AdaptiveEvent.CLAIM: self._claim,
            AdaptiveEvent.FINALIZE: lambda: self.artifact.finalize(self.ticket, LOST, Cancellation()),
            AdaptiveEvent.EXPIRE: self._expire,
            AdaptiveEvent.MARK_PUBLISH_CLAIMED: lambda: authority.mark_publish_claimed(origin()),
            AdaptiveEvent.MARK_PUBLISHED: lambda: authority.mark_published(origin()),
        }
        return calls[event]()

    def _claim(self) -> None:
        self.ticket = self.artifact.claim(Mode.ENABLED)

    def _expire(self) -> object:
        self.world.clock.expire()
        return self.authority.recover(origin())

    def state(self) -> AdaptiveState:
        found = self.authority.state(origin())
        if isinstance(found, Absent):
            return AdaptiveState.CONSUMED
        return AdaptiveState.PRESENTATION_CLAIMED if isinstance(found, InFlight) else AdaptiveState(found.state)


DRIVERS: tuple[Any, ...] = (DailyDriver, WeeklyDriver, AdaptiveDriver)
PAIRS = [
    pytest.param(driver, path, state, event, id=f"{driver.machine.name}-{state}-{event}")
    for driver in DRIVERS
    for state, path in reached_from(driver.machine).items()
    for event in events_of(driver.machine)
]

SETTLED = {"finalize", "expire"}
"""Asked again, these answer with what is durable instead of raising; they append nothing."""


@pytest.mark.parametrize(("driver_type", "path", "state", "event"), PAIRS)
def test_every_event_in_every_state(
    memory_world: World, driver_type: Any, path: list[Any], state: Any, event: Any
) -> None:
    driver = driver_type(memory_world)
    for step in path:
        driver.do(step)
    assert driver.state() == state
    rows = memory_world.store.records()
    after = driver.machine.table[state].get(event)
    if after is not None:
        driver.do(event)
        assert driver.state() == after
        assert len(memory_world.store.records()) == len(rows) + 1
        return
    if event == "claim":
        with pytest.raises(ClaimRefused):
            driver.do(event)
    elif event in SETTLED and (event == "expire" or driver.ticket is not STRANGER):
        driver.do(event)
    else:
        with pytest.raises(IllegalTransition):
            driver.do(event)
    assert driver.state() == state
    assert memory_world.store.records() == rows


@pytest.mark.parametrize("driver_type", DRIVERS)
def test_a_restart_finds_every_state_again(world: World, driver_type: Any) -> None:
    for number, path in enumerate(reached_from(driver_type.machine).values()):
        fresh = World(type(world.store)(world.clock, _beside(world, number)))
        driver = driver_type(fresh)
        for step in path:
            driver.do(step)
        again = driver_type(fresh)
        assert again.state() == driver.state()
        fresh.store.close()


def _beside(world: World, name: int) -> Path | None:
    directory = world.store._directory
    return directory.with_name(f"beside-{name}") if directory else None


def test_no_row_of_a_card_carries_a_shadow_text(memory_world: World) -> None:
    driver = AdaptiveDriver(memory_world)
    driver.do(AdaptiveEvent.CLAIM)
    driver.do(AdaptiveEvent.FINALIZE)
    last = memory_world.store.records()[-1]
    assert last.keys() == set(PendingCardV2.__dataclass_fields__)
    assert (last["payload"], last["outcome"]) == (CANONICAL, Outcome.CANONICAL_PROVIDER_ERROR)
    assert isinstance(driver.authority.recover(origin()), Durable)

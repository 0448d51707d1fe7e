"""The weekly authority after `prepared`: one sender, tombstones, stops that stay."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kexpr import failpoints
from kexpr.attempt import Ticket
from kexpr.authority.records import digest_of
from kexpr.authority.recovery import Absent, Durable
from kexpr.authority.weekly import (
    PinnedScheduledDelivery,
    ScheduledDeliveryReceipt,
    WeeklyAuthority,
)
from kexpr.codes import Mode, Outcome, Surface
from kexpr.errors import ClaimRefused, HardStop, IllegalTransition, StoreFault
from kexpr.ledger.tombstones import Mark, Tombstones
from kexpr.testing.memory_ledger import Fault
from tests.unit.authority.support import (
    CANONICAL,
    DESTINATION,
    LOST,
    PINS,
    SELECTED,
    TASK,
    World,
    wins,
)
from tests.unit.authority.weekly_support import CURRENT, LEASE, NOT_CANCELLED, OTHER_TASK, bind, load, prepare, reserve


class Crash(BaseException):
    """What a failpoint raises where a process would die."""


@pytest.fixture
def crash_at() -> Iterator[Callable[[str], None]]:
    def install(name: str) -> None:
        def hook(reached: str) -> None:
            if reached == name:
                raise Crash

        failpoints.install(hook)

    yield install
    failpoints.install(None)


def test_one_sender_among_processes(world: World) -> None:
    first, second = world.weekly(), world.weekly()
    receipt = prepare(world, first)
    assert load(first, receipt).body == load(second, receipt).body == SELECTED
    first.mark_customer_task_sending(receipt)
    with pytest.raises(IllegalTransition):
        second.mark_customer_task_sending(receipt)
    with pytest.raises(IllegalTransition):
        load(second, receipt)
    second.mark_customer_task_unknown(receipt)
    first.mark_customer_task_sent_audited(receipt)
    assert second.recover(TASK) == Durable(Outcome.SELECTED, None, "sent_audited")


def test_the_loader_gives_exact_material_and_writes_nothing(world: World) -> None:
    receipt = prepare(world, world.weekly())
    rows, marks = world.store.records(), set(world.marks.made)
    assert load(world.weekly(), receipt) == PinnedScheduledDelivery(
        SELECTED,
        DESTINATION,
        digest_of(SELECTED),
        digest_of(CANONICAL),
        "template-pin",
        "destination-pin",
        "registry-pin",
        "config-pin",
        Outcome.SELECTED,
    )
    assert (world.store.records(), world.marks.made) == (rows, marks)


@pytest.mark.parametrize("pin", list(CURRENT))
def test_the_loader_stops_on_a_changed_pin(world: World, pin: str) -> None:
    authority = world.weekly()
    receipt = prepare(world, authority)
    with pytest.raises(HardStop) as stopped:
        authority.load_prepared_customer_task_delivery(receipt, **{**CURRENT, pin: "moved"})
    assert stopped.value.code is StoreFault.PIN_CHANGED
    with pytest.raises(HardStop):
        load(authority, receipt)
    assert load(world.weekly(), receipt).body == SELECTED


@pytest.mark.parametrize("field", [f.name for f in fields(ScheduledDeliveryReceipt) if f.name != "task_digest"])
@pytest.mark.parametrize("step", ["load", "sending", "delivered"])
def test_a_receipt_of_something_else_stops(world: World, field: str, step: str) -> None:
    authority = world.weekly()
    receipt = prepare(world, authority)
    if step == "delivered":
        authority.mark_customer_task_sending(receipt)
    rows, marks = world.store.records(), set(world.marks.made)
    forged = replace(receipt, **{field: "moved"})
    calls = {
        "load": load,
        "sending": WeeklyAuthority.mark_customer_task_sending,
        "delivered": WeeklyAuthority.mark_customer_task_delivered,
    }
    with pytest.raises(HardStop) as stopped:
        calls[step](authority, forged)
    assert stopped.value.code is StoreFault.PIN_CHANGED
    assert (world.store.records(), world.marks.made) == (rows, marks)


def test_the_loader_refuses_what_is_not_prepared(world: World) -> None:
    authority = world.weekly()
    receipt = prepare(world, authority)
    with pytest.raises(IllegalTransition):
        load(authority, replace(receipt, task_digest=OTHER_TASK.digest))
    bind(world, authority, OTHER_TASK).claim(Mode.ENABLED)
    with pytest.raises(IllegalTransition):
        load(authority, replace(receipt, task_digest=OTHER_TASK.digest))
    for state, mark in {
        "sending": authority.mark_customer_task_sending,
        "unknown": authority.mark_customer_task_unknown,
        "sent_audited": authority.mark_customer_task_sent_audited,
    }.items():
        mark(receipt)
        with pytest.raises(IllegalTransition) as illegal:
            load(authority, receipt)
        assert illegal.value.state == state


def test_the_loader_stops_without_the_ready_fence(world: World) -> None:
    authority = world.weekly()
    receipt = prepare(world, authority)
    world.is_ready = False
    with pytest.raises(HardStop) as stopped:
        load(authority, receipt)
    assert stopped.value.code is StoreFault.NOT_READY
    with pytest.raises(HardStop):
        world.weekly().mark_customer_task_sending(receipt)
    assert (TASK.digest, Mark.SENDING) not in world.marks.made


def test_marks_come_before_their_rows(memory_world: World, reached: list[str]) -> None:
    authority = memory_world.weekly()
    receipt = prepare(memory_world, authority)
    authority.mark_customer_task_sending(receipt)
    authority.mark_customer_task_delivered(receipt)
    steps = ("tombstone_claimed", "claim", "finalize", "tombstone_sending", "mark_sending", "mark_delivered")
    assert reached == [f"weekly.{step}.{when}" for step in steps for when in ("before", "after")]


@pytest.mark.parametrize("point", ["weekly.tombstone_claimed.after", "weekly.claim.before"])
def test_claimed_mark_with_a_ledger_still_ready(world: World, point: str, crash_at: Callable[[str], None]) -> None:
    crash_at(point)
    with pytest.raises(Crash):
        bind(world, world.weekly()).claim(Mode.ENABLED)
    failpoints.install(None)
    restarted = world.weekly()
    assert restarted.recover(TASK) == Absent()
    artifact = bind(world, restarted)
    assert not artifact.is_fresh()
    with pytest.raises(ClaimRefused):
        artifact.claim(Mode.ENABLED)
    assert world.store.rows() == []
    receipt = reserve(restarted)
    assert load(restarted, receipt).body == CANONICAL
    restarted.mark_customer_task_sending(receipt)


def test_an_older_ledger_that_forgot_a_claim(memory_world: World) -> None:
    prepare(memory_world, memory_world.weekly())
    memory_world.store.memory.lines.clear()
    restarted = memory_world.weekly()
    with pytest.raises(ClaimRefused):
        bind(memory_world, restarted).claim(Mode.ENABLED)
    reserve(restarted)
    assert restarted.recover(TASK) == Durable(None, CANONICAL, "prepared")


@pytest.mark.parametrize("rows_left", [0, 1, 2])
def test_an_older_ledger_that_forgot_a_send(memory_world: World, rows_left: int) -> None:
    authority = memory_world.weekly()
    receipt = prepare(memory_world, authority)
    authority.mark_customer_task_sending(receipt)
    del memory_world.store.memory.lines[rows_left:]
    memory_world.clock.expire()
    rows = memory_world.store.records()
    steps: list[Callable[[WeeklyAuthority], object]] = [
        lambda process: process.recover(TASK),
        lambda process: process.state(TASK),
        lambda process: process.is_fresh(TASK),
        lambda process: process.receipt(TASK),
        lambda process: bind(memory_world, process).claim(Mode.ENABLED),
        lambda process: bind(memory_world, process).finalize(
            Ticket("f" * 32, Mode.ENABLED, LEASE), LOST, NOT_CANCELLED
        ),
        reserve,
        lambda process: load(process, receipt),
        lambda process: process.mark_customer_task_sending(receipt),
        lambda process: process.mark_customer_task_delivered(receipt),
    ]
    for step in steps:
        with pytest.raises(HardStop) as stopped:
            step(memory_world.weekly())
        assert stopped.value.code is StoreFault.TOMBSTONE_AHEAD
    assert memory_world.store.records() == rows


@pytest.mark.parametrize("point", ["weekly.tombstone_sending.after", "weekly.mark_sending.before"])
def test_a_crash_between_the_sending_mark_and_its_row_stops(
    world: World, point: str, crash_at: Callable[[str], None]
) -> None:
    authority = world.weekly()
    receipt = prepare(world, authority)
    crash_at(point)
    with pytest.raises(Crash):
        authority.mark_customer_task_sending(receipt)
    failpoints.install(None)
    with pytest.raises(HardStop) as stopped:
        world.weekly().recover(TASK)
    assert stopped.value.code is StoreFault.TOMBSTONE_AHEAD


@pytest.mark.parametrize("step", [load, WeeklyAuthority.mark_customer_task_sending])
def test_lost_tombstones_show(
    world: World, step: Callable[[WeeklyAuthority, ScheduledDeliveryReceipt], object]
) -> None:
    receipt = prepare(world, world.weekly())
    world.marks.made.clear()
    with pytest.raises(HardStop) as stopped:
        step(world.weekly(), receipt)
    assert stopped.value.code is StoreFault.TOMBSTONE_MISSING


def claim(world: World, authority: WeeklyAuthority) -> object:
    return bind(world, authority).claim(Mode.ENABLED)


def finalize(world: World, authority: WeeklyAuthority) -> object:
    ticket = bind(world, authority).claim(Mode.ENABLED)
    world.store.memory.next_fault = Fault.AFTER_WRITE
    return bind(world, authority).finalize(ticket, wins(Surface.WEEKLY), NOT_CANCELLED)


def sending(world: World, authority: WeeklyAuthority) -> object:
    receipt = prepare(world, authority)
    world.store.memory.next_fault = Fault.BEFORE_WRITE
    authority.mark_customer_task_sending(receipt)
    return receipt


@pytest.mark.parametrize("step", [claim, finalize, sending])
def test_a_ledger_failure_stops_everything_and_stays(
    memory_world: World, step: Callable[[World, WeeklyAuthority], object]
) -> None:
    authority = memory_world.weekly()
    memory_world.store.memory.next_fault = Fault.BEFORE_WRITE if step is claim else None
    with pytest.raises(HardStop) as stopped:
        step(memory_world, authority)
    assert stopped.value.code is StoreFault.INPUT_OUTPUT
    rows = memory_world.store.records()
    for task in (TASK, OTHER_TASK):
        for again in (authority.recover, authority.is_fresh, authority.receipt, lambda t: reserve(authority, t)):
            with pytest.raises(HardStop):
                again(task)
    with pytest.raises(HardStop):
        authority.expire_outstanding()
    assert memory_world.store.records() == rows


@pytest.mark.parametrize("mark", Mark)
def test_a_mark_that_is_not_durable_stops_everything_and_takes_no_step(memory_world: World, mark: Mark) -> None:
    authority = memory_world.weekly()
    receipt = prepare(memory_world, authority) if mark is Mark.SENDING else None
    rows = memory_world.store.records()
    memory_world.marks.fails = True
    with pytest.raises(HardStop) as stopped:
        if receipt:
            authority.mark_customer_task_sending(receipt)
        else:
            claim(memory_world, authority)
    assert stopped.value.code is StoreFault.INPUT_OUTPUT
    memory_world.marks.fails = False
    for task in (TASK, OTHER_TASK):
        with pytest.raises(HardStop):
            authority.recover(task)
    assert memory_world.store.records() == rows


def test_a_text_that_cannot_be_stored_stops_its_task_alone(world: World) -> None:
    authority = world.weekly()
    with pytest.raises(HardStop) as stopped:
        authority.reserve_customer_task_delivery(TASK, body="\ud800", destination=DESTINATION, pins=PINS)
    assert stopped.value.code is StoreFault.ROW_INVALID
    with pytest.raises(HardStop):
        authority.recover(TASK)
    reserve(authority, OTHER_TASK)
    assert len(world.store.rows()) == 1


def test_a_pin_stop_is_of_its_task_alone(world: World) -> None:
    authority = world.weekly()
    receipt, other = prepare(world, authority), prepare(world, authority, task=OTHER_TASK)
    with pytest.raises(HardStop):
        authority.load_prepared_customer_task_delivery(receipt, **{**CURRENT, "expected_config_digest": "moved"})
    with pytest.raises(HardStop):
        authority.mark_customer_task_sending(receipt)
    authority.mark_customer_task_sending(other)


# --- on the disk --------------------------------------------------------------------------------------------------


def test_both_marks_hold_on_the_disk(disk_world: World, tmp_path: Path) -> None:
    world = disk_world
    marks = Tombstones.open(tmp_path / "tombstones")

    def process() -> WeeklyAuthority:
        return WeeklyAuthority(world.store.opener, marks, lambda _: True)

    receipt = prepare(world, process())
    assert marks.marks(TASK.digest) == {Mark.CLAIMED}
    older = {path: path.read_bytes() for path in (tmp_path / "ledger").glob("*.jsonl")}
    process().mark_customer_task_sending(receipt)
    assert marks.marks(TASK.digest) == {Mark.CLAIMED, Mark.SENDING}
    assert process().recover(TASK) == Durable(Outcome.SELECTED, None, "sending")
    for path, content in older.items():
        path.write_bytes(content)
    for step in (lambda: process().recover(TASK), lambda: load(process(), receipt)):
        with pytest.raises(HardStop) as stopped:
            step()
        assert stopped.value.code is StoreFault.TOMBSTONE_AHEAD
    marks.close()

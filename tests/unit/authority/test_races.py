"""Threads and processes that want the same step: one gets it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest

from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ticket
from kexpr.authority.weekly import WeeklyTask
from kexpr.codes import Mode, Outcome, Surface
from kexpr.errors import ClaimRefused, IllegalTransition
from tests.unit.authority import adaptive_support, weekly_support
from tests.unit.authority.support import EVENT, TASK, World, origin, wins

T = TypeVar("T")

THREADS = 6
ROUNDS = 5


def together(calls: list[Callable[[], object]]) -> list[object]:
    """Run the calls at once; a refusal is None."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return call()
        except (ClaimRefused, IllegalTransition):
            return None

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def artifacts(world: World, name: str, number: int) -> list[ArtifactAuthority]:
    """The same artifact bound in two processes."""
    if name == "daily":
        world.events.add(f"{EVENT} {number}")
        return [world.daily().artifact(f"{EVENT} {number}") for _ in range(2)]
    if name == "weekly":
        task = WeeklyTask(f"{TASK.identity} {number}")
        return [weekly_support.bind(world, world.weekly(), task) for _ in range(2)]
    card = origin(session=f"session {number}")
    return [adaptive_support.bind(world.adaptive(), card) for _ in range(2)]


@pytest.mark.parametrize("name", ["daily", "weekly", "adaptive"])
@pytest.mark.parametrize("number", range(ROUNDS))
def test_one_ticket_and_one_end(disk_world: World, name: str, number: int) -> None:
    surface = {"daily": Surface.DAILY, "weekly": Surface.WEEKLY, "adaptive": Surface.ADAPTIVE_PHYSIQUE}[name]
    bound = artifacts(disk_world, name, number) * (THREADS // 2)
    claimed = together([partial(artifact.claim, Mode.ENABLED) for artifact in bound])
    (ticket,) = (ticket for ticket in claimed if isinstance(ticket, Ticket))
    ended = together([partial(artifact.finalize, ticket, wins(surface), Cancellation()) for artifact in bound])
    assert all(isinstance(final, Finalized) and final.outcome is Outcome.SELECTED for final in ended)
    bodies = [final.body for final in ended if isinstance(final, Finalized) and final.body]
    assert len(bodies) == (1 if name == "daily" else THREADS)
    assert len(disk_world.store.rows()) == 2


@pytest.mark.parametrize("number", range(ROUNDS))
def test_one_sender(disk_world: World, number: int) -> None:
    senders = [disk_world.weekly(), disk_world.weekly()] * (THREADS // 2)
    receipt = weekly_support.reserve(senders[0], WeeklyTask(f"task {number}"))
    sent = together([partial(done, process.mark_customer_task_sending, receipt) for process in senders])
    assert sent.count(True) == 1


@pytest.mark.parametrize("number", range(ROUNDS))
def test_one_editor(disk_world: World, number: int) -> None:
    editors = [disk_world.adaptive(), disk_world.adaptive()] * (THREADS // 2)
    card = origin(session=f"session {number}")
    editors[0].mark_publish_pending(card, payload="text")
    edited = together([partial(done, process.mark_publish_claimed, card) for process in editors])
    assert edited.count(True) == 1


def done(step: Callable[[T], None], subject: T) -> bool:
    step(subject)
    return True

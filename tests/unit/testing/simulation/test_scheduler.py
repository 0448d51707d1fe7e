"""Tasks run one at a time, in the order in which they are resumed; the dead do nothing more."""

import pytest

from kexpr.testing.simulation.host import CooperativeLocks
from kexpr.testing.simulation.scheduler import Died, Process, Scheduler


def test_a_task_runs_from_step_to_step() -> None:
    seen: list[str] = []
    scheduler = Scheduler(seen.append)

    def call() -> None:
        for name in ("a", "b", "c"):
            scheduler.step(name)
            seen.append(name.upper())

    task = scheduler.spawn("t", Process(1, 1), call)
    assert seen == []
    scheduler.resume(task)
    assert seen == ["a"]
    scheduler.resume(task)
    assert seen == ["a", "A", "b"]
    scheduler.resume(task, budget=10)
    assert seen == ["a", "A", "b", "B", "c", "C"]
    assert task.done
    assert scheduler.tasks == []


def test_a_killed_process_does_nothing_more_not_even_in_its_cleanup() -> None:
    done: list[str] = []
    scheduler = Scheduler(lambda _name: None)
    process = Process(1, 1)

    def call() -> None:
        try:
            scheduler.step("before")
            done.append("effect")
        finally:
            scheduler.step("cleanup")
            done.append("cleanup")

    task = scheduler.spawn("t", process, call)
    scheduler.resume(task)
    scheduler.kill(process)
    assert done == []
    assert task.done
    assert task.error is None


def test_what_a_task_raises_is_kept() -> None:
    scheduler = Scheduler(lambda _name: None)

    def call() -> None:
        raise ValueError("mine")

    task = scheduler.spawn("t", Process(1, 1), call)
    scheduler.resume(task)
    assert isinstance(task.error, ValueError)


def test_who_waits_or_is_excluded_is_not_runnable() -> None:
    scheduler = Scheduler(lambda _name: None)
    process = Process(1, 1)
    is_open = False

    def holder() -> None:
        scheduler.exclude(True)
        scheduler.step("held")
        scheduler.exclude(False)
        scheduler.step("after")

    waiter = scheduler.spawn("waits", Process(2, 2), lambda: scheduler.wait(lambda: is_open))
    excluder = scheduler.spawn("holds", process, holder)
    other = scheduler.spawn("other", process, lambda: scheduler.step("other"))
    scheduler.resume(waiter)
    scheduler.resume(excluder)
    assert scheduler.runnable() == [excluder]
    scheduler.resume(excluder)
    assert scheduler.runnable() == [excluder, other]
    is_open = True
    assert waiter in scheduler.runnable()
    for process_to_end in (process, waiter.process):
        scheduler.kill(process_to_end)
    assert scheduler.tasks == []


def test_the_dead_let_go_of_their_locks() -> None:
    scheduler = Scheduler(lambda _name: None)
    locks = CooperativeLocks(scheduler)
    first, second = Process(1, 1), Process(2, 2)
    got: list[int] = []

    def hold(process: Process) -> None:
        with locks.of(process).hold("daily", "m"):
            got.append(process.number)
            scheduler.step("held")

    scheduler.resume(scheduler.spawn("first", first, lambda: hold(first)), budget=1)
    waiting = scheduler.spawn("second", second, lambda: hold(second))
    scheduler.resume(waiting, budget=1)
    assert got == [1]
    assert scheduler.runnable() == [task for task in scheduler.tasks if task.process is first]
    scheduler.kill(first)
    locks.release(first)
    scheduler.resume(waiting)
    assert got == [1, 2]
    scheduler.kill(second)


def test_without_a_task_a_step_is_nothing_and_a_wait_must_not_be_needed() -> None:
    scheduler = Scheduler(lambda _name: pytest.fail("no task runs"))
    scheduler.step("s")
    scheduler.wait(lambda: True)
    with pytest.raises(RuntimeError):
        scheduler.wait(lambda: False)
    assert not issubclass(Died, Exception)

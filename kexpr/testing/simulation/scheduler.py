"""Tasks of simulated processes, exactly one of which runs at a time.

A task is a thread that runs until its next step and then hands the baton back, so that the order of all that happens
is the scheduler's choice and nothing else. A dead process ends by `Died`, raised at each step its tasks still try.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Died", "Process", "Scheduler", "Task"]


class Died(BaseException):
    """The process ends here: nothing that it would have done next happens."""


@dataclass(eq=False)
class Process:
    """One incarnation of a gateway process. `slot` is its place among the gateways, `number` its own for ever."""

    slot: int
    number: int
    dead: bool = False
    exclusive: "Task | None" = None
    """The task that holds an in-process mutex, which blocks for real: no other task of the process may run then."""


@dataclass(eq=False)
class Task:
    """One call in one process."""

    name: str
    process: Process
    call: Callable[[], None] = field(repr=False)
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0), repr=False)
    budget: int = 0
    waiting: Callable[[], bool] | None = field(default=None, repr=False)
    done: bool = False
    error: BaseException | None = field(default=None, repr=False)


class Scheduler:
    """`on_step(name)` is called at every step, by whichever task runs, and may raise."""

    def __init__(self, on_step: Callable[[str], None]) -> None:
        self._on_step = on_step
        self._back = threading.Semaphore(0)
        self.current: Task | None = None
        self.tasks: list[Task] = []

    def spawn(self, name: str, process: Process, call: Callable[[], None]) -> Task:
        task = Task(name, process, call)
        self.tasks.append(task)
        threading.Thread(target=self._run, args=(task,), daemon=True).start()
        return task

    def runnable(self) -> list[Task]:
        return [task for task in self.tasks if self._may_run(task)]

    def resume(self, task: Task, budget: int = 0) -> None:
        """Let the task run on until it has taken `budget` more steps, waits or ends."""
        task.budget = budget
        self.current = task
        task.baton.release()
        self._back.acquire()
        self.current = None
        if task.done:
            self.tasks.remove(task)

    def finish(self, task: Task) -> None:
        """Run the task, and whoever it waits for, to its end."""
        while not task.done:
            ready = [task] if self._may_run(task) else self.runnable()
            if not ready:
                raise RuntimeError("deadlock")
            self.resume(ready[0], budget=50)

    def kill(self, process: Process) -> None:
        """End a process at once; its tasks unwind without effect."""
        process.dead = True
        process.exclusive = None
        for task in [task for task in self.tasks if task.process is process]:
            self.resume(task)

    def step(self, name: str) -> None:
        """Called before everything that has an effect."""
        task = self._alive()
        if task is None:
            return
        self._on_step(name)
        if task.budget > 0:
            task.budget -= 1
        else:
            self._hand_back(task)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until `condition` holds; whoever is resumed first may take what it stands for, without another step."""
        task = self._alive()
        while not condition():
            if task is None:
                raise RuntimeError("nobody else can run")
            task.waiting = condition
            self._hand_back(task)
            task.waiting = None

    def exclude(self, is_held: bool) -> None:
        """Note that the running task begins or ends to hold its process's mutex."""
        if self.current is not None:
            self.current.process.exclusive = self.current if is_held else None

    def is_dying(self) -> bool:
        return self.current is not None and self.current.process.dead

    def _alive(self) -> Task | None:
        task = self.current
        if task is not None and task.process.dead:
            raise Died
        return task

    def _hand_back(self, task: Task) -> None:
        self._back.release()
        task.baton.acquire()
        if task.process.dead:
            raise Died

    def _may_run(self, task: Task) -> bool:
        if task.process.exclusive not in (None, task):
            return False
        return task.waiting is None or task.waiting()

    def _run(self, task: Task) -> None:
        task.baton.acquire()
        try:
            if not task.process.dead:
                task.call()
        except Died:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the world, which fails on it
            task.error = error
        if task.process.exclusive is task:
            task.process.exclusive = None
        task.done = True
        self._back.release()

"""The host: what it shows, and what it answers when the library asks. Its own store survives every crash."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kexpr.attempt import Cancellation
from kexpr.authority.adaptive import CardPresentationOrigin
from kexpr.authority.weekly import Pins
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.testing.simulation.invariants import Actor, Message
from kexpr.testing.simulation.scheduler import Process, Scheduler

__all__ = ["SESSION", "CooperativeLocks", "Failure", "Host", "HostFailed", "Tap"]

SESSION: Final = ("session",)
"""The lock that is the host's own, not a publication lock."""


class HostFailed(Exception):
    """The messenger said no, or did not say."""


class Failure(StrEnum):
    """Where a delivery fails: before it took effect, or after."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(eq=False)
class Tap:
    """One call of a path for one message, and what the host said to it so far."""

    message: Message
    flag: Cancellation
    actor: Actor
    is_first_save: bool = True


class Host:
    """`tap()` is the running one; `on_shown` sees each text as it becomes visible."""

    def __init__(self, scheduler: Scheduler, tap: Callable[[], Tap | None]) -> None:
        self._scheduler = scheduler
        self._tap = tap
        self.on_shown: Callable[[str], None] = lambda text: None
        self.failures: list[Failure] = []
        self.revisions: dict[str, int] = defaultdict(int)
        """By pinned thing: each change of it is another digest."""
        self.consumed: dict[str, bool] = defaultdict(lambda: True)
        """By session: whether its card is fresh."""
        self.fenced = False
        self.written: dict[str, dict[str, str]] = defaultdict(dict)
        """Selected bodies of the journal's artifacts, by message and attempt."""

    def write(self, message: str, attempt_id: str, body: str) -> None:
        """The durable writer of the journal's host: may fail before it has taken effect, or after."""
        self._scheduler.step("write body")
        failure = self.failures.pop() if self.failures else None
        if failure is Failure.BEFORE:
            raise HostFailed
        self.written[message][attempt_id] = body
        self._scheduler.step("body written")
        if failure is Failure.AFTER:
            raise HostFailed

    def deliver(self, text: str) -> None:
        """Edit or send: from `on_shown` on, people see it."""
        self._scheduler.step("deliver")
        failure = self.failures.pop() if self.failures else None
        if failure is Failure.BEFORE:
            raise HostFailed
        self.on_shown(text)
        self._scheduler.step("delivered")
        if failure is Failure.AFTER:
            raise HostFailed

    def pins(self, task: str) -> Pins:
        destination, registry, config = (self._digest(name, task) for name in ("destination", "registry", "config"))
        tap = self._tap()
        if tap is not None:
            tap.actor = _with(tap.actor, pins=(registry, config, destination))
        return Pins(destination, registry, config, self._digest("template", task))

    def is_ready(self, _task_digest: str) -> bool:
        return not self.fenced

    def is_just_consumed(self, origin: CardPresentationOrigin) -> bool:
        fresh = self.consumed[origin.source_session_id]
        self._note_binding(origin, fresh)
        return fresh

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        return self.binding(origin.source_session_id)

    def binding(self, session: str) -> str:
        return self._digest("binding", session)

    def _note_binding(self, origin: CardPresentationOrigin, fresh: bool) -> None:
        tap = self._tap()
        if tap is not None:
            tap.actor = _with(tap.actor, bound_to=self.binding(origin.source_session_id) if fresh else "stale")

    def _digest(self, name: str, identity: str) -> str:
        return hashlib.sha256(f"{name}/{identity}/{self.revisions[f'{name}/{identity}']}".encode()).hexdigest()


def _with(actor: Actor, *, pins: tuple[str, ...] | None = None, bound_to: str | None = None) -> Actor:
    return Actor(actor.mode, actor.was_stopped, pins or actor.pins, bound_to or actor.bound_to)


@dataclass
class CooperativeLocks:
    """Locks by name that the dead let go of: the publication locks, and the host's session lock."""

    scheduler: Scheduler
    owners: dict[tuple[str, ...], Process] = field(default_factory=dict)
    failures: int = 0
    """So many of the next publication locks fail with an I/O error."""
    have_failed: bool = False

    def of(self, process: Process) -> "_ProcessLocks":
        return _ProcessLocks(self, process)

    def release(self, process: Process) -> None:
        for name in [name for name, owner in self.owners.items() if owner is process]:
            del self.owners[name]


@dataclass(frozen=True)
class _ProcessLocks:
    """`kexpr.paths.locks.PublicationLocks` of one process."""

    locks: CooperativeLocks
    process: Process

    def among_threads(self, *message: str) -> AbstractContextManager[None]:
        return self._hold((str(id(self.process)), *message))

    def hold(self, *message: str) -> AbstractContextManager[None]:
        if self.locks.failures and message != SESSION:
            self.locks.failures -= 1
            self.locks.have_failed = True
            raise LedgerFailed(StoreFault.INPUT_OUTPUT)
        return self._hold(message)

    @contextmanager
    def _hold(self, name: tuple[str, ...]) -> Iterator[None]:
        scheduler, owners = self.locks.scheduler, self.locks.owners
        scheduler.step("lock")
        scheduler.wait(lambda: name not in owners)
        owners[name] = self.process
        try:
            yield
        finally:
            if not self.process.dead:
                del owners[name]

    def close(self) -> None:
        """Nothing is open."""

"""A site: the simulated parts put together, the gateways on it, their taps, and the checks at every step."""

import os
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from unittest import mock

from kexpr import failpoints
from kexpr.attempt import Cancellation
from kexpr.clock import Clock
from kexpr.codes import Surface
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger import maintenance
from kexpr.ledger.journal import JOURNAL_NAME
from kexpr.paths.locks import PublicationLocks
from kexpr.stores import LEDGERS
from kexpr.testing.simulation.clock import MachineClock, ProcessClock
from kexpr.testing.simulation.disk import Disk, DiskFaults, ProcessFiles
from kexpr.testing.simulation.gateway import STATE, Gateway, Presentation, Settings, Subject, message_of
from kexpr.testing.simulation.host import SESSION, CooperativeLocks, Host, Tap
from kexpr.testing.simulation.invariants import (
    JOURNAL,
    JOURNAL_KINDS,
    RULES,
    Actor,
    InvariantBroken,
    Invariants,
    Kind,
    Line,
    parse,
)
from kexpr.testing.simulation.journal import JOURNAL_HOME, LEASE_PREFIX, JournalGateway, is_alive
from kexpr.testing.simulation.provider import BEHAVIOURS, Clients, Provider
from kexpr.testing.simulation.scheduler import Process, Scheduler, Task

__all__ = ["REPLAYED", "Scenery", "Site", "Slot"]

DAY_MS: Final = 86_400_000
_SETTLING_TAPS: Final = 3


@dataclass(frozen=True, slots=True)
class Scenery:
    """What is said: the presentation of a message, and the text that a model answers to a wire request."""

    presentation: Callable[[Surface, str], Presentation]
    answer: Callable[[str], str]


@dataclass
class Slot:
    """A place for a gateway process."""

    number: int
    process: Process | None = None
    files: ProcessFiles | None = None
    gateway: Gateway | None = None


REPLAYED: Final = Process(0, 0)
"""In place of the process that saves an event: nobody does any more."""


class Site:
    """The parts of a world, its gateways and their taps. `steps` counts what was checked; `trace` is for people."""

    def __init__(
        self, chooser: random.Random, scenery: Scenery, messages: int, slots: int, kinds: Sequence[Kind]
    ) -> None:
        """All choices are `chooser`'s. `kinds` are all the state's or all the journal's: no gateway has both."""
        self.is_of_journal = kinds[0] in JOURNAL_KINDS
        self.ledgers = (JOURNAL,) if self.is_of_journal else LEDGERS
        self.home = JOURNAL_HOME if self.is_of_journal else STATE
        self.random = chooser
        self.scheduler = Scheduler(self._on_step)
        self.machine = MachineClock()
        self.disk = Disk()
        self.faults = DiskFaults()
        self.host = Host(self.scheduler, self._tap)
        self.provider = Provider(scenery.answer, self.machine, self.scheduler, self.draw)
        self.locks = CooperativeLocks(self.scheduler)
        self.subjects = [self._subject(scenery, number, kinds) for number in range(messages)]
        self.invariants = Invariants([subject.message for subject in self.subjects])
        self.invariants.written = self.host.written
        self.invariants.is_live = self._is_live
        self.invariants.has_lease = lambda attempt_id: self._sidecar(attempt_id) is not None
        self.slots = [Slot(number) for number in range(1, slots + 1)]
        self.steps = 0
        self.trace: list[str] = []
        self.start_faults: set[StoreFault] = set()
        self.was_lied_to = False
        self.violation: InvariantBroken | None = None
        self.provider.behaviours = (BEHAVIOURS, ("prompt",))[self.draw(2)]
        self.provider.on_request = self._on_request
        self.host.on_shown = self._on_shown
        self._processes = 0
        self._taps: dict[Task, tuple[Subject, Tap]] = {}
        self._saved_by: dict[str, Process] = {}
        self._seen_version = -1

    def draw(self, bound: int) -> int:
        return self.random.randrange(bound)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Failpoints are steps, and everything random comes from the seed."""

        def drawn(count: int | None = None) -> bytes:
            return self.random.randbytes(32 if count is None else count)

        def drawn_hex(count: int | None = None) -> str:
            return drawn(count).hex()

        failpoints.install(self.scheduler.step)
        try:
            with (
                mock.patch.object(secrets, "token_bytes", drawn),
                mock.patch.object(secrets, "token_hex", drawn_hex),
                mock.patch.object(os, "urandom", drawn),
            ):
                yield
        finally:
            failpoints.install(None)
            for task in list(self.scheduler.tasks):
                self.scheduler.kill(task.process)

    def resume(self, task: Task, budget: int) -> None:
        self.scheduler.resume(task, budget)
        self._ended(task)

    def finish(self, task: Task) -> None:
        """Run a task, and whoever it waits for, to its end."""
        while not task.done:
            ready = [task] if task in self.scheduler.runnable() else self.scheduler.runnable()
            if not ready:
                raise RuntimeError("deadlock")
            self.resume(ready[0], 100)

    def open(self, slot: Slot, settings: Settings, boot_id_readable: bool = True) -> Task:
        """Start a gateway in a slot; it may fail to."""
        process, files = self._new_process(slot.number)
        slot.process, slot.files = process, files
        clock = ProcessClock(self.machine, boot_id_readable=boot_id_readable)
        clients = Clients(self.provider, clock, self._artifact, self.scheduler)
        parts = (settings, files, clock, clients, self.locks.of(process))

        def opening() -> None:
            try:
                slot.gateway = self._journal_gateway(*parts) if self.is_of_journal else self._state_gateway(*parts)
            except LedgerFailed as failed:
                self.start_faults.add(failed.code)

        return self.scheduler.spawn(f"open-{process.number}", process, opening)

    def _state_gateway(
        self, settings: Settings, files: ProcessFiles, clock: Clock, clients: Clients, locks: PublicationLocks
    ) -> Gateway:
        return Gateway(
            settings,
            files=files,
            clock=clock,
            host=self.host,
            clients=clients,
            locks=locks,
            session_lock=lambda: locks.hold(*SESSION),
        )

    def _journal_gateway(
        self, settings: Settings, files: ProcessFiles, clock: Clock, clients: Clients, locks: PublicationLocks
    ) -> Gateway:
        gateway = JournalGateway(
            settings, self.subjects, files=files, clock=clock, host=self.host, clients=clients, locks=locks
        )
        for subject, key in gateway.keys.items():
            self.invariants.named(subject.message, key)
        return gateway

    def tap_on(self, slot: Slot, subject: Subject) -> Task:
        gateway, process = slot.gateway, slot.process
        assert gateway is not None
        assert process is not None
        first = self._saved_by.setdefault(subject.identity, process) is process
        if not first:
            self._saved_by[subject.identity] = REPLAYED
        actor = Actor(gateway.settings.mode, gateway.is_stopped(subject), process=process.number)
        tap = Tap(subject.message, Cancellation(), actor, first)
        task = self.scheduler.spawn(
            f"{subject.identity}-{process.number}", process, lambda: gateway.publish(subject, tap)
        )
        self._taps[task] = (subject, tap)
        return task

    def lose_power(self, cut: Callable[[], None]) -> None:
        """Cut, tell the checker what the disk had not kept its word on, and boot."""
        if self.disk.is_lying():
            self.was_lied_to = True
            for ledger in self.ledgers:
                self.invariants.lied_to(ledger)
            self._use_sessions()
        cut()
        self.machine.reboot()
        self.check()

    def repairing(self) -> Task:
        process, files = self._new_process(0)

        def repair() -> None:
            for ledger in () if self.is_of_journal else LEDGERS:
                try:
                    maintenance.repair(STATE / ledger, files=files)
                except (LedgerFailed, FileNotFoundError):
                    continue

        return self.scheduler.spawn("repair", process, repair)

    def restart(self) -> Slot:
        """After a repair, if one is due."""
        slot = self.slots[0]
        for _ in range(2):
            self._stop(slot)
            self.finish(self.open(slot, Settings()))
            if slot.gateway:
                break
            self.finish(self.repairing())
        return slot

    def verify(self) -> None:
        """As `kexpr ledger verify` does, over the same seam; for a stopped world."""
        _, files = self._new_process(0)
        for ledger in () if self.is_of_journal else LEDGERS:
            if not maintenance.is_empty(STATE / ledger, files=files):
                maintenance.verify(STATE / ledger, files=files)
        self.check()

    def stop_all(self) -> None:
        for task in list(self.scheduler.tasks):
            self.scheduler.kill(task.process)
            self._ended(task)
        for slot in self.slots:
            self._stop(slot)
        for node in self.disk.walk():
            node.owner = None

    def check(self, actor: Actor | None = None) -> None:
        """Everything durable, if anything has changed."""
        if self._seen_version == self.disk.version:
            return
        self._seen_version = self.disk.version
        for ledger in self.ledgers:
            self.invariants.durable(ledger, self._lines(ledger), actor)

    def _use_sessions(self) -> None:
        """The host has not forgotten what it did: a session that a card came of is not just consumed any more."""
        for subject in self.subjects:
            if self.invariants.visible(subject.message) or self.invariants.requests(subject.message):
                self.host.consumed[subject.identity] = False

    def _subject(self, scenery: Scenery, number: int, kinds: Sequence[Kind]) -> Subject:
        kind = kinds[self.draw(len(kinds))]
        identity = f"{kind}-{number}"
        presentation = scenery.presentation(RULES[kind].surface, identity)
        return Subject(identity, presentation, message_of(kind, identity, presentation))

    def _sidecar(self, attempt_id: str) -> bytes | None:
        return self.disk.durable_content(str(JOURNAL_HOME)).get(f"{LEASE_PREFIX}{attempt_id}")

    def _is_live(self, attempt_id: str) -> bool:
        if self.faults.have_failed or self.locks.have_failed:
            return False
        return is_alive(self._sidecar(attempt_id), self.machine.boot_id, self.machine.boottime_ms)

    def _lines(self, ledger: str) -> list[Line]:
        if ledger == JOURNAL:
            content = self.disk.durable_content(str(JOURNAL_HOME)).get(JOURNAL_NAME, b"")
            return [("", line) for line in parse(content)]
        files = self.disk.durable_content(str(STATE / ledger))
        segments = sorted(name for name in files if name.startswith("ledger-") and name.endswith(".jsonl"))
        return [(name[7:14], line) for name in segments for line in parse(files[name])]

    def _new_process(self, slot: int) -> tuple[Process, ProcessFiles]:
        self._processes += 1
        process = Process(slot, self._processes)
        return process, ProcessFiles(self.disk, process, self.scheduler, self.faults)

    def _stop(self, slot: Slot) -> None:
        if slot.process and slot.files:
            self.scheduler.kill(slot.process)
            self.locks.release(slot.process)
            slot.files.release()
        for task in [task for task in self._taps if task.done]:
            self._ended(task)
        slot.process = slot.files = slot.gateway = None

    def _ended(self, task: Task) -> None:
        """After a resumption: check, and forget a task that has ended; a gateway that did not open is gone."""
        self.check(self._taps[task][1].actor if task in self._taps else None)
        if self.violation:
            raise self.violation
        if not task.done:
            return
        self._taps.pop(task, None)
        if task.error is not None:
            raise task.error
        for slot in self.slots:
            if slot.process is task.process and slot.gateway is None:
                self._stop(slot)

    def _on_step(self, name: str) -> None:
        self.steps += 1
        task = self.scheduler.current
        self._note(f"{task.name if task else '-'}:{name}")
        tap = self._tap()
        with self._judging():
            self.check(tap.actor if tap else None)
        self.machine.pass_ms(not self.draw(16))

    def _note(self, what: str) -> None:
        self.trace.append(what)
        if len(self.trace) > 4_000:
            del self.trace[:2_000]

    def _tap(self) -> Tap | None:
        task = self.scheduler.current
        return self._taps[task][1] if task in self._taps else None

    def _artifact(self) -> str:
        tap = self._tap()
        assert tap is not None
        return tap.message.key

    def _on_request(self, _artifact: str) -> None:
        tap = self._tap()
        assert tap is not None
        with self._judging():
            self.check(tap.actor)
            self.invariants.requested(tap.message, tap.actor)

    def _on_shown(self, text: str) -> None:
        tap = self._tap()
        assert tap is not None
        with self._judging():
            self.check(tap.actor)
            self.invariants.shown(tap.message, text, tap.actor)

    @contextmanager
    def _judging(self) -> Iterator[None]:
        """In a task, where the library may catch what is raised: kept until the task hands back."""
        try:
            yield
        except InvariantBroken as broken:
            self.violation = self.violation or broken

"""Histories: what happens is drawn from the seed, and every step of it is checked.

A history is a few messages on all paths, two gateways that start, tap, fail and die, one disk. It ends by settling:
without further faults, a fresh gateway brings every message as far as it may go.
"""

import errno
import os
import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from unittest import mock

from kexpr import failpoints
from kexpr.attempt import Cancellation
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode, Surface, WireVersion
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger import maintenance
from kexpr.private_files import KEY_NAME
from kexpr.stores import LEDGERS
from kexpr.testing.simulation.clock import MachineClock, ProcessClock
from kexpr.testing.simulation.disk import SHORT, Disk, DiskFaults, Node, ProcessFiles
from kexpr.testing.simulation.gateway import STATE, Gateway, Presentation, Settings, Subject, message_of
from kexpr.testing.simulation.host import CooperativeLocks, Failure, Host, Tap
from kexpr.testing.simulation.invariants import RULES, Actor, InvariantBroken, Invariants, Kind, Line, parse
from kexpr.testing.simulation.provider import BEHAVIOURS, Clients, Provider
from kexpr.testing.simulation.scheduler import Process, Scheduler, Task

__all__ = ["EVENTS", "Scenery", "World"]

DAY_MS: Final = 86_400_000
_SETTLING_TAPS: Final = 3


@dataclass(frozen=True, slots=True)
class Scenery:
    """What is said: the presentation of a message, and the text that a model answers to a wire request."""

    presentation: Callable[[Surface, str], Presentation]
    answer: Callable[[str], str]


@dataclass
class _Slot:
    """A place for a gateway process."""

    number: int
    process: Process | None = None
    files: ProcessFiles | None = None
    gateway: Gateway | None = None


class World:
    """One history. `steps` counts what was checked; `trace` is its last part, for people."""

    def __init__(
        self,
        seed: object,
        scenery: Scenery,
        *,
        messages: int | None = None,
        slots: int = 2,
        favourites: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """`messages` and their paths are drawn where not given; `favourites` multiply the weights of events."""
        self.random = random.Random(str(seed))
        # Each history has its own favourites among the events: what needs two rare ones then happens too.
        self._weights = [
            weight * _FAVOUR[self.draw(len(_FAVOUR))] * favourites.get(event.__name__, 1)
            for event, weight in _EVENT_WEIGHTS.items()
        ]
        self.scheduler = Scheduler(self._on_step)
        self.machine = MachineClock()
        self.disk = Disk()
        self.faults = DiskFaults()
        self.host = Host(self.scheduler, self._tap)
        self.provider = Provider(scenery.answer, self.machine, self.scheduler, self.draw)
        self.locks = CooperativeLocks(self.scheduler)
        self.subjects = [self._subject(scenery, number) for number in range(messages or 3 + self.draw(5))]
        self.invariants = Invariants([subject.message for subject in self.subjects])
        self.slots = [_Slot(number) for number in range(1, slots + 1)]
        self.steps = 0
        self.trace: list[str] = []
        self.happened: set[str] = set()
        self.start_faults: set[StoreFault] = set()
        self.was_lied_to = False
        self.violation: InvariantBroken | None = None
        self.provider.behaviours = (BEHAVIOURS, ("prompt",))[self.draw(2)]
        self.provider.on_request = self._on_request
        self.host.on_shown = self._on_shown
        self._processes = 0
        self._taps: dict[Task, tuple[Subject, Tap]] = {}
        self._saved_by: dict[str, Process] = {}
        self._backup: Node | None = None
        self._lost_key: Node | None = None
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

    def run(self, steps: int) -> None:
        """A history of about `steps` steps, and its end. Raises `InvariantBroken`."""
        with self.running():
            while self.steps < steps:
                ready = self.scheduler.runnable()
                if ready and self.draw(8):
                    self.resume(ready[self.draw(len(ready))], (0, 0, 2, 9, 40)[self.draw(5)])
                else:
                    self.happen()
            self.settle()

    def happen(self) -> None:
        """One event."""
        [event] = self.random.choices(_EVENTS, self._weights)
        self._note(event.__name__)
        self.happened.add(event.__name__)
        event(self)

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

    # What happens.

    def start(self) -> None:
        idle = [slot for slot in self.slots if slot.process is None]
        if idle:
            modes = (Mode.ENABLED, Mode.ENABLED, Mode.ENABLED, Mode.SHADOW, Mode.DISABLED)
            surfaces = frozenset(Surface) if self.draw(4) else frozenset({Surface.DAILY, Surface.WEEKLY})
            wire = (WireVersion.KEXP_1, WireVersion.KEXP_2)[self.draw(2)]
            self.open(idle[0], Settings(modes[self.draw(5)], wire, surfaces, bool(self.draw(6))), self.draw(5) > 0)

    def open(self, slot: _Slot, settings: Settings, boot_id_readable: bool = True) -> Task:
        """Start a gateway in a slot; it may fail to."""
        process, files = self._new_process(slot.number)
        slot.process, slot.files = process, files
        clock = ProcessClock(self.machine, boot_id_readable=boot_id_readable)
        locks = self.locks.of(process)

        def opening() -> None:
            try:
                slot.gateway = Gateway(
                    settings,
                    files=files,
                    clock=clock,
                    host=self.host,
                    clients=Clients(self.provider, clock, self._artifact, self.scheduler),
                    locks=locks,
                    session_lock=lambda: locks.hold("session"),
                )
            except LedgerFailed as failed:
                self.start_faults.add(failed.code)

        return self.scheduler.spawn(f"open-{process.number}", process, opening)

    def tap(self) -> None:
        up = [slot for slot in self.slots if slot.gateway]
        if up and len(self.scheduler.tasks) < 5:
            slot, subject = up[self.draw(len(up))], self._some_subject()
            if not self._is_being_saved_elsewhere(slot, subject):
                self.tap_on(slot, subject)

    def tap_on(self, slot: _Slot, subject: Subject) -> Task:
        gateway, process = slot.gateway, slot.process
        assert gateway is not None
        assert process is not None
        first = self._saved_by.setdefault(subject.identity, process) is process
        if not first:
            self._saved_by[subject.identity] = _REPLAYED
        actor = Actor(gateway.settings.mode, gateway.is_stopped(subject))
        tap = Tap(subject.message, Cancellation(), actor, first)
        task = self.scheduler.spawn(
            f"{subject.identity}-{process.number}", process, lambda: gateway.publish(subject, tap)
        )
        self._taps[task] = (subject, tap)
        return task

    def cancel(self) -> None:
        running = list(self._taps)
        if running:
            self._taps[running[self.draw(len(running))]][1].flag.set()

    def sweep(self) -> None:
        for slot in self.slots:
            if slot.gateway and slot.process:
                self.scheduler.spawn(f"sweep-{slot.number}", slot.process, slot.gateway.sweep)
                return

    def close_admission(self) -> None:
        for slot in self.slots:
            if slot.gateway and self.draw(2):
                slot.gateway.coordinator.close_admission()

    def pass_time(self) -> None:
        self.machine.pass_ms((1, 100, 1_000, CLAIM_LEASE_MS - 1, CLAIM_LEASE_MS)[self.draw(5)])

    def jump_clock(self) -> None:
        self.machine.jump_utc((-DAY_MS * 40, -3_600_000, -5_000, 5_000, 3_600_000, DAY_MS * 40)[self.draw(6)])

    def kill(self) -> None:
        """SIGKILL, or an orderly end: for what is durable the first is the harder."""
        up = [slot for slot in self.slots if slot.process]
        if up:
            self._stop(up[self.draw(len(up))])

    def cut_power(self) -> None:
        self.stop_all()
        self.lose_power(lambda: self.disk.power_cut(self.draw))

    def lose_power(self, cut: Callable[[], None]) -> None:
        """Cut, tell the checker what the disk had not kept its word on, and boot."""
        if self.disk.is_lying():
            self.was_lied_to = True
            for ledger in LEDGERS:
                self.invariants.lied_to(ledger)
            self._use_sessions()
        cut()
        self.machine.reboot()
        self.check()

    def repair(self) -> None:
        """What an operator does when a start has said that a tail is torn."""
        if StoreFault.TORN_TAIL in self.start_faults:
            self.start_faults.discard(StoreFault.TORN_TAIL)
            self.repairing()

    def repairing(self) -> Task:
        process, files = self._new_process(0)

        def repair() -> None:
            for ledger in LEDGERS:
                try:
                    maintenance.repair(STATE / ledger, files=files)
                except (LedgerFailed, FileNotFoundError):
                    continue

        return self.scheduler.spawn("repair", process, repair)

    def break_disk(self) -> None:
        call, error = _DISK_FAULTS[self.draw(len(_DISK_FAULTS))]
        self.faults.arm(call, error, 1 + self.draw(6))

    def fail_host(self) -> None:
        self.host.failures.append((Failure.BEFORE, Failure.AFTER)[self.draw(2)])

    def change_provider(self) -> None:
        self.provider.behaviours = (BEHAVIOURS, ("prompt",), ("prompt", "late", "too_late"))[self.draw(3)]

    def change_pins(self) -> None:
        name = ("registry", "config", "destination", "binding")[self.draw(4)]
        self.host.revisions[f"{name}/{self._some_subject().identity}"] += 1

    def use_session(self) -> None:
        self.host.consumed[self._some_subject().identity] = False

    def fence(self) -> None:
        self.host.fenced = not self.host.fenced

    def back_up(self) -> None:
        if self.disk.find(str(STATE)) and not self.scheduler.tasks and not self._lost_key:
            self._backup = self.disk.copy_of(str(STATE))

    def put_back(self) -> None:
        """An old copy of the state, with the tombstones kept; the host still knows what it has done."""
        if self._backup is None:
            return
        self.stop_all()
        self.disk.put_back(str(STATE), self._backup)
        self._lost_key = None
        for ledger in LEDGERS:
            self.invariants.restored(ledger)
        self._use_sessions()
        self.check()

    def lose_key(self) -> None:
        state = self.disk.find(str(STATE))
        if state and KEY_NAME in state.durable_entries and any(self._lines(ledger) for ledger in LEDGERS):
            self.stop_all()
            self._lost_key = state.entries.pop(KEY_NAME)
            state.durable_entries.pop(KEY_NAME)

    def find_key(self) -> None:
        state = self.disk.find(str(STATE))
        if state and self._lost_key:
            self.stop_all()
            state.entries[KEY_NAME] = state.durable_entries[KEY_NAME] = self._lost_key
            self._lost_key = None

    # How it ends.

    def settle(self) -> None:
        """No more faults: a fresh gateway brings each message as far as it may go, and every chain verifies."""
        self.stop_all()
        self.calm()
        # Where the boot id cannot be read, a claim lives until UTC says so, and UTC may have been set back.
        self.machine.set_right()
        self.machine.pass_ms(CLAIM_LEASE_MS)
        for subject in self.subjects:
            self._saved_by.setdefault(subject.identity, _REPLAYED)
        slot = self.restart()
        if slot.gateway is None:
            # Only a disk that lied may have left what no repair mends.
            if not self.was_lied_to:
                raise InvariantBroken("a whole disk cannot be opened")
            return
        for _ in range(_SETTLING_TAPS):
            for subject in self.subjects:
                self.finish(self.tap_on(slot, subject))
        self.stop_all()
        self.verify()
        for subject in self.subjects:
            self._require_settled(subject)

    def calm(self) -> None:
        self.find_key()
        self.faults.clear()
        self.host.failures.clear()
        self.host.fenced = False
        self.provider.behaviours = ("prompt",)

    def restart(self) -> _Slot:
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
        for ledger in LEDGERS:
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
        for ledger in LEDGERS:
            self.invariants.durable(ledger, self._lines(ledger), actor)

    def _some_subject(self) -> Subject:
        """Any, but more often one that a tap is at."""
        running = [subject for subject, _ in self._taps.values()]
        among = running if running and self.draw(2) else self.subjects
        return among[self.draw(len(among))]

    def _use_sessions(self) -> None:
        """The host has not forgotten what it did: a session that a card came of is not just consumed any more."""
        for subject in self.subjects:
            if self.invariants.visible(subject.message) or self.invariants.requests(subject.message):
                self.host.consumed[subject.identity] = False

    def _is_being_saved_elsewhere(self, slot: _Slot, subject: Subject) -> bool:
        """A daily event's first save runs in one process, and what that edits without a row only that process knows.

        So a host replays an event elsewhere only when no first save of it runs, and from then on everywhere.
        """
        return any(
            running is subject and tap.is_first_save and task.process is not slot.process
            for task, (running, tap) in self._taps.items()
        )

    def _require_settled(self, subject: Subject) -> None:
        message, visible = subject.message, self.invariants.visible(subject.message)
        if message.kind is Kind.DAILY:
            settled = bool(visible) and visible[-1] == message.canonical
        elif message.kind is Kind.WEEKLY:
            settled = bool(visible) or self._is_weekly_stopped(subject)
        else:
            settled = self.invariants.last_state(message) == "published" and bool(visible)
        if not settled:
            raise InvariantBroken("a message was left behind")

    def _is_weekly_stopped(self, subject: Subject) -> bool:
        """It may have been sent, or its pins are not what it was prepared with."""
        marks = self.disk.find("/state-tombstones")
        may_be_sent = marks is not None and f"{subject.message.key}.sending" in marks.entries
        return may_be_sent or any(self.host.revisions[f"{name}/{subject.identity}"] for name in _PINNED)

    def _subject(self, scenery: Scenery, number: int) -> Subject:
        kind = list(Kind)[self.draw(len(Kind))]
        identity = f"{kind}-{number}"
        presentation = scenery.presentation(RULES[kind].surface, identity)
        return Subject(identity, presentation, message_of(kind, identity, presentation))

    def _lines(self, ledger: str) -> list[Line]:
        files = self.disk.durable_content(str(STATE / ledger))
        segments = sorted(name for name in files if name.startswith("ledger-") and name.endswith(".jsonl"))
        return [(name[7:14], line) for name in segments for line in parse(files[name])]

    def _new_process(self, slot: int) -> tuple[Process, ProcessFiles]:
        self._processes += 1
        process = Process(slot, self._processes)
        return process, ProcessFiles(self.disk, process, self.scheduler, self.faults)

    def _stop(self, slot: _Slot) -> None:
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


_REPLAYED: Final = Process(0, 0)
"""In place of the process that saves an event: nobody does any more."""

_PINNED: Final = ("registry", "config", "destination")

_DISK_FAULTS: Final = (
    ("fsync", errno.EIO),
    ("fsync", errno.ENOSPC),
    ("write", errno.ENOSPC),
    ("write", errno.EIO),
    ("write", SHORT),
    ("open", errno.EMFILE),
    ("pread", errno.EIO),
    ("flock", errno.EAGAIN),
    ("mkdir", errno.ENOSPC),
    ("fstat", errno.EIO),
)

_EVENT_WEIGHTS: Final = {
    World.start: 24,
    World.tap: 60,
    World.cancel: 4,
    World.sweep: 3,
    World.close_admission: 1,
    World.pass_time: 20,
    World.jump_clock: 5,
    World.kill: 8,
    World.cut_power: 5,
    World.repair: 10,
    World.break_disk: 8,
    World.fail_host: 6,
    World.change_provider: 6,
    World.change_pins: 8,
    World.use_session: 2,
    World.fence: 2,
    World.back_up: 4,
    World.put_back: 2,
    World.lose_key: 1,
    World.find_key: 6,
}
_EVENTS: Final = list(_EVENT_WEIGHTS)
EVENTS: Final = tuple(event.__name__ for event in _EVENTS)
"""By name, all that may happen."""
_FAVOUR: Final = (0.3, 1, 1, 3)

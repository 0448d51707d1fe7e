"""Histories: what happens is drawn from the seed, and every step of it is checked.

A history is a few messages on all paths, two gateways that start, tap, fail and die, one disk. It ends by settling:
without further faults, a fresh gateway brings every message as far as it may go.
"""

import errno
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode, Outcome, Surface, WireVersion
from kexpr.errors import StoreFault
from kexpr.private_files import KEY_NAME
from kexpr.stores import LEDGERS
from kexpr.testing.simulation.disk import SHORT, Node
from kexpr.testing.simulation.gateway import STATE, Settings, Subject
from kexpr.testing.simulation.host import Failure
from kexpr.testing.simulation.invariants import JOURNAL_KINDS, STATE_KINDS, InvariantBroken, Kind
from kexpr.testing.simulation.journal import JOURNAL_HOME, LEASE_PREFIX
from kexpr.testing.simulation.provider import BEHAVIOURS
from kexpr.testing.simulation.site import REPLAYED, Scenery, Site, Slot

__all__ = ["EVENTS", "Scenery", "World"]

DAY_MS: Final = 86_400_000
_SETTLING_TAPS: Final = 3


class World(Site):
    """One history, and its end. `happened` names the events that it had."""

    def __init__(
        self,
        seed: object,
        scenery: Scenery,
        *,
        messages: int | None = None,
        slots: int = 2,
        kinds: Sequence[Kind] = (),
        favourites: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """What is not given is drawn. `kinds`: all the state's or all the journal's; `favourites` multiply weights."""
        self.random = random.Random(str(seed))
        # Each history has its own favourites among the events: what needs two rare ones then happens too.
        self._weights = [
            weight * _FAVOUR[self.draw(len(_FAVOUR))] * favourites.get(event.__name__, 1)
            for event, weight in _EVENT_WEIGHTS.items()
        ]
        kinds = kinds or (STATE_KINDS, STATE_KINDS, JOURNAL_KINDS)[self.draw(3)]
        super().__init__(self.random, scenery, messages or 3 + self.draw(5), slots, kinds)
        self.happened: set[str] = set()
        self._backup: Node | None = None
        self._lost_key: Node | None = None

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

    # What happens.

    def start(self) -> None:
        idle = [slot for slot in self.slots if slot.process is None]
        if idle:
            modes = (Mode.ENABLED, Mode.ENABLED, Mode.ENABLED, Mode.SHADOW, Mode.DISABLED)
            surfaces = frozenset(Surface) if self.draw(4) else frozenset({Surface.DAILY, Surface.WEEKLY})
            wire = (WireVersion.KEXP_1, WireVersion.KEXP_2)[self.draw(2)]
            self.open(idle[0], Settings(modes[self.draw(5)], wire, surfaces, bool(self.draw(6))), self.draw(5) > 0)

    def tap(self) -> None:
        up = [slot for slot in self.slots if slot.gateway]
        if up and len(self.scheduler.tasks) < 5:
            slot, subject = up[self.draw(len(up))], self._some_subject()
            if not self._is_being_saved_elsewhere(slot, subject):
                self.tap_on(slot, subject)

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

    def repair(self) -> None:
        """What an operator does when a start has said that a tail is torn."""
        if StoreFault.TORN_TAIL in self.start_faults:
            self.start_faults.discard(StoreFault.TORN_TAIL)
            self.repairing()

    def break_disk(self) -> None:
        call, error = _DISK_FAULTS[self.draw(len(_DISK_FAULTS))]
        self.faults.arm(call, error, 1 + self.draw(6))

    def fail_host(self) -> None:
        self.host.failures.append((Failure.BEFORE, Failure.AFTER)[self.draw(2)])

    def fail_lock(self) -> None:
        self.locks.failures += 1 + self.draw(2)

    def lose_lease(self) -> None:
        """Somebody removes a sidecar: its claim has expired, whoever still works for it."""
        home = self.disk.find(str(JOURNAL_HOME))
        records = [fact.record for subject in self.subjects for fact in self.invariants.facts(subject.message)]
        claimed = {f"{LEASE_PREFIX}{record['attempt_id']}" for record in records if self.is_of_journal}
        names = sorted(claimed & home.entries.keys()) if home else []
        if home and names:
            name = names[self.draw(len(names))]
            home.entries.pop(name)
            home.durable_entries.pop(name, None)

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
        state = self.disk.find(str(self.home))
        if state and KEY_NAME in state.durable_entries and any(self._lines(ledger) for ledger in self.ledgers):
            self.stop_all()
            self._lost_key = state.entries.pop(KEY_NAME)
            state.durable_entries.pop(KEY_NAME)

    def find_key(self) -> None:
        state = self.disk.find(str(self.home))
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
            self._saved_by.setdefault(subject.identity, REPLAYED)
        slot = self.restart()
        if slot.gateway is None:
            # Only a disk that lied may have left what no repair mends; for a torn journal there is none.
            torn = self.is_of_journal and StoreFault.TORN_TAIL in self.start_faults
            if not (torn or self.was_lied_to):
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
        self.locks.failures = 0
        self.host.failures.clear()
        self.host.fenced = False
        self.provider.behaviours = ("prompt",)

    def _some_subject(self) -> Subject:
        """Any, but more often one that a tap is at."""
        running = [subject for subject, _ in self._taps.values()]
        among = running if running and self.draw(2) else self.subjects
        return among[self.draw(len(among))]

    def _is_being_saved_elsewhere(self, slot: Slot, subject: Subject) -> bool:
        """A daily event's first save runs in one process, and what that edits without a row only that process knows.

        So a host replays an event elsewhere only when no first save of it runs, and from then on everywhere.
        """
        return any(
            running is subject and tap.is_first_save and task.process is not slot.process
            for task, (running, tap) in self._taps.items()
        )

    def _require_settled(self, subject: Subject) -> None:
        message, visible = subject.message, self.invariants.visible(subject.message)
        if message.kind in (Kind.DAILY, Kind.JOURNAL_DAILY):
            settled = bool(visible) and visible[-1] == message.canonical
        elif message.kind is Kind.WEEKLY:
            settled = bool(visible) or self._is_weekly_stopped(subject)
        elif self.is_of_journal:
            bodies = self.host.written[message.key].values()
            is_selected = self.invariants.last_outcome(message) == Outcome.SELECTED
            settled = bool(visible) and visible[-1] in (bodies if is_selected else [message.canonical])
        else:
            settled = self.invariants.last_state(message) == "published" and bool(visible)
        if not settled:
            raise InvariantBroken("a message was left behind")

    def _is_weekly_stopped(self, subject: Subject) -> bool:
        """It may have been sent, or its pins are not what it was prepared with."""
        marks = self.disk.find("/state-tombstones")
        may_be_sent = marks is not None and f"{subject.message.key}.sending" in marks.entries
        return may_be_sent or any(self.host.revisions[f"{name}/{subject.identity}"] for name in _PINNED)


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
    World.fail_lock: 3,
    World.lose_lease: 2,
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

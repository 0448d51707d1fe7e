"""One message brought forward alone, stopped before its n-th step, and every state that the disk may then be in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kexpr.codes import Mode
from kexpr.ledger import maintenance
from kexpr.ledger.journal import JOURNAL_NAME
from kexpr.stores import LEDGERS
from kexpr.testing.simulation.disk import Disk, Node, ProcessFiles, surviving_tails
from kexpr.testing.simulation.gateway import STATE, TOMBSTONES, Settings
from kexpr.testing.simulation.invariants import Kind, parse
from kexpr.testing.simulation.journal import JOURNAL_HOME
from kexpr.testing.simulation.scheduler import Process, Scheduler, Task
from kexpr.testing.simulation.world import World
from tests.simulation.scenery import SCENERY

__all__ = [
    "Crash",
    "alone",
    "crashed",
    "crashes",
    "cut",
    "kill_in_every_state",
    "lose_power",
    "recover",
    "repaired",
    "survivors",
]

ZEROS_EVERY = 31
"""Bytes between the places where zero-filled parts begin; prefixes are taken at each byte."""


@dataclass(frozen=True)
class Crash:
    """What a first tap alone left before its `step`-th step: the disk, and what was visible and requested by then."""

    step: int
    disk: Disk
    held: tuple[object, ...]


def alone(kind: Kind, slots: int = 1) -> World:
    """A world whose only message is of the kind."""
    world = World(0, SCENERY, messages=1, slots=slots, kinds=[kind])
    world.provider.behaviours = ("prompt",)
    return world


def crashes(kind: Kind, mode: Mode) -> list[Crash]:
    """Each state that a first tap goes through, opening included; a step that changed nothing has none of its own."""
    found: dict[object, Crash] = {}
    world = alone(kind)
    with world.running():
        for task_of in _course(world, mode):
            task = task_of()
            while not task.done:
                world.resume(task, 0)
                crash = _crash(world)
                found.setdefault((repr(_unsynced_changes(crash.disk)), contents(crash.disk), crash.held), crash)
    return list(found.values())


@contextmanager
def crashed(kind: Kind, crash: Crash, mode: Mode) -> Iterator[World]:
    """The same world again, stopped for ever where the crash is."""
    world = alone(kind)
    with world.running():
        for task_of in _course(world, mode):
            task = task_of()
            if world.steps < crash.step:
                world.resume(task, crash.step - world.steps - 1)
            if not task.done:
                break
        assert world.steps == crash.step
        yield world


def _course(world: World, mode: Mode) -> Iterator[Callable[[], Task]]:
    yield lambda: world.open(world.slots[0], Settings(mode))
    yield lambda: world.tap_on(world.slots[0], world.subjects[0])


def _crash(world: World) -> Crash:
    message = world.subjects[0].message
    bodies = tuple(world.host.written[message.key].values())
    held = (world.invariants.visible(message), world.invariants.requests(message), bodies)
    return Crash(world.steps, world.disk.fork(), held)


def _unsynced_changes(disk: Disk) -> list[object]:
    nodes = list(disk.walk())
    return [(node.number, node.pending, sorted(node.entries), sorted(node.durable_entries)) for node in nodes]


def survivors(disk: Disk, every: int = ZEROS_EVERY) -> Iterator[bytes | None]:
    """Each content that the one file with an un-synced change may keep; None alone where there is no such file."""
    node = _unsynced(disk)
    if node is None:
        yield None
        return
    [change] = node.pending
    durable = bytes(node.durable)
    if change.data is None:
        yield from (durable, durable[: change.offset])
        return
    for tail in surviving_tails(change.data, every):
        yield durable[: change.offset] + tail


def _unsynced(disk: Disk) -> Node | None:
    """The file whose content is not all durable: there is never more than one, since each row is synced at once."""
    unsynced = [node for node in disk.walk() if node.pending]
    assert len(unsynced) <= 1
    return unsynced[0] if unsynced else None


def cut(disk: Disk, content: bytes | None, keeps_names: bool) -> None:
    """The power goes, and this is what is left."""
    unsynced = _unsynced(disk)

    def content_of(node: Node) -> bytes:
        return content if node is unsynced and content is not None else bytes(node.durable)

    disk.cut(lambda _name: keeps_names, content_of)


def lose_power(world: World, content: bytes | None, keeps_names: bool) -> None:
    world.stop_all()
    world.lose_power(lambda: cut(world.disk, content, keeps_names))


def recover(world: World) -> None:
    """Repair, restart, look at once (inside the lease if the machine kept running) and again after it."""
    slot = world.restart()
    if slot.gateway:
        world.finish(world.tap_on(slot, world.subjects[0]))
    world.settle()


def repaired(disk: Disk) -> bytes:
    """All that is in the ledgers, marks and key after a repair. A crash leaves nothing that a repair refuses."""
    files = ProcessFiles(disk, Process(0, 0), Scheduler(lambda _name: None))
    for ledger in LEDGERS:
        if disk.find(str(STATE / ledger)):
            maintenance.repair(STATE / ledger, files=files)
    return contents(disk)


def contents(disk: Disk) -> bytes:
    """Of what counts: a quarantine file does not, and whether a lock file is there does not."""
    places = (*(str(STATE / ledger) for ledger in LEDGERS), str(TOMBSTONES), str(STATE), str(JOURNAL_HOME))
    found = [disk.durable_content(place) for place in places if disk.find(place)]
    return repr([sorted(_counting(files).items()) for files in found]).encode()


def _counting(files: dict[str, bytes]) -> dict[str, bytes]:
    counting = {name: content for name, content in files.items() if ".torn-" not in name and name != "lock"}
    if JOURNAL_NAME in counting:
        # A torn journal stays closed, wherever in its last line it is torn.
        content = counting[JOURNAL_NAME]
        whole = b"".join(line + b"\n" for line in parse(content))
        counting[JOURNAL_NAME] = whole if whole == content else whole + b"torn"
    return counting


def kill_in_every_state(kind: Kind, mode: Mode) -> None:
    """The machine goes on: what was written is there, synced or not, and the claim is still alive."""
    for crash in crashes(kind, mode):
        with crashed(kind, crash, mode) as world:
            world.stop_all()
            recover(world)

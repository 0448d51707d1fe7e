"""A disk that keeps its promises to the letter and no further: what `fsync` has not acknowledged may be lost.

A file's content is what processes read (the cache); beside it stands what is durable, and between the two the writes
that are not. A power cut keeps any of the states that a real disk may show: each un-synced write lost, whole, torn at
any byte, or with its pages zero-filled; a name whose directory was not synced gone. After a failed fsync the cache
lies: the pages are clean, later fsyncs succeed, and the bytes are not on the disk (each descriptor that was open then
gets the error once, as on Linux since 4.13).

A killed process loses its descriptors and locks, and nothing else.
"""

import copy
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from kexpr.testing.simulation.scheduler import Process, Scheduler

__all__ = ["Disk", "DiskFaults", "Draw", "Node", "ProcessFiles", "Status", "surviving_tails"]

Draw = Callable[[int], int]
"""`draw(n)`: a number in `0 … n-1`."""

PAGE_BYTES: Final = 4_096
SHORT: Final = -1
"""In place of an error number: the write takes only half."""


@dataclass
class _Change:
    """A write at `offset`, or, with `data` None, a cut to `offset` bytes."""

    offset: int
    data: bytes | None

    def apply(self, content: bytearray) -> None:
        if self.data is None:
            del content[self.offset :]
            return
        content.extend(bytes(max(0, self.offset - len(content))))
        content[self.offset : self.offset + len(self.data)] = self.data


@dataclass(eq=False)
class Node:
    """A file or a directory: `content`/`entries` as processes see them, and what of that is durable."""

    number: int
    is_directory: bool
    content: bytearray = field(default_factory=bytearray, repr=False)
    durable: bytearray = field(default_factory=bytearray, repr=False)
    pending: list[_Change] = field(default_factory=list, repr=False)
    lost: list[_Change] = field(default_factory=list, repr=False)
    """Writes of a failed fsync: in the cache, never on the disk."""
    errors: int = 0
    entries: dict[str, "Node"] = field(default_factory=dict, repr=False)
    durable_entries: dict[str, "Node"] = field(default_factory=dict, repr=False)
    owner: object = field(default=None, repr=False)
    """The open file description that holds the `flock`."""

    def change(self, change: _Change) -> None:
        change.apply(self.content)
        self.pending.append(change)
        self._outdate(change)

    def sync(self) -> None:
        self.durable_entries = dict(self.entries)
        for change in self.pending:
            change.apply(self.durable)
        self.pending.clear()

    def fail_sync(self) -> None:
        """Data is lost; a cut is the file system's own, which writes it with the next fsync."""
        self.errors += 1
        changes, self.pending = self.pending, []
        for change in changes:
            (self.pending if change.data is None else self.lost).append(change)
            self._outdate(change)

    def _outdate(self, change: _Change) -> None:
        """What was lost and then cut off is missed by nobody."""
        if change.data is None:
            self.lost = [lost for lost in self.lost if lost.offset < change.offset]

    def settle(self, content: bytes) -> None:
        """After a restart of the machine, `content` is all there is."""
        self.content = bytearray(content)
        self.durable = bytearray(content)
        self.pending.clear()
        self.lost.clear()
        self.owner = None


def surviving_tails(data: bytes, every: int = 1) -> Iterator[bytes]:
    """What may be left of one un-synced write: all prefixes, and at each `every` bytes zeros in front or behind."""
    for length in range(len(data) + 1):
        yield data[:length]
    for length in range(1, len(data), every):
        yield data[:length] + bytes(len(data) - length)
        yield bytes(length) + data[length:]
    yield bytes(len(data))


def _torn(data: bytes, draw: Draw) -> bytes:
    length = draw(len(data) + 1)
    kept = [data[:length], data[:length] + bytes(len(data) - length), bytes(length) + data[length:], data]
    return kept[draw(4)]


def _told(node: Node) -> bytes:
    content = bytearray(node.durable)
    for change in node.lost:
        change.apply(content)
    return bytes(content)


def _survived(node: Node, draw: Draw) -> bytes:
    content = bytearray(node.durable)
    for change in node.lost:
        if draw(2):
            change.apply(content)
    for change in node.pending:
        fate = draw(3)
        if fate == 0:
            break
        if fate == 1 and change.data:
            _Change(change.offset, _torn(change.data, draw)).apply(content)
            break
        change.apply(content)
    return bytes(content)


@dataclass(frozen=True, slots=True)
class Status:
    st_mode: int
    st_ino: int
    st_dev: int
    st_nlink: int
    st_uid: int
    st_size: int


class Disk:
    """One file system. `version` grows with every change of what is durable or visible."""

    def __init__(self) -> None:
        self._numbers = 1
        self.root = Node(1, is_directory=True)
        self.version = 0

    def fork(self) -> "Disk":
        """A copy to try a future on."""
        return copy.deepcopy(self)

    def node(self, is_directory: bool) -> Node:
        self._numbers += 1
        return Node(self._numbers, is_directory)

    def find(self, path: str) -> Node | None:
        """By absolute path, as processes see it."""
        node: Node | None = self.root
        for name in PurePosixPath(path).parts[1:]:
            node = node.entries.get(name) if node else None
        return node

    def durable_content(self, path: str) -> dict[str, bytes]:
        """The files of a directory that a power cut now would leave, with what it would leave in them at least.

        After a failed fsync it is what the library was told: a lost change counts as written.
        """
        node = self.root
        for name in PurePosixPath(path).parts[1:]:
            child = node.durable_entries.get(name)
            if child is None:
                return {}
            node = child
        return {name: _told(child) for name, child in node.durable_entries.items()}

    def walk(self, node: Node | None = None) -> Iterator[Node]:
        node = node or self.root
        yield node
        for child in node.entries.values():
            yield from self.walk(child)

    def is_lying(self) -> bool:
        """Whether an fsync failed since the last power cut: the cache then has what the disk has not."""
        return any(node.lost for node in self.walk())

    def power_cut(self, draw: Draw) -> None:
        """Keep one of the states that may have survived."""
        self.cut(lambda name: bool(draw(2)), lambda node: _survived(node, draw))

    def cut(self, keeps: Callable[[str], bool], content_of: Callable[[Node], bytes]) -> None:
        """Keep un-synced names as `keeps` says, and file contents as `content_of` does."""
        for node in list(self.walk()):
            unsynced = [name for name in node.entries if name not in node.durable_entries]
            for name in unsynced:
                if not keeps(name):
                    del node.entries[name]
            node.durable_entries = dict(node.entries)
        for node in self.walk():
            node.settle(content_of(node))
        self.version += 1

    def copy_of(self, path: str) -> Node:
        """A backup of a directory, as it is in the cache."""
        node = self.find(path)
        if node is None:
            raise KeyError(path)
        return copy.deepcopy(node)

    def put_back(self, path: str, backup: Node) -> None:
        """Restore a backup in place of what is there, durably. For stopped processes."""
        parent, name = self.root, ""
        for part in PurePosixPath(path).parts[1:]:
            parent, name = (parent.entries[name] if name else parent), part
        restored = copy.deepcopy(backup)
        parent.entries[name] = restored
        parent.durable_entries[name] = restored
        for node in self.walk(restored):
            self._numbers += 1
            node.number = self._numbers
            node.durable_entries = dict(node.entries)
            node.settle(bytes(node.content))
        self.version += 1


class DiskFaults:
    """Which calls fail: the `countdown`-th call of a name from now fails once with `error`."""

    def __init__(self) -> None:
        self._armed: dict[str, tuple[int, int]] = {}
        self.have_failed = False

    def arm(self, call: str, error: int, countdown: int = 1) -> None:
        self._armed[call] = (countdown, error)

    def clear(self) -> None:
        self._armed.clear()

    def next(self, call: str) -> int:
        """0, an error number, or `SHORT`."""
        if call not in self._armed:
            return 0
        countdown, error = self._armed.pop(call)
        if countdown > 1:
            self._armed[call] = (countdown - 1, error)
            return 0
        self.have_failed = True
        return error


@dataclass(eq=False)
class _OpenFile:
    node: Node
    append: bool
    position: int
    errors_seen: int


class ProcessFiles:
    """The `FileSystem` of one process. Each call is a step before it has its effect.

    `st_dev` is the process's slot, so that what the library keeps per place is per simulated process too.
    """

    def __init__(self, disk: Disk, process: Process, scheduler: Scheduler, faults: DiskFaults | None = None) -> None:
        self._disk = disk
        self._process = process
        self._scheduler = scheduler
        self._faults = faults or DiskFaults()
        self._open: dict[int, _OpenFile] = {}
        self._descriptors = 2

    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        self._step("open")
        parent, name = self._place(path, dir_fd)
        node = parent if name == "" else parent.entries.get(name)
        if node is None:
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, "absent")
            node = parent.entries[name] = self._disk.node(is_directory=False)
        elif flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, "present")
        if flags & os.O_DIRECTORY and not node.is_directory:
            raise NotADirectoryError(errno.ENOTDIR, "no directory")
        self._descriptors += 1
        self._open[self._descriptors] = _OpenFile(node, bool(flags & os.O_APPEND), 0, node.errors)
        return self._descriptors

    def mkdir(self, path: str, mode: int, /) -> None:
        self._step("mkdir")
        parent, name = self._place(path, None)
        if name in parent.entries:
            raise FileExistsError(errno.EEXIST, "present")
        parent.entries[name] = self._disk.node(is_directory=True)

    def stat(self, path: str, *, dir_fd: int | None = None, follow_symlinks: bool = False) -> Status:
        self._step("stat")
        parent, name = self._place(path, dir_fd)
        node = parent if name == "" else parent.entries.get(name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "absent")
        return self._status(node)

    def fstat(self, fd: int, /) -> Status:
        self._step("fstat")
        return self._status(self._of(fd).node)

    def listdir(self, fd: int, /) -> list[str]:
        self._step("listdir")
        return list(self._of(fd).node.entries)

    def pread(self, fd: int, length: int, offset: int, /) -> bytes:
        self._step("pread")
        return bytes(self._of(fd).node.content[offset : offset + length])

    def write(self, fd: int, data: bytes, /) -> int:
        """A short write takes half; a failed one takes nothing."""
        file = self._of(fd)
        taken = len(data) // 2 if self._step("write") == SHORT else len(data)
        offset = len(file.node.content) if file.append else file.position
        file.node.change(_Change(offset, data[:taken]))
        file.position = offset + taken
        self._disk.version += 1
        return taken

    def fsync(self, fd: int, /) -> None:
        file = self._of(fd)
        try:
            self._step("fsync")
        except OSError:
            file.node.fail_sync()
            file.errors_seen = file.node.errors
            raise
        if file.errors_seen != file.node.errors:
            file.errors_seen = file.node.errors
            raise OSError(errno.EIO, "reported once to every descriptor")
        file.node.sync()
        self._disk.version += 1

    def ftruncate(self, fd: int, length: int, /) -> None:
        self._step("ftruncate")
        node = self._of(fd).node
        if length < len(node.content):
            node.change(_Change(length, None))
            self._disk.version += 1

    def flock(self, fd: int, operation: int, /) -> None:
        """With `LOCK_NB` a wait all the same, as long as the library itself would poll, unless `flock` is to fail."""
        file, node, scheduler = self._of(fd), self._of(fd).node, self._scheduler
        if operation & fcntl.LOCK_UN:
            self._step("unlock")
            self._unlock(file)
            return
        polls = bool(operation & fcntl.LOCK_NB)
        if polls:
            scheduler.exclude(True)
        try:
            self._step("flock")
            scheduler.wait(lambda: node.owner in (None, file))
        except OSError:
            scheduler.exclude(False)
            raise
        node.owner = file

    def close(self, fd: int, /) -> None:
        self._step("close")
        self._unlock(self._open.pop(fd))

    def mount_type(self, fd: int, /) -> str:
        return "ext4"

    def release(self) -> None:
        """The process is dead."""
        for file in self._open.values():
            if file.node.owner is file:
                file.node.owner = None
        self._open.clear()

    def _unlock(self, file: _OpenFile) -> None:
        if file.node.owner is file:
            file.node.owner = None
            self._scheduler.exclude(False)

    def _step(self, call: str) -> int:
        self._scheduler.step(call)
        error = self._faults.next(call)
        if error > 0:
            raise (BlockingIOError if error == errno.EAGAIN else OSError)(error, "simulated")
        return error

    def _of(self, fd: int) -> _OpenFile:
        if fd not in self._open:
            raise OSError(errno.EBADF, "closed")
        return self._open[fd]

    def _place(self, path: str, dir_fd: int | None) -> tuple[Node, str]:
        parts = PurePosixPath(path).parts
        if dir_fd is not None:
            return self._of(dir_fd).node, path
        node = self._disk.root
        for name in parts[1:-1]:
            child = node.entries.get(name)
            if child is None:
                raise FileNotFoundError(errno.ENOENT, "absent")
            node = child
        return node, parts[-1] if len(parts) > 1 else ""

    def _status(self, node: Node) -> Status:
        mode = stat.S_IFDIR | 0o700 if node.is_directory else stat.S_IFREG | 0o600
        return Status(mode, node.number, self._process.slot, 1, os.geteuid(), len(node.content))

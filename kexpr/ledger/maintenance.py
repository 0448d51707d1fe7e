"""Looking at a ledger, and the one repair there is, for a stopped or a running owner (authorities, "JSONL rules").

None of these needs the authorities, the key or a projection, and none but `repair` writes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.failpoints import reach
from kexpr.file_system import REAL, FileSystem
from kexpr.ledger.locking import LOCK_NAME, DirectoryLock
from kexpr.ledger.protocol import Head
from kexpr.ledger.rows import Chain
from kexpr.ledger.segments import Segments, TornTail, segment_names
from kexpr.private_files import PrivateDirectory, coding

__all__ = ["Repair", "Report", "head", "is_empty", "repair", "verify"]

_MAX_QUARANTINES: Final = 1000


@dataclass(frozen=True, slots=True)
class Report:
    """A verified ledger. `rows` counts decisions, without the headers that `head.sequence` counts too."""

    head: Head
    rows: int
    segments: int


@dataclass(frozen=True, slots=True)
class Repair:
    """The quarantine file and its size, or None and 0 when nothing was torn; and the head that is left."""

    quarantined: str | None
    size_bytes: int
    head: Head


@coding()
def verify(
    directory: Path, *, genesis: str | None = None, expected: Head | None = None, files: FileSystem = REAL
) -> Report:
    """Verify every line. With `genesis` (`private_files.genesis_digest`) the key too, with `expected` that head.

    Appends may go on meanwhile: the lock is held only while the sizes are read. Raises `LedgerFailed`.
    """
    with _opened(directory, Chain(genesis, expected), os.O_RDONLY, files) as (private, segments):
        with _quiet(private):
            snapshot = segments.snapshot()
        segments.advance(snapshot, None)
    segments.chain.require_expected()
    headers = sum(1 for _, size in snapshot if size)
    return Report(segments.chain.head, segments.chain.sequence - headers, headers)


def head(directory: Path, *, genesis: str | None = None, files: FileSystem = REAL) -> Head:
    """The high-water mark to keep elsewhere, of a chain that was verified up to it. Raises `LedgerFailed`."""
    return verify(directory, genesis=genesis, files=files).head


@coding()
def is_empty(directory: Path, *, files: FileSystem = REAL) -> bool:
    """Whether no journal exists there: no segment holds a byte. Raises `LedgerFailed`."""
    try:
        private = PrivateDirectory.open(directory, files=files, create=False)
    except FileNotFoundError:
        return True
    try:
        return not any(private.size(name) for name in segment_names(private))
    finally:
        private.close()


@coding()
def repair(directory: Path, *, files: FileSystem = REAL) -> Repair:
    """Move exactly a torn tail into a private file next to its segment, durably, then cut it off.

    The tail is the last line, invalid, never acknowledged. Anything else that is wrong is corruption and is refused
    with its code; nothing is changed then. A crash in between leaves the tail in place, and at most a copy of it.
    """
    with _opened(directory, Chain(None), os.O_RDWR, files) as (private, segments), _quiet(private):
        try:
            segments.advance(segments.snapshot(), None)
        except TornTail as tail:
            offset = tail.offset
        else:
            return Repair(None, 0, segments.chain.head)
        return _quarantine(private, segments, offset)


def _quarantine(private: PrivateDirectory, segments: Segments, offset: int) -> Repair:
    files = private.files
    length = files.fstat(segments.fd).st_size - offset
    tail = files.pread(segments.fd, length, offset)
    if len(tail) != length:
        raise LedgerFailed(StoreFault.INPUT_OUTPUT)
    name = _create_unused(private, segments.names[-1], tail)
    reach("repair.copied")
    files.ftruncate(segments.fd, offset)
    reach("repair.cut")
    files.fsync(segments.fd)
    reach("repair.synced")
    return Repair(name, length, segments.chain.head)


def _create_unused(private: PrivateDirectory, segment: str, content: bytes) -> str:
    """A new file beside `segment`; its name is no segment's."""
    for number in range(1, _MAX_QUARANTINES):
        name = f"{segment}.torn-{number}"
        try:
            private.create(name, content)
        except FileExistsError:
            continue
        return name
    raise LedgerFailed(StoreFault.INPUT_OUTPUT)


@contextmanager
def _opened(path: Path, chain: Chain, flags: int, files: FileSystem) -> Iterator[tuple[PrivateDirectory, Segments]]:
    private = PrivateDirectory.open(path, files=files, create=False)
    segments = Segments(private, chain, flags)
    try:
        yield private, segments
    finally:
        segments.close()
        private.close()


@contextmanager
def _quiet(private: PrivateDirectory) -> Iterator[None]:
    """No appends meanwhile. A copy without its lock file has no writer; looking at it must not make one."""
    if not private.exists(LOCK_NAME):
        yield
        return
    lock = DirectoryLock.open(private)
    try:
        with lock.held():
            yield
    finally:
        lock.close()

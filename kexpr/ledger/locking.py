"""One writer at a time: between threads and ledger objects of this process, then between processes.

`flock` belongs to an open file description, so threads that share one would all pass; hence a mutex per directory as
well. Both waits are bounded. A forked child must use neither: unlocking there would unlock the parent.
"""

import fcntl
import os
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final, Self

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.private_files import PrivateDirectory, coded

__all__ = ["LOCK_NAME", "WAIT_SECONDS", "DirectoryLock", "Mutex", "mutex_of"]

LOCK_NAME: Final = "lock"
WAIT_SECONDS: Final = 10.0
"""Longer than any transaction, and than reading on after a long pause; a stopped process must not hang all others."""

_POLL_SECONDS: Final = 0.0005


class Mutex:
    """A lock that tells its own thread instead of hanging it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    def acquire(self, timeout_seconds: float) -> None:
        if self._owner == threading.get_ident():
            raise LedgerFailed(StoreFault.LOCK_ORDER)
        if not self._lock.acquire(timeout=timeout_seconds):
            raise LedgerFailed(StoreFault.LOCKED_OUT)
        self._owner = threading.get_ident()

    def release(self) -> None:
        self._owner = None
        self._lock.release()


_mutexes: dict[tuple[Hashable, ...], Mutex] = {}


def mutex_of(*place: Hashable) -> Mutex:
    """The one mutex of a place in this process; a forked child starts with its own, unlocked."""
    return _mutexes.setdefault((os.getpid(), *place), Mutex())


class DirectoryLock:
    """The exclusive lock of one directory: its mutex, and `flock` on its `lock` file."""

    def __init__(self, directory: PrivateDirectory, fd: int, wait_seconds: float) -> None:
        status = directory.files.fstat(directory.fd)
        self._mutex = mutex_of(status.st_dev, status.st_ino)
        self._directory = directory
        self._fd = fd
        self._wait_seconds = wait_seconds
        self._pid = os.getpid()

    @classmethod
    def open(cls, directory: PrivateDirectory, *, wait_seconds: float = WAIT_SECONDS) -> Self:
        """Open the lock file, creating it durably. Raises `LedgerFailed`."""
        try:
            directory.create(LOCK_NAME, b"")
        except FileExistsError:
            pass
        return cls(directory, directory.open_file(LOCK_NAME, os.O_RDONLY), wait_seconds)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold both. Raises `LedgerFailed`: `USED_AFTER_FORK`, `LOCK_ORDER` (this thread has it), `LOCKED_OUT`,
        `CLOSED`, or `HEAD_MISMATCH` when the lock file or the directory is no longer the one that was opened.
        """
        with self.excluded():
            self._lock_file()
            try:
                if not (self._directory.holds(LOCK_NAME, self._fd) and self._directory.is_in_place()):
                    raise LedgerFailed(StoreFault.HEAD_MISMATCH)
                yield
            finally:
                if os.getpid() == self._pid:
                    self._directory.files.flock(self._fd, fcntl.LOCK_UN)

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Hold the mutex alone: no other thread of this process is in `held`."""
        if os.getpid() != self._pid:
            raise LedgerFailed(StoreFault.USED_AFTER_FORK)
        self._mutex.acquire(self._wait_seconds)
        try:
            if self._fd < 0:
                raise LedgerFailed(StoreFault.CLOSED)
            yield
        finally:
            self._mutex.release()

    def _lock_file(self) -> None:
        """Poll, since `flock` itself cannot be bounded without a signal."""
        for _ in range(max(1, round(self._wait_seconds / _POLL_SECONDS))):
            if self._try_lock():
                return
            time.sleep(_POLL_SECONDS)
        raise LedgerFailed(StoreFault.LOCKED_OUT)

    @coded
    def _try_lock(self) -> bool:
        try:
            self._directory.files.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Called within `excluded`, so that no waiting thread finds another file under the old descriptor."""
        self._directory.files.close(self._fd)
        self._fd = -1

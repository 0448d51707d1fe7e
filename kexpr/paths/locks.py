"""The publication lock: one holder per message among all threads and processes of a gateway.

It makes an ordinary double tap safe: the second tap waits until the first has published. On one host, one file serves
every message: an open-file-description byte-range lock at the message's own offset, which the kernel releases when its
holder dies. The lock among the threads of one process comes first and cannot fail: a tap that cannot have the other one
still waits for a tap of its own process, so that its canonical text never precedes a selected one.
"""

import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from kexpr.private_files import PrivateDirectory, coding

__all__ = ["FilePublicationLocks", "PublicationLocks", "ThreadLocks"]

_NAME: Final = "publication.lock"
_FLOCK: Final = struct.Struct("hhqqi4x")
_OFFSETS: Final = 1 << 62


class PublicationLocks(Protocol):
    def among_threads(self, *message: str) -> AbstractContextManager[None]:
        """Hold the message's lock among the threads of this process. Always taken before `hold`; never fails."""
        ...

    def hold(self, *message: str) -> AbstractContextManager[None]:
        """Hold the lock of one message, named by its identity fields (never stored). Raises `LedgerFailed`."""
        ...

    def close(self) -> None: ...


class ThreadLocks:
    """One lock a message, while somebody holds it or waits for it. May be let go of by another thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[tuple[str, ...], tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, *message: str) -> Iterator[None]:
        with self._guard:
            lock, users = self._locks.get(message, (threading.Lock(), 0))
            self._locks[message] = lock, users + 1
        lock.acquire()
        try:
            yield
        finally:
            lock.release()
            with self._guard:
                lock, users = self._locks.pop(message)
                if users > 1:
                    self._locks[message] = lock, users - 1


class FilePublicationLocks:
    """Locks under a private directory (0700). Waiting has no bound of its own: a holder is bounded by its delivery."""

    def __init__(self, directory: Path) -> None:
        self._directory = PrivateDirectory.open(directory)
        self._threads = ThreadLocks()

    def among_threads(self, *message: str) -> AbstractContextManager[None]:
        return self._threads.hold(*message)

    def close(self) -> None:
        self._directory.close()

    @contextmanager
    def hold(self, *message: str) -> Iterator[None]:
        """Hold the lock of one message, named by its identity fields (never stored). Raises `LedgerFailed`."""
        digest = hashlib.sha256("\0".join(message).encode("utf-8", "surrogatepass")).digest()
        offset = int.from_bytes(digest[:8], "big") % _OFFSETS
        descriptor = self._directory.open_file(_NAME, os.O_RDWR | os.O_CREAT)
        try:
            _take(descriptor, offset)
            yield
        finally:
            os.close(descriptor)


@coding()
def _take(descriptor: int, offset: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0))

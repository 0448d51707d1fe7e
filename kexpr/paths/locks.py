"""The publication lock: one holder per message among all threads and processes of a gateway.

It makes an ordinary double tap safe: the second tap waits until the first has published. On one host, one file serves
every message: an open-file-description byte-range lock at the message's own offset, which the kernel releases when its
holder dies.
"""

import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from kexpr.private_files import PrivateDirectory, coding

__all__ = ["FilePublicationLocks", "PublicationLocks"]

_NAME: Final = "publication.lock"
_FLOCK: Final = struct.Struct("hhqqi4x")
_OFFSETS: Final = 1 << 62


class PublicationLocks(Protocol):
    def hold(self, *message: str) -> AbstractContextManager[None]:
        """Hold the lock of one message, named by its identity fields (never stored). Raises `LedgerFailed`."""
        ...

    def close(self) -> None: ...


class FilePublicationLocks:
    """Locks under a private directory (0700). Waiting has no bound of its own: a holder is bounded by its delivery."""

    def __init__(self, directory: Path) -> None:
        self._directory = PrivateDirectory.open(directory)

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

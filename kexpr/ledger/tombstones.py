"""Marks that outlive a ledger that was put back from an older copy (authorities, "Weekly").

They live in a directory of their own, with a backup of its own. A mark is an empty file, durable before the step that
it stands for: `claimed` before the claim row, `sending` before the task is marked as sending. Marks are never removed.
"""

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.failpoints import reach
from kexpr.file_system import REAL, FileSystem
from kexpr.private_files import PrivateDirectory, coding

__all__ = ["Mark", "Tombstones", "require_task_digest"]

_TASK_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Mark(StrEnum):
    CLAIMED = "claimed"
    SENDING = "sending"


class Tombstones:
    """The marks of opaque task digests (SHA-256, lower-case hex). Safe between threads and processes."""

    def __init__(self, directory: PrivateDirectory) -> None:
        """Use `open`."""
        self._directory = directory

    @classmethod
    @coding()
    def open(cls, directory: Path, *, files: FileSystem = REAL) -> Self:
        """Open the directory, made 0700 when absent; it is not that of a ledger. Raises `LedgerFailed`."""
        return cls(PrivateDirectory.open(directory, files=files))

    @coding()
    def mark(self, task_digest: str, mark: Mark) -> None:
        """Make a mark durable. Again is the same: it is synced again, since whoever made it may have died before.

        Raises `LedgerFailed`: the step that the mark stands for must not be taken then.
        """
        directory = self._directory
        fd = directory.open_file(_name(task_digest, mark), os.O_WRONLY | os.O_CREAT)
        try:
            directory.files.fsync(fd)
        finally:
            directory.files.close(fd)
        directory.sync()
        reach(f"tombstone.{mark}")

    def marks(self, task_digest: str) -> frozenset[Mark]:
        """The marks of a task. Raises `LedgerFailed` also when what has the name of a mark is not a private file."""
        return frozenset(mark for mark in Mark if self._directory.exists(_name(task_digest, mark)))

    def close(self) -> None:
        self._directory.close()


def require_task_digest(task_digest: str) -> None:
    """Raises `LedgerFailed(ROW_INVALID)` for what is not one, and could name a task."""
    if not _TASK_DIGEST.fullmatch(task_digest):
        raise LedgerFailed(StoreFault.ROW_INVALID)


def _name(task_digest: str, mark: Mark) -> str:
    require_task_digest(task_digest)
    return f"{task_digest}.{mark}"

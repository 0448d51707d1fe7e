"""Where a gateway's durable things live: the seam behind `kexpr.state.State`, and its one kind, a host's directory."""

from functools import partial
from pathlib import Path
from typing import Final, Protocol

from kexpr.authority.steps import LedgerOpener
from kexpr.authority.weekly import TaskMarks
from kexpr.clock import Clock, SystemClock
from kexpr.ledger import maintenance
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.tombstones import Tombstones
from kexpr.paths.locks import FilePublicationLocks, PublicationLocks

__all__ = ["LEDGERS", "FileStores", "OpenedMarks", "Stores", "tombstones_of"]

LEDGERS: Final = ("daily", "weekly", "adaptive")


class OpenedMarks(TaskMarks, Protocol):
    def close(self) -> None: ...


class Stores(Protocol):
    """Each method raises `LedgerFailed`."""

    def are_empty(self) -> bool:
        """No ledger has a row."""
        ...

    def opener(self, name: str, *, genesis: str) -> LedgerOpener:
        """Opens the ledger of one of `LEDGERS`."""
        ...

    def open_tombstones(self) -> OpenedMarks: ...

    def open_locks(self) -> PublicationLocks: ...


def tombstones_of(directory: Path, chosen: Path | None = None) -> Path:
    """The directory of the marks beside a state directory, unless one was chosen."""
    return chosen or directory.with_name(directory.name + "-tombstones")


class FileStores:
    """One host, one directory; the tombstones have one of their own (`<directory>-tombstones`)."""

    def __init__(self, directory: Path, *, tombstones: Path | None = None, clock: Clock | None = None) -> None:
        self._directory = directory
        self._tombstones = tombstones_of(directory, tombstones)
        self._clock = clock or SystemClock()

    def are_empty(self) -> bool:
        return all(maintenance.is_empty(self._directory / name) for name in LEDGERS)

    def opener(self, name: str, *, genesis: str) -> LedgerOpener:
        return partial(JsonlLedger.open, self._directory / name, clock=self._clock, genesis=genesis)

    def open_tombstones(self) -> OpenedMarks:
        return Tombstones.open(self._tombstones)

    def open_locks(self) -> PublicationLocks:
        return FilePublicationLocks(self._directory)

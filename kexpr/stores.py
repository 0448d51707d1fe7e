"""Where a gateway's durable things live: in a directory of its host, or in PostgreSQL for gateways on several hosts.

The identity key is a file of each host in both (`kexpr.state.State`). Where it binds nothing yet it may be made; the
second host gets a copy of the first one's, and a wrong one shows as `KEY_MISMATCH` at the first row.
"""

from functools import partial
from pathlib import Path
from typing import Final, Protocol

from kexpr.authority import claims
from kexpr.authority.steps import LedgerOpener
from kexpr.authority.weekly import TaskMarks
from kexpr.clock import Clock, SystemClock
from kexpr.ledger import maintenance
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.postgres import PostgresLedger
from kexpr.ledger.postgres_admin import are_empty
from kexpr.ledger.postgres_rows import ClaimOf
from kexpr.ledger.postgres_tombstones import PostgresTombstones
from kexpr.ledger.tombstones import Tombstones
from kexpr.paths.locks import FilePublicationLocks, PublicationLocks
from kexpr.paths.postgres_locks import PostgresPublicationLocks

__all__ = ["LEDGERS", "FileStores", "OpenedMarks", "PostgresStores", "Stores", "tombstones_of"]

LEDGERS: Final = ("daily", "weekly", "adaptive")

_CLAIM_OF: Final[dict[str, ClaimOf]] = {"daily": claims.daily, "weekly": claims.weekly, "adaptive": claims.adaptive}


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


class PostgresStores:
    """Gateways on several hosts: ledgers and publication locks in one database, installed before (`multi-host.md`).

    `conninfo` and `tombstones` are libpq's; the tombstones go to the same database unless they are given one of their
    own. Time is the server's.
    """

    def __init__(self, conninfo: str, *, tombstones: str | None = None) -> None:
        self._conninfo = conninfo
        self._tombstones = conninfo if tombstones is None else tombstones

    def are_empty(self) -> bool:
        return are_empty(self._conninfo, LEDGERS)

    def opener(self, name: str, *, genesis: str) -> LedgerOpener:
        return partial(PostgresLedger.open, self._conninfo, name, genesis=genesis, claim_of=_CLAIM_OF[name])

    def open_tombstones(self) -> OpenedMarks:
        return PostgresTombstones(self._tombstones)

    def open_locks(self) -> PublicationLocks:
        return PostgresPublicationLocks(self._conninfo)

"""The marks of `kexpr.ledger.tombstones`, shared by gateways on several hosts.

They have a table and a connection of their own, so that they can live in another database than the ledger, with a
backup of its own: then an older copy of the ledger's database, put back, shows here as well.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.failpoints import reach
from kexpr.ledger.locking import WAIT_SECONDS
from kexpr.ledger.postgres_session import Session
from kexpr.ledger.tombstones import Mark, require_task_digest

__all__ = ["PostgresTombstones"]

_MARK: Final = "INSERT INTO kexpr_tombstone (task, mark) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_KNOWN: Final = frozenset(map(str, Mark))
_MARKS: Final = "SELECT mark FROM kexpr_tombstone WHERE task = %s"


class PostgresTombstones:
    """The marks of opaque task digests (SHA-256, lower-case hex). Safe between threads, processes and hosts.

    `mark` and `marks` raise `LedgerFailed`; those of `Session.begin` and `COMMIT_UNKNOWN` among others.
    """

    def __init__(self, conninfo: str, *, wait_seconds: float = WAIT_SECONDS) -> None:
        """`conninfo` is libpq's; the tables are there (`postgres_admin.install`)."""
        self._session = Session(conninfo, wait_seconds=wait_seconds)
        self._lock = threading.Lock()

    def mark(self, task_digest: str, mark: Mark) -> None:
        """Make a mark durable. Again is the same. When this raises, the step it stands for must not be taken."""
        require_task_digest(task_digest)
        with self._begun():
            self._session.rows(_MARK, (task_digest, mark.value))
            self._session.commit()
        reach(f"tombstone.{mark}")

    def marks(self, task_digest: str) -> frozenset[Mark]:
        require_task_digest(task_digest)
        with self._begun():
            found = frozenset(mark for (mark,) in self._session.rows(_MARKS, (task_digest,)))
        if not found <= _KNOWN:
            raise LedgerFailed(StoreFault.ROW_INVALID)
        return frozenset(map(Mark, found))

    def close(self) -> None:
        with self._lock:
            self._session.close()

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """A transaction of which stays what was committed."""
        with self._lock:
            try:
                self._session.begin()
                yield
            finally:
                self._session.rollback()

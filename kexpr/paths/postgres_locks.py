"""The publication lock for gateways on several hosts: an advisory lock of the database, keyed by the message.

Each holder has a transaction of its own that does nothing but hold; the server ends it when its connection dies. Then
the lock is lost while its holder may still deliver: what happens at most once does not rest on this lock but on the
authorities' rows.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from kexpr.ledger.postgres_session import Session, lock_key
from kexpr.paths.locks import ThreadLocks

__all__ = ["PostgresPublicationLocks"]

WAIT_SECONDS: Final = 60.0
"""Longer than any delivery that a messenger's client would still wait for."""

_IDLE_CONNECTIONS: Final = 8


class PostgresPublicationLocks:
    """Safe between threads, processes and hosts. Keeps a few connections to use again."""

    def __init__(self, conninfo: str, *, wait_seconds: float = WAIT_SECONDS) -> None:
        """`conninfo` is libpq's; the tables are there (`postgres_admin.install`)."""
        self._conninfo = conninfo
        self._wait_seconds = wait_seconds
        self._idle: deque[Session] = deque()
        self._is_closed = False
        self._threads = ThreadLocks()

    def among_threads(self, *message: str) -> AbstractContextManager[None]:
        return self._threads.hold(*message)

    @contextmanager
    def hold(self, *message: str) -> Iterator[None]:
        """Hold the lock of one message, named by its identity fields (only their digest is sent).

        Raises `LedgerFailed`: those of `Session.begin`; nothing is published then.
        """
        session = self._taken()
        try:
            session.begin(lock_key("kexpr.publication", *message))
            yield
        finally:
            session.rollback()
            self._put_back(session)

    def close(self) -> None:
        """Drop the idle connections, and each one in use when it is let go."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _taken(self) -> Session:
        try:
            return self._idle.pop()
        except IndexError:
            return Session(self._conninfo, wait_seconds=self._wait_seconds)

    def _put_back(self, session: Session) -> None:
        if len(self._idle) >= _IDLE_CONNECTIONS:
            session.close()
        else:
            self._idle.append(session)
        if self._is_closed:
            self.close()

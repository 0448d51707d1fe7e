"""One connection to PostgreSQL, used one transaction at a time: bounded, checked, and silent about content.

Theory of operation. A transaction begins with its advisory lock, then reads in one statement, under that lock, what the
server says about itself: its clock, whether what it acknowledges is durable, and which server it is. Until something
was written, a connection found dead is opened anew once, with the same checks. After that nothing is tried again: what
fails before COMMIT is sent was rolled back, and what fails after it is not known.

psycopg's exceptions carry statements, parameters and addresses. They end here, as codes.
"""

import functools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kexpr.clock import Instant
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.locking import WAIT_SECONDS

if TYPE_CHECKING:
    from psycopg import Connection, Error
    from psycopg.abc import PQGen
    from psycopg.errors import Diagnostic

__all__ = ["Server", "Session", "lock_key"]

T = TypeVar("T")

_CONNECT_SECONDS: Final = 10.0
_REPLY_MARGIN_SECONDS: Final = 2.0
"""The client gives up this much later than the server should have, so that the server's own answer comes first."""

_DURABLE_COMMITS: Final = ("on", "remote_apply")
_IDLE: Final = 0
"""libpq's `PQTRANS_IDLE`."""
_FATAL: Final = ("FATAL", "PANIC")

_FAULT_OF_SQLSTATE: Final = {
    "0A000": StoreFault.UNREACHABLE,  # feature_not_supported: READ WRITE on a standby
    "23505": StoreFault.CHAIN_BROKEN,  # unique_violation: somebody wrote without the lock
    "25006": StoreFault.UNREACHABLE,  # read_only_sql_transaction: a standby
    "42501": StoreFault.NOT_PRIVATE,  # insufficient_privilege
    "42P01": StoreFault.NOT_INSTALLED,  # undefined_table
    "55P03": StoreFault.LOCKED_OUT,  # lock_not_available
}

_ABOUT_THE_SERVER: Final = """
SELECT floor(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint,
       current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       (pg_control_system()).system_identifier::text,
       ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int,
       home.system_identifier, home.timeline
FROM (SELECT 1) AS one
LEFT JOIN (SELECT system_identifier, timeline FROM kexpr_home ORDER BY number DESC LIMIT 1) AS home ON true
"""
"""The timeline is that of the WAL being written: the control file's lags behind a promotion until its checkpoint."""


@dataclass(frozen=True, slots=True)
class Server:
    """A database cluster on one timeline: the same after a restart, another one after a failover."""

    system_identifier: str
    timeline: int


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a server says under the lock. `home` is the server acknowledged last, None where there is none."""

    utc_ms: int
    here: Server
    home: Server | None


def lock_key(*place: str) -> int:
    """The 64-bit advisory lock of a place; two that share one only wait for each other."""
    digest = sha256("\0".join(place).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class Session:
    """Not thread-safe: its owner has a lock. Not for use after a fork. Every method raises `LedgerFailed`."""

    def __init__(self, conninfo: str, *, wait_seconds: float = WAIT_SECONDS) -> None:
        """`conninfo` is libpq's (it may be empty: environment, service and password files); nothing connects yet."""
        self._conninfo = conninfo
        self._wait_seconds = wait_seconds
        self._connection: Connection[Any] | None = None
        self._pid = os.getpid()
        self._warned = False
        self._server: Server | None = None

    def begin(self, key: int | None = None) -> Instant:
        """Begin a transaction, take its lock and check the server; the time is read after the lock.

        Raises `UNREACHABLE`, `LOCKED_OUT`, `NOT_INSTALLED`, `NOT_DURABLE` (`fsync`, `full_page_writes` or
        `synchronous_commit` is off) or `FAILED_OVER` (this is not the server acknowledged last). Nothing was written
        then.
        """
        facts = self._begun(key)
        here, before = facts.here, self._server
        # A lower timeline than one seen before is the old server back again, which knows nothing of the failover.
        went_back = before and before.system_identifier == here.system_identifier and here.timeline < before.timeline
        fault = None
        if facts.home is None:
            fault = StoreFault.NOT_INSTALLED
        elif here != facts.home or went_back:
            fault = StoreFault.FAILED_OVER
        if fault:
            self.rollback()
            raise LedgerFailed(fault)
        self._server = here
        return Instant(facts.utc_ms, facts.utc_ms, f"postgresql:{here.system_identifier}:{here.timeline}")

    def begin_on_any(self, key: int) -> tuple[Server, Server | None]:
        """The same on whatever server this is, for the operator's commands: this one, and the one acknowledged last."""
        facts = self._begun(key)
        return facts.here, facts.home

    def run(self, statements: str) -> None:
        """Run statements without parameters and, unless one is in progress, in a transaction of their own."""
        self._execute(statements)

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement of the transaction; the rows it has."""
        connection = self._connection
        if connection is None:
            raise LedgerFailed(StoreFault.UNREACHABLE)

        def fetched() -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement.encode(), parameters or None, binary=True)
            return cursor.fetchall() if cursor.description else []

        return self._coded(fetched)

    def commit(self) -> None:
        """Make it durable. Raises `COMMIT_UNKNOWN` unless the server said so without a reservation.

        A warning is one: of a commit that stopped waiting for its replica, the reply still says COMMIT.
        """
        self._warned = False
        try:
            said = self._execute("COMMIT")
        except LedgerFailed:
            said = None
        if said == "COMMIT" and not self._warned:
            return
        self.close()
        raise LedgerFailed(StoreFault.COMMIT_UNKNOWN)

    def rollback(self) -> None:
        """End a transaction, if there is one; a connection that cannot even do that is dropped."""
        if self._connection is None or self._connection.pgconn.transaction_status == _IDLE:
            return
        try:
            self._execute("ROLLBACK")
        except LedgerFailed:
            self.close()

    def close(self) -> None:
        """Drop the connection, and with it whatever it held. A forked child leaves its parent's alone."""
        connection, self._connection = self._connection, None
        if connection is not None and os.getpid() == self._pid:
            connection.close()

    def _begun(self, key: int | None) -> _Facts:
        lock = "" if key is None else f"SELECT pg_advisory_xact_lock({key})"
        wait_ms = max(1, round(self._wait_seconds * 1000))
        begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
            f"SET LOCAL lock_timeout = {wait_ms}; SET LOCAL idle_in_transaction_session_timeout = 0; {lock}"
        )
        reused = self._connection is not None
        try:
            try:
                self._execute(begin)
            except LedgerFailed:
                if self._connection is not None or not reused:
                    raise
                self._execute(begin)
            (facts,) = self.rows(_ABOUT_THE_SERVER)
        except LedgerFailed:
            self.rollback()
            raise
        utc_ms, fsync, full_page_writes, synchronous_commit, identifier, timeline, home_identifier, home_timeline = (
            facts
        )
        if fsync != "on" or full_page_writes != "on" or synchronous_commit not in _DURABLE_COMMITS:
            self.rollback()
            raise LedgerFailed(StoreFault.NOT_DURABLE)
        home = None if home_timeline is None else Server(home_identifier, home_timeline)
        return _Facts(utc_ms, Server(identifier, timeline), home)

    def _execute(self, statement: str) -> str | None:
        """Run statements without parameters, on a new connection if there is none; what the last one was called."""
        connection = self._connection or self._connect()
        return self._coded(lambda: connection.execute(statement.encode()).statusmessage)

    def _connect(self) -> "Connection[Any]":
        import psycopg

        try:
            connection = _bounded(self._wait_seconds + _REPLY_MARGIN_SECONDS).connect(
                self._conninfo,
                autocommit=True,
                application_name="kexpr",
                client_encoding="utf8",
                connect_timeout=max(2, round(min(self._wait_seconds, _CONNECT_SECONDS))),
            )
        except (psycopg.Error, OSError, ValueError):
            pass
        else:
            connection.add_notice_handler(self._notice)
            self._connection = connection
            return connection
        raise LedgerFailed(StoreFault.UNREACHABLE)

    def _notice(self, diagnostic: "Diagnostic") -> None:
        self._warned |= diagnostic.severity_nonlocalized == "WARNING"

    def _coded(self, call: Callable[[], T]) -> T:
        import psycopg

        if os.getpid() != self._pid:
            raise LedgerFailed(StoreFault.USED_AFTER_FORK)
        try:
            return call()
        except psycopg.Error as error:
            fault = self._fault_of(error)
        except BaseException:
            self.close()
            raise
        raise LedgerFailed(fault)

    def _fault_of(self, error: "Error") -> StoreFault:
        """Its code; a connection that is lost, or no longer in step, is dropped."""
        is_lost = self._connection is None or self._connection.closed or error.sqlstate is None
        if is_lost or error.diag.severity_nonlocalized in _FATAL:
            self.close()
            return StoreFault.UNREACHABLE
        return _FAULT_OF_SQLSTATE.get(error.sqlstate or "", StoreFault.INPUT_OUTPUT)


@functools.cache
def _bounded(limit_seconds: float) -> "type[Connection[Any]]":
    """A connection that waits no longer than this for a reply, also of a server that is gone without a word."""
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: "PQGen[T]", *args: Any, **kwargs: Any) -> T:
            return super().wait(_until(gen, time.monotonic() + limit_seconds), *args, **kwargs)

    return Bounded


def _until(replies: "PQGen[T]", deadline: float) -> "PQGen[T]":
    """`replies`, ended by an error at `deadline` (monotonic seconds): psycopg asks again at short intervals."""
    import psycopg

    try:
        wanted = next(replies)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                break
            wanted = replies.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result
    raise psycopg.OperationalError

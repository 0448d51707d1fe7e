"""The ledger for gateways on several hosts: the rows of `JsonlLedger` in PostgreSQL (authorities, "Ledger").

Theory of operation. A transaction of the ledger is a transaction of the database. It begins with the advisory lock of
the ledger, reads on from the verified end, and is committed when the `with` block ends, if it has appended; only then
are its rows durable, and only then does the lock go. The time is the server's, read after the lock, so that the clocks
of the hosts decide nothing.

Everything before the first append may be tried again by the next transaction: nothing was written. What fails from then
on poisons the handle, for the projection has seen rows of which nobody knows whether they are there; a COMMIT whose
reply was lost is never sent again.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Concatenate, Final, ParamSpec, Self, TypeVar

from kexpr.clock import Clock, Instant, Lease
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.failpoints import reach
from kexpr.ledger.handle import Handle, HeldTransaction
from kexpr.ledger.locking import WAIT_SECONDS, mutex_of
from kexpr.ledger.postgres_rows import ClaimOf, advance, insert
from kexpr.ledger.postgres_session import Session, lock_key
from kexpr.ledger.protocol import GENESIS_DIGEST, Head, Projection, Record, Row
from kexpr.ledger.rows import KIND_ROW, Chain, encode, row_of

__all__ = ["PostgresLedger"]

P = ParamSpec("P")
T = TypeVar("T")

_HARMLESS: Final = (StoreFault.UNREACHABLE, StoreFault.LOCKED_OUT)
"""Of reading: the chain and the projection stand where they stood, or further by whole rows."""


def _poisoning(
    method: "Callable[Concatenate[PostgresLedger, P], T]",
) -> "Callable[Concatenate[PostgresLedger, P], T]":
    """Whatever the method raises ends the use of the handle."""

    def poisoning(self: "PostgresLedger", /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.poison()
            raise

    return poisoning


class PostgresLedger(Handle):
    """A `Ledger` by its name in one database. Safe between threads, handles, processes and hosts; not over a fork."""

    def __init__(
        self,
        session: Session,
        name: str,
        chain: Chain,
        projection: Projection,
        *,
        place: tuple[str, str],
        claim_of: ClaimOf,
        wait_seconds: float,
        clock: Clock | None,
    ) -> None:
        """Use `open`."""
        super().__init__(projection)
        self._session = session
        self._name = name
        self._key = lock_key("kexpr.ledger", name)
        self._chain = chain
        self._mutex = mutex_of(*place)
        self._claim_of = claim_of
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._has_appended = False

    @classmethod
    def open(
        cls,
        conninfo: str,
        name: str,
        *,
        projection: Projection,
        claim_of: ClaimOf = lambda record: None,
        genesis: str = GENESIS_DIGEST,
        expected: Head | None = None,
        wait_seconds: float = WAIT_SECONDS,
        _clock: Clock | None = None,
    ) -> Self:
        """Open the ledger `name`, verify all of it and feed it to `projection`. Writes nothing.

        `conninfo` is libpq's. The tables are there (`postgres_admin.install`). `claim_of` says what a record claims;
        the database refuses a second row that claims the same. `genesis` and `expected` are those of `JsonlLedger`.
        `_clock` stands in for the server's, for simulations.

        Raises `LedgerFailed`: those of `Session.begin`, `CHAIN_BROKEN`, `KEY_MISMATCH`, `HEAD_MISMATCH`,
        `ILLEGAL_HISTORY`, `INPUT_OUTPUT`.
        """
        session = Session(conninfo, wait_seconds=wait_seconds)
        chain = Chain(genesis, expected)
        place = (conninfo, name)
        ledger = cls(
            session, name, chain, projection, place=place, claim_of=claim_of, wait_seconds=wait_seconds, clock=_clock
        )
        try:
            session.begin()
            advance(session, name, chain, ledger._project, claim_of)
            chain.require_expected()
            session.rollback()
        except BaseException:
            session.close()
            raise
        return ledger

    @contextmanager
    def transaction(self) -> Iterator[HeldTransaction]:
        """See `Ledger.transaction`. Raises `LedgerFailed`; what the body raises passes through.

        Raised at the end of the block: `COMMIT_UNKNOWN`, when nobody knows whether the rows are there.
        """
        self._require_usable()
        with self._excluded():
            self._require_usable()
            try:
                now = self._session.begin(self._key)
                self._catch_up()
                transaction = HeldTransaction(self, self._clock.now() if self._clock else now)
                try:
                    yield transaction
                except BaseException:
                    with suppress(LedgerFailed):
                        self._end(transaction)
                    raise
                self._end(transaction)
            finally:
                # Whatever came between, an interrupt too: a transaction left open would keep the lock from everybody.
                self._session.rollback()

    def head(self) -> Head:
        """The last verified row, as of the last transaction."""
        self._require_usable()
        return self._chain.head

    def close(self) -> None:
        """Drop the connection, after a transaction of another thread has ended; a second call does nothing."""
        if self._unusable is StoreFault.CLOSED:
            return
        with self._excluded() if os.getpid() == self._pid else nullcontext():
            self._unusable = StoreFault.CLOSED
            self._session.close()

    def append(self, now: Instant, record: Record, lease: Lease | None, mode: Mode | None) -> Row:
        """For the transaction that holds the lock."""
        self._require_usable()
        chain = self._chain
        line = encode(
            KIND_ROW,
            record,
            sequence=chain.sequence + 1,
            previous=chain.digest,
            utc=now.utc_text(),
            lease=lease,
            mode=mode,
        )
        return self._put(line, self._claim_of(record))

    @_poisoning
    def _put(self, line: bytes, claim: str | None) -> Row:
        reach("postgres.before_insert")
        insert(self._session, self._name, self._chain.sequence + 1, line, claim)
        self._has_appended = True
        reach("postgres.after_insert")
        row = row_of(self._chain.advance(line))
        self._project(row)
        return row

    def _catch_up(self) -> None:
        try:
            advance(self._session, self._name, self._chain, self._project, self._claim_of)
        except BaseException as error:
            if not isinstance(error, LedgerFailed) or error.code not in _HARMLESS:
                self.poison()
            raise

    def _end(self, transaction: HeldTransaction) -> None:
        """Commit what was appended, of which nothing stays when an append failed."""
        transaction.is_open = False
        has_appended, self._has_appended = self._has_appended, False
        if self._unusable:
            raise LedgerFailed(self._unusable)
        if has_appended:
            self._commit()

    @_poisoning
    def _commit(self) -> None:
        reach("postgres.before_commit")
        self._session.commit()
        reach("postgres.after_commit")

    @contextmanager
    def _excluded(self) -> Iterator[None]:
        """No other thread of this process is in a transaction of this ledger."""
        self._mutex.acquire(self._wait_seconds)
        try:
            yield
        finally:
            self._mutex.release()

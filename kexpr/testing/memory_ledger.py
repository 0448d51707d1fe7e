"""A `Ledger` and tombstones without a disk, for tests of authorities and paths.

A `MemoryStore` is the directory: it outlives ledgers, so that another one on it is another process, or a restart.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from kexpr.clock import Clock, Instant, Lease
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.handle import HeldTransaction
from kexpr.ledger.protocol import GENESIS_DIGEST, Head, Projection, Record, Row
from kexpr.ledger.rows import KIND_ROW, Malformed, decode, encode, row_of
from kexpr.ledger.tombstones import Mark

__all__ = ["Fault", "MemoryLedger", "MemoryStore", "MemoryTombstones"]


class Fault(StrEnum):
    """How the next append of a store fails. Both poison the ledger that appends."""

    BEFORE_WRITE = "before_write"
    AFTER_WRITE = "after_write"
    """The row is there, and whoever appended it is not told."""


class MemoryStore:
    """The lines of one ledger and its lock. `lines` may be cut or replaced, as an older copy put back would be."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.next_fault: Fault | None = None
        self.lock = threading.Lock()
        self.owner: int | None = None

    def records(self) -> list[Record]:
        """The records, decoded anew."""
        return [decode(line)["record"] for line in self.lines]


class MemoryLedger:
    """The `Ledger` protocol over a `MemoryStore`, with the rows of `JsonlLedger` and none of its chain."""

    def __init__(self, store: MemoryStore, clock: Clock, *, projection: Projection) -> None:
        self._store = store
        self._clock = clock
        self._projection = projection
        self._read = 0
        self._unusable: StoreFault | None = None
        self._catch_up()

    @contextmanager
    def transaction(self) -> Iterator[HeldTransaction]:
        """See `Ledger.transaction`."""
        store = self._store
        if store.owner == threading.get_ident():
            raise LedgerFailed(StoreFault.LOCK_ORDER)
        with store.lock:
            store.owner = threading.get_ident()
            try:
                self._catch_up()
                transaction = HeldTransaction(self, self._clock.now())
                try:
                    yield transaction
                finally:
                    transaction.is_open = False
            finally:
                store.owner = None

    def head(self) -> Head:
        if self._unusable:
            raise LedgerFailed(self._unusable)
        return Head(self._read, GENESIS_DIGEST)

    def close(self) -> None:
        self._unusable = StoreFault.CLOSED

    def append(self, now: Instant, record: Record, lease: Lease | None, mode: Mode | None) -> Row:
        """For the transaction that holds the lock."""
        if self._unusable:
            raise LedgerFailed(self._unusable)
        store = self._store
        line = encode(
            KIND_ROW,
            record,
            sequence=len(store.lines) + 1,
            previous=GENESIS_DIGEST,
            utc=now.utc_text(),
            lease=lease,
            mode=mode,
        )
        fault, store.next_fault = store.next_fault, None
        if fault is not Fault.BEFORE_WRITE:
            store.lines.append(line)
        if fault:
            self._fail(StoreFault.INPUT_OUTPUT)
        self._catch_up()
        return row_of(decode(line))

    def _catch_up(self) -> None:
        if self._unusable:
            raise LedgerFailed(self._unusable)
        if self._read > len(self._store.lines):
            self._fail(StoreFault.HEAD_MISMATCH)
        while self._read < len(self._store.lines):
            line = self._store.lines[self._read]
            self._read += 1
            self._project(line)

    def _project(self, line: bytes) -> None:
        try:
            self._projection(row_of(decode(line)))
            return
        except Malformed:
            fault = StoreFault.CHAIN_BROKEN
        except Exception:  # noqa: BLE001 - as in `JsonlLedger`: its text may carry the record
            fault = StoreFault.ILLEGAL_HISTORY
        self._fail(fault)

    def _fail(self, fault: StoreFault) -> None:
        self._unusable = StoreFault.POISONED
        raise LedgerFailed(fault)


class MemoryTombstones:
    """The marks of `kexpr.ledger.tombstones.Tombstones`, in a set that outlives its ledger."""

    def __init__(self) -> None:
        self.made: set[tuple[str, Mark]] = set()
        self.fails = False

    def mark(self, task_digest: str, mark: Mark) -> None:
        if self.fails:
            raise LedgerFailed(StoreFault.INPUT_OUTPUT)
        self.made.add((task_digest, mark))

    def marks(self, task_digest: str) -> frozenset[Mark]:
        return frozenset(mark for digest, mark in self.made if digest == task_digest)

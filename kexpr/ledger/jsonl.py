"""The embedded ledger: one host, one directory, append-only JSON lines (authorities, "JSONL rules").

Theory of operation. The chain is verified once from its first line, when the ledger is opened. After that a transaction
takes the lock, makes sure that the verified end is still there, verifies what others appended since, and feeds both to
the projection; so an append costs the same however long the ledger is. An append is one line, one `write`, one `fsync`.

What cannot be trusted any more is not used any more: after a short write, a failed write or fsync, a broken chain or a
projection that refused a row, the handle is poisoned. An fsync is never tried again, because after a failed one the
page cache no longer says what the disk has.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, Self, TypeVar

from kexpr.clock import Clock, Instant, Lease
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.failpoints import reach
from kexpr.file_system import REAL, FileSystem
from kexpr.ledger.handle import Handle, HeldTransaction
from kexpr.ledger.locking import WAIT_SECONDS, DirectoryLock
from kexpr.ledger.protocol import GENESIS_DIGEST, Head, Projection, Record, Row
from kexpr.ledger.rows import KIND_ROW, KIND_SEGMENT, Chain, Envelope, encode, row_of
from kexpr.ledger.segments import Segments, month_of
from kexpr.private_files import PrivateDirectory, coding, write_all

__all__ = ["WRITER", "JsonlLedger", "poisoning"]

WRITER: Final = os.O_RDWR | os.O_APPEND
"""How a writer opens its files."""


P = ParamSpec("P")
T = TypeVar("T")
L = TypeVar("L", bound="JsonlLedger")


def poisoning(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """Whatever the method raises ends the use of the handle; operating-system errors become a code."""
    coded = coding()(method)

    def poisoned_call(self: L, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return coded(self, *args, **kwargs)
        except BaseException:
            self.poison()
            raise

    return poisoned_call


class JsonlLedger(Handle):
    """A `Ledger` in one private directory. Safe between threads, ledger objects and processes; not over a fork."""

    def __init__(
        self,
        directory: PrivateDirectory,
        lock: DirectoryLock,
        segments: Segments,
        projection: Projection,
        clock: Clock,
    ) -> None:
        """Use `open`."""
        super().__init__(projection)
        self._directory = directory
        self._lock = lock
        self._segments = segments
        self._clock = clock

    @classmethod
    @coding()
    def open(
        cls,
        directory: Path,
        *,
        projection: Projection,
        clock: Clock,
        files: FileSystem = REAL,
        genesis: str = GENESIS_DIGEST,
        expected: Head | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> Self:
        """Open the ledger in `directory` (made 0700 when absent), verify all of it and feed it to `projection`.

        `genesis` binds the chain to a key (`private_files.genesis_digest`). `expected` is a head that was kept
        elsewhere: the chain must contain it. Nothing is written but the lock file; the first append makes the first
        segment. Waits at most `wait_seconds` for the lock.

        Raises `LedgerFailed`: `NOT_PRIVATE`, `NOT_REGULAR`, `NETWORK_FILE_SYSTEM`, `TORN_TAIL` (see
        `maintenance.repair`), `CHAIN_BROKEN`, `KEY_MISMATCH`, `HEAD_MISMATCH`, `ILLEGAL_HISTORY`, `LOCKED_OUT`,
        `INPUT_OUTPUT`.
        """
        with ExitStack() as on_error:
            private = PrivateDirectory.open(directory, files=files)
            on_error.callback(private.close)
            lock = DirectoryLock.open(private, wait_seconds=wait_seconds)
            on_error.callback(lock.close)
            segments = cls._segments_in(private, genesis, expected)
            on_error.callback(segments.close)
            ledger = cls(private, lock, segments, projection, clock)
            with lock.held():
                snapshot = segments.snapshot()
            # What is below a size taken under the lock does not change: others may append while this reads.
            segments.advance(snapshot, ledger._project)
            segments.chain.require_expected()
            on_error.pop_all()
        return ledger

    @classmethod
    def _segments_in(cls, private: PrivateDirectory, genesis: str, expected: Head | None) -> Segments:
        return Segments(private, Chain(genesis, expected), WRITER)

    @contextmanager
    def transaction(self) -> Iterator[HeldTransaction]:
        """See `Ledger.transaction`. Raises `LedgerFailed`; what the body raises passes through."""
        self._require_usable()
        with self._lock.held():
            self._require_usable()
            self._catch_up()
            transaction = HeldTransaction(self, self._clock.now())
            try:
                yield transaction
            finally:
                transaction.is_open = False

    def head(self) -> Head:
        """The last verified row of any kind, as of the last transaction."""
        self._require_usable()
        return self._segments.chain.head

    def close(self) -> None:
        """Release the descriptors, after a transaction of another thread has ended; a second call does nothing."""
        if self._unusable is StoreFault.CLOSED:
            return
        with self._lock.excluded() if os.getpid() == self._pid else nullcontext():
            self._unusable = StoreFault.CLOSED
            self._segments.close()
            self._lock.close()
            self._directory.close()

    def append(self, now: Instant, record: Record, lease: Lease | None, mode: Mode | None) -> Row:
        """For the transaction that holds the lock."""
        self._require_usable()
        utc = now.utc_text()
        self._require_segment(utc)
        line = self._encode(KIND_ROW, record, utc, lease, mode)
        return self._put_row(line)

    @poisoning
    def _catch_up(self) -> None:
        self._segments.advance(self._segments.snapshot(), self._project)

    @poisoning
    def _require_segment(self, utc: str) -> None:
        """Enter the month of `utc`, unless the ledger is in it or, by an earlier clock, past it."""
        segments = self._segments
        month = utc[:7]
        if not segments.names or month > month_of(segments.names[-1]):
            segments.create(month)
            reach("ledger.segment.created")
        if segments.size == 0:
            self._put(self._encode(KIND_SEGMENT, segments.chain.header(), utc, None, None), "ledger.segment")
            self._directory.sync()

    def _encode(self, kind: str, record: Record, utc: str, lease: Lease | None, mode: Mode | None) -> bytes:
        chain = self._segments.chain
        return encode(kind, record, sequence=chain.sequence + 1, previous=chain.digest, utc=utc, lease=lease, mode=mode)

    @poisoning
    def _put_row(self, line: bytes) -> Row:
        row = row_of(self._put(line, "ledger"))
        self._project(row)
        return row

    def _put(self, line: bytes, failpoint: str) -> Envelope:
        """Write one line durably, then step the chain over it as a reader would."""
        segments, files = self._segments, self._directory.files
        reach(f"{failpoint}.before_write")
        write_all(files, segments.fd, line + b"\n")
        reach(f"{failpoint}.after_write")
        files.fsync(segments.fd)
        reach(f"{failpoint}.after_fsync")
        envelope = segments.chain.advance(line)
        segments.size += len(line) + 1
        if files.fstat(segments.fd).st_size != segments.size:
            raise LedgerFailed(StoreFault.CHAIN_BROKEN)
        return envelope

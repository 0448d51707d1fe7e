"""The ledger: a chain of rows, appended one decision at a time. Two implementations pass one conformance suite.

A row is `{sequence, previous, kind, utc, lease, mode, record}` in the ledger's own envelope; `record` is the
authority's exact schema. `previous` is the SHA-256 of the raw previous line (without its LF), so that a verified head
pins all before it. Segment headers are rows of their own kind: they count in `sequence`, projections never see them.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from kexpr.clock import Instant, Lease
from kexpr.codes import Mode

__all__ = ["GENESIS_DIGEST", "Head", "Ledger", "Projection", "Record", "Row", "Transaction"]

Record = Mapping[str, object]

GENESIS_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class Head:
    """High-water mark: rows written and the digest of the last one. Keep it elsewhere to see a truncation."""

    sequence: int
    digest: str


@dataclass(frozen=True, slots=True)
class Row:
    """One verified row. `mode` and `lease` are the envelope's, present on claims."""

    sequence: int
    record: Record = field(repr=False)
    lease: Lease | None = None
    mode: Mode | None = None
    utc: str = ""


Projection = Callable[[Row], None]
"""Called once for every verified row in order, also for rows of other processes; it folds them into state.

What it raises, whatever it is, ends the use of the ledger as `LedgerFailed(ILLEGAL_HISTORY)`."""


class Transaction(Protocol):
    """Held under the ledger's exclusive lock; the projection is up to date."""

    @property
    def now(self) -> Instant:
        """Read after the lock was taken."""
        ...

    def append(self, record: Record, *, lease: Lease | None = None, mode: Mode | None = None) -> Row:
        """Append one row, feed it to the projection and return it.

        It is durable when the `with` block has ended without a `LedgerFailed`, in `JsonlLedger` when this returns; so
        act on it after the block. It stays when the body raises.

        `record` holds JSON values only (lists, not tuples) and must come back equal from its bytes; otherwise
        `LedgerFailed(ROW_INVALID)`, and nothing was written. Any other error poisons the ledger and raises
        `LedgerFailed`: never retried.
        """
        ...


class Ledger(Protocol):
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Take the exclusive lock (in-process, then between processes), verify the delta, feed the projection.

        Not re-entrant (`LOCK_ORDER`). Raises `LedgerFailed`; what the body raises passes through and poisons nothing.
        """
        ...

    def head(self) -> Head:
        """As of the last transaction."""
        ...

    def close(self) -> None: ...

"""What every open ledger keeps about itself: who may use it, whether it still may be used, and its projection."""

import os
from typing import Protocol

from kexpr.clock import Instant, Lease
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Projection, Record, Row

__all__ = ["Handle", "HeldTransaction"]


class Handle:
    """Usable by the process that opened it, until it is poisoned or closed."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._pid = os.getpid()
        self._unusable: StoreFault | None = None

    def poison(self) -> None:
        """End the use of this handle: what it knows may not be what is durable."""
        self._unusable = StoreFault.POISONED

    def _require_usable(self) -> None:
        if os.getpid() != self._pid:
            raise LedgerFailed(StoreFault.USED_AFTER_FORK)
        if self._unusable is not None:
            raise LedgerFailed(self._unusable)

    def _project(self, row: Row) -> None:
        try:
            self._projection(row)
        except Exception:  # noqa: BLE001 - whatever it is, its text may carry the record
            pass
        else:
            return
        raise LedgerFailed(StoreFault.ILLEGAL_HISTORY)


class _Appends(Protocol):
    def append(self, now: Instant, record: Record, lease: Lease | None, mode: Mode | None) -> Row: ...


class HeldTransaction:
    """One hold of a ledger's lock; refuses to append after it."""

    def __init__(self, ledger: _Appends, now: Instant) -> None:
        self._ledger = ledger
        self._now = now
        self.is_open = True

    @property
    def now(self) -> Instant:
        return self._now

    def append(self, record: Record, *, lease: Lease | None = None, mode: Mode | None = None) -> Row:
        if not self.is_open:
            raise LedgerFailed(StoreFault.CLOSED)
        return self._ledger.append(self._now, record, lease, mode)

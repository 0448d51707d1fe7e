"""What a service shows of the evidence: read again at each call, verified, and judged as of today.

A read costs what was appended since the last one. Evidence that cannot be verified is said to be so and never shown as
if it were good: what was verified before stands beside that, and the evidence is tried again now and then, against the
newest head that was seen.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from harness.evidence.ledger import EvidenceLedger
from harness.evidence.state import EvidenceState
from harness.evidence.summary import EvidenceSummary
from harness.policy import POLICY, GatePolicy
from harness.readiness.model import Readiness
from kexpr.clock import Clock, SystemClock
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import GENESIS_DIGEST, Head

__all__ = ["NO_EVIDENCE", "EvidenceReader", "Reading"]

RETRY_SECONDS: Final = 30.0
"""Verifying a million rows takes seconds: evidence that failed is not verified again at every scrape."""

Assess = Callable[[EvidenceSummary, GatePolicy, str, Head | None], Readiness]


NO_EVIDENCE: Final = EvidenceState().summary(Head(0, GENESIS_DIGEST), run_in_progress=False)
"""Before the first row."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`fault` is None when the evidence was verified up to `readiness.summary.head`; otherwise why it could not be
    read, and `readiness` is of what had been verified before. `utc_ms` is when it was read."""

    readiness: Readiness
    fault: StoreFault | None
    utc_ms: int

    @property
    def summary(self) -> EvidenceSummary:
        return self.readiness.summary


@dataclass(frozen=True, slots=True)
class _Key:
    """What a readiness depends on: rows, calls that a live run holds open, and the day."""

    head: Head
    in_progress: int
    as_of: str


class EvidenceReader:
    """Reads the evidence in `directory`, which it neither makes nor writes to. Thread-safe; reads take turns.

    `anchor` is the newest head that is known from elsewhere: the chain must contain it.
    """

    def __init__(
        self,
        directory: Path,
        assess: Assess,
        *,
        clock: Clock | None = None,
        policy: GatePolicy = POLICY,
        anchor: Head | None = None,
    ) -> None:
        self._directory = directory
        self._assess = assess
        self._clock = clock or SystemClock()
        self._policy = policy
        self._anchor = anchor
        self._seen = anchor
        self._lock = threading.Lock()
        self._evidence: EvidenceLedger | None = None
        self._retry_at = float("-inf")
        self._fault: StoreFault | None = None
        self._summary = NO_EVIDENCE
        self._judged: tuple[_Key, Readiness] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> Reading:
        """A new reading; never raises for evidence that cannot be read."""
        with self._lock:
            now = self._clock.now()
            self._refresh()
            return Reading(self._judge(now.utc_ms), self._fault, now.utc_ms)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _refresh(self) -> None:
        if self._fault is not None and self._clock.monotonic() < self._retry_at:
            return
        try:
            if self._evidence is None and not self._open():
                return
            assert self._evidence is not None
            self._summary = self._evidence.summary()
            self._seen = self._summary.head if self._summary.head.sequence else self._anchor
            self._fault = None
        except LedgerFailed as failed:
            self._drop()
            self._fault = failed.code
            self._retry_at = self._clock.monotonic() + RETRY_SECONDS

    def _open(self) -> bool:
        """False while nothing was ever written: then there is nothing to read, and nothing wrong either."""
        if self._seen is None and not self._directory.exists():
            return False
        if not self._directory.exists():
            raise LedgerFailed(StoreFault.HEAD_MISMATCH)
        self._evidence = EvidenceLedger.open(self._directory, self._clock, expected=self._seen)
        return True

    def _drop(self) -> None:
        if self._evidence is not None:
            self._evidence.close()
            self._evidence = None

    def _judge(self, utc_ms: int) -> Readiness:
        summary = self._summary
        as_of = datetime.fromtimestamp(utc_ms / 1000, UTC).date().isoformat()
        key = _Key(summary.head, summary.in_progress, as_of)
        if self._judged is None or self._judged[0] != key:
            self._judged = key, self._assess(summary, self._policy, as_of, self._anchor)
        return self._judged[1]

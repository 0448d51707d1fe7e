"""Time, injected. UTC is for people; expiry on one host uses the boot id and `CLOCK_BOOTTIME` (authorities, "Time")."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

__all__ = ["CLAIM_LEASE_MS", "Clock", "Instant", "Lease", "SystemClock", "is_expired", "lease_from"]

CLAIM_LEASE_MS: Final = 4_000
"""A claim lives this long; the worker's wall deadline is the same (contract, section 5)."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Instant:
    """One reading of every clock. `boot_id` is None where the host does not say."""

    utc_ms: int
    boottime_ms: int
    boot_id: str | None

    def utc_text(self) -> str:
        """RFC 3339 UTC with milliseconds, for people."""
        moment = datetime.fromtimestamp(self.utc_ms / 1000, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.utc_ms % 1000:03d}Z"


@dataclass(frozen=True, slots=True)
class Lease:
    """Until when a claim is alive, on the clock that wrote it."""

    utc_deadline_ms: int
    boottime_deadline_ms: int
    boot_id: str | None

    def remaining_ms(self, now: Instant) -> int:
        """Milliseconds left; 0 when expired. Another boot means expired; an unreadable boot id falls back to UTC.

        Never more than one lease length: a clock that jumped back does not keep a claim alive for longer.
        """
        if self.boot_id is not None and now.boot_id is not None:
            left = self.boottime_deadline_ms - now.boottime_ms if self.boot_id == now.boot_id else 0
        else:
            left = self.utc_deadline_ms - now.utc_ms
        return max(0, min(left, CLAIM_LEASE_MS))


def lease_from(now: Instant, length_ms: int = CLAIM_LEASE_MS) -> Lease:
    return Lease(now.utc_ms + length_ms, now.boottime_ms + length_ms, now.boot_id)


def is_expired(lease: Lease, now: Instant) -> bool:
    return lease.remaining_ms(now) == 0


class Clock(Protocol):
    def now(self) -> Instant: ...

    def monotonic(self) -> float:
        """Seconds, for deadlines inside one process."""
        ...


class SystemClock:
    """The machine's clocks; the boot id is read once, since it cannot change under a process."""

    def __init__(self) -> None:
        try:
            self._boot_id: str | None = _BOOT_ID.read_text("ascii").strip() or None
        except (OSError, ValueError):
            self._boot_id = None

    def now(self) -> Instant:
        boottime_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        return Instant(time.time_ns() // 1_000_000, boottime_ms, self._boot_id)

    def monotonic(self) -> float:
        return time.monotonic()

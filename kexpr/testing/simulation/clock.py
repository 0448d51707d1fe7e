"""One machine's clocks, moved by hand."""

from dataclasses import dataclass
from typing import Final

from kexpr.clock import Instant

__all__ = ["MachineClock", "ProcessClock"]

_START_UTC_MS: Final = 1_768_000_000_000
"""2026-01-09."""


@dataclass
class MachineClock:
    """UTC jumps as it likes; `CLOCK_BOOTTIME` only grows within a boot, and starts anew with another boot id."""

    utc_ms: int = _START_UTC_MS
    boottime_ms: int = 1_000
    boots: int = 1
    latest_utc_ms: int = _START_UTC_MS

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boots}"

    def pass_ms(self, duration_ms: int) -> None:
        """Both clocks go on."""
        if duration_ms < 0:
            raise ValueError("time passes forward; use jump_utc")
        self.utc_ms += duration_ms
        self.boottime_ms += duration_ms
        self.latest_utc_ms = max(self.latest_utc_ms, self.utc_ms)

    def jump_utc(self, by_ms: int) -> None:
        """Someone set the clock, forward or back; not before 1970, where there is no text for it."""
        self.utc_ms = max(0, self.utc_ms + by_ms)
        self.latest_utc_ms = max(self.latest_utc_ms, self.utc_ms)

    def set_right(self) -> None:
        """Someone puts UTC where no reading was ever later."""
        self.utc_ms = self.latest_utc_ms

    def reboot(self) -> None:
        self.boots += 1
        self.boottime_ms = 1_000


class ProcessClock:
    """`kexpr.clock.Clock` of one process, which reads the boot id once, or cannot."""

    def __init__(self, machine: MachineClock, *, boot_id_readable: bool = True) -> None:
        self._machine = machine
        self._boot_id = machine.boot_id if boot_id_readable else None

    def now(self) -> Instant:
        return Instant(self._machine.utc_ms, self._machine.boottime_ms, self._boot_id)

    def monotonic(self) -> float:
        return self._machine.boottime_ms / 1000

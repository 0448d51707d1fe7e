"""Due observations inside the service: the same function as `observe run --due`, now and again, in its own thread.

The evidence decides what is due, so that asking often and after a restart is safe. Stopping lets a call under way end,
since nobody would see how it ended otherwise; the rest of the day's slots stay due.
"""

import threading
from collections.abc import Callable
from typing import Final

from harness.service.status import Schedule
from kexpr.clock import Clock

__all__ = ["ROUND_SECONDS", "STOP_SECONDS", "RunDue", "Scheduler"]

ROUND_SECONDS: Final = 600.0
STOP_SECONDS: Final = 6.0
"""Longer than one call, which has four seconds."""

RunDue = Callable[[Callable[[], bool]], str]
"""Runs what is due and says in one word how that went. It asks before each call whether to stop."""


class Scheduler:
    """Rounds of `run_due`. A round that fails says `failed`; the next one comes all the same."""

    def __init__(self, run_due: RunDue, clock: Clock) -> None:
        self._run_due = run_due
        self._clock = clock
        self._stop = threading.Event()
        self._state = Schedule(None, None)
        self._thread = threading.Thread(target=self._rounds, name="schedule", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """True when the thread has ended, within the time of a call."""
        self._stop.set()
        self._thread.join(STOP_SECONDS)
        return not self._thread.is_alive()

    def state(self) -> Schedule:
        return self._state

    def _rounds(self) -> None:
        while not self._stop.is_set():
            try:
                word = self._run_due(self._stop.is_set)
            except Exception:  # noqa: BLE001 - a round must not end the rounds, and what it says stays here
                word = "failed"
            self._state = Schedule(word, self._clock.now().utc_ms)
            self._stop.wait(ROUND_SECONDS)

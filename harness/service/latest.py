"""One reading at a time, however many ask, and never longer than a scrape may wait."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from harness.reading import Reading

__all__ = ["Latest", "Shown"]

WAIT_SECONDS: Final = 2.0
"""A scrape's own timeout is 10 s or less. Reading takes milliseconds, unless a writer holds the ledger's lock."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A reading and its metrics. `stale`: a newer one is on its way and did not arrive in time."""

    reading: Reading
    metrics: bytes
    stale: bool = False


class Latest:
    """`make` reads and renders, beside the event loop; those who ask meanwhile share the answer."""

    def __init__(self, make: Callable[[], Shown]) -> None:
        """Makes the first one, so that there always is one to show."""
        self._make = make
        self._shown = make()
        self._making: asyncio.Future[Shown] | None = None

    async def get(self) -> Shown:
        if self._making is None or self._making.done():
            self._making = self._begin()
        try:
            self._shown = await asyncio.wait_for(asyncio.shield(self._making), WAIT_SECONDS)
        except TimeoutError:
            return replace(self._shown, stale=True)
        return self._shown

    def _begin(self) -> asyncio.Future[Shown]:
        """In a thread that no shutdown waits for: a reading that hangs on a lock is nobody's then."""
        loop = asyncio.get_running_loop()
        promise: asyncio.Future[Shown] = loop.create_future()

        def settle(shown: Shown | None) -> None:
            if promise.done():
                return
            if shown is None:
                promise.set_exception(RuntimeError("no reading"))
            else:
                promise.set_result(shown)

        def work() -> None:
            shown = None
            try:
                shown = self._make()
            finally:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(settle, shown)

        threading.Thread(target=work, name="evidence", daemon=True).start()
        return promise

"""What the three paths share: their collaborators, and the watch over a claim in flight."""

from collections.abc import Callable

from kexpr.coordinator import Coordinator
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import Publication, ThreadTimers, Timers

__all__ = ["Path"]


class Path:
    """Base of the paths. Thread-safe."""

    def __init__(self, coordinator: Coordinator, locks: PublicationLocks, timers: Timers | None = None) -> None:
        self._coordinator = coordinator
        self._locks = locks
        self._timers = timers or ThreadTimers()

    def _watched(self, publication: Publication, again: Callable[[], object]) -> Publication:
        """Arm a timer that looks again at the end of a claim in flight."""
        if publication.wait_ms:
            self._timers.call_later(publication.wait_ms, lambda: _quietly(again))
        return publication


def _quietly(call: Callable[[], object]) -> None:
    """A timer has no caller to raise to: what the host's delivery raises stays with the host's own replay."""
    try:
        call()
    except Exception:  # noqa: BLE001 - the host's exception may carry content, and no one waits for it
        return

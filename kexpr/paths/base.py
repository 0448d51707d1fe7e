"""What the three paths share: their collaborators, and the watch over a claim in flight."""

from collections.abc import Callable
from contextlib import ExitStack

from kexpr.clock import CLAIM_LEASE_MS
from kexpr.coordinator import Coordinator
from kexpr.errors import AuthorityFailed, KexprError, StoreFault
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import STOPPED, Held, Publication, ThreadTimers, Timers

__all__ = ["Path", "stopping", "watched"]


class Path:
    """Base of the paths. Thread-safe."""

    def __init__(self, coordinator: Coordinator, locks: PublicationLocks, timers: Timers | None = None) -> None:
        self._coordinator = coordinator
        self._locks = locks
        self._timers = timers or ThreadTimers()

    def _held(
        self, message: tuple[str, ...], prepare: Callable[[], Publication], without_lock: Callable[[], Publication]
    ) -> Held:
        """Prepare under the message's lock. A lock that another call keeps for too long: look again later."""
        with ExitStack() as stack:
            stack.enter_context(self._locks.among_threads(*message))
            try:
                stack.enter_context(self._locks.hold(*message))
            except AuthorityFailed as failed:
                prepare = _look_again if failed.code is StoreFault.LOCKED_OUT else without_lock
            return Held(prepare(), stack.pop_all())

    def _watched(self, publication: Publication, again: Callable[[], object]) -> Publication:
        """Arm a timer that looks again at the end of a claim in flight."""
        return watched(self._timers, publication, again)


def watched(timers: Timers, publication: Publication, again: Callable[[], object]) -> Publication:
    """Arm a timer that looks again at the end of a claim in flight."""
    if publication.wait_ms:
        timers.call_later(publication.wait_ms, lambda: _quietly(again))
    return publication


def stopping(prepare: Callable[[], Publication]) -> Callable[[], Publication]:
    """`prepare`, of which any error is a stop: nothing is delivered."""

    def prepared() -> Publication:
        try:
            return prepare()
        except KexprError:
            return STOPPED

    return prepared


def _look_again() -> Publication:
    return Publication(None, wait_ms=CLAIM_LEASE_MS)


def _quietly(call: Callable[[], object]) -> None:
    """A timer has no caller to raise to: what the host's delivery raises stays with the host's own replay."""
    try:
        call()
    except Exception:  # noqa: BLE001 - the host's exception may carry content, and no one waits for it
        return

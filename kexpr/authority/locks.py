"""Two locks, always in one order: the authority session, then the publication ledger (authorities, "Adaptive").

The order is asserted before a lock is taken, so that a host that calls back from inside gets a code and not a deadlock.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from kexpr.authority.steps import ask
from kexpr.errors import AuthorityFailed, StoreFault
from kexpr.ledger.protocol import Ledger, Transaction

__all__ = ["OrderedLocks"]

_SESSION = 1
_PUBLICATION = 2


class OrderedLocks:
    """The session lock, injected by the host, and the publication ledger's own lock."""

    def __init__(self, session_lock: Callable[[], AbstractContextManager[object]], ledger: Ledger) -> None:
        self._session_lock = session_lock
        self._ledger = ledger
        self._held = threading.local()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold the session lock. Raises `AuthorityFailed(LOCK_ORDER)` when this thread holds either lock."""
        with self._ranked(_SESSION, above=0), ExitStack() as stack:
            ask(lambda: stack.enter_context(self._session_lock()))
            yield

    @contextmanager
    def publication(self) -> Iterator[Transaction]:
        """Hold the ledger's lock. Raises `AuthorityFailed(LOCK_ORDER)` unless this thread has the session lock."""
        with self._ranked(_PUBLICATION, above=_SESSION), self._ledger.transaction() as transaction:
            yield transaction

    @contextmanager
    def both(self) -> Iterator[Transaction]:
        """Hold both, in order, for one step."""
        with self.session(), self.publication() as transaction:
            yield transaction

    @contextmanager
    def _ranked(self, rank: int, *, above: int) -> Iterator[None]:
        if getattr(self._held, "rank", 0) != above:
            raise AuthorityFailed(StoreFault.LOCK_ORDER)
        self._held.rank = rank
        try:
            yield
        finally:
            self._held.rank = above

"""The state directory of one gateway: identity key, publication lock, the three ledgers and the tombstones.

    STATE/identity.key   STATE/publication.lock   STATE/daily/   STATE/weekly/   STATE/adaptive/   TOMBSTONES/

The key is made only where no ledger has a row, and each chain begins with a digest of it, so that a lost or exchanged
key shows at the next start. Keep the tombstones on a backup of their own (authorities, "Weekly").
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Final, Self

from kexpr.authority.adaptive import AdaptiveAuthority, OperatorSession
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.steps import LedgerOpener
from kexpr.authority.weekly import WeeklyAuthority
from kexpr.clock import Clock, SystemClock
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.tombstones import Tombstones
from kexpr.paths.locks import PublicationLocks
from kexpr.private_files import PrivateDirectory, genesis_digest, identity_key

__all__ = ["State"]

_LEDGERS: Final = ("daily", "weekly", "adaptive")


class State:
    """Opened state. Everything below it raises `LedgerFailed` when it is not private, whole or ours.

    A context manager; `close` closes every authority that was opened here.
    """

    def __init__(self, directory: Path, *, tombstones: Path | None = None, clock: Clock | None = None) -> None:
        """Open or create `directory` (0700). `tombstones` has a directory of its own (`<directory>-tombstones`)."""
        root = PrivateDirectory.open(directory)
        empty = not any(next((directory / name).glob("ledger-*"), None) for name in _LEDGERS)
        self.directory = directory
        self.identity_key = identity_key(root, ledger_is_empty=empty)
        self.locks = PublicationLocks(directory)
        self._tombstones = tombstones or directory.with_name(directory.name + "-tombstones")
        self._clock = clock or SystemClock()
        self._opened = ExitStack()
        self._opened.callback(self.locks.close)
        root.close()

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def daily(self, finalized_event_exists: Callable[[str], bool]) -> DailyAuthority:
        return self._opened.enter_context(closing(DailyAuthority(self._opener("daily"), finalized_event_exists)))

    def weekly(self, ready_fence: Callable[[str], bool]) -> WeeklyAuthority:
        tombstones = self._opened.enter_context(closing(Tombstones.open(self._tombstones)))
        return self._opened.enter_context(closing(WeeklyAuthority(self._opener("weekly"), tombstones, ready_fence)))

    def adaptive(
        self, session_lock: Callable[[], AbstractContextManager[object]], session: OperatorSession
    ) -> AdaptiveAuthority:
        authority = AdaptiveAuthority(self._opener("adaptive"), session_lock, session)
        return self._opened.enter_context(closing(authority))

    def _opener(self, name: str) -> LedgerOpener:
        return partial(
            JsonlLedger.open,
            self.directory / name,
            clock=self._clock,
            genesis=genesis_digest(self.identity_key),
        )

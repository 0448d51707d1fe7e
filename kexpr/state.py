"""The state of one gateway: identity key, publication locks, the three ledgers and the tombstones.

    STATE/identity.key   STATE/publication.lock   STATE/daily/   STATE/weekly/   STATE/adaptive/   TOMBSTONES/

The key is made only where no ledger has a row, and each chain begins with a digest of it, so that a lost or exchanged
key shows at the next start. Keep the tombstones on a backup of their own (authorities, "Weekly").
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Self

from kexpr.authority.adaptive import AdaptiveAuthority, OperatorSession
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.steps import LedgerOpener
from kexpr.authority.weekly import WeeklyAuthority
from kexpr.clock import Clock
from kexpr.file_system import REAL, FileSystem
from kexpr.private_files import PrivateDirectory, genesis_digest, identity_key
from kexpr.stores import FileStores, Stores

__all__ = ["State"]


class State:
    """Opened state. Everything below it raises `LedgerFailed` when it is not private, whole or ours.

    A context manager; `close` closes every authority that was opened here.
    """

    def __init__(
        self,
        directory: Path,
        *,
        tombstones: Path | None = None,
        clock: Clock | None = None,
        stores: Stores | None = None,
        files: FileSystem = REAL,
    ) -> None:
        """Open or create `directory` (0700). `tombstones` and `clock` are those of `FileStores`, the default.

        `files` holds the identity key; `stores` bring their own.
        """
        self._stores = stores or FileStores(directory, tombstones=tombstones, clock=clock)
        self.directory = directory
        with closing(PrivateDirectory.open(directory, files=files)) as root:
            self.identity_key = identity_key(root, ledger_is_empty=self._stores.are_empty())
        self.locks = self._stores.open_locks()
        self._opened = ExitStack()
        self._opened.callback(self.locks.close)

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def daily(self, finalized_event_exists: Callable[[str], bool]) -> DailyAuthority:
        return self._opened.enter_context(closing(DailyAuthority(self._opener("daily"), finalized_event_exists)))

    def weekly(self, ready_fence: Callable[[str], bool]) -> WeeklyAuthority:
        tombstones = self._opened.enter_context(closing(self._stores.open_tombstones()))
        return self._opened.enter_context(closing(WeeklyAuthority(self._opener("weekly"), tombstones, ready_fence)))

    def adaptive(
        self, session_lock: Callable[[], AbstractContextManager[object]], session: OperatorSession
    ) -> AdaptiveAuthority:
        authority = AdaptiveAuthority(self._opener("adaptive"), session_lock, session)
        return self._opened.enter_context(closing(authority))

    def _opener(self, name: str) -> LedgerOpener:
        return self._stores.opener(name, genesis=genesis_digest(self.identity_key))

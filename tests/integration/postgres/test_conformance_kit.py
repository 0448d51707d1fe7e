"""The conformance kit of `kexpr.testing` on `PostgresStores`, one schema for each check: by the server's clock, where
the end of a lease is waited for, and by a clock that the kit moves."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from kexpr.authority.adaptive import AdaptiveAuthority
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.steps import LedgerOpener
from kexpr.authority.weekly import WeeklyAuthority
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.state import State
from kexpr.stores import PostgresStores
from kexpr.testing.conformance import HostPorts, checks
from kexpr.testing.simulation.clock import MachineClock, ProcessClock
from tests.support.postgres import Cluster, execute

_OF_SERVER = checks(own_clock=True)
_EXPIRIES = (
    "a_late_worker_is_dropped",
    "an_expired_claim_ends_and_is_not_claimed_again",
    "outstanding_claims_are_expired_and_counted",
)
_KEY_OF = {"daily": "finalized_event_id", "weekly": "task_digest", "adaptive": "card_digest"}
_CRASHES = "a_crash_at_any_step_leaves_one_request_at_most"
"""Lets a lease pass after each step."""


def _rule(name: str) -> str:
    return name.partition(": ")[2]


_WAITING = [name for name in _OF_SERVER if _rule(name) in _EXPIRIES]
_MOVED = [name for name in checks() if name not in _OF_SERVER or _rule(name) == _CRASHES]


class _MovedStores(PostgresStores):
    """Those of a server whose time is the kit's."""

    def __init__(self, conninfo: str, clock: MachineClock) -> None:
        super().__init__(conninfo)
        self._clock = ProcessClock(clock)

    def opener(self, name: str, *, genesis: str) -> LedgerOpener:
        return partial(super().opener(name, genesis=genesis), _clock=self._clock)  # type: ignore[call-arg]


class PostgresKit:
    """Our three authorities in a schema of its own; each opening is another process's state."""

    def __init__(self, cluster: Cluster, directory: Path, clock: MachineClock | None) -> None:
        self.ports = HostPorts()
        self.clock = clock
        self._cluster = cluster
        self._directory = directory
        self._opened: list[State] = []
        self._conninfo = cluster.schema()

    def pass_lease(self) -> None:
        if self.clock:
            self.clock.pass_ms(CLAIM_LEASE_MS)
        else:
            self._cluster.execute("SELECT pg_sleep(%s)", CLAIM_LEASE_MS / 1000)

    def daily(self) -> DailyAuthority:
        return self._state().daily(self.ports.finalized_event_exists)

    def weekly(self) -> WeeklyAuthority:
        return self._state().weekly(self.ports.ready_fence)

    def adaptive(self) -> AdaptiveAuthority:
        return self._state().adaptive(self.ports.session_lock, self.ports)

    def _state(self) -> State:
        stores = _MovedStores(self._conninfo, self.clock) if self.clock else PostgresStores(self._conninfo)
        self._opened.append(State(self._directory, stores=stores))
        return self._opened[-1]

    def close(self) -> None:
        for state in self._opened:
            state.close()

    def artifacts(self) -> dict[tuple[str, str], list[bool]]:
        """Of each artifact in its ledger, whether each of its rows claims something, in their order."""
        found: dict[tuple[str, str], list[bool]] = {}
        rows = "SELECT ledger, line, claim IS NOT NULL FROM kexpr_row ORDER BY ledger, sequence"
        for ledger, line, claims in execute(self._conninfo, rows):
            found.setdefault((ledger, json.loads(line)["record"][_KEY_OF[ledger]]), []).append(claims)
        return found


@contextmanager
def _kit(cluster: Cluster, directory: Path, clock: MachineClock | None = None) -> Iterator[PostgresKit]:
    kit = PostgresKit(cluster, directory, clock)
    try:
        yield kit
    finally:
        kit.close()
    for rows in kit.artifacts().values():
        assert rows == [True] + [False] * (len(rows) - 1), "not the first row of an artifact is its claim"


@pytest.mark.parametrize("name", [name for name in _OF_SERVER if name not in (*_WAITING, *_MOVED)])
def test_by_the_clock_of_the_server(name: str, postgres: Cluster, tmp_path: Path) -> None:
    with _kit(postgres, tmp_path / "state") as kit:
        _OF_SERVER[name](kit)


def test_leases_end_by_the_clock_of_the_server(postgres: Cluster, tmp_path: Path) -> None:
    """All at once, since each waits for the end of a lease."""

    def check(name: str) -> None:
        with _kit(postgres, tmp_path / name.replace(": ", "-")) as kit:
            _OF_SERVER[name](kit)

    assert len(_WAITING) == 9
    with ThreadPoolExecutor(len(_WAITING)) as pool:
        list(pool.map(check, _WAITING))


@pytest.mark.parametrize("name", _MOVED)
def test_by_a_clock_that_is_moved(name: str, postgres: Cluster, tmp_path: Path) -> None:
    clock = MachineClock()
    with _kit(postgres, tmp_path / "state", clock) as kit:
        checks()[name](kit)

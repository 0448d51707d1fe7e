"""A primary that streams to a standby, and what a failover loses or keeps."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger import postgres_admin
from kexpr.ledger.postgres import PostgresLedger
from kexpr.ledger.postgres_tombstones import PostgresTombstones
from kexpr.ledger.protocol import Head, Row
from kexpr.paths.postgres_locks import PostgresPublicationLocks
from tests.support.postgres import USER, Cluster, installed, running

_WAIT_SECONDS = 15


@pytest.fixture
def primary() -> Iterator[Cluster]:
    with running() as cluster:
        yield installed(cluster)


@pytest.fixture
def standby(primary: Cluster) -> Iterator[Cluster]:
    """Streams from the primary."""
    cluster = primary.copy()
    try:
        cluster.start()
        _until(lambda: bool(primary.execute("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")))
        yield cluster
    finally:
        cluster.remove()


def _until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + _WAIT_SECONDS
    while not holds():
        assert time.monotonic() < give_up, "it never came to that"
        time.sleep(0.01)


def _open(conninfo: str) -> tuple[PostgresLedger, list[Row]]:
    rows: list[Row] = []
    return PostgresLedger.open(conninfo, "daily", projection=rows.append), rows


def _append(ledger: PostgresLedger, number: int) -> None:
    with ledger.transaction() as transaction:
        transaction.append({"n": number})


def _numbers(conninfo: str) -> list[object]:
    ledger, rows = _open(conninfo)
    ledger.close()
    return [row.record["n"] for row in rows]


def _fault(use: Callable[[], object]) -> StoreFault:
    with pytest.raises(LedgerFailed) as raised:
        use()
    return raised.value.code


def _stop_receiving(standby: Cluster) -> None:
    standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
    standby.execute("SELECT pg_reload_conf()")
    _until(lambda: not standby.execute("SELECT 1 FROM pg_stat_wal_receiver"))


def _make_synchronous(primary: Cluster) -> None:
    primary.reload({"synchronous_standby_names": "'*'"})
    _until(lambda: bool(primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")))


def test_a_replica_that_fell_behind_is_refused_until_acknowledged(primary: Cluster, standby: Cluster) -> None:
    ledger, _ = _open(primary.conninfo)
    with closing(ledger):
        _append(ledger, 1)
        received = ledger.head()
        _until(lambda: standby.execute("SELECT count(*) FROM kexpr_row") == [(1,)])
        assert _fault(lambda: _open(standby.conninfo)) is StoreFault.UNREACHABLE
        _stop_receiving(standby)
        _append(ledger, 2)
        known = ledger.head()
    primary.kill()
    standby.promote()
    _refuses_until_acknowledged(standby.conninfo, received, known)
    assert _numbers(standby.conninfo) == [1]


def _refuses_until_acknowledged(conninfo: str, received: Head, known: Head) -> None:
    acknowledge = postgres_admin.acknowledge_failover
    for expected in ({"daily": known}, {"daily": received, "weekly": known}):
        assert _fault(lambda: _open(conninfo)) is StoreFault.FAILED_OVER
        assert _fault(lambda expected=expected: acknowledge(conninfo, expected=expected)) is StoreFault.HEAD_MISMATCH  # type: ignore[misc]
    assert _fault(lambda: _open(conninfo)) is StoreFault.FAILED_OVER
    assert acknowledge(conninfo, expected={"daily": received})
    assert not acknowledge(conninfo, expected={})


def test_a_synchronous_replica_has_all_that_was_acknowledged(primary: Cluster, standby: Cluster) -> None:
    """The primary dies while claims are being made."""
    _make_synchronous(primary)
    ledger, _ = _open(primary.conninfo)
    heads: list[Head] = []

    def claim() -> None:
        try:
            while True:
                _append(ledger, len(heads) + 1)
                heads.append(ledger.head())
        except LedgerFailed:
            return

    with closing(ledger):
        claiming = threading.Thread(target=claim)
        claiming.start()
        _until(lambda: len(heads) >= 20)
        primary.kill()
        claiming.join()
        known = heads[-1]
    standby.promote()
    # What nobody was told may be there as well: the one claim whose COMMIT the primary had begun.
    assert postgres_admin.acknowledge_failover(standby.conninfo, expected={"daily": known})
    numbers = _numbers(standby.conninfo)
    assert numbers[: len(heads)] == list(range(1, len(heads) + 1))
    assert len(numbers) <= len(heads) + 1


def test_a_commit_that_stops_waiting_for_its_replica_is_not_acknowledged(primary: Cluster, standby: Cluster) -> None:
    _make_synchronous(primary)
    ledger, _ = _open(primary.conninfo)
    _append(ledger, 1)
    standby.stop()
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    cancelling = threading.Thread(target=lambda: _until(lambda: bool(primary.execute(cancel))))
    cancelling.start()
    assert _fault(lambda: _append(ledger, 2)) is StoreFault.COMMIT_UNKNOWN
    cancelling.join()
    ledger.close()
    # The server said COMMIT, and a WARNING: the row is there, for as long as this server is.
    assert _numbers(primary.conninfo) == [1, 2]


def test_a_gateway_that_saw_the_failover_refuses_the_old_primary(primary: Cluster, standby: Cluster) -> None:
    hosts = f"host={primary.directory},{standby.directory} user={USER} dbname=postgres"
    ledger, rows = _open(hosts)
    marks, locks = PostgresTombstones(hosts), PostgresPublicationLocks(hosts)
    with closing(ledger), closing(marks), closing(locks):
        _append(ledger, 1)
        _until(lambda: standby.execute("SELECT count(*) FROM kexpr_row") == [(1,)])
        primary.kill()
        standby.promote()
        assert _fault(lambda: _append(ledger, 2)) is StoreFault.FAILED_OVER
        assert postgres_admin.acknowledge_failover(standby.conninfo, expected={"daily": ledger.head()})
        _append(ledger, 3)
        marks.marks("0" * 64)
        with locks.hold("message"):
            pass
        primary.start()
        standby.stop()
        assert _fault(lambda: _append(ledger, 4)) is StoreFault.FAILED_OVER
        assert _fault(lambda: marks.marks("0" * 64)) is StoreFault.FAILED_OVER
        assert _fault(lambda: locks.hold("message").__enter__()) is StoreFault.FAILED_OVER
        assert [row.record["n"] for row in rows] == [1, 3]
    assert _numbers(primary.conninfo) == [1]


def test_a_copy_that_fails_leaves_no_directory_behind(primary: Cluster) -> None:
    before = set(primary.directory.parent.glob("kexpr-pg-*"))
    primary.stop()
    with pytest.raises(AssertionError, match="connection to server"):
        primary.copy()
    assert set(primary.directory.parent.glob("kexpr-pg-*")) <= before

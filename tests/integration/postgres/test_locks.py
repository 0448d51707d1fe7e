"""`PostgresPublicationLocks` among threads and hosts, and a server that says nothing any more."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.postgres import PostgresLedger
from kexpr.paths.postgres_locks import PostgresPublicationLocks
from tests.support.postgres import Cluster

_GATEWAYS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'kexpr'"


def _connections(cluster: Cluster) -> int:
    return len(cluster.execute(_GATEWAYS))


def test_one_holder_per_message_whoever_contends(postgres: Cluster) -> None:
    """Two gateways, twelve threads, three messages: more at once than connections are kept."""
    holders, errors = Counter[str](), list[str]()
    held = Counter[str]()
    gateways = [PostgresPublicationLocks(postgres.conninfo) for _ in range(2)]

    def contend(number: int) -> None:
        message = f"message-{number % 3}"
        for _ in range(15):
            with gateways[number % 2].hold("daily", message):
                holders[message] += 1
                if holders[message] != 1:
                    errors.append(message)
                time.sleep(0.001)
                holders[message] -= 1
                held[message] += 1

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert held == {f"message-{number}": 60 for number in range(3)}
    for gateway in gateways:
        gateway.close()
    _until_no_connection(postgres)


def _until_no_connection(cluster: Cluster) -> None:
    give_up = time.monotonic() + 10
    while _connections(cluster):
        assert time.monotonic() < give_up, "a connection is left"
        time.sleep(0.01)


def test_many_messages_at_once_keep_eight_connections(postgres: Cluster) -> None:
    locks, all_hold = PostgresPublicationLocks(postgres.conninfo), threading.Barrier(12)

    def publish(number: int) -> None:
        with locks.hold(f"message-{number}"):
            all_hold.wait(20)

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    give_up = time.monotonic() + 10
    while _connections(postgres) != 8:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    with locks.hold("one more"):
        locks.close()
    _until_no_connection(postgres)


def test_a_waiter_has_the_lock_of_a_holder_whose_connection_died(postgres: Cluster) -> None:
    with closing(PostgresPublicationLocks(postgres.conninfo, wait_seconds=0.1)) as locks:
        with locks.hold("message"):
            with pytest.raises(LedgerFailed) as raised, locks.hold("message"):
                pass
            assert raised.value.code is StoreFault.LOCKED_OUT
            postgres.execute(f"SELECT pg_terminate_backend(pid, 1000) FROM ({_GATEWAYS}) AS gateways")
            with locks.hold("message"):
                pass
        with locks.hold("message"):
            pass


@contextmanager
def _silenced(cluster: Cluster) -> Iterator[None]:
    """The server's processes for the gateways stop, with what they hold, and their connections stay."""
    processes = [process for (process,) in cluster.execute(_GATEWAYS)]
    assert processes
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def test_a_server_that_says_nothing_is_not_waited_for(postgres: Cluster) -> None:
    name = uuid4().hex

    def opened() -> PostgresLedger:
        return PostgresLedger.open(postgres.conninfo, name, projection=lambda row: None, wait_seconds=0.2)

    with closing(opened()) as one:
        with _silenced(postgres), one.transaction() as transaction:
            transaction.append({"n": 1})
        began = time.monotonic()
        with pytest.raises(LedgerFailed) as raised, one.transaction() as transaction:  # noqa: SIM117 - in this order
            with _silenced(postgres):
                transaction.append({"n": 2})
        assert raised.value.code is StoreFault.UNREACHABLE
        assert time.monotonic() - began < 10
    with closing(opened()) as again:
        assert again.head().sequence == 1

"""What the server can do to a ledger: refuse, die, go unreachable, or come back as another one."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from kexpr import failpoints
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger import postgres_admin
from kexpr.ledger.postgres import PostgresLedger
from kexpr.ledger.protocol import Record, Row
from kexpr.ledger.tombstones import Mark
from kexpr.stores import PostgresStores
from tests.support.postgres import Cluster, installed, running

_CANARY = "record-canary-4407"
_RACERS = 4
_ROUNDS = 50
_RACE = """
import sys
from kexpr.ledger.postgres import PostgresLedger
conninfo, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = set()
ledger = PostgresLedger.open(conninfo, name, projection=lambda row: seen.add(row.record["claims"]))
for n in range(rounds):
    with ledger.transaction() as transaction:
        won = f"identity-{n}" not in seen
        if won:
            transaction.append({"claims": f"identity-{n}"})
    if won:
        print(n)
"""


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A cluster that the test may break."""
    with running() as cluster:
        yield installed(cluster)


def _claim_of(record: Record) -> str | None:
    return str(record["claims"]) if "claims" in record else None


def _open(conninfo: str, name: str) -> tuple[PostgresLedger, list[Row]]:
    rows: list[Row] = []
    return PostgresLedger.open(conninfo, name, projection=rows.append, claim_of=_claim_of), rows


def _append(ledger: PostgresLedger, record: Record) -> None:
    with ledger.transaction() as transaction:
        transaction.append(record)


def _fault(use: Callable[[], object]) -> StoreFault:
    with pytest.raises(LedgerFailed) as raised:
        use()
    error: BaseException | None = raised.value
    while error is not None:
        assert isinstance(error, LedgerFailed), "what it was raised within may carry content"
        assert _CANARY not in repr(error)
        error = error.__context__
    return raised.value.code


def test_a_server_that_may_lose_what_it_acknowledged_is_refused(own: Cluster) -> None:
    ledger, _ = _open(own.conninfo, "daily")
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        _set(own, setting, "off")
        for use in (lambda: _append(ledger, {"n": 1}), lambda: postgres_admin.install(own.conninfo)):
            assert _fault(use) is StoreFault.NOT_DURABLE
        assert _fault(lambda: _open(own.conninfo, "daily")) is StoreFault.NOT_DURABLE
        _set(own, setting, "on")
    _append(ledger, {"n": 1})
    ledger.close()


def _set(cluster: Cluster, setting: str, value: str) -> None:
    """Returns when new sessions and, a moment later, idle ones have it."""
    cluster.reload({setting: value})
    while cluster.execute(f"SHOW {setting}") != [(value,)]:
        time.sleep(0.01)
    time.sleep(0.2)


def test_a_database_without_the_tables_is_refused(postgres: Cluster) -> None:
    conninfo = postgres.conninfo.replace("dbname=postgres", "dbname=template1")
    assert _fault(lambda: _open(conninfo, "daily")) is StoreFault.NOT_INSTALLED


def test_no_server_and_no_such_database_are_unreachable(postgres: Cluster) -> None:
    for conninfo in (f"host=/nowhere/{_CANARY} dbname=x", postgres.conninfo.replace("=postgres", f"={_CANARY}")):
        assert _fault(lambda conninfo=conninfo: _open(conninfo, "daily")) is StoreFault.UNREACHABLE  # type: ignore[misc]


def test_a_second_row_of_one_claim_is_refused_by_the_database(postgres: Cluster) -> None:
    ledger, _ = _open(postgres.conninfo, uuid4().hex)
    _append(ledger, {"claims": _CANARY})
    assert _fault(lambda: _append(ledger, {"claims": _CANARY})) is StoreFault.CHAIN_BROKEN
    assert _fault(ledger.head) is StoreFault.POISONED
    ledger.close()


class _Interrupted(BaseException):
    """What a signal handler may raise anywhere."""


@pytest.mark.parametrize("step", ["before_insert", "after_insert", "before_commit", "after_commit"])
def test_an_interrupted_transaction_leaves_the_lock_to_others(step: str, postgres: Cluster) -> None:
    def interrupt(name: str) -> None:
        if name == f"postgres.{step}":
            raise _Interrupted

    name = uuid4().hex
    (one, _), (two, rows) = _open(postgres.conninfo, name), _open(postgres.conninfo, name)
    failpoints.install(interrupt)
    try:
        with pytest.raises(_Interrupted):
            _append(one, {"n": 1})
    finally:
        failpoints.install(None)
    _append(two, {"n": 2})
    assert [row.record for row in rows] == ([{"n": 1}] if step == "after_commit" else []) + [{"n": 2}]
    assert _fault(one.head) is StoreFault.POISONED
    one.close()
    two.close()


def test_of_racing_processes_one_wins_each_claim(postgres: Cluster) -> None:
    command = [sys.executable, "-c", _RACE, postgres.conninfo, uuid4().hex, str(_ROUNDS)]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(_RACERS)]
    won = [int(line) for racer in racers for line in racer.communicate(timeout=60)[0].split()]
    assert [racer.returncode for racer in racers] == [0] * _RACERS
    assert sorted(won) == list(range(_ROUNDS))


def test_a_server_killed_before_the_commit_poisons_and_keeps_what_it_acknowledged(own: Cluster) -> None:
    ledger, _ = _open(own.conninfo, "daily")
    _append(ledger, {"n": 1})

    def killed() -> None:
        with ledger.transaction() as transaction:
            transaction.append({"n": 2, "text": _CANARY})
            own.run("pg_ctl", "-D", own.data, "-m", "immediate", "-w", "stop")

    assert _fault(killed) is StoreFault.COMMIT_UNKNOWN
    assert _fault(ledger.head) is StoreFault.POISONED
    own.start()
    again, rows = _open(own.conninfo, "daily")
    assert [row.record for row in rows] == [{"n": 1}]
    _append(again, {"n": 3})
    ledger.close()
    again.close()


def test_a_server_restarted_between_transactions_goes_on(own: Cluster) -> None:
    ledger, rows = _open(own.conninfo, "daily")
    _append(ledger, {"n": 1})
    own.kill()
    assert _fault(lambda: _append(ledger, {"n": 2})) is StoreFault.UNREACHABLE
    own.start()
    _append(ledger, {"n": 3})
    assert [row.record for row in rows] == [{"n": 1}, {"n": 3}]
    ledger.close()


def test_the_documented_grants_are_enough_and_needed(own: Cluster) -> None:
    own.execute("CREATE ROLE gateway LOGIN")
    conninfo = own.conninfo.replace("user=kexpr", "user=gateway")
    assert _fault(lambda: _open(conninfo, "daily")) is StoreFault.NOT_PRIVATE
    page = Path(__file__).parents[3] / "docs" / "multi-host.md"
    for grant in re.findall(r"^GRANT .* TO kexpr;$", page.read_text("utf-8"), re.MULTILINE):
        own.execute(grant.replace("TO kexpr;", "TO gateway"))
    ledger, _ = _open(conninfo, "daily")
    _append(ledger, {"n": 1})
    ledger.close()
    stores = PostgresStores(conninfo)
    assert not stores.are_empty()
    with closing(stores.open_tombstones()) as marks:
        marks.mark("0" * 64, Mark.SENDING)
        assert marks.marks("0" * 64) == {Mark.SENDING}

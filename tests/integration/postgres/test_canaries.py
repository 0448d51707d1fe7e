"""Content in rows and marks, and what is in a connection string: in no exception, no log here, no log of the server."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger import postgres_admin
from kexpr.ledger.postgres import PostgresLedger
from kexpr.ledger.postgres_tombstones import PostgresTombstones
from kexpr.ledger.protocol import Head, Record
from kexpr.ledger.tombstones import Mark
from kexpr.paths.postgres_locks import PostgresPublicationLocks
from kexpr.testing.canaries import Canaries, chain_text
from tests.support.postgres import Cluster, installed, running

_PAGE = Path(__file__).parents[3] / "docs" / "multi-host.md"
_TALKATIVE = {"log_statement": "all", "log_min_duration_statement": "0", "log_error_verbosity": "verbose"}
_SILENT = {"log_parameter_max_length": "0", "log_parameter_max_length_on_error": "0"}
_TOLD = {"log_parameter_max_length": "-1", "log_parameter_max_length_on_error": "-1"}


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server whose log the test reads and sets."""
    with running() as cluster:
        yield installed(cluster)


class _Planted:
    """Uses of the ledgers that succeed and that fail, with canaries in all they are given."""

    def __init__(self, cluster: Cluster) -> None:
        self.canaries = Canaries()
        self._cluster = cluster
        self._text, self._korean = self.canaries.plant("record"), self.canaries.plant_korean("korean record")
        self._identity = self.canaries.plant("identity")
        self._message = self.canaries.plant("message")
        self._password = self.canaries.plant("password")
        self._conninfo = f"{cluster.conninfo} password={self._password}"
        self._name = uuid4().hex
        self.said: dict[str, str | bytes] = {}

    def use(self) -> None:
        """Everything that takes content, and every way in which that fails at the server."""
        ledger = self._open()
        with closing(ledger), closing(PostgresTombstones(self._conninfo)) as marks:
            self._append(ledger)
            marks.mark(sha256(self._text.encode()).hexdigest(), Mark.SENDING)
            with (
                closing(PostgresPublicationLocks(self._conninfo, wait_seconds=0.05)) as locks,
                locks.hold(self._message),
            ):
                self._fails("lock", StoreFault.LOCKED_OUT, locks.hold(self._message).__enter__)
            self._fails("second claim", StoreFault.CHAIN_BROKEN, partial(self._append, ledger))
            self._fails("poisoned", StoreFault.POISONED, partial(self._append, ledger))
            self.said["repr"] = repr((ledger, marks, locks, ledger._session))
        self._fails("cut", StoreFault.COMMIT_UNKNOWN, self._cut)
        self._fails("head", StoreFault.HEAD_MISMATCH, lambda: self._admin(Head(1, "0" * 64)))

    def use_elsewhere(self) -> None:
        """Where no server is, and where it is but refuses."""
        socket = f"password={self._password}"
        for place, conninfo in {
            "nowhere": f"host=/nowhere dbname={self._identity} {socket}",
            "no database": f"{self._conninfo} dbname={self._identity}",
            "no role": f"{self._conninfo} user={self._identity}",
            "malformed": f"{self._conninfo} {self._identity}",
            "unknown option": f"{self._conninfo} {self._identity}=1",
            "not text": f"{self._conninfo} application_name=\ud800{self._identity}",
        }.items():
            open_there = partial(PostgresLedger.open, conninfo, "daily", projection=lambda row: None)
            self._fails(place, StoreFault.UNREACHABLE, open_there)

    def _fails(self, what: str, fault: StoreFault, use: Callable[[], object]) -> None:
        with pytest.raises(LedgerFailed) as raised:
            use()
        assert raised.value.code is fault, what
        self.said[what] = chain_text(raised.value)

    def _open(self) -> PostgresLedger:
        claim_of: Callable[[Record], str] = lambda record: str(record["identity"])  # noqa: E731
        return PostgresLedger.open(self._conninfo, self._name, projection=lambda row: None, claim_of=claim_of)

    def _append(self, ledger: PostgresLedger) -> None:
        with ledger.transaction() as transaction:
            transaction.append({"text": self._text, "korean": self._korean, "identity": self._identity})

    def _cut(self) -> None:
        end = "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name = 'kexpr'"
        with closing(self._open()) as ledger, ledger.transaction() as transaction:
            transaction.append({"text": self._text, "identity": f"{self._identity}-2"})
            self._cluster.execute(end)

    def _admin(self, head: Head) -> None:
        postgres_admin.acknowledge_failover(self._conninfo, expected={self._name: head})


def _set(cluster: Cluster, settings: dict[str, str]) -> None:
    cluster.reload(settings)
    name, value = list(settings.items())[-1]
    while cluster.execute(f"SHOW {name}") != [(value,)]:
        time.sleep(0.01)


def _logged(cluster: Cluster, use: Callable[[], None]) -> bytes:
    """What the server wrote into its log meanwhile."""
    log = cluster.directory / "log"
    before = len(log.read_bytes())
    use()
    return log.read_bytes()[before:]


def test_nothing_is_said_of_content(
    own: Cluster, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    planted = _Planted(own)
    with caplog.at_level(logging.DEBUG):
        planted.said["server"] = _logged(own, planted.use)
        planted.use_elsewhere()
    out, err = capfd.readouterr()
    messages = "\n".join(f"{record.getMessage()} {record.args} {record.exc_info}" for record in caplog.records)
    assert b"duplicate key" in planted.said["server"]
    assert len(planted.said) == 13
    planted.canaries.assert_absent({**planted.said, "out": out, "err": err, "log": caplog.text, "messages": messages})


def test_a_talkative_server_keeps_to_itself_what_the_page_says(own: Cluster) -> None:
    page = _PAGE.read_text("utf-8")
    for name, value in _SILENT.items():
        assert f"{name} = {value}" in page
    try:
        _set(own, {**_TALKATIVE, **_SILENT})
        planted = _Planted(own)
        log = _logged(own, planted.use)
        assert b"INSERT INTO kexpr_row" in log
        planted.canaries.assert_absent({"server": log})
        _set(own, _TOLD)
        told = _Planted(own)
        assert told.canaries.leaks({"server": _logged(own, told.use)}), "the search itself finds nothing"
    finally:
        _set(own, {"log_statement": "none", "log_min_duration_statement": "-1", **_SILENT})

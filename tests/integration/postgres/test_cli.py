"""`kexpr postgres`: what an operator does to a server and sees of it, and what is never shown."""

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from kexpr.cli import main
from kexpr.exits import Exit
from kexpr.ledger.postgres import PostgresLedger
from kexpr.testing.canaries import Canaries
from tests.support.postgres import USER, Cluster, running

_HEAD = "1:" + "0" * 64


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A server without the tables."""
    with running() as cluster:
        yield cluster


@pytest.fixture
def canaries(monkeypatch: pytest.MonkeyPatch) -> Canaries:
    """In the password of the environment, and in rows."""
    canaries = Canaries()
    monkeypatch.setenv("PGPASSWORD", canaries.plant("password"))
    return canaries


def _use(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGHOST": cluster.directory, "PGUSER": USER, "PGDATABASE": "postgres"}.items():
        monkeypatch.setenv(name, str(value))


def _append(cluster: Cluster, text: str) -> str:
    """Append a row; the head then, as it is printed."""
    with closing(PostgresLedger.open(cluster.conninfo, "daily", projection=lambda row: None)) as ledger:
        with ledger.transaction() as transaction:
            transaction.append({"text": text})
        head = ledger.head()
    return f"{head.sequence}:{head.digest}"


def test_from_the_installation_to_a_failover(
    own: Cluster, canaries: Canaries, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def ran(*arguments: str) -> tuple[int, str, str]:
        code = main(["postgres", *arguments])
        out, err = capfd.readouterr()
        shown.extend((out, err))
        return code, out, err

    def refused(code: str, *arguments: str) -> None:
        status, out, err = ran(*arguments)
        assert (status, out) == (Exit.INVALID, "")
        assert err.startswith(f"kexpr: {code}")

    _use(own, monkeypatch)
    refused("not_installed", "head")
    assert ran("install") == ran("install") == (Exit.GOOD, "installed\n", "")
    assert ran("head") == (Exit.GOOD, "no rows\n", "")
    received = _append(own, canaries.plant("first row"))
    standby = own.copy()
    try:
        lost = _append(own, canaries.plant("second row"))
        assert ran("head") == (Exit.GOOD, f"daily={lost}\n", "")
        assert ran("acknowledge-failover", "--accept-loss")[1] == "this server is the acknowledged one already\n"
        own.stop()
        refused("unreachable", "head")
        standby.start()
        standby.promote()
        _use(standby, monkeypatch)
        refused("head_mismatch", "acknowledge-failover", "--expected", f"daily={lost}")
        again = ("acknowledge-failover", "--expected", f"daily={received}")
        assert ran(*again) == (Exit.GOOD, "acknowledged; restart the gateways\n", "")
        sequence, _, digest = received.partition(":")
        heads = {"daily": {"sequence": int(sequence), "digest": digest}}
        assert json.loads(ran("head", "--json")[1]) == {"schema_version": 1, "heads": heads}
    finally:
        standby.remove()
    canaries.assert_absent({"shown": "\n".join(shown)})


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--expected", "daily=1"),
        ("--expected", f"other={_HEAD}"),
        ("--expected", f"daily={_HEAD}", "--accept-loss"),
    ],
)
def test_a_loss_is_accepted_by_name_only(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["postgres", "acknowledge-failover", *arguments])
    assert exited.value.code == Exit.USAGE
    assert "usage: kexpr postgres acknowledge-failover" in capsys.readouterr().err

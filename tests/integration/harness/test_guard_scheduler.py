"""`guard score` on a real Dask scheduler with workers in processes of their own, on loopback."""

import json
import socket
from collections.abc import Iterator

import pytest
from distributed import LocalCluster

from harness.cli import main
from kexpr.exits import Exit
from tests.unit.guard.corpora import DEV
from tests.unit.harness.guardscore.test_schedulers import CANARY, ROW, timeless


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=60,
    ) as cluster:
        yield cluster.scheduler_address


def scored(capsys, *arguments: str):
    code = main(["guard", "score", "--json", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_the_workers_give_what_one_process_gives(scheduler, capsys, monkeypatch):
    alone = scored(capsys, "--corpus", str(DEV))
    monkeypatch.setattr("harness.guardscore.schedulers.CHUNK_ROWS", 50)
    shared = scored(capsys, "--corpus", str(DEV), "--scheduler", scheduler)
    assert (shared[0], shared[2]) == (alone[0], "") == (Exit.GOOD, "")
    assert timeless(shared[1]) == timeless(alone[1])


def test_a_line_that_a_worker_cannot_read_is_named_by_its_number(scheduler, capsys, tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text(f"{ROW % ('a', CANARY)}\n{CANARY}\n", "utf-8")
    code, result, err = scored(capsys, "--corpus", str(path), "--scheduler", scheduler)
    assert (code, result) == (Exit.INVALID, None)
    assert "line 2: not JSON" in err
    assert CANARY not in err


def test_workers_with_another_lexicon_are_refused(scheduler, capsys, monkeypatch):
    monkeypatch.setattr("harness.guardscore.schedulers.lexicon_digest", lambda: "0" * 64)
    code, result, err = scored(capsys, "--corpus", str(DEV), "--scheduler", scheduler)
    assert (code, result) == (Exit.INVALID, None)
    assert "another lexicon" in err


def test_nobody_listens(capsys, monkeypatch):
    monkeypatch.setattr("harness.guardscore.schedulers.CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code, result, err = scored(capsys, "--corpus", str(DEV), "--scheduler", f"tcp://127.0.0.1:{port}")
    assert (code, result) == (Exit.INVALID, None)
    assert err.strip().splitlines() == ["Error: the scheduler cannot be reached"]


def test_a_scheduler_without_workers(capsys):
    with LocalCluster(
        n_workers=0,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=60,
        processes=False,
        protocol="tcp://",
    ) as cluster:
        code, _, err = scored(capsys, "--corpus", str(DEV), "--scheduler", cluster.scheduler_address)
    assert code == Exit.INVALID
    assert "no worker" in err

"""`guard score` on a real Dask scheduler with workers in processes of their own, on loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from distributed import LocalCluster

from harness.cli import main
from kexpr.exits import Exit
from tests.unit.guard.corpora import DEV
from tests.unit.harness.guardscore.test_schedulers import CANARY, ROW, timeless


def cluster(workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=60,
    )


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with cluster(2) as running:
        yield running.scheduler_address


@pytest.fixture
def unmanned() -> Iterator[str]:
    """A scheduler that no worker has come to."""
    with cluster(0) as running:
        yield running.scheduler_address


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


@pytest.mark.parametrize("answering", [False, True], ids=["closed port", "port that never answers"])
def test_nobody_listens(answering, capsys, monkeypatch):
    monkeypatch.setattr("harness.guardscore.cluster.CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if not answering:
            listener.close()
        code, result, err = scored(capsys, "--corpus", str(DEV), "--scheduler", f"tcp://127.0.0.1:{port}")
    assert (code, result) == (Exit.INVALID, None)
    assert err.strip().splitlines() == ["Error: the scheduler cannot be reached"]


def test_a_scheduler_without_workers(unmanned, capsys):
    code, _, err = scored(capsys, "--corpus", str(DEV), "--scheduler", unmanned)
    assert code == Exit.INVALID
    assert "no worker" in err


def sleeps(chunk):
    time.sleep(60)


def dies(chunk):
    os._exit(1)


def raises(chunk):
    raise ValueError(CANARY)


def test_all_workers_are_lost_under_way(unmanned, capsys, monkeypatch):
    monkeypatch.setattr("harness.guardscore.cluster.judged", sleeps)
    monkeypatch.setattr("harness.guardscore.cluster.PATIENCE_SECONDS", 1)
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        unmanned,
        "--no-nanny",
        "--no-dashboard",
        "--nthreads",
        "1",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        while "Registered to" not in worker.stderr.readline():
            assert worker.poll() is None
        reader = threading.Thread(target=worker.stderr.read)
        reader.start()
        threading.Timer(2, worker.kill).start()
        code, result, err = scored(capsys, "--corpus", str(DEV), "--scheduler", unmanned)
        assert worker.wait(10) == -signal.SIGKILL
        reader.join()
    assert (code, result) == (Exit.INVALID, None)
    assert err.strip().splitlines() == ["Error: all workers were lost"]


def test_what_a_worker_raises_is_not_shown(scheduler, capsys, caplog, monkeypatch):
    monkeypatch.setattr("harness.guardscore.cluster.judged", raises)
    code, result, err = scored(capsys, "--corpus", str(DEV), "--scheduler", scheduler)
    assert (code, result) == (Exit.INVALID, None)
    assert "needs this version" in err
    assert CANARY not in err + caplog.text
    assert len(err.strip().splitlines()) == 1


def test_workers_die_one_after_another(capsys, monkeypatch):
    monkeypatch.setattr("harness.guardscore.cluster.judged", dies)
    with cluster(1) as running:
        code, result, err = scored(capsys, "--corpus", str(DEV), "--scheduler", running.scheduler_address)
    assert (code, result) == (Exit.INVALID, None)
    assert err.strip().splitlines() == ["Error: workers died, one after another, on the same rows"]

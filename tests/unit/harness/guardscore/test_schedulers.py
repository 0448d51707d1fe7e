"""The same result wherever the rows are judged, and no row's text in anything but the file."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.guardscore import CorpusInvalid, load_corpus, score, score_file
from harness.guardscore.schedulers import (
    SchedulerUnusable,
    ahead_of,
    chunks,
    in_bulk,
    in_pool,
    in_process,
    merged,
    on_dask,
)
from harness.guardscore.verdicts import Chunk, Judged, judged
from kexpr.exits import Exit
from kexpr.guard import lexicon_digest
from tests.unit.guard.corpora import DEV

CANARY = "카나리아쿼카"
ROW = (
    '{"id": "%s", "surface": "daily", "slot": "daily.status", "placeholder": "sentence", "expansion": null, '
    '"category": "medical", "technique": null, "label": "reject", "text": "%s ⟦p⟧"}'
)


def timeless(result):
    return {name: value for name, value in result.items() if name != "us_per_text"}


def test_a_pool_gives_what_one_process_gives(monkeypatch):
    monkeypatch.setattr("harness.guardscore.schedulers.CHUNK_ROWS", 100)
    alone = score_file(DEV, in_process)
    assert timeless(score_file(DEV, in_pool)) == timeless(alone) == timeless(score(load_corpus(DEV)))
    assert alone["rows"] == 518


@given(size=st.integers(1, 30), rows=st.integers(0, 60))
def test_chunks_hold_every_line_once_in_order(size, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_text("\n".join(f"line {number}\n" for number in range(rows)), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.guardscore.schedulers.CHUNK_ROWS", size)
        parts = [part.lines for part in chunks(path)]
    assert [line.strip() for part in parts for _, line in part] == [f"line {number}" for number in range(rows)]
    assert all(len(part) == size for part in parts[:-1])


@given(parts=st.integers(0, 40), ahead=st.integers(1, 12))
def test_parts_go_out_in_order_and_few_at_a_time(parts, ahead):
    all_parts = [Chunk(((number, ""),)) for number in range(parts)]
    sent: list[Chunk] = []

    def submit(part):
        sent.append(part)
        return part

    for waited_for, handle in enumerate(ahead_of(all_parts, submit, ahead)):
        assert handle is all_parts[waited_for]
        assert len(sent) <= waited_for + 1 + ahead
    assert sent == all_parts


@pytest.mark.parametrize(("rows", "pooled"), [(0, False), (29, False), (30, True), (95, True)])
def test_only_a_bulk_is_worth_a_pool(rows, pooled, monkeypatch):
    ran: list[tuple[str, int]] = []
    for name in ("in_pool", "in_process"):

        def run(parts, name=name):
            ran.append((name, sum(len(part.lines) for part in parts)))
            return ()

        monkeypatch.setattr(f"harness.guardscore.schedulers.{name}", run)
    monkeypatch.setattr("harness.guardscore.schedulers.POOL_ROWS", 30)
    parts = [Chunk(((1, ""),) * min(10, rows - start)) for start in range(0, rows, 10)]
    monkeypatch.setattr("harness.guardscore.schedulers.CHUNK_ROWS", 10)
    assert list(in_bulk(parts)) == []
    assert ran == [("in_pool" if pooled else "in_process", rows)]


def dies(chunk):
    os._exit(1)


def test_a_process_of_the_pool_dies(monkeypatch):
    monkeypatch.setattr("harness.guardscore.schedulers.judged", dies)
    with pytest.raises(SchedulerUnusable, match="a process of the pool died"):
        score_file(DEV, in_pool)


@pytest.mark.skipif(sys.platform != "linux", reason="sees the pool's processes in /proc")
def test_an_interrupt_ends_the_pool_without_a_word(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(ROW % (f"x-{number}", "오늘 이야기예요.") for number in range(200_000)), "utf-8")
    command = [str(Path(sys.executable).with_name("kexpr-harness")), "guard", "score", "--corpus", str(path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)
    while not Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text():
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=20)
    assert (out + err).strip() == ""
    assert run.returncode == 130
    with pytest.raises(ProcessLookupError):
        for _ in range(100):  # multiprocessing's own tracker of resources ends a moment later
            os.killpg(run.pid, 0)
            time.sleep(0.1)


def test_verdicts_on_another_lexicon_are_not_taken():
    ours = judged(Chunk(((1, ROW % ("a", "약을")),)))
    assert len(merged([ours, ours])) == 2
    with pytest.raises(SchedulerUnusable, match="another lexicon"):
        merged([ours, Judged("0" * 64, ours.verdicts)])
    assert ours.lexicon_digest == lexicon_digest()


def test_what_travels_shows_no_text():
    chunk = Chunk(((1, ROW % ("a", CANARY)), (2, CANARY)))
    assert repr(chunk) == str(chunk) == "Chunk(2 lines)"
    with pytest.raises(CorpusInvalid) as caught:
        judged(chunk)
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert str(travelled) == str(caught.value) == "line 2: not JSON"
    assert CANARY not in repr(judged(Chunk(chunk.lines[:1])))


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "http://127.0.0.1:8786", "inproc://x", ""])
def test_only_an_address_that_says_how_is_taken(address, capsys):
    assert main(["guard", "score", "--corpus", str(DEV), "--scheduler", address]) == Exit.USAGE
    assert "tcp:// or tls://" in capsys.readouterr().err


def test_a_scheduler_needs_the_extra(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "harness.guardscore.cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["guard", "score", "--corpus", str(DEV), "--scheduler", "tcp://127.0.0.1:1"]) == Exit.INVALID
    assert "`scale`" in capsys.readouterr().err


def test_ids_are_looked_at_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.guardscore.schedulers.CHUNK_ROWS", 1)
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join([ROW % ("a", CANARY), ROW % ("b", CANARY), ROW % ("a", CANARY)]), "utf-8")
    with pytest.raises(CorpusInvalid, match="1 id"):
        score_file(path)
    path.write_text("\n", "utf-8")
    with pytest.raises(CorpusInvalid, match="no rows"):
        score_file(path)


def test_no_scheduler_is_imported_unasked():
    assert on_dask("tcp://127.0.0.1:1") is not None

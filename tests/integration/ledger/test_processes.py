"""Processes that race, die, fork and run out of space over one ledger."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.maintenance import repair, verify
from tests.unit.ledger.support import Opened, raw_lines, segment_files

ROOT = Path(__file__).parents[3]


def start(directory: Path, *command: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.integration.ledger.worker", str(directory), *command]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def run(directory: Path, *command: str, returncode: int = 0) -> list[str]:
    process = start(directory, *command)
    output, errors = process.communicate("go\n", timeout=60)
    assert process.returncode == returncode, errors
    return output.split()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_racing_processes_make_one_chain(place: Path) -> None:
    workers = [start(place, "append", name, "120") for name in ("a", "b")]
    sequences: list[int] = []
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        output, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
        sequences += map(int, output.split())
    assert sorted(sequences) == list(range(2, 242))
    assert verify(place).rows == 240
    with Opened(place) as opened:
        for name in ("a", "b"):
            assert [r["n"] for r in opened.records if r["worker"] == name] == list(range(120))
        names = [str(r["worker"]) for r in opened.records]
    assert names != sorted(names), "they never overlapped: nothing was raced"


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(
    ("failpoint", "is_there"),
    [("ledger.before_write", False), ("ledger.after_write", True), ("ledger.after_fsync", True)],
)
def test_killed_around_a_row(place: Path, failpoint: str, nth: int, is_there: bool) -> None:
    printed = run(place, "kill_at", failpoint, str(nth), returncode=-signal.SIGKILL)
    assert printed == ["ready", "2"][:nth]
    with Opened(place) as opened:
        assert [r["n"] for r in opened.records] == list(range(nth - 1 + is_there))
        opened.append({"n": 9})
    assert verify(place).rows == nth + is_there


@pytest.mark.parametrize(
    "failpoint",
    ["created", "before_write", "after_write", "after_fsync"],
)
def test_killed_around_a_header(place: Path, failpoint: str) -> None:
    assert run(place, "kill_at", f"ledger.segment.{failpoint}", "1", returncode=-signal.SIGKILL) == ["ready"]
    with Opened(place) as opened:
        assert opened.records == []
        opened.append({"n": 1})
    assert verify(place).rows == 1
    assert len(segment_files(place)) == 1


@pytest.mark.parametrize("room_bytes", [1, 40, 150])
def test_torn_write_on_a_full_disk(place: Path, room_bytes: int) -> None:
    assert run(place, "tear", str(room_bytes)) == [StoreFault.INPUT_OUTPUT, StoreFault.POISONED]
    whole = raw_lines(place)[:2]
    assert len(raw_lines(place)[2]) == room_bytes
    with pytest.raises(LedgerFailed) as caught:
        Opened(place)
    assert caught.value.code is StoreFault.TORN_TAIL
    assert repair(place).size_bytes == room_bytes
    with Opened(place) as opened:
        assert opened.records == [{"n": 0}]
        opened.append({"n": 1})
    assert raw_lines(place)[:2] == whole


def test_refused_write_leaves_nothing(place: Path) -> None:
    assert run(place, "tear", "0") == [StoreFault.INPUT_OUTPUT, StoreFault.POISONED]
    with Opened(place) as opened:
        assert opened.records == [{"n": 0}]


def test_handles_are_refused_after_fork_and_leave_the_lock_alone(place: Path) -> None:
    after_fork = [StoreFault.USED_AFTER_FORK] * 3
    assert run(place, "fork") == [*after_fork, StoreFault.LOCKED_OUT, "held"]
    with Opened(place) as opened:
        assert [r["n"] for r in opened.records] == [1, 2, 3]


def test_waiting_for_another_process_is_bounded_and_ends_with_it(place: Path) -> None:
    holder = start(place, "hold", "30")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LedgerFailed) as caught:
        Opened(place, wait_seconds=0.05)
    assert caught.value.code is StoreFault.LOCKED_OUT
    holder.kill()
    holder.communicate()
    with Opened(place) as opened:
        assert opened.append({"n": 1}).sequence == 2

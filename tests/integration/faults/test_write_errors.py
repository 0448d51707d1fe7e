"""The kernel says ENOSPC or EIO to the n-th write of a ledger, for every row of every path; then the process restarts.

A torn row of every length is what `RLIMIT_FSIZE` leaves: the kernel takes what fits and says so.
"""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.cli import main
from kexpr.clock import CLAIM_LEASE_MS, SystemClock
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.exits import Exit
from kexpr.ledger import maintenance
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.transport import Seam
from tests.integration.paths.invariants import violations
from tests.integration.paths.worker import Forker, Scene
from tests.support.hosts import Host, Kind
from tests.support.programs import need

LAST_WRITE = 8
"""More than any path writes rows; the test says so when it is not."""
AFTER_THE_LEASE_MS = CLAIM_LEASE_MS + 1_000


class FaultyForker(Forker):
    """A forker whose gateways fail the n-th write to one of `files`."""

    def __init__(self, seam: Seam, nth: int, error: str, files: list[Path]) -> None:
        paths = [word for file in files for word in ("-P", str(file))]
        inject = f"inject=write:error={error}:when={nth}"
        strace = [need("strace"), "-f", "-qq", *paths, "-e", "trace=write", "-e", inject, "-o", "/dev/null"]
        command = [sys.executable, "-m", "tests.integration.faults.worker", seam.socket_path, seam.ca_pem_path]
        self._process = subprocess.Popen(
            [*strace, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )


@pytest.fixture(scope="module")
def server() -> Iterator[RehearsalServer]:
    with RehearsalServer(answer_bytes, FaultPlan()) as server:
        yield server


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_every_row_of_every_path_fails_once(error: str, server: RehearsalServer, tmp_path: Path) -> None:
    month = datetime.now(UTC).strftime("%Y-%m")
    wrong: list[str] = []
    failed: dict[Kind, int] = dict.fromkeys(Kind, 0)
    with Forker(server.seam) as sound:
        for nth in range(1, LAST_WRITE + 1):
            directories = {kind: tmp_path / f"{kind}-{nth}" for kind in Kind}
            for directory in directories.values():
                directory.mkdir(mode=0o700)
            files = [path / "state" / kind.ledger / f"ledger-{month}.jsonl" for kind, path in directories.items()]
            hit = False
            with FaultyForker(server.seam, nth, error, files) as faulty:
                for kind, directory in directories.items():
                    scene = Scene(str(directory), kind.value, "m")
                    before = server.requests
                    ended = faulty.run(scene)
                    if ended.raised or ended.stopped or ended.outcome != "selected":
                        failed[kind] += 1
                        hit = True
                    for ahead_ms in (AFTER_THE_LEASE_MS, 2 * AFTER_THE_LEASE_MS):
                        again = Scene(str(directory), kind.value, "m", ahead_ms=ahead_ms, replay=kind is Kind.DAILY)
                        sound.run(again)
                    found = violations(directory, kind, "m", server.requests - before)
                    wrong += [f"{kind} write {nth}: {text}" for text in found]
                    if kind is not Kind.WEEKLY and not Host(directory).delivered("m"):
                        wrong.append(f"{kind} write {nth}: never delivered")
            if not hit:
                break
    assert wrong == []
    assert not hit, "a path writes more rows than were tried"
    assert all(count >= 3 for count in failed.values()), failed


RECORD = {"attempt_id": "0" * 32, "phase": "claimed", "surface": "daily.v1"}


def _append_within(directory: Path, limit_bytes: int) -> str:
    """In a process of its own, where no file may grow over `limit_bytes`: the code that the append ended with."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        said = "acknowledged"
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            ledger = JsonlLedger.open(directory, projection=lambda _: None, clock=SystemClock())
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            codes = []
            for _ in range(2):
                try:
                    with ledger.transaction() as transaction:
                        transaction.append(RECORD)
                except LedgerFailed as failed:
                    codes.append(failed.code.value)
            said = " ".join(codes) or said
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(pid, 0)
    return said


def test_a_row_torn_at_every_byte_is_moved_away_and_the_ledger_goes_on(tmp_path: Path) -> None:
    directory = tmp_path / "ledger"
    ledger = JsonlLedger.open(directory, projection=lambda _: None, clock=SystemClock())
    with ledger.transaction() as transaction:
        transaction.append(RECORD)
    (segment,) = directory.glob("*.jsonl")
    first = segment.stat().st_size
    with ledger.transaction() as transaction:
        transaction.append(RECORD)
    ledger.close()
    row_bytes = segment.stat().st_size - first
    whole = segment.read_bytes()
    for torn in range(row_bytes + 1):
        said = _append_within(directory, len(whole) + torn)
        if torn == row_bytes:
            assert said == StoreFault.INPUT_OUTPUT, "the second row had no room"
            break
        assert said == f"{StoreFault.INPUT_OUTPUT} {StoreFault.POISONED}", "an error was tried again"
        if torn:
            with pytest.raises(LedgerFailed) as caught:
                maintenance.verify(directory)
            assert caught.value.code is StoreFault.TORN_TAIL
        assert main(["ledger", "repair", str(directory)]) == Exit.GOOD
        assert segment.read_bytes() == whole
        for left in directory.glob("*.torn-*"):
            assert left.stat().st_size == torn
            left.unlink()
    assert maintenance.verify(directory).rows == 3

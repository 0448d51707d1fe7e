"""The kernel says EIO to the n-th fsync of a real process, for every n of every path; then the process restarts.

strace counts for each thread by itself, so each forked gateway meets its own n-th fsync.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.transport import Seam
from tests.integration.paths.invariants import violations
from tests.integration.paths.worker import Forker, Scene
from tests.support.hosts import Host, Kind
from tests.support.programs import need

LAST_SYNC = 48
"""More than any path has in one thread; the test says so when it is not."""
AFTER_THE_LEASE_MS = CLAIM_LEASE_MS + 1_000


class FaultyForker(Forker):
    """A forker whose gateways fail their n-th fsync; without `nth` none."""

    def __init__(self, seam: Seam, nth: int | None = None) -> None:
        command = [sys.executable, "-m", "tests.integration.faults.worker", seam.socket_path, seam.ca_pem_path]
        if nth is not None:
            inject = f"inject=fsync:error=EIO:when={nth}"
            strace = [need("strace"), "-f", "-qq", "--seccomp-bpf", "-e", "trace=fsync", "-e", inject]
            command = [*strace, "-o", "/dev/null", *command]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def server() -> Iterator[RehearsalServer]:
    with RehearsalServer(answer_bytes, FaultPlan()) as server:
        yield server


def test_every_fsync_of_every_path_fails_once(server: RehearsalServer, tmp_path: Path) -> None:
    wrong: list[str] = []
    failed: dict[Kind, list[int]] = {kind: [] for kind in Kind}
    with FaultyForker(server.seam) as sound:
        for nth in range(1, LAST_SYNC + 1):
            hit = False
            with FaultyForker(server.seam, nth) as faulty:
                for kind in Kind:
                    directory = tmp_path / f"{kind}-{nth}"
                    directory.mkdir(mode=0o700)
                    scene = Scene(str(directory), kind.value, "m")
                    before = server.requests
                    ended = faulty.run(scene)
                    if ended.raised or ended.stopped or ended.outcome != "selected":
                        failed[kind].append(nth)
                        hit = True
                    for ahead_ms in (AFTER_THE_LEASE_MS, 2 * AFTER_THE_LEASE_MS):
                        again = Scene(str(directory), kind.value, "m", ahead_ms=ahead_ms, replay=kind is Kind.DAILY)
                        sound.run(again)
                    found = violations(directory, kind, "m", server.requests - before)
                    wrong += [f"{kind} fsync {nth}: {text}" for text in found]
                    if kind is not Kind.WEEKLY and not Host(directory).delivered("m"):
                        wrong.append(f"{kind} fsync {nth}: never delivered")
            if not hit:
                break
    assert wrong == []
    assert not hit, "a path has more fsyncs than were tried"
    assert all(len(nths) >= 3 for nths in failed.values()), failed

"""The journal under SIGKILL at every failpoint, and between processes that race."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kexpr.authority.journal import OutcomeJournal
from kexpr.authority.recovery import Absent, Durable, InFlight
from kexpr.clock import CLAIM_LEASE_MS, Instant, SystemClock
from kexpr.codes import Mode, Outcome, Surface
from kexpr.errors import ClaimRefused
from tests.integration.journal_worker import artifact_of
from tests.unit.authority.support import SELECTED

DAILY, WEEKLY = Surface.DAILY, Surface.WEEKLY


@dataclass
class LaterClock:
    """The machine's clock, ahead by `ms`."""

    ms: int = 0

    def now(self) -> Instant:
        now = SystemClock().now()
        return Instant(now.utc_ms + self.ms, now.boottime_ms + self.ms, now.boot_id)

    def monotonic(self) -> float:
        return SystemClock().monotonic()


def start(root: Path, *arguments: str) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.journal_worker", str(root), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def go(worker: subprocess.Popen[str]) -> str:
    return worker.communicate("\n", timeout=30)[0].strip()


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []


# failpoint, nth time, what a restart finds before the deadline, and after it
BEFORE_ROW = ("journal.created", "journal.leased", "journal.claim.before", "journal.before_write")
CLAIMED = ("journal.after_write", "journal.after_fsync", "journal.claim.after", "host.requested", "journal.checked")
KILLS = [
    *[(failpoint, 1, surface, "absent") for failpoint in BEFORE_ROW for surface in (DAILY, WEEKLY)],
    *[(failpoint, 1, surface, "expires") for failpoint in CLAIMED for surface in (DAILY, WEEKLY)],
    ("host.edited", 1, DAILY, "expires"),
    ("host.written", 1, WEEKLY, "recovers"),
    *[("journal.delivered", 1, surface, end) for surface, end in ((DAILY, "expires"), (WEEKLY, "recovers"))],
    *[("journal.finalize.before", 1, surface, end) for surface, end in ((DAILY, "expires"), (WEEKLY, "recovers"))],
    *[("journal.before_write", 2, surface, end) for surface, end in ((DAILY, "expires"), (WEEKLY, "recovers"))],
    *[
        (failpoint, nth, surface, "selected")
        for failpoint, nth in (("journal.after_write", 2), ("journal.after_fsync", 2), ("journal.finalize.after", 1))
        for surface in (DAILY, WEEKLY)
    ],
]


@pytest.mark.parametrize(("failpoint", "nth", "surface", "ends"), KILLS)
def test_a_kill_at_every_failpoint(tmp_path: Path, failpoint: str, nth: int, surface: Surface, ends: str) -> None:
    worker = start(tmp_path, "kill_at", surface, failpoint, str(nth))
    go(worker)
    assert worker.returncode == -signal.SIGKILL
    clock = LaterClock()
    journal = OutcomeJournal.open(tmp_path, clock=clock)
    try:
        artifact = artifact_of(journal, tmp_path, surface)
        body = SELECTED if surface is WEEKLY else None
        selected = Durable(Outcome.SELECTED, body, "finalized")
        after = {
            "absent": Absent(),
            "expires": Durable(Outcome.CANONICAL_CLAIM_EXPIRED, None, "finalized"),
            "recovers": selected,
            "selected": selected,
        }[ends]
        if ends in ("expires", "recovers"):
            assert isinstance(artifact.recover(), InFlight)
        clock.ms = CLAIM_LEASE_MS
        assert artifact.recover() == after
        assert artifact.recover() == after
        assert len(lines(tmp_path / "requests")) <= 1
        assert len(lines(tmp_path / "edits")) <= 1
        if ends == "absent":
            assert lines(tmp_path / "requests") == []
            artifact.claim(Mode.ENABLED)
        else:
            with pytest.raises(ClaimRefused):
                artifact.claim(Mode.ENABLED)
    finally:
        journal.close()


@pytest.mark.parametrize("surface", [DAILY, WEEKLY])
def test_of_two_processes_one_attempts(tmp_path: Path, surface: Surface) -> None:
    workers = [start(tmp_path, "attempt", surface) for _ in range(2)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    answers = sorted(worker.communicate(timeout=30)[0].strip() for worker in workers)
    assert answers == ["refused", "selected"]
    assert lines(tmp_path / "requests") == ["request"]
    assert [path.read_text("utf-8") for path in tmp_path.glob("*.body")] == ([SELECTED] if surface is WEEKLY else [])
    assert len(lines(tmp_path / "edits")) == (surface is DAILY)

"""`python -m tests.integration.journal_worker ROOT COMMAND …`: one process with a journal, for tests that end it."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from kexpr import failpoints
from kexpr.attempt import Cancellation
from kexpr.authority.journal import EditDelivery, JournalArtifact, OutcomeJournal, WriterDelivery
from kexpr.clock import SystemClock
from kexpr.codes import Mode, Surface
from kexpr.errors import ClaimRefused
from tests.unit.authority.support import wins


class FileWriter:
    """A durable writer: one file an attempt, put in place whole."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, attempt_id: str, body: str) -> None:
        part = self._root / f"{attempt_id}.part"
        with part.open("w", encoding="utf-8") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.rename(self._root / f"{attempt_id}.body")
        failpoints.reach("host.written")

    def read(self, attempt_id: str) -> str | None:
        path = self._root / f"{attempt_id}.body"
        return path.read_text("utf-8") if path.exists() else None


def edit_into(root: Path) -> EditDelivery:
    """Each edit is a line of the host's log: what the customer saw."""

    def edit(body: str) -> None:
        with (root / "edits").open("a", encoding="utf-8") as file:
            file.write(body.replace("\n", "|") + "\n")
        failpoints.reach("host.edited")

    return EditDelivery(edit)


def artifact_of(journal: OutcomeJournal, root: Path, surface: Surface) -> JournalArtifact:
    delivery = edit_into(root) if surface is Surface.DAILY else WriterDelivery(FileWriter(root))
    return journal.artifact(surface, ("one",), delivery)


def attempt(root: Path, surface: str) -> None:
    """Claim, note the one request, and finalize as selected; prints the outcome, or `refused`."""
    journal = OutcomeJournal.open(root, clock=SystemClock())
    print("ready", flush=True)
    sys.stdin.readline()
    artifact = artifact_of(journal, root, Surface(surface))
    try:
        ticket = artifact.claim(Mode.ENABLED)
    except ClaimRefused:
        print("refused", flush=True)
        return
    with (root / "requests").open("a") as file:
        file.write("request\n")
    failpoints.reach("host.requested")
    print(artifact.finalize(ticket, wins(Surface(surface)), Cancellation()).outcome, flush=True)


def kill_at(root: Path, surface: str, failpoint: str, nth: str) -> None:
    """`attempt` that gets SIGKILL when `failpoint` is reached for the nth time."""
    left = int(nth)

    def hook(name: str) -> None:
        nonlocal left
        left -= name == failpoint
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.install(hook)
    attempt(root, surface)


_COMMANDS: dict[str, Callable[..., None]] = {"attempt": attempt, "kill_at": kill_at}

if __name__ == "__main__":
    _COMMANDS[sys.argv[2]](Path(sys.argv[1]), *sys.argv[3:])

"""A host with a journal on a real directory; each `open` is another process, or a restart."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kexpr.attempt import Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.journal import DIRECTORY, Delivery, EditDelivery, JournalArtifact, OutcomeJournal, WriterDelivery
from kexpr.codes import Surface
from tests.unit.authority.support import SetClock

IDENTITY = ("event-canary-4411",)
CARD = ("session-canary-5566", "proposal-digest", "7", "dual")


def nothing(*_: object) -> None:
    """A host whose store never fails."""


@dataclass
class Writer:
    """A `DurableWriter` over a dictionary that outlives processes."""

    bodies: dict[str, str] = field(default_factory=dict)
    on_write: Callable[[], object] = nothing
    on_read: Callable[[], object] = nothing

    def write(self, attempt_id: str, body: str) -> None:
        self.on_write()
        self.bodies[attempt_id] = body

    def read(self, attempt_id: str) -> str | None:
        self.on_read()
        return self.bodies.get(attempt_id)


@dataclass
class Host:
    root: Path
    clock: SetClock = field(default_factory=SetClock)
    writer: Writer = field(default_factory=Writer)
    edits: list[str] = field(default_factory=list)
    opened: list[OutcomeJournal] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        return self.root / DIRECTORY

    @property
    def file(self) -> Path:
        return self.directory / "journal.jsonl"

    def open(self) -> OutcomeJournal:
        journal = OutcomeJournal.open(self.root, clock=self.clock)
        self.opened.append(journal)
        return journal

    def close(self) -> None:
        for journal in self.opened:
            journal.close()

    def delivery(self, surface: Surface) -> Delivery:
        return EditDelivery(self.edits.append) if surface is Surface.DAILY else WriterDelivery(self.writer)

    def artifact(self, journal: OutcomeJournal, surface: Surface = Surface.DAILY) -> JournalArtifact:
        identity = CARD if surface in (Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE) else IDENTITY
        return journal.artifact(surface, identity, self.delivery(surface))

    def rows(self) -> list[Mapping[str, Any]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_bytes().splitlines()]

    def outcomes(self) -> list[str]:
        return [row["outcome"] for row in self.rows()]


def end(artifact: JournalArtifact, ticket: Ticket, ruling: Ruling) -> Finalized:
    return artifact.finalize(ticket, ruling, Cancellation())

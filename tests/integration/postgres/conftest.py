"""One server for the tests of this directory, and processes whose ledgers are on it (`tests/integration/paths`)."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kexpr.authority.weekly import WeeklyTask
from kexpr.codes import Mode
from kexpr.private_files import KEY_NAME, PrivateDirectory, identity_key
from tests.integration.paths import invariants, test_crashes
from tests.integration.paths.conftest import Lane, Lanes
from tests.integration.paths.conftest import lanes as file_lanes
from tests.integration.paths.test_crashes import Message
from tests.integration.paths.worker import Ended, Scene
from tests.support.hosts import Kind, identity_of
from tests.support.postgres import Cluster, execute, installed, running

__all__ = ["file_lanes", "lanes", "postgres", "shared"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A running PostgreSQL with the tables of the ledgers, shared by all tests of a run."""
    with running() as cluster:
        yield installed(cluster)


@dataclass(frozen=True)
class Shared:
    """What the gateways of a test share, each with a directory as its host: a schema, and copies of one key."""

    conninfo: str
    key: Path

    def records(self, _: Path, kind: Kind, identity: str) -> list[dict[str, Any]]:
        """As `tests.support.hosts.records`, from the database."""
        ask = "SELECT line FROM kexpr_row WHERE ledger = %s ORDER BY sequence"
        rows = [json.loads(line) for (line,) in execute(self.conninfo, ask, kind.ledger)]
        found = [row for row in rows if identity_of(row["record"], kind, identity)]
        return [{**row["record"], "mode": row["mode"], "lease": row["lease"]} for row in found]

    def may_have_been_sent(self, identity: str) -> bool:
        marks = "SELECT 1 FROM kexpr_tombstone WHERE task = %s AND mark = 'sending'"
        return bool(execute(self.conninfo, marks, WeeklyTask(identity).digest))

    def give_key(self, directory: Path) -> None:
        """What an operator does for each host."""
        state = directory / "state"
        state.mkdir(mode=0o700)
        shutil.copy(self.key, state / KEY_NAME)


@pytest.fixture
def shared(postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shared:
    """With it, the invariants and the crashes of the paths look into the database."""
    with closing(PrivateDirectory.open(tmp_path / "key")) as directory:
        identity_key(directory, ledger_is_empty=True)
    shared = Shared(postgres.schema(), tmp_path / "key" / KEY_NAME)
    fresh = test_crashes.fresh

    def fresh_host(lane: Lane, root: Path, kind: Kind, mode: Mode) -> Message:
        message = fresh(lane, root, kind, mode)
        shared.give_key(message.directory)
        return message

    for module in (invariants, test_crashes):
        monkeypatch.setattr(module, "records", shared.records)
    monkeypatch.setattr(test_crashes, "fresh", fresh_host)
    sent = property(lambda message: shared.may_have_been_sent(message.identity))
    monkeypatch.setattr(Message, "may_have_been_sent", sent)
    return shared


@dataclass(frozen=True)
class _SharedLane(Lane):
    conninfo: str

    def run(self, scene: Scene) -> Ended:
        return super().run(replace(scene, conninfo=self.conninfo))


@pytest.fixture
def lanes(file_lanes: Lanes, shared: Shared) -> Lanes:
    """Lanes whose processes have their ledgers in the schema of the test."""
    return Lanes([_SharedLane(lane.server, lane.forker, shared.conninfo) for lane in file_lanes.lanes])

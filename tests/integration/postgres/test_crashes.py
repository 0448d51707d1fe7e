"""A process killed at every named step of every path on PostgreSQL, and its restarts (`tests/integration/paths`)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kexpr.authority.weekly import WeeklyTask
from kexpr.clock import CLAIM_LEASE_MS
from tests.integration.paths import invariants
from tests.integration.paths.conftest import Lane, Lanes
from tests.integration.paths.test_crashes import Point, points
from tests.integration.paths.worker import Ended, Scene
from tests.support.hosts import Host, Kind, canonical_text, identity_of
from tests.support.postgres import Cluster

AFTER_THE_LEASE_MS = CLAIM_LEASE_MS + 1_000
STEPS = {
    "coordinator.claimed",
    "coordinator.answered",
    "host.delivering",
    "host.delivered",
    "path.delivered",
    "postgres.before_insert",
    "postgres.after_insert",
    "postgres.before_commit",
    "postgres.after_commit",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the one host; all its messages are in the one database."""
    path = tmp_path_factory.mktemp("host")
    path.chmod(0o700)
    return path


@pytest.fixture(autouse=True)
def _records_are_in_the_database(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def records(_: Path, kind: Kind, identity: str) -> list[dict[str, Any]]:
        lines = postgres.execute("SELECT line FROM kexpr_row WHERE ledger = %s ORDER BY sequence", kind.ledger)
        rows = [json.loads(line) for (line,) in lines]
        found = [row for row in rows if identity_of(row["record"], kind, identity)]
        return [{**row["record"], "mode": row["mode"], "lease": row["lease"]} for row in found]

    monkeypatch.setattr(invariants, "records", records)


@pytest.mark.parametrize("kind", [Kind.DAILY, Kind.WEEKLY, Kind.CALLBACK])
def test_killed_at_every_step(kind: Kind, postgres: Cluster, lanes: Lanes, directory: Path) -> None:
    def run(lane: Lane, identity: str, **scene: object) -> Ended:
        of_server = Scene(str(directory), kind.value, identity, conninfo=postgres.conninfo)
        return lane.run(replace(of_server, **scene))  # type: ignore[arg-type]

    clean = run(lanes.lanes[0], f"{kind}-clean")
    assert clean.outcome == "selected"
    assert set(clean.reached) >= STEPS

    def killed_at(lane: Lane, point: Point) -> list[str]:
        identity, before = f"{kind}-{point[0]}-{point[1]}", lane.server.requests
        ended = run(lane, identity, kill=point)
        left, sent = Host(directory).delivered(identity), was_sent(identity)
        late = run(lane, identity, ahead_ms=AFTER_THE_LEASE_MS, replay=kind is Kind.DAILY)
        wrong = invariants.violations(directory, kind, identity, lane.server.requests - before)
        wrong += [] if ended.killed else ["did not die"]
        wrong += [f"raised {late.raised}"] if late.raised else []
        wrong += undelivered(identity, left, sent)
        return [f"{point}: {what}" for what in wrong]

    def was_sent(identity: str) -> bool:
        marks = "SELECT 1 FROM kexpr_tombstone WHERE task = %s AND mark = 'sending'"
        return kind is Kind.WEEKLY and bool(postgres.execute(marks, WeeklyTask(identity).digest))

    def undelivered(identity: str, left: list[str], was_sent: bool) -> list[str]:
        delivered = Host(directory).delivered(identity)
        if kind is Kind.DAILY:
            return [] if delivered[-1:] == [canonical_text(kind, identity)] else ["no canonical replay"]
        if was_sent:
            return [] if delivered == left else ["sent again"]
        return [] if delivered else ["not delivered"]

    assert lanes.map(killed_at, points(clean.reached)) == []

"""No failpoint without a death: every name that the package reaches is one at which some test kills a real process.

The paths' own are killed in `paths/test_crashes.py`, the journal's in `test_journal_processes.py`, PostgreSQL's in
`postgres/test_crashes.py`. Here: the new month, the repair, and the rows that only a recovery or an operator writes.
"""

import re
from pathlib import Path

import pytest

import kexpr
from kexpr.authority.transitions import AdaptiveEvent, DailyEvent, WeeklyEvent
from kexpr.authority.weekly import WeeklyTask
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.maintenance import repair, verify
from kexpr.ledger.tombstones import Mark
from tests.integration import test_journal_processes as journal
from tests.integration.faults.dying import dies_at
from tests.integration.faults.test_claim_races import _artifact
from tests.integration.paths import test_crashes as crashes
from tests.integration.paths.invariants import last_state
from tests.integration.postgres import test_crashes as postgres
from tests.support.hosts import DESTINATION, AheadClock, Gateway, Kind, canonical_text, pins
from tests.unit.ledger.support import MONTH_MS, Opened, SetClock, segment_files

SOUND = [{"n": 0}]
NEW_MONTH = ("created", "before_write", "after_write", "after_fsync")
REPAIR = ("repair.copied", "repair.cut", "repair.synced")
EXPIRED = {Kind.DAILY: "daily", Kind.WEEKLY: "weekly", Kind.CALLBACK: "adaptive"}
WALKS = {
    "weekly.reserve": ("absent", "prepared"),
    "weekly.mark_sending": ("prepared", "sending"),
    "weekly.mark_unknown": ("sending", "unknown"),
    "weekly.mark_sent_audited": ("unknown", "sent_audited"),
    "weekly.mark_abandoned": ("unknown", "abandoned"),
}
"""The rows of a task that an operator ends, each with the state that it is written in and the one that it leaves."""


@pytest.mark.parametrize("point", NEW_MONTH)
def test_killed_while_it_enters_a_new_month(point: str, tmp_path: Path) -> None:
    place, clock = tmp_path / "ledger", SetClock()
    with Opened(place, clock=clock) as opened:
        opened.append({"n": 0})
    clock.utc_ms += MONTH_MS

    def enter() -> None:
        with Opened(place, clock=clock) as opened:
            opened.append({"n": 1})

    assert dies_at(f"ledger.segment.{point}", enter)
    with Opened(place, clock=clock) as opened:
        assert opened.records == SOUND
        opened.append({"n": 2})
    assert len(segment_files(place)) == 2
    assert verify(place).rows == 2


@pytest.mark.parametrize("point", REPAIR)
def test_killed_within_a_repair(point: str, tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    with Opened(place) as opened:
        opened.append({"n": 0})
    (segment,) = segment_files(place)
    whole = segment.read_bytes()
    segment.write_bytes(whole + b'{"torn')
    assert dies_at(point, lambda: repair(place))
    (copy,) = place.glob("*.torn-*")
    assert copy.read_bytes() == b'{"torn', "the tail was cut before its copy was whole"
    if point == "repair.copied":
        with pytest.raises(LedgerFailed) as caught:
            verify(place)
        assert caught.value.code is StoreFault.TORN_TAIL
    repair(place)
    assert segment.read_bytes() == whole
    with Opened(place) as opened:
        assert opened.records == SOUND
        opened.append({"n": 1})
    assert verify(place).rows == 2


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("kind", EXPIRED)
def test_killed_while_it_ends_a_claim_that_nobody_holds(kind: Kind, side: str, tmp_path: Path) -> None:
    with Gateway(tmp_path, None, mode=Mode.DISABLED) as gateway:
        _artifact(gateway, kind, "m").claim(Mode.ENABLED)

    def restart() -> None:
        with Gateway(tmp_path, None, mode=Mode.DISABLED, clock=AheadClock(CLAIM_LEASE_MS + 1_000)) as gateway:
            gateway.publish(kind, "m", replay=kind is Kind.DAILY)

    assert dies_at(f"{EXPIRED[kind]}.expire.{side}", restart)
    restart()
    with Gateway(tmp_path, None, mode=Mode.DISABLED) as gateway:
        assert gateway.host.delivered("m") == [canonical_text(kind, "m")]
    assert verify(tmp_path / "state" / kind.ledger).rows >= 2


def _walk(directory: Path, last: str) -> None:
    with Gateway(directory, None, mode=Mode.DISABLED) as gateway:
        authority = gateway.weekly_authority
        body = canonical_text(Kind.WEEKLY, "m")
        receipt = authority.reserve_customer_task_delivery(
            WeeklyTask("m"), body=body, destination=DESTINATION, pins=pins("m")
        )
        authority.mark_customer_task_sending(receipt)
        authority.mark_customer_task_unknown(receipt)
        if last == "weekly.mark_abandoned":
            authority.mark_customer_task_abandoned(receipt)
        else:
            authority.mark_customer_task_sent_audited(receipt)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("step", WALKS)
def test_killed_while_an_operator_ends_a_task(step: str, side: str, tmp_path: Path) -> None:
    assert dies_at(f"{step}.{side}", lambda: _walk(tmp_path, step))
    left = last_state(tmp_path, Kind.WEEKLY, "m") or "absent"
    assert left == WALKS[step][side == "after"]
    was_marked = any((tmp_path / "state-tombstones").glob("*.sending"))
    with Gateway(tmp_path, None, mode=Mode.DISABLED) as gateway:
        gateway.publish(Kind.WEEKLY, "m")
        assert gateway.host.delivered("m") == ([] if was_marked else [canonical_text(Kind.WEEKLY, "m")])


@pytest.mark.parametrize("side", ["before", "after"])
def test_killed_on_the_direct_canonical_edge_of_a_card(side: str, tmp_path: Path) -> None:
    def publish() -> None:
        with Gateway(tmp_path, None, mode=Mode.DISABLED) as gateway:
            gateway.publish(Kind.CALLBACK, "m")

    assert dies_at(f"adaptive.mark_publish_pending.{side}", publish)
    assert last_state(tmp_path, Kind.CALLBACK, "m") == (None if side == "before" else "publish_pending")
    publish()
    with Gateway(tmp_path, None, mode=Mode.DISABLED) as gateway:
        assert gateway.host.delivered("m") == [canonical_text(Kind.CALLBACK, "m")]
    assert last_state(tmp_path, Kind.CALLBACK, "m") == "published"


def test_a_process_dies_at_every_failpoint_there_is() -> None:
    killed = {
        *crashes.COMMON_STEPS,
        *(name for steps in crashes.STEPS.values() for name in steps),
        *(name for name, *_ in journal.KILLS),
        *postgres._STEPS,
        *(f"ledger.segment.{point}" for point in NEW_MONTH),
        *REPAIR,
        *(f"{name}.expire.{side}" for name in EXPIRED.values() for side in ("before", "after")),
        *(f"adaptive.mark_publish_pending.{side}" for side in ("before", "after")),
        *(f"{step}.{side}" for step in WALKS for side in ("before", "after")),
    }
    reached = _reached()
    assert len(reached) > 50
    assert sorted(reached - killed - IN_EVERY_CLEAN_RUN) == []
    assert reached >= IN_EVERY_CLEAN_RUN


def _pairs(names: set[str]) -> set[str]:
    return {f"{name}.{side}" for name in names for side in ("before", "after")}


IN_EVERY_CLEAN_RUN = (
    _pairs({"daily.claim", "daily.finalize", "weekly.claim", "weekly.finalize", "weekly.mark_delivered"})
    | _pairs({"adaptive.claim", "adaptive.finalize", "adaptive.mark_publish_claimed", "adaptive.mark_published"})
    | _pairs({"weekly.tombstone_claimed", "weekly.tombstone_sending"})
)
"""`test_killed_at_every_step` kills at everything that a clean run reaches, and a clean run writes each of these."""

_EVENTS: dict[str, list[str]] = {
    "daily": [*DailyEvent],
    "weekly": [*WeeklyEvent],
    "adaptive": [*AdaptiveEvent],
}
_NAMES = {
    "{step}": [f"{name}.{event}" for name, events in _EVENTS.items() for event in events]
    + ["journal.claim", "journal.finalize"],
    "{failpoint}": ["ledger", "ledger.segment", "journal"],
    "{mark}": [str(mark) for mark in Mark],
}
"""What stands in the names that the source builds; a placeholder that is not here fails the test."""


def _reached() -> set[str]:
    """Every name that a `reach(…)` of the package can have."""
    root = Path(kexpr.__file__).parent
    found: set[str] = set()
    for source in root.rglob("*.py"):
        if "testing" in source.relative_to(root).parts:
            continue
        for name in re.findall(r'\breach\(f?"([^"]+)"\)', source.read_text("utf-8")):
            (placeholder,) = re.findall(r"\{\w+\}", name) or [""]
            found |= {name.replace(placeholder, text) for text in _NAMES[placeholder]} if placeholder else {name}
    return found

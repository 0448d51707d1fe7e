"""The promises of the outcome journal, each broken once by hand."""

import pytest

from kexpr.codes import Mode
from kexpr.testing.simulation.invariants import (
    JOURNAL,
    JOURNAL_KINDS,
    Actor,
    InvariantBroken,
    Invariants,
    Kind,
    Message,
)
from kexpr.testing.simulation.journal import is_alive

ACTOR = Actor(Mode.ENABLED, process=1)


def checker(kind: Kind, *rows: tuple[str, str]) -> tuple[Invariants, Message]:
    """With durable rows of (state, outcome), taken as verified."""
    message = Message(kind, "message", "canonical")
    invariants = Invariants([message])
    invariants.named(message, "opaque")
    invariants.written = {"message": {"attempt": "body"}}
    held = invariants._ledgers[JOURNAL]
    for state, outcome in rows:
        record = {"artifact_key": "opaque", "attempt_id": "attempt", "state": state, "outcome": outcome}
        invariants._take_row(JOURNAL, held, record, "enabled", None)
        invariants._take_journal_row(record, is_first_seen=True)
    return invariants, message


STARTED = ("attempt_started", "attempt_started")
SELECTED = ("finalized", "selected")


@pytest.mark.parametrize("kind", JOURNAL_KINDS)
def test_an_observer_of_a_live_claim_publishes_nothing(kind: Kind) -> None:
    invariants, message = checker(kind, STARTED)
    invariants.shown(message, "canonical", ACTOR)
    invariants.is_live = lambda attempt_id: True
    with pytest.raises(InvariantBroken, match="beside a claim in flight"):
        invariants.shown(message, "canonical", ACTOR)


def test_a_writers_text_is_its_durable_body_after_the_terminal_row() -> None:
    invariants, message = checker(Kind.JOURNAL_WEEKLY, STARTED, SELECTED)
    invariants.shown(message, "body", ACTOR)
    with pytest.raises(InvariantBroken, match="not the durable body"):
        invariants.shown(message, "another", ACTOR)
    early, message = checker(Kind.JOURNAL_WEEKLY, STARTED)
    with pytest.raises(InvariantBroken, match="neither canonical nor durably selected"):
        early.shown(message, "body", ACTOR)


@pytest.mark.parametrize(("process", "is_broken"), [(1, True), (2, False)])
def test_each_process_keeps_the_order_of_a_writers_message(process: int, is_broken: bool) -> None:
    invariants, message = checker(Kind.JOURNAL_ADAPTIVE, STARTED, SELECTED)
    invariants.shown(message, "canonical", ACTOR)
    later = Actor(Mode.ENABLED, process=process)
    if not is_broken:
        invariants.shown(message, "body", later)
        return
    with pytest.raises(InvariantBroken, match="after a canonical one"):
        invariants.shown(message, "body", later)


def test_a_daily_edit_is_made_once_and_inside_its_claim() -> None:
    invariants, message = checker(Kind.JOURNAL_DAILY, STARTED)
    invariants.shown(message, "body", ACTOR)
    with pytest.raises(InvariantBroken, match="a second selected edit"):
        invariants.shown(message, "body", ACTOR)
    ended, message = checker(Kind.JOURNAL_DAILY, STARTED, SELECTED)
    with pytest.raises(InvariantBroken, match="outside its claim"):
        ended.shown(message, "body", ACTOR)


def test_a_durable_body_is_recovered() -> None:
    with pytest.raises(InvariantBroken, match="was not recovered"):
        checker(Kind.JOURNAL_WEEKLY, STARTED, ("finalized", "claim_expired_canonical"))


@pytest.mark.parametrize(
    ("sidecar", "alive"),
    [
        (None, False),
        (b'{"boot_id":"b","boottime_deadline_ms":5}', True),
        (b'{"boot_id":"b","boottime_deadline_ms":4}', False),
        (b'{"boot_id":"c","boottime_deadline_ms":5}', False),
        (b'{"boot_id":null,"boottime_deadline_ms":5}', False),
    ],
)
def test_a_lease_is_alive_for_certain(sidecar: bytes | None, alive: bool) -> None:
    assert is_alive(sidecar, "b", 4) is alive

"""The daily authority: claim once, end once, hold no text."""

from dataclasses import replace

import pytest

from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.daily import DailyPresentationAttemptV1
from kexpr.authority.recovery import Absent, Durable, InFlight
from kexpr.clock import CLAIM_LEASE_MS, Lease
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, IllegalTransition, LedgerFailed, StoreFault
from kexpr.testing.memory_ledger import Fault
from tests.unit.authority.support import EVENT, LOST, SELECTED, World, candidate, refusing, wins

NOT_CANCELLED = Cancellation()


def test_the_record_has_exactly_the_specified_keys_and_no_text(world: World) -> None:
    authority = world.daily()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    authority.finalize_finalized_presentation(EVENT, ticket, wins(Surface.DAILY), NOT_CANCELLED)

    claimed, finalized = world.store.rows()
    assert dict(claimed.record) == {
        "schema_version": 1,
        "finalized_event_id": EVENT,
        "surface": "daily.v1",
        "attempt_id": ticket.attempt_id,
        "phase": "claimed",
        "deadline": "2026-01-09T23:06:44.000Z",
        "outcome": None,
    }
    assert dict(finalized.record) == {**claimed.record, "phase": "finalized", "outcome": "selected"}
    assert (claimed.mode, claimed.lease) == (Mode.ENABLED, ticket.lease)
    assert (finalized.mode, finalized.lease) == (None, None)


def test_selected_text_is_given_once_and_never_again(world: World) -> None:
    authority = world.daily()
    artifact: ArtifactAuthority = authority.artifact(EVENT)
    assert artifact.is_fresh()
    ticket = artifact.claim(Mode.ENABLED)
    assert not artifact.is_fresh()
    assert artifact.finalize(ticket, wins(Surface.DAILY), NOT_CANCELLED) == Finalized(Outcome.SELECTED, None, SELECTED)
    assert artifact.finalize(ticket, wins(Surface.DAILY), NOT_CANCELLED) == Finalized(Outcome.SELECTED)
    assert world.daily().recover(EVENT) == Durable(Outcome.SELECTED, None, "finalized")
    assert len(world.store.rows()) == 2


@pytest.mark.parametrize("other_process", [False, True])
@pytest.mark.parametrize("is_final", [False, True])
def test_a_duplicate_claim_is_refused(world: World, other_process: bool, is_final: bool) -> None:
    authority = world.daily()
    second = world.daily() if other_process else authority
    ticket = authority.claim_finalized_presentation(EVENT, Mode.SHADOW)
    if is_final:
        authority.finalize_finalized_presentation(EVENT, ticket, LOST, NOT_CANCELLED)
    rows = world.store.records()
    with pytest.raises(ClaimRefused):
        second.claim_finalized_presentation(EVENT, Mode.ENABLED)
    assert world.store.records() == rows


def test_an_unknown_event_is_not_claimed(world: World) -> None:
    world.events.clear()
    with pytest.raises(AuthorityFailed) as failed:
        world.daily().claim_finalized_presentation(EVENT, Mode.ENABLED)
    assert failed.value.code is StoreFault.UNKNOWN_EVENT
    assert world.store.rows() == []


def test_a_disabled_mode_claims_nothing(world: World) -> None:
    with pytest.raises(ClaimRefused):
        world.daily().claim_finalized_presentation(EVENT, Mode.DISABLED)
    assert world.store.rows() == []


def test_recovery_tells_how_long_and_then_ends_the_claim(world: World) -> None:
    authority = world.daily()
    assert authority.recover(EVENT) == Absent()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    world.clock.pass_ms(1_500)
    assert world.daily().recover(EVENT) == InFlight(CLAIM_LEASE_MS - 1_500)
    world.clock.pass_ms(2_499)
    assert authority.expire_finalized_presentation(EVENT) == InFlight(1)
    world.clock.pass_ms(1)
    assert authority.state(EVENT) == InFlight(0)
    assert len(world.store.rows()) == 1
    expired = Durable(Outcome.CANONICAL_CLAIM_EXPIRED, None, "finalized")
    assert world.daily().recover(EVENT) == expired
    assert authority.recover(EVENT) == expired
    assert len(world.store.rows()) == 2
    late = authority.finalize_finalized_presentation(EVENT, ticket, wins(Surface.DAILY), NOT_CANCELLED)
    assert late == Finalized(Outcome.CANONICAL_CLAIM_EXPIRED)
    assert len(world.store.rows()) == 2


def test_a_late_worker_ends_its_own_expired_claim_as_expired(world: World) -> None:
    authority = world.daily()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    world.clock.expire()
    late = authority.finalize_finalized_presentation(EVENT, ticket, wins(Surface.DAILY), NOT_CANCELLED)
    assert late == Finalized(Outcome.CANONICAL_CLAIM_EXPIRED, Reason.CLAIM_EXPIRED)
    assert world.store.records()[-1]["outcome"] == "canonical_claim_expired"


def test_another_boot_expires_a_claim_whatever_utc_says(world: World) -> None:
    authority = world.daily()
    authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    world.clock.boot_id = "another"
    assert isinstance(world.daily().recover(EVENT), Durable)


def test_without_a_boot_id_utc_decides_and_a_jump_back_adds_nothing(world: World) -> None:
    world.clock.boot_id = None
    authority = world.daily()
    authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    world.clock.boottime_ms += 1_000_000
    assert authority.recover(EVENT) == InFlight(CLAIM_LEASE_MS)
    world.clock.utc_ms -= 1_000_000
    assert authority.recover(EVENT) == InFlight(CLAIM_LEASE_MS)
    world.clock.utc_ms += 1_000_000 + CLAIM_LEASE_MS
    assert isinstance(authority.recover(EVENT), Durable)


def test_utc_neither_revives_nor_kills_on_one_boot(world: World) -> None:
    authority = world.daily()
    authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    world.clock.utc_ms += 1_000_000
    assert authority.recover(EVENT) == InFlight(CLAIM_LEASE_MS)
    world.clock.utc_ms -= 2_000_000
    world.clock.boottime_ms += CLAIM_LEASE_MS
    assert isinstance(authority.recover(EVENT), Durable)


def test_a_forged_ticket_ends_nothing(world: World) -> None:
    authority = world.daily()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    with pytest.raises(IllegalTransition):
        authority.finalize_finalized_presentation(
            EVENT, replace(ticket, attempt_id="f" * 32), wins(Surface.DAILY), NOT_CANCELLED
        )
    assert len(world.store.rows()) == 1


def test_nothing_claimed_is_nothing_to_end(world: World) -> None:
    ticket = Ticket("f" * 32, Mode.ENABLED, Lease(0, 0, None))
    with pytest.raises(IllegalTransition):
        world.daily().finalize_finalized_presentation(EVENT, ticket, LOST, NOT_CANCELLED)
    assert world.store.rows() == []


def test_a_shadow_claim_never_selects_even_with_a_ticket_that_says_so(world: World) -> None:
    authority = world.daily()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.SHADOW)
    forged = replace(ticket, mode=Mode.ENABLED)
    for process in (authority, world.daily()):
        with pytest.raises(IllegalTransition):
            process.finalize_finalized_presentation(EVENT, forged, wins(Surface.DAILY), NOT_CANCELLED)
    assert len(world.store.rows()) == 1
    final = authority.finalize_finalized_presentation(EVENT, ticket, wins(Surface.DAILY, Mode.SHADOW), NOT_CANCELLED)
    assert final == Finalized(Outcome.SHADOW_SELECTED)


def test_a_candidate_that_is_refused_under_the_lock_is_a_commit_error(world: World) -> None:
    authority = world.daily()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    ruling = Ruling(Outcome.SELECTED, candidate=candidate(Surface.DAILY, judge=refusing))
    final = authority.finalize_finalized_presentation(EVENT, ticket, ruling, NOT_CANCELLED)
    assert final == Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_CANDIDATE_INVALID)


def test_a_cancelled_caller_wins_over_a_candidate(world: World) -> None:
    authority = world.daily()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    cancellation = Cancellation()
    cancellation.set()
    final = authority.finalize_finalized_presentation(EVENT, ticket, wins(Surface.DAILY), cancellation)
    assert final == Finalized(Outcome.CANONICAL_TIMEOUT, Reason.CANCELLED)


@pytest.mark.parametrize("fault", Fault)
def test_a_claim_that_is_not_durable_gives_no_ticket(memory_world: World, fault: Fault) -> None:
    authority = memory_world.daily()
    memory_world.store.memory.next_fault = fault
    with pytest.raises(LedgerFailed):
        authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    with pytest.raises(LedgerFailed):
        authority.recover(EVENT)
    restarted = memory_world.daily()
    expected = Absent() if fault is Fault.BEFORE_WRITE else InFlight(CLAIM_LEASE_MS)
    assert restarted.recover(EVENT) == expected


@pytest.mark.parametrize("fault", Fault)
def test_a_final_row_that_is_not_durable_gives_no_text(memory_world: World, fault: Fault) -> None:
    authority = memory_world.daily()
    ticket = authority.claim_finalized_presentation(EVENT, Mode.ENABLED)
    memory_world.store.memory.next_fault = fault
    with pytest.raises(LedgerFailed):
        authority.finalize_finalized_presentation(EVENT, ticket, wins(Surface.DAILY), NOT_CANCELLED)
    memory_world.clock.expire()
    recovered = memory_world.daily().recover(EVENT)
    assert isinstance(recovered, Durable)
    assert recovered.body is None


def test_outstanding_claims_are_listed_and_ended_when_expired(world: World) -> None:
    world.events |= {"second", "third"}
    authority = world.daily()
    tickets = [authority.claim_finalized_presentation(event, Mode.SHADOW) for event in (EVENT, "second")]
    assert authority.outstanding() == tuple(ticket.attempt_id for ticket in tickets)
    assert authority.expire_outstanding() == 0
    world.clock.expire()
    third = authority.claim_finalized_presentation("third", Mode.SHADOW)
    assert world.daily().expire_outstanding() == 2
    assert authority.outstanding() == (third.attempt_id,)


def test_every_append_is_between_two_failpoints(memory_world: World, reached: list[str]) -> None:
    authority = memory_world.daily()
    memory_world.events.add("second")
    ticket = authority.claim_finalized_presentation(EVENT, Mode.SHADOW)
    authority.finalize_finalized_presentation(EVENT, ticket, LOST, NOT_CANCELLED)
    authority.claim_finalized_presentation("second", Mode.SHADOW)
    memory_world.clock.expire()
    authority.recover("second")
    assert reached == [
        f"daily.{step}.{when}" for step in ("claim", "finalize", "claim", "expire") for when in ("before", "after")
    ]


CLAIMED = DailyPresentationAttemptV1(1, EVENT, "daily.v1", "a" * 32, "claimed", "2026-01-09T23:06:44.000Z", None)
FINALIZED = replace(CLAIMED, phase="finalized", outcome="canonical_timeout")
"""Rows that are put into the store by hand below."""


@pytest.mark.parametrize(
    "history",
    [
        [FINALIZED],
        [CLAIMED, CLAIMED],
        [CLAIMED, FINALIZED, FINALIZED],
        [replace(CLAIMED, schema_version=2)],
        [replace(CLAIMED, surface="weekly.v1")],
        [replace(CLAIMED, outcome="selected")],
        [CLAIMED, replace(FINALIZED, outcome="overloaded")],
        [CLAIMED, replace(FINALIZED, outcome="no_such_code")],
        [CLAIMED, replace(FINALIZED, outcome="selected")],
        [CLAIMED, replace(FINALIZED, attempt_id="b" * 32)],
        [CLAIMED, replace(FINALIZED, deadline="2026-01-09T23:06:45.000Z")],
        [CLAIMED, replace(FINALIZED, phase="claimed")],
        [CLAIMED, replace(FINALIZED, outcome=None)],
        [{"schema_version": 1}],
        [{**dict.fromkeys(DailyPresentationAttemptV1.__dataclass_fields__), "schema_version": True}],
    ],
)
def test_a_history_that_no_authority_writes_is_refused(
    memory_world: World, history: list[DailyPresentationAttemptV1 | dict[str, object]]
) -> None:
    for row in history:
        record = (
            row
            if isinstance(row, dict)
            else {name: getattr(row, name) for name in DailyPresentationAttemptV1.__dataclass_fields__}
        )
        memory_world.store.put(record, mode=Mode.SHADOW)
    with pytest.raises(LedgerFailed) as failed:
        memory_world.daily()
    assert failed.value.code is StoreFault.ILLEGAL_HISTORY


def test_a_claim_row_without_a_lease_is_expired_and_without_a_mode_is_shadow(memory_world: World) -> None:
    record = {name: getattr(CLAIMED, name) for name in DailyPresentationAttemptV1.__dataclass_fields__}
    memory_world.store.put(record)
    authority = memory_world.daily()
    assert authority.state(EVENT) == InFlight(0)
    assert authority.recover(EVENT) == Durable(Outcome.CANONICAL_CLAIM_EXPIRED, None, "finalized")

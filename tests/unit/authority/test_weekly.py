"""The weekly authority: one claim, one end, exact rows, pins."""

from dataclasses import fields, replace

import pytest

from kexpr.attempt import ArtifactAuthority, Finalized, Ruling, Ticket
from kexpr.authority.records import digest_of
from kexpr.authority.recovery import Durable, InFlight
from kexpr.authority.weekly import (
    Pins,
    ScheduledDeliveryReceipt,
)
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, HardStop, IllegalTransition, StoreFault
from kexpr.ledger.tombstones import Mark
from tests.unit.authority.support import (
    CANONICAL,
    DESTINATION,
    LOST,
    PINS,
    SELECTED,
    TASK,
    World,
    candidate,
    wins,
)
from tests.unit.authority.weekly_support import LEASE, NOT_CANCELLED, OTHER_TASK, bind, load, reserve


def test_the_rows_of_a_selected_delivery(world: World) -> None:
    authority = world.weekly()
    artifact: ArtifactAuthority = bind(world, authority)
    assert artifact.is_fresh()
    ticket = artifact.claim(Mode.ENABLED)
    final = artifact.finalize(ticket, wins(Surface.WEEKLY), NOT_CANCELLED)
    assert final == Finalized(Outcome.SELECTED, None, SELECTED)

    claimed, prepared = world.store.rows()
    assert dict(claimed.record) == {
        "schema_version": 2,
        "task_digest": TASK.digest,
        "state": "presentation_claimed",
        "body": CANONICAL,
        "destination": DESTINATION,
        "body_digest": digest_of(CANONICAL),
        "template_digest": "template-pin",
        "destination_digest": "destination-pin",
        "registry_digest": "registry-pin",
        "config_digest": "config-pin",
        "canonical_body_digest": digest_of(CANONICAL),
        "presentation_surface": "weekly.v1",
        "presentation_attempt_id": ticket.attempt_id,
        "deadline": "2026-01-09T23:06:44.000Z",
        "outcome": None,
    }
    assert dict(prepared.record) == {
        **claimed.record,
        "state": "prepared",
        "body": SELECTED,
        "body_digest": digest_of(SELECTED),
        "outcome": "selected",
    }
    assert (claimed.mode, claimed.lease) == (Mode.ENABLED, ticket.lease)


def test_the_row_of_a_delivery_without_a_presentation(world: World) -> None:
    receipt = reserve(world.weekly())
    (row,) = world.store.records()
    assert dict(row) == {
        "schema_version": 1,
        "task_digest": TASK.digest,
        "state": "prepared",
        "body": CANONICAL,
        "destination": DESTINATION,
        "body_digest": digest_of(CANONICAL),
        "template_digest": "template-pin",
        "destination_digest": "destination-pin",
        "registry_digest": "registry-pin",
        "config_digest": "config-pin",
    }
    assert receipt == ScheduledDeliveryReceipt(
        TASK.digest, digest_of(CANONICAL), "template-pin", "destination-pin", "registry-pin", "config-pin"
    )


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.ENABLED])
def test_shadow_and_lost_leave_the_canonical_body(world: World, mode: Mode) -> None:
    authority = world.weekly()
    artifact = bind(world, authority)
    ruling = wins(Surface.WEEKLY, Mode.SHADOW) if mode is Mode.SHADOW else LOST
    final = artifact.finalize(artifact.claim(mode), ruling, NOT_CANCELLED)
    assert final == Finalized(ruling.outcome, ruling.reason)
    assert load(authority, authority.receipt(TASK)).body == CANONICAL


def test_prepared_without_a_presentation_is_immutable(world: World) -> None:
    authority = world.weekly()
    receipt = reserve(authority)
    rows = world.store.records()
    artifact = bind(world, world.weekly())
    assert not artifact.is_fresh()
    with pytest.raises(ClaimRefused):
        artifact.claim(Mode.ENABLED)
    with pytest.raises(IllegalTransition):
        reserve(authority)
    stranger = Ticket("f" * 32, Mode.ENABLED, LEASE)
    with pytest.raises(IllegalTransition):
        artifact.finalize(stranger, wins(Surface.WEEKLY), NOT_CANCELLED)
    world.clock.expire()
    assert authority.recover(TASK) == Durable(None, CANONICAL, "prepared")
    assert world.store.records() == rows
    assert load(world.weekly(), receipt).outcome is None


@pytest.mark.parametrize("pin", [field.name for field in fields(Pins)])
def test_a_pin_race_prepares_canonical(world: World, pin: str) -> None:
    artifact = bind(world, world.weekly())
    ticket = artifact.claim(Mode.ENABLED)
    world.pins = replace(PINS, **{pin: "moved"})
    final = artifact.finalize(ticket, wins(Surface.WEEKLY), NOT_CANCELLED)
    assert final == Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_PIN_CHANGED)
    claimed, prepared = world.store.records()
    assert dict(prepared) == {**claimed, "state": "prepared", "outcome": "canonical_commit_error"}


def test_a_candidate_for_another_canonical_body_is_refused(world: World) -> None:
    artifact = bind(world, world.weekly())
    ruling = Ruling(Outcome.SELECTED, candidate=candidate(Surface.WEEKLY, title="다른 제목"))
    final = artifact.finalize(artifact.claim(Mode.ENABLED), ruling, NOT_CANCELLED)
    assert final == Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_CANDIDATE_INVALID)
    assert world.store.records()[-1]["body"] == CANONICAL


def test_a_shadow_ticket_cannot_select(world: World) -> None:
    authority = world.weekly()
    ticket = bind(world, authority).claim(Mode.SHADOW)
    rows = world.store.records()
    for process in (authority, world.weekly()):
        with pytest.raises(IllegalTransition):
            bind(world, process).finalize(replace(ticket, mode=Mode.ENABLED), wins(Surface.WEEKLY), NOT_CANCELLED)
    assert world.store.records() == rows


def test_expiry_prepares_canonical_from_the_claimed_row_once(world: World) -> None:
    authority = world.weekly()
    artifact = bind(world, authority)
    ticket = artifact.claim(Mode.ENABLED)
    assert world.weekly().recover(TASK) == InFlight(CLAIM_LEASE_MS)
    world.clock.expire()
    assert authority.state(TASK) == InFlight(0)
    expired = Durable(Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL, "prepared")
    assert world.weekly().recover(TASK) == expired
    assert authority.expire_customer_task_presentation(TASK) == expired
    late = artifact.finalize(ticket, wins(Surface.WEEKLY), NOT_CANCELLED)
    assert late == Finalized(Outcome.CANONICAL_CLAIM_EXPIRED)
    claimed, prepared = world.store.records()
    assert dict(prepared) == {**claimed, "state": "prepared", "outcome": "canonical_claim_expired"}


@pytest.mark.parametrize("boot_id", ["another", None])
def test_another_or_no_boot_id(world: World, boot_id: str | None) -> None:
    bind(world, world.weekly()).claim(Mode.ENABLED)
    world.clock.boot_id = boot_id
    world.clock.boottime_ms += 1_000_000
    found = world.weekly().recover(TASK)
    assert found == (
        InFlight(CLAIM_LEASE_MS) if boot_id is None else Durable(Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL, "prepared")
    )


def test_a_selected_body_is_recovered_exactly_and_given_again_to_a_late_asker(world: World) -> None:
    artifact = bind(world, world.weekly())
    ticket = artifact.claim(Mode.ENABLED)
    artifact.finalize(ticket, wins(Surface.WEEKLY), NOT_CANCELLED)
    restarted = world.weekly()
    assert restarted.recover(TASK) == Durable(Outcome.SELECTED, SELECTED, "prepared")
    again = bind(world, restarted).finalize(ticket, LOST, NOT_CANCELLED)
    assert again == Finalized(Outcome.SELECTED, None, SELECTED)
    receipt = restarted.receipt(TASK)
    restarted.mark_customer_task_sending(receipt)
    assert bind(world, restarted).finalize(ticket, LOST, NOT_CANCELLED) == Finalized(Outcome.SELECTED)
    assert restarted.recover(TASK) == Durable(Outcome.SELECTED, None, "sending")


def test_one_claim_among_processes(world: World) -> None:
    first, second = world.weekly(), world.weekly()
    bind(world, first).claim(Mode.ENABLED)
    assert not bind(world, second).is_fresh()
    with pytest.raises(ClaimRefused):
        bind(world, second).claim(Mode.ENABLED)


def test_outstanding_claims_are_listed_and_ended_when_expired(world: World) -> None:
    authority = world.weekly()
    tickets = [bind(world, authority, task).claim(Mode.ENABLED) for task in (TASK, OTHER_TASK)]
    assert authority.outstanding() == tuple(ticket.attempt_id for ticket in tickets)
    assert authority.expire_outstanding() == 0
    world.clock.expire()
    assert world.weekly().expire_outstanding() == 2
    assert authority.outstanding() == ()


def test_a_stopped_task_does_not_keep_others_from_ending(world: World) -> None:
    authority = world.weekly()
    for task in (TASK, OTHER_TASK):
        bind(world, authority, task).claim(Mode.ENABLED)
    world.marks.mark(TASK.digest, Mark.SENDING)
    world.clock.expire()
    assert authority.expire_outstanding() == 1
    assert isinstance(authority.state(OTHER_TASK), Durable)


def test_a_task_that_is_not_ready_is_neither_claimed_nor_reserved_yet(world: World) -> None:
    world.is_ready = False
    authority = world.weekly()
    for step in (lambda: bind(world, authority).claim(Mode.ENABLED), lambda: reserve(authority)):
        with pytest.raises(AuthorityFailed) as failed:
            step()
        assert failed.value.code is StoreFault.NOT_READY
    assert world.store.rows() == []
    assert not world.marks.made
    world.is_ready = True
    bind(world, authority).claim(Mode.ENABLED)
    assert len(world.store.rows()) == 1


def _raise() -> Pins:
    raise RuntimeError(DESTINATION)


def test_pins_that_cannot_be_read_stop_a_claim_and_make_an_end_canonical(world: World) -> None:
    authority = world.weekly()
    broken = replace(bind(world, authority), current_pins=_raise)
    with pytest.raises(AuthorityFailed) as failed:
        broken.claim(Mode.ENABLED)
    assert failed.value.code is StoreFault.HOST_PORT
    assert failed.value.__context__ is None
    assert world.store.rows() == []
    assert not world.marks.made
    ticket = bind(world, authority).claim(Mode.ENABLED)
    assert broken.finalize(ticket, wins(Surface.WEEKLY), NOT_CANCELLED).reason is Reason.COMMIT_PIN_CHANGED


def test_a_host_that_calls_back_under_the_lock_is_told(world: World) -> None:
    authority = world.weekly()
    artifact = replace(bind(world, authority), current_pins=lambda: (authority.state(TASK), PINS)[1])
    with pytest.raises(HardStop) as stopped:
        artifact.claim(Mode.ENABLED)
    assert stopped.value.code is StoreFault.LOCK_ORDER
    assert world.store.rows() == []

"""The adaptive authority: two locks in order, pins at both ends, one payload, both producers."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling
from kexpr.authority.adaptive import OriginKind
from kexpr.authority.recovery import Absent, Durable, InFlight
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, IllegalTransition, LedgerFailed, StoreFault
from kexpr.testing.memory_ledger import Fault
from tests.unit.authority.adaptive_support import DUAL, NOT_CANCELLED, ORIGINS, PHYSIQUE, bind, prose
from tests.unit.authority.support import BINDING, CANONICAL, LOST, SELECTED, World, candidate, origin, wins


@pytest.mark.parametrize("surface", [DUAL, PHYSIQUE])
@pytest.mark.parametrize("kind", OriginKind)
def test_the_rows_of_a_selected_card_of_both_producers(world: World, kind: OriginKind, surface: Surface) -> None:
    authority = world.adaptive()
    from_ = origin(kind)
    artifact: ArtifactAuthority = bind(authority, from_, surface)
    assert artifact.is_fresh()
    ticket = artifact.claim(Mode.ENABLED)
    assert artifact.finalize(ticket, wins(surface), NOT_CANCELLED) == Finalized(Outcome.SELECTED, None, SELECTED)
    authority.mark_publish_claimed(from_)
    authority.mark_published(from_)

    claimed, pending, publishing, published = world.store.rows()
    common = {"card_digest": from_.card_digest}
    assert dict(claimed.record) == {
        **common,
        "schema_version": 2,
        "state": "presentation_claimed",
        "surface": surface.wire,
        "canonical_payload": CANONICAL,
        "claim_id": ticket.attempt_id,
        "deadline": "2026-01-09T23:06:44.000Z",
        "origin_kind": kind.value,
        "binding_digest": BINDING,
    }
    assert dict(pending.record) == {
        **common,
        "schema_version": 2,
        "state": "publish_pending",
        "surface": surface.wire,
        "payload": SELECTED,
        "claim_id": ticket.attempt_id,
        "origin_kind": kind.value,
        "binding_digest": BINDING,
        "outcome": "selected",
    }
    assert dict(publishing.record) == {**common, "schema_version": 1, "state": "publish_claimed"}
    assert dict(published.record) == {**common, "schema_version": 1, "state": "published"}
    assert (claimed.mode, claimed.lease) == (Mode.ENABLED, ticket.lease)


def test_the_row_of_a_card_without_a_presentation(world: World) -> None:
    authority = world.adaptive()
    from_ = origin()
    assert authority.mark_publish_pending(from_, payload=CANONICAL) == Durable(None, CANONICAL, "publish_pending")
    assert [dict(record) for record in world.store.records()] == [
        {
            "schema_version": 1,
            "card_digest": from_.card_digest,
            "state": "publish_pending",
            "payload": CANONICAL,
        }
    ]
    artifact = bind(authority)
    assert not artifact.is_fresh()
    with pytest.raises(ClaimRefused):
        artifact.claim(Mode.ENABLED)


def test_an_origin_is_not_serialised_and_shows_its_kind_only() -> None:
    assert repr(ORIGINS[0]) == "CardPresentationOrigin(kind=<OriginKind.CALLBACK: 'callback'>)"
    with pytest.raises(TypeError):
        pickle.dumps(ORIGINS[0])


def test_one_claim_for_a_session_whoever_produces_it(world: World) -> None:
    first, second = world.adaptive(), world.adaptive()
    bind(first, ORIGINS[0]).claim(Mode.ENABLED)
    for other in ORIGINS:
        assert not second.is_fresh(other)
        with pytest.raises(ClaimRefused):
            bind(second, other).claim(Mode.ENABLED)
        with pytest.raises(IllegalTransition):
            second.mark_publish_pending(other, payload=CANONICAL)


# --- pins ---------------------------------------------------------------------------------------------------------


def not_consumed(world: World) -> None:
    world.session.just_consumed = False


def rebound(world: World) -> None:
    world.session.binding = "moved"


PIN_RACES = [not_consumed, rebound]


@pytest.mark.parametrize("race", PIN_RACES)
def test_a_claim_needs_a_just_consumed_session_and_its_binding(world: World, race: Callable[[World], None]) -> None:
    authority = world.adaptive()
    race(world)
    with pytest.raises(ClaimRefused):
        bind(authority).claim(Mode.ENABLED)
    with pytest.raises(ClaimRefused):
        authority.presentation_identity(ORIGINS[0], binding_digest=BINDING)
    assert world.store.rows() == []
    authority.mark_publish_pending(ORIGINS[0], payload=CANONICAL)


@pytest.mark.parametrize("race", PIN_RACES)
def test_a_pin_race_is_canonical(world: World, race: Callable[[World], None]) -> None:
    artifact = bind(world.adaptive())
    ticket = artifact.claim(Mode.ENABLED)
    race(world)
    final = artifact.finalize(ticket, wins(PHYSIQUE), NOT_CANCELLED)
    assert final == Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_PIN_CHANGED)
    assert world.store.records()[-1]["payload"] == CANONICAL


def test_the_other_producer_cannot_end_a_claim_with_its_text(world: World) -> None:
    authority = world.adaptive()
    ticket = bind(authority, ORIGINS[0]).claim(Mode.ENABLED)
    final = bind(authority, ORIGINS[1]).finalize(ticket, wins(PHYSIQUE), NOT_CANCELLED)
    assert final.reason is Reason.COMMIT_PIN_CHANGED


def test_a_candidate_for_another_payload_or_surface_is_refused(world: World) -> None:
    for number, wrong in enumerate((candidate(PHYSIQUE, title="다른 제목"), candidate(DUAL))):
        artifact = bind(world.adaptive(), origin(session=f"session {number}"))
        ruling = Ruling(Outcome.SELECTED, candidate=wrong)
        final = artifact.finalize(artifact.claim(Mode.ENABLED), ruling, NOT_CANCELLED)
        assert final == Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_CANDIDATE_INVALID)


def _raise() -> None:
    raise RuntimeError(BINDING)


def test_a_session_that_cannot_be_asked(world: World) -> None:
    authority = world.adaptive()
    artifact = bind(authority)
    ticket = artifact.claim(Mode.ENABLED)
    world.session.on_ask = _raise
    with pytest.raises(AuthorityFailed) as failed:
        bind(authority, origin(session="second")).claim(Mode.ENABLED)
    assert failed.value.code is StoreFault.HOST_PORT
    assert failed.value.__context__ is None
    assert artifact.finalize(ticket, wins(PHYSIQUE), NOT_CANCELLED).reason is Reason.COMMIT_PIN_CHANGED


def test_identity_is_internal_and_opaque(world: World) -> None:
    identity = world.adaptive().presentation_identity(ORIGINS[0], binding_digest=BINDING)
    assert identity == ("adaptive", ORIGINS[0].card_digest, BINDING)
    assert ORIGINS[0].card_digest == ORIGINS[1].card_digest != origin(session="another").card_digest


# --- the end ------------------------------------------------------------------------------------------------------


def test_two_equal_candidates_are_one_commit_and_an_unequal_one_conflicts(world: World) -> None:
    first, second = world.adaptive(), world.adaptive()
    ticket = bind(first).claim(Mode.ENABLED)
    bind(first).finalize(ticket, prose(), NOT_CANCELLED)
    rows = world.store.records()
    assert bind(second).finalize(ticket, prose(), NOT_CANCELLED) == Finalized(Outcome.SELECTED, None, SELECTED)
    for unequal in (prose("천천히 읽어 보니 "), Ruling(Outcome.SELECTED, candidate=candidate(PHYSIQUE, judge=_reject))):
        with pytest.raises(IllegalTransition):
            bind(second).finalize(ticket, unequal, NOT_CANCELLED)
    assert bind(second).finalize(ticket, LOST, NOT_CANCELLED).body == SELECTED
    assert world.store.records() == rows
    first.mark_publish_claimed(ORIGINS[0])
    assert bind(second).finalize(ticket, prose(), NOT_CANCELLED) == Finalized(Outcome.SELECTED)
    with pytest.raises(IllegalTransition):
        bind(second).finalize(ticket, prose("천천히 읽어 보니 "), NOT_CANCELLED)


def _reject(*_: object) -> str:
    raise RuntimeError(SELECTED)


def test_a_late_candidate_after_a_canonical_end_is_dropped(world: World) -> None:
    authority = world.adaptive()
    ticket = bind(authority).claim(Mode.ENABLED)
    world.clock.expire()
    expired = Durable(Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL, "publish_pending")
    assert world.adaptive().recover(ORIGINS[0]) == expired
    assert bind(authority).finalize(ticket, prose(), NOT_CANCELLED) == Finalized(Outcome.CANONICAL_CLAIM_EXPIRED)
    assert authority.recover(ORIGINS[0]) == expired
    assert len(world.store.rows()) == 2


def test_recovery_tells_how_long_and_then_ends_the_claim(world: World) -> None:
    authority = world.adaptive()
    assert authority.recover(ORIGINS[0]) == Absent()
    ticket = bind(authority).claim(Mode.ENABLED)
    world.clock.pass_ms(1_000)
    assert world.adaptive().recover(ORIGINS[1]) == InFlight(CLAIM_LEASE_MS - 1_000)
    assert authority.expire_card_presentation(ORIGINS[0], ticket.attempt_id) == InFlight(CLAIM_LEASE_MS - 1_000)
    for claim_id, from_ in (("f" * 32, ORIGINS[0]), (ticket.attempt_id, origin(session="another"))):
        with pytest.raises(IllegalTransition):
            authority.expire_card_presentation(from_, claim_id)
    world.clock.pass_ms(3_000)
    assert authority.state(ORIGINS[0]) == InFlight(0)
    ended = authority.expire_card_presentation(ORIGINS[0], ticket.attempt_id)
    assert ended == Durable(Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL, "publish_pending")
    assert world.adaptive().expire_card_presentation(ORIGINS[0], ticket.attempt_id) == ended


def test_another_boot_expires(world: World) -> None:
    bind(world.adaptive()).claim(Mode.ENABLED)
    world.clock.boot_id = "another"
    assert isinstance(world.adaptive().recover(ORIGINS[0]), Durable)


def test_a_shadow_ticket_cannot_select(world: World) -> None:
    authority = world.adaptive()
    ticket = bind(authority).claim(Mode.SHADOW)
    for process in (authority, world.adaptive()):
        with pytest.raises(IllegalTransition):
            bind(process).finalize(replace(ticket, mode=Mode.ENABLED), prose(), NOT_CANCELLED)
    assert len(world.store.rows()) == 1


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.ENABLED])
def test_the_host_facing_end_wins_as_the_claim_says(world: World, mode: Mode) -> None:
    authority = world.adaptive()
    ticket = bind(authority).claim(mode)
    durable = authority.finalize_card_presentation(
        ORIGINS[0], ticket.attempt_id, candidate_or_none=candidate(PHYSIQUE), canonical_reason=None
    )
    assert durable == (
        Durable(Outcome.SELECTED, SELECTED, "publish_pending")
        if mode is Mode.ENABLED
        else Durable(Outcome.SHADOW_SELECTED, CANONICAL, "publish_pending")
    )


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (Reason.HTTP_REDIRECT, Outcome.CANONICAL_PROVIDER_ERROR),
        (Reason.GUARD_SAFETY, Outcome.CANONICAL_VALIDATION_REJECTED),
        (None, Outcome.CANONICAL_INVALID),
    ],
)
def test_the_host_facing_end_without_a_candidate(world: World, reason: Reason | None, outcome: Outcome) -> None:
    authority = world.adaptive()
    ticket = bind(authority).claim(Mode.ENABLED)
    durable = authority.finalize_card_presentation(
        ORIGINS[0], ticket.attempt_id, candidate_or_none=None, canonical_reason=reason
    )
    assert durable == Durable(outcome, CANONICAL, "publish_pending")


def test_the_host_facing_end_of_another_claim_is_refused(world: World) -> None:
    authority = world.adaptive()
    bind(authority).claim(Mode.ENABLED)
    for from_ in (ORIGINS[0], origin(session="another")):
        with pytest.raises(IllegalTransition):
            authority.finalize_card_presentation(
                from_, "f" * 32, candidate_or_none=candidate(PHYSIQUE), canonical_reason=None
            )
    assert len(world.store.rows()) == 1


def test_a_cancelled_host_facing_end_is_canonical(world: World) -> None:
    authority = world.adaptive()
    ticket = bind(authority).claim(Mode.ENABLED)
    cancellation = Cancellation()
    cancellation.set()
    durable = authority.finalize_card_presentation(
        ORIGINS[0],
        ticket.attempt_id,
        candidate_or_none=candidate(PHYSIQUE),
        canonical_reason=None,
        cancellation=cancellation,
    )
    assert durable == Durable(Outcome.CANONICAL_TIMEOUT, CANONICAL, "publish_pending")


def test_one_editor_among_processes(world: World) -> None:
    first, second = world.adaptive(), world.adaptive()
    bind(first).finalize(bind(first).claim(Mode.ENABLED), prose(), NOT_CANCELLED)
    second.mark_publish_claimed(ORIGINS[0])
    with pytest.raises(IllegalTransition):
        first.mark_publish_claimed(ORIGINS[0])
    assert first.recover(ORIGINS[0]) == Durable(Outcome.SELECTED, None, "publish_claimed")
    first.mark_published(ORIGINS[0])
    with pytest.raises(IllegalTransition):
        second.mark_published(ORIGINS[0])
    assert second.recover(ORIGINS[0]) == Durable(Outcome.SELECTED, None, "published")


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("step", ["claim", "finalize"])
def test_what_is_not_durable_is_not_given(memory_world: World, fault: Fault, step: str) -> None:
    authority = memory_world.adaptive()
    ticket = None if step == "claim" else bind(authority).claim(Mode.ENABLED)
    memory_world.store.memory.next_fault = fault
    with pytest.raises(LedgerFailed):
        if ticket is None:
            bind(authority).claim(Mode.ENABLED)
        else:
            bind(authority).finalize(ticket, prose(), NOT_CANCELLED)
    with pytest.raises(LedgerFailed):
        authority.mark_publish_pending(ORIGINS[0], payload=CANONICAL)
    memory_world.clock.expire()
    found = memory_world.adaptive().recover(ORIGINS[0])
    expected = {
        ("claim", Fault.BEFORE_WRITE): Absent(),
        ("finalize", Fault.AFTER_WRITE): Durable(Outcome.SELECTED, SELECTED, "publish_pending"),
    }
    expired = Durable(Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL, "publish_pending")
    assert found == expected.get((step, fault), expired)


def test_outstanding_claims_are_listed_and_ended_when_expired(world: World) -> None:
    authority = world.adaptive()
    tickets = [bind(authority, origin(session=name)).claim(Mode.ENABLED) for name in ("first", "second")]
    assert authority.outstanding() == tuple(ticket.attempt_id for ticket in tickets)
    assert authority.expire_outstanding() == 0
    world.clock.expire()
    assert world.adaptive().expire_outstanding() == 2
    assert authority.outstanding() == ()


def test_every_append_is_between_two_failpoints(memory_world: World, reached: list[str]) -> None:
    authority = memory_world.adaptive()
    bind(authority).finalize(bind(authority).claim(Mode.ENABLED), LOST, NOT_CANCELLED)
    authority.mark_publish_claimed(ORIGINS[0])
    authority.mark_published(ORIGINS[0])
    authority.mark_publish_pending(origin(session="second"), payload=CANONICAL)
    steps = ("claim", "finalize", "mark_publish_claimed", "mark_published", "mark_publish_pending")
    assert reached == [f"adaptive.{step}.{when}" for step in steps for when in ("before", "after")]

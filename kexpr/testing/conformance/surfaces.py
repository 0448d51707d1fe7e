"""What only one of the stores has to hold (authorities, "Daily", "Weekly", "Adaptive")."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kexpr.attempt import Cancellation
from kexpr.authority.recovery import Absent, Durable, InFlight
from kexpr.authority.weekly_records import ScheduledDeliveryReceipt, WeeklyTask
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, HardStop, IllegalTransition
from kexpr.testing.conformance.artifacts import refuses
from kexpr.testing.conformance.kit import CANONICAL, DESTINATION, SELECTED, SUBJECTS, Kit, origin_of, wins

__all__ = ["SURFACE_CHECKS", "SurfaceCheck"]

SurfaceCheck = Callable[[Kit], None]

_TASK: Final = WeeklyTask("one")
_ORIGIN: Final = origin_of("one")


def daily_claims_only_an_event_that_exists(kit: Kit) -> None:
    kit.ports.missing_events.add("none")
    store = kit.daily()
    refuses(AuthorityFailed, lambda: store.artifact("none").claim(Mode.ENABLED), "an event that is none was claimed")
    assert isinstance(kit.daily().recover("none"), Absent), "a refused claim left something"


def daily_never_gives_a_body_back(kit: Kit) -> None:
    handle = SUBJECTS["daily"].open(kit)
    artifact = handle.artifact("one")
    artifact.finalize(artifact.claim(Mode.ENABLED), wins(Surface.DAILY), Cancellation())
    for store in (handle, SUBJECTS["daily"].open(kit)):
        found = store.recover("one")
        assert isinstance(found, Durable), "the outcome is not durable"
        assert found.body is None, "daily kept a selected text"


def _prepared(kit: Kit) -> ScheduledDeliveryReceipt:
    handle = SUBJECTS["weekly"].open(kit)
    artifact = handle.artifact("one")
    artifact.finalize(artifact.claim(Mode.ENABLED), wins(Surface.WEEKLY), Cancellation())
    return kit.weekly().receipt(_TASK)


def _loaded(kit: Kit, receipt: ScheduledDeliveryReceipt, **other: str) -> object:
    pins = kit.ports.pins
    expected = {
        "expected_registry_digest": pins.registry_digest,
        "expected_config_digest": pins.config_digest,
        "expected_destination_digest": pins.destination_digest,
    }
    return kit.weekly().load_prepared_customer_task_delivery(receipt, **{**expected, **other})


def weekly_loads_exactly_what_is_durable(kit: Kit) -> None:
    receipt = _prepared(kit)
    pins = kit.ports.pins
    loaded = kit.weekly().load_prepared_customer_task_delivery(
        receipt,
        expected_registry_digest=pins.registry_digest,
        expected_config_digest=pins.config_digest,
        expected_destination_digest=pins.destination_digest,
    )
    assert (loaded.body, loaded.destination) == (SELECTED, DESTINATION), "other material was loaded"


def weekly_stops_when_a_pin_changed_before_the_send(kit: Kit) -> None:
    receipt = _prepared(kit)
    for name in ("expected_registry_digest", "expected_config_digest", "expected_destination_digest"):
        refuses(HardStop, lambda name=name: _loaded(kit, receipt, **{name: "0" * 64}), f"{name} was not checked")  # type: ignore[misc]
    forged = replace(receipt, body_digest="0" * 64)
    refuses(HardStop, lambda: _loaded(kit, forged), "a receipt of another body was taken")


def weekly_stops_when_the_schedule_fell(kit: Kit) -> None:
    receipt = _prepared(kit)
    kit.ports.fallen_fences.add(_TASK.digest)
    refuses(HardStop, lambda: _loaded(kit, receipt), "the ready fence was not asked")


def weekly_is_canonical_when_a_pin_changed_during_the_call(kit: Kit) -> None:
    handle = SUBJECTS["weekly"].open(kit)
    artifact = handle.artifact("one")
    ticket = artifact.claim(Mode.ENABLED)
    kit.ports.change_pins()
    final = artifact.finalize(ticket, wins(Surface.WEEKLY), Cancellation())
    assert (final.outcome, final.reason, final.body) == (
        Outcome.CANONICAL_COMMIT_ERROR,
        Reason.COMMIT_PIN_CHANGED,
        None,
    ), "a changed pin was not seen"


def weekly_sends_once(kit: Kit) -> None:
    receipt = _prepared(kit)
    first, second = kit.weekly(), kit.weekly()
    first.mark_customer_task_sending(receipt)
    refuses(
        (IllegalTransition, HardStop),
        lambda: second.mark_customer_task_sending(receipt),
        "a task was sent twice",
    )


def weekly_direct_edge_is_open_without_a_row_and_closed_after_a_claim(kit: Kit) -> None:
    pins = kit.ports.pins
    kit.weekly().reserve_customer_task_delivery(
        WeeklyTask("direct"), body=CANONICAL, destination=DESTINATION, pins=pins
    )
    found = kit.weekly().recover(WeeklyTask("direct"))
    assert isinstance(found, Durable), "the direct edge is not durable"
    assert (found.outcome, found.body) == (None, CANONICAL), "the direct edge has other bytes"
    SUBJECTS["weekly"].open(kit).artifact("one").claim(Mode.ENABLED)
    refuses(
        (IllegalTransition, HardStop),
        lambda: kit.weekly().reserve_customer_task_delivery(_TASK, body=CANONICAL, destination=DESTINATION, pins=pins),
        "the direct edge was open after a claim",
    )


def adaptive_claims_only_a_session_that_was_just_consumed(kit: Kit) -> None:
    kit.ports.spent_sessions.add("one")
    refuses(
        ClaimRefused,
        lambda: SUBJECTS["adaptive"].open(kit).artifact("one").claim(Mode.ENABLED),
        "a card without its session was claimed",
    )
    pending = kit.adaptive().mark_publish_pending(_ORIGIN, payload=CANONICAL)
    assert pending.body == CANONICAL, "the direct edge has other bytes"


def adaptive_is_canonical_when_its_binding_changed(kit: Kit) -> None:
    artifact = SUBJECTS["adaptive"].open(kit).artifact("one")
    ticket = artifact.claim(Mode.ENABLED)
    kit.ports.revision += 1
    final = artifact.finalize(ticket, wins(Surface.ADAPTIVE_DUALCOACHTEST), Cancellation())
    assert (final.outcome, final.body) == (Outcome.CANONICAL_COMMIT_ERROR, None), "a changed binding was not seen"


def adaptive_binds_the_claim(kit: Kit) -> None:
    artifact = SUBJECTS["adaptive"].open(kit).artifact("one")
    kit.ports.revision += 1
    refuses(ClaimRefused, lambda: artifact.claim(Mode.ENABLED), "a card with an old binding was claimed")


def adaptive_edits_once(kit: Kit) -> None:
    artifact = SUBJECTS["adaptive"].open(kit).artifact("one")
    artifact.finalize(artifact.claim(Mode.ENABLED), wins(Surface.ADAPTIVE_DUALCOACHTEST), Cancellation())
    first, second = kit.adaptive(), kit.adaptive()
    first.mark_publish_claimed(_ORIGIN)
    refuses(IllegalTransition, lambda: second.mark_publish_claimed(_ORIGIN), "a card was edited twice")
    first.mark_published(_ORIGIN)
    refuses(IllegalTransition, lambda: second.mark_publish_claimed(_ORIGIN), "a published card was edited again")


def adaptive_direct_edge_is_closed_after_a_claim(kit: Kit) -> None:
    SUBJECTS["adaptive"].open(kit).artifact("one").claim(Mode.ENABLED)
    refuses(
        IllegalTransition,
        lambda: kit.adaptive().mark_publish_pending(_ORIGIN, payload=CANONICAL),
        "the direct edge was open after a claim",
    )
    assert isinstance(kit.adaptive().recover(_ORIGIN), InFlight), "a refused step changed something"


SURFACE_CHECKS: Final[dict[str, tuple[SurfaceCheck, ...]]] = {
    "daily": (daily_claims_only_an_event_that_exists, daily_never_gives_a_body_back),
    "weekly": (
        weekly_loads_exactly_what_is_durable,
        weekly_stops_when_a_pin_changed_before_the_send,
        weekly_stops_when_the_schedule_fell,
        weekly_is_canonical_when_a_pin_changed_during_the_call,
        weekly_sends_once,
        weekly_direct_edge_is_open_without_a_row_and_closed_after_a_claim,
    ),
    "adaptive": (
        adaptive_claims_only_a_session_that_was_just_consumed,
        adaptive_binds_the_claim,
        adaptive_is_canonical_when_its_binding_changed,
        adaptive_edits_once,
        adaptive_direct_edge_is_closed_after_a_claim,
    ),
}

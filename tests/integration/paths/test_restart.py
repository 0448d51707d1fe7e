"""Restarts: inside the four seconds of a claim, and with another mode or wire than the one that left something."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from kexpr.attempt import Cancellation, Ruling, Ticket
from kexpr.authority.recovery import InFlight
from kexpr.clock import CLAIM_LEASE_MS, lease_from
from kexpr.codes import Mode, Outcome, WireVersion
from kexpr.errors import IllegalTransition
from tests.integration.paths.conftest import Lanes, Provider
from tests.integration.paths.invariants import durable_selected, outcomes, violations
from tests.integration.paths.worker import Scene
from tests.support.hosts import AheadClock, Gateway, Host, Kind, canonical_text, card, message, records
from tests.unit.authority.support import candidate

CLAIMED = ("coordinator.claimed", 1)
FINALIZED = ("coordinator.finalized", 1)


async def at_once() -> None:
    """The host's delivery needs no time."""


def directory_of(root: Path, kind: Kind) -> Path:
    directory = root / kind.value
    directory.mkdir(mode=0o700)
    return directory


def test_the_timer_of_a_restart_publishes_after_the_lease(lanes: Lanes, provider: Provider, tmp_path: Path) -> None:
    """Real time: all paths at once, each with a claim whose owner was killed."""
    directories = {kind: directory_of(tmp_path, kind) for kind in Kind}
    for kind, directory in directories.items():
        assert lanes.lanes[0].run(Scene(str(directory), kind.value, "m", kill=CLAIMED)).killed
    clock = AheadClock()
    gateways = {kind: Gateway(directory, provider.clients, clock=clock) for kind, directory in directories.items()}
    ends_ms: dict[Kind, int] = {}
    for kind, gateway in gateways.items():
        [claim] = records(directories[kind], kind, "m")
        ends_ms[kind] = claim["lease"]["boottime_deadline_ms"]
        waiting = gateway.publish(kind, "m", replay=True)
        assert (waiting.text, waiting.stopped, waiting.outcome) == (None, False, None)
        assert 0 < waiting.wait_ms <= CLAIM_LEASE_MS
        gateway.publish(kind, "m", replay=True)
    seen_ms: dict[Kind, int] = {}
    before = provider.requests
    give_up = time.monotonic() + 10
    while len(seen_ms) < len(Kind) and time.monotonic() < give_up:
        for kind, gateway in gateways.items():
            if kind not in seen_ms and gateway.host.delivered("m"):
                seen_ms[kind] = clock.now().boottime_ms
        time.sleep(0.01)
    time.sleep(0.3)
    for kind, gateway in gateways.items():
        assert seen_ms[kind] >= ends_ms[kind]
        # Two looks armed two timers: daily may edit canonical twice, the others deliver once.
        assert set(gateway.host.delivered("m")) == {canonical_text(kind, "m")}
        assert len(gateway.host.delivered("m")) <= (2 if kind is Kind.DAILY else 1)
        assert violations(directories[kind], kind, "m", 0) == []
        assert outcomes(directories[kind], kind, "m") == ["canonical_claim_expired"]
        gateway.close()
    assert provider.requests == before


@pytest.mark.parametrize("kind", Kind)
def test_the_asyncio_twin_says_how_long_to_wait(kind: Kind, lanes: Lanes, provider: Provider, tmp_path: Path) -> None:
    assert lanes.lanes[0].run(Scene(str(tmp_path), kind.value, "m", kill=CLAIMED)).killed
    clock = AheadClock()
    with Gateway(tmp_path, provider.clients, clock=clock) as gateway:
        for replay in (False, True):
            waiting = asyncio.run(gateway.publish_async(kind, "m", at_once, replay=replay))
            assert (waiting.text, waiting.stopped) == (None, False)
            assert 0 < waiting.wait_ms <= CLAIM_LEASE_MS
            assert gateway.host.delivered("m") == []
        clock.ahead_ms += waiting.wait_ms
        done = asyncio.run(gateway.publish_async(kind, "m", at_once, replay=True))
        assert (done.wait_ms, done.requests) == (0, 0)
        assert gateway.host.delivered("m") == [canonical_text(kind, "m")]


CHANGES = [
    (Mode.ENABLED, WireVersion.KEXP_2, Mode.DISABLED, WireVersion.KEXP_2),
    (Mode.ENABLED, WireVersion.KEXP_2, Mode.SHADOW, WireVersion.KEXP_2),
    (Mode.SHADOW, WireVersion.KEXP_2, Mode.ENABLED, WireVersion.KEXP_2),
    (Mode.SHADOW, WireVersion.KEXP_2, Mode.DISABLED, WireVersion.KEXP_2),
    (Mode.ENABLED, WireVersion.KEXP_1, Mode.ENABLED, WireVersion.KEXP_2),
    (Mode.ENABLED, WireVersion.KEXP_2, Mode.ENABLED, WireVersion.KEXP_1),
    (Mode.SHADOW, WireVersion.KEXP_1, Mode.ENABLED, WireVersion.KEXP_2),
]


@pytest.mark.parametrize("left_at", [CLAIMED, FINALIZED])
@pytest.mark.parametrize("kind", Kind)
def test_another_mode_or_wire_after_a_restart(
    kind: Kind, left_at: tuple[str, int], lanes: Lanes, tmp_path: Path
) -> None:
    """What was claimed is never called again, and what is durable is delivered whatever the mode is now."""
    for number, (old_mode, old_wire, new_mode, new_wire) in enumerate(CHANGES):
        lane, identity = lanes.lanes[number % 2], f"message-{number}"
        before = lane.server.requests
        old = Scene(str(tmp_path), kind.value, identity, old_mode.value, old_wire.value, kill=left_at)
        assert lane.run(old).killed
        called = lane.server.requests - before
        assert called == (1 if left_at == FINALIZED else 0)
        # The same entry as before: no restart of whatever mode makes a first save of an event that has a row.
        new = Scene(str(tmp_path), kind.value, identity, new_mode.value, new_wire.value, ahead_ms=CLAIM_LEASE_MS + 1000)
        ended = lane.run(new)
        assert (ended.outcome, ended.raised, lane.server.requests - before) == (None, "", called)
        assert violations(tmp_path, kind, identity, called) == []
        durable = durable_selected(tmp_path, kind, identity)
        text = canonical_text(kind, identity) if durable is None or kind is Kind.DAILY else durable
        assert Host(tmp_path).delivered(identity) == [text]
        if left_at == CLAIMED:
            assert outcomes(tmp_path, kind, identity) == ["canonical_claim_expired"]
        elif (old_mode, old_wire) == (Mode.ENABLED, WireVersion.KEXP_2):
            assert durable is not None
        elif old_mode is Mode.SHADOW:
            assert durable is None


@pytest.mark.parametrize("kind", Kind)
def test_a_shadow_claim_selects_for_no_one(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """Not even for an enabled process that says that the ticket was."""
    with Gateway(tmp_path, None, mode=Mode.SHADOW) as shadow:
        ticket = _artifact(shadow, kind).claim(Mode.SHADOW)
    with Gateway(tmp_path, provider.clients, mode=Mode.ENABLED) as enabled:
        forged = Ticket(ticket.attempt_id, Mode.ENABLED, lease_from(enabled.clock.now()))
        wins = Ruling(Outcome.SELECTED, candidate=candidate(kind.surface))
        with pytest.raises(IllegalTransition):
            _artifact(enabled, kind).finalize(forged, wins, Cancellation())
        assert isinstance(_state(enabled, kind), InFlight)
        assert len(records(tmp_path, kind, "m")) == 1


@pytest.mark.parametrize("kind", Kind)
def test_a_disabled_gateway_beside_one_that_is_calling(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """It waits for the owner's delivery, and then has nothing to add but daily's canonical text."""
    with (
        Gateway(tmp_path, provider.clients) as calling,
        Gateway(tmp_path, None, mode=Mode.DISABLED) as disabled,
    ):
        other = threading.Thread(target=lambda: disabled.publish(kind, "m"))

        def start_other() -> None:
            provider.on_request = lambda: None
            other.start()
            other.join(0.05)
            assert other.is_alive()

        provider.on_request = start_other
        assert calling.publish(kind, "m").outcome is Outcome.SELECTED
        other.join(5)
        delivered = calling.host.delivered("m")
        assert delivered[0] != canonical_text(kind, "m")
        assert delivered[1:] == ([canonical_text(kind, "m")] if kind is Kind.DAILY else [])
        assert violations(tmp_path, kind, "m", 1) == []


@pytest.mark.parametrize("kind", Kind)
def test_disabled_makes_no_client_and_no_presentation_row(kind: Kind, tmp_path: Path) -> None:
    with Gateway(tmp_path, None, mode=Mode.DISABLED) as gateway:
        assert gateway.publish(kind, "m").outcome is None
        assert gateway.host.delivered("m") == [canonical_text(kind, "m")]
        versions = [row["schema_version"] for row in records(tmp_path, kind, "m")]
        assert versions == ([] if kind is Kind.DAILY else [1, 1, 1])


def _artifact(gateway: Gateway, kind: Kind):
    if kind is Kind.DAILY:
        return gateway.daily_authority.artifact("m")
    if kind is Kind.WEEKLY:
        task = gateway.delivery("m")
        return gateway.weekly_authority.artifact(
            task.task,
            canonical_body=canonical_text(kind, "m"),
            destination=task.destination,
            current_pins=task.current_pins,
        )
    found = card(kind, "m")
    return gateway.adaptive_authority.artifact(
        found.origin,
        canonical_payload=found.canonical_payload,
        surface=found.surface,
        binding_digest=found.binding_digest,
    )


def _state(gateway: Gateway, kind: Kind):
    if kind is Kind.DAILY:
        return gateway.daily_authority.state(message("m").event_id)
    if kind is Kind.WEEKLY:
        return gateway.weekly_authority.state(gateway.delivery("m").task)
    return gateway.adaptive_authority.state(card(kind, "m").origin)

"""What fails beside a path: the host's delivery, a ledger, a mark, a lock, admission. Nothing uncertain goes out."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from kexpr import failpoints
from kexpr.authority.weekly import WeeklyTask
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode, Outcome, Surface
from tests.integration.paths.conftest import Provider
from tests.integration.paths.invariants import durable_selected, last_state, outcomes, violations
from tests.support.hosts import AheadClock, Failure, Gateway, HostFailed, Kind, canonical_text, pins, records
from tests.support.rehearsal import ENVIRON

CARDS = (Kind.CALLBACK, Kind.TYPED_NOTE)


@pytest.mark.parametrize("failure", Failure)
@pytest.mark.parametrize("kind", Kind)
def test_a_delivery_that_fails_is_never_made_twice(
    kind: Kind, failure: Failure, provider: Provider, tmp_path: Path
) -> None:
    """Daily and cards become canonical, a weekly task is unknown; it makes no difference whether the text arrived."""
    before = provider.requests
    with Gateway(tmp_path, provider.clients) as gateway:
        gateway.host.fail_next(failure)
        with pytest.raises(HostFailed):
            gateway.publish(kind, "m")
        arrived = gateway.host.delivered("m")
        assert len(arrived) == (failure is Failure.AFTER)
        again = gateway.publish(kind, "m")
        assert (again.outcome, again.stopped) == (None, kind is Kind.WEEKLY)
        expected = [] if kind is Kind.WEEKLY else [canonical_text(kind, "m")]
        assert gateway.host.delivered("m") == arrived + expected
        assert kind is Kind.DAILY or last_state(tmp_path, kind, "m") == ("unknown" if expected == [] else "published")
        assert violations(tmp_path, kind, "m", provider.requests - before) == []
        assert provider.requests - before == 1


@pytest.mark.parametrize("kind", CARDS)
def test_a_card_whose_canonical_edit_fails_too_is_edited_until_it_is_published(
    kind: Kind, provider: Provider, tmp_path: Path
) -> None:
    with Gateway(tmp_path, provider.clients) as gateway:
        gateway.host.fail_next(Failure.AFTER, Failure.AFTER, Failure.BEFORE, None)
        for _ in range(3):
            with pytest.raises(HostFailed):
                gateway.publish(kind, "m")
        gateway.publish(kind, "m")
        gateway.publish(kind, "m")
        canonical = canonical_text(kind, "m")
        assert gateway.host.delivered("m")[1:] == [canonical, canonical]
        assert violations(tmp_path, kind, "m", 1) == []


def nth_append_fails(number: int, where: str) -> None:
    """The ledger's n-th row from now on cannot be written, or is not known to be durable."""
    seen = 0

    def hook(name: str) -> None:
        nonlocal seen
        seen += name == where
        if name == where and seen == number:
            raise OSError(28, "disk full")

    failpoints.install(hook)


@pytest.mark.parametrize(("row", "where"), [*product([1, 2], ["ledger.before_write", "ledger.after_write"])])
@pytest.mark.parametrize("kind", Kind)
def test_a_ledger_that_fails_at_claim_or_end(
    kind: Kind, row: int, where: str, provider: Provider, tmp_path: Path
) -> None:
    """Daily edits canonical only, the others deliver nothing until a restart has looked at what is on the disk."""
    before = provider.requests
    with Gateway(tmp_path, provider.clients) as gateway:
        nth_append_fails(row, where)
        failed = gateway.publish(kind, "m")
        failpoints.install(None)
        assert failed.outcome is Outcome.CANONICAL_COMMIT_ERROR
        assert provider.requests - before == row - 1
        canonical = canonical_text(kind, "m")
        assert failed.stopped is (kind is not Kind.DAILY)
        assert gateway.host.delivered("m") == ([canonical] if kind is Kind.DAILY else [])
        again = gateway.publish(kind, "m")
        assert again.outcome is None if kind is Kind.DAILY else again.stopped
        assert set(gateway.host.delivered("m")) == ({canonical} if kind is Kind.DAILY else set())
    _restarted(kind, provider, tmp_path, before)


def _restarted(kind: Kind, provider: Provider, directory: Path, before: int) -> None:
    """After the lease: one delivery; a final row that did reach the disk counts, a request is not made again."""
    with Gateway(directory, provider.clients, clock=AheadClock(CLAIM_LEASE_MS + 1000)) as gateway:
        earlier = gateway.host.delivered("m")
        gateway.publish(kind, "m", replay=True)
        [text] = gateway.host.delivered("m")[len(earlier) :]
        assert text in {canonical_text(kind, "m"), durable_selected(directory, kind, "m")}
        assert violations(directory, kind, "m", provider.requests - before) == []


@pytest.mark.parametrize("row", [3, 4])
@pytest.mark.parametrize("kind", [Kind.WEEKLY, *CARDS])
def test_a_ledger_that_fails_around_the_delivery(kind: Kind, row: int, provider: Provider, tmp_path: Path) -> None:
    """Row 3 precedes the delivery: without it there is none. Row 4 follows it, and is missed later."""
    with Gateway(tmp_path, provider.clients) as gateway:
        nth_append_fails(row, "ledger.before_write")
        failed = gateway.publish(kind, "m")
        failpoints.install(None)
        assert (failed.outcome, failed.stopped) == (Outcome.SELECTED, True)
        assert len(gateway.host.delivered("m")) == (row == 4)
    with Gateway(tmp_path, provider.clients) as gateway:
        again = gateway.publish(kind, "m")
        if kind is Kind.WEEKLY:
            # The sending mark came first: whatever the ledger says, it may have been sent.
            assert again.stopped
            assert len(gateway.host.delivered("m")) == (row == 4)
        else:
            assert gateway.host.delivered("m")[row - 3 :] == [
                canonical_text(kind, "m") if row == 4 else durable_selected(tmp_path, kind, "m")
            ]
        assert violations(tmp_path, kind, "m", 1) == []


def _poison(gateway: Gateway, kind: Kind) -> None:
    failpoints.install(lambda name: _disk_full() if name == "ledger.before_write" else None)
    gateway.publish(kind, "poisoning")
    failpoints.install(None)


def _disk_full() -> None:
    raise OSError(28, "disk full")


def _replace_directory(gateway: Gateway, kind: Kind) -> None:
    directory = gateway.state.directory / kind.ledger
    directory.rename(directory.with_name("moved"))
    directory.mkdir(mode=0o700)


def _open_to_all(gateway: Gateway, kind: Kind) -> None:
    for segment in (gateway.state.directory / kind.ledger).glob("ledger-*"):
        segment.chmod(0o644)


def _append_garbage(gateway: Gateway, kind: Kind) -> None:
    [segment] = (gateway.state.directory / kind.ledger).glob("ledger-*")
    with segment.open("ab") as file:
        file.write(b'{"kind":"row"}\n')


def _break_the_lock(gateway: Gateway, _: Kind) -> None:
    (gateway.state.directory / "publication.lock").chmod(0o644)


@pytest.mark.parametrize("breaking", [_poison, _replace_directory, _open_to_all, _append_garbage, _break_the_lock])
@pytest.mark.parametrize("kind", Kind)
def test_a_state_that_cannot_be_used(
    kind: Kind, breaking: Callable[[Gateway, Kind], None], provider: Provider, tmp_path: Path
) -> None:
    with Gateway(tmp_path, provider.clients) as gateway:
        assert gateway.publish(kind, "earlier").outcome is Outcome.SELECTED
        before = provider.requests
        breaking(gateway, kind)
        for _ in range(2):
            publication = gateway.publish(kind, "m")
            assert publication.stopped is (kind is not Kind.DAILY)
            assert publication.outcome in {None, Outcome.CANONICAL_COMMIT_ERROR}
        assert gateway.host.delivered("m") == ([canonical_text(kind, "m")] * 2 if kind is Kind.DAILY else [])
        assert provider.requests == before


@pytest.mark.parametrize("mark", ["claimed", "sending"])
def test_a_mark_that_cannot_be_read_stops_its_task(mark: str, provider: Provider, tmp_path: Path) -> None:
    with Gateway(tmp_path, provider.clients) as gateway:
        (tmp_path / "state-tombstones" / f"{WeeklyTask('m').digest}.{mark}").mkdir()
        assert gateway.publish(Kind.WEEKLY, "m").stopped
        assert gateway.host.delivered("m") == []


def test_a_mark_of_a_ledger_that_forgot_the_task(provider: Provider, tmp_path: Path) -> None:
    """An older copy of the ledger: `claimed` gives the canonical text without a call, `sending` nothing at all."""
    marks = tmp_path / "state-tombstones"
    with Gateway(tmp_path, provider.clients) as gateway:
        before = provider.requests
        for name, mark in [("one", "claimed"), ("other", "sending")]:
            (marks / f"{WeeklyTask(name).digest}.{mark}").touch(mode=0o600)
        assert gateway.publish(Kind.WEEKLY, "one").outcome is None
        assert gateway.host.delivered("one") == [canonical_text(Kind.WEEKLY, "one")]
        rendered = gateway.host.renders
        assert gateway.publish(Kind.WEEKLY, "other").stopped
        assert gateway.host.delivered("other") == []
        assert (provider.requests, gateway.host.renders) == (before, rendered)


def _close(gateway: Gateway) -> None:
    gateway.coordinator.close_admission()


def _fill(gateway: Gateway) -> None:
    gateway.coordinator._gate._workers = 0


def _nothing(_: Gateway) -> None:
    """The environment is enough."""


REFUSALS = [
    (Outcome.ADMISSION_CLOSED, ENVIRON, _close),
    (Outcome.OVERLOADED, ENVIRON, _fill),
    (Outcome.CREDENTIAL_UNAVAILABLE, {}, _nothing),
    (Outcome.CREDENTIAL_ENVIRONMENT_REJECTED, {**ENVIRON, "OPENAI_BASE_URL": ""}, _nothing),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal[0].value)
@pytest.mark.parametrize("mode", [Mode.ENABLED, Mode.SHADOW])
@pytest.mark.parametrize("kind", Kind)
def test_a_refusal_leaves_the_direct_canonical_edge(
    kind: Kind,
    mode: Mode,
    refusal: tuple[Outcome, dict[str, str], Callable[[Gateway], None]],
    provider: Provider,
    tmp_path: Path,
) -> None:
    outcome, environ, prepare = refusal
    before = provider.requests
    with Gateway(tmp_path, provider.clients, mode=mode, environ=environ) as gateway:
        prepare(gateway)
        assert gateway.publish(kind, "m").outcome is outcome
        gateway.publish(kind, "m")
        _delivered_directly(gateway, kind, tmp_path)
    assert provider.requests == before


def _delivered_directly(gateway: Gateway, kind: Kind, directory: Path) -> None:
    """Once, or for daily at each tap; with the host's own rows and no presentation."""
    canonical = canonical_text(kind, "m")
    assert gateway.host.delivered("m") == [canonical] * (2 if kind is Kind.DAILY else 1)
    assert outcomes(directory, kind, "m") == []
    versions = {row["schema_version"] for row in records(directory, kind, "m")}
    assert versions == (set() if kind is Kind.DAILY else {1})
    assert not any((directory / "state-tombstones").glob("*.claimed"))


@pytest.mark.parametrize("kind", Kind)
def test_a_surface_that_is_off_is_canonical(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    others = [surface for surface in Surface if surface is not kind.surface]
    with Gateway(tmp_path, provider.clients, surfaces=others) as gateway:
        for _ in range(2):
            assert gateway.publish(kind, "m").outcome is None
        _delivered_directly(gateway, kind, tmp_path)


@pytest.mark.parametrize("kind", CARDS)
def test_a_card_whose_session_moved_on_is_canonical_without_a_call(
    kind: Kind, provider: Provider, tmp_path: Path
) -> None:
    before = provider.requests
    with Gateway(tmp_path, provider.clients) as gateway:
        gateway.session.just_consumed = False
        assert gateway.publish(kind, "m").outcome is None
        assert gateway.host.delivered("m") == [canonical_text(kind, "m")]
    assert provider.requests == before


@pytest.mark.parametrize("kind", [Kind.WEEKLY, *CARDS])
def test_a_pin_that_moves_during_the_call_makes_it_canonical(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """Weekly then stops as well: what was prepared is pinned to another destination than the current one."""
    with Gateway(tmp_path, provider.clients) as gateway:
        moved: list[bool] = []

        def move() -> None:
            gateway.session.just_consumed = False
            moved.append(True)

        provider.on_request = move
        delivery = gateway.delivery("m")
        if kind is Kind.WEEKLY:
            moving = replace(delivery, current_pins=lambda: pins("other" if moved else "m"))
            publication = gateway.weekly.deliver(moving, gateway.host.sending("m"))
            assert publication.stopped
            assert gateway.host.delivered("m") == []
        else:
            publication = gateway.publish(kind, "m")
            assert publication.outcome is Outcome.CANONICAL_COMMIT_ERROR
            assert gateway.host.delivered("m") == [canonical_text(kind, "m")]
        assert outcomes(tmp_path, kind, "m") == [Outcome.CANONICAL_COMMIT_ERROR.value]

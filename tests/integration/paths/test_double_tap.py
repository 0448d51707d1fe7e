"""Two taps on one message at once, in threads and processes: one request, one selected edit, none after canonical."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from kexpr.codes import Mode, Outcome
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.paths.locks import FilePublicationLocks, ThreadLocks
from tests.integration.paths.conftest import Lanes, Provider
from tests.integration.paths.invariants import durable_selected, violations
from tests.integration.paths.worker import Scene
from tests.support.hosts import Gateway, Host, Kind, canonical_text
from tests.support.rehearsal import ENVIRON

ROUNDS = 30


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What the calls return, each made in a thread of its own, all let go together."""
    barrier = threading.Barrier(len(calls))
    results: list[object] = [None] * len(calls)

    def run(index: int) -> None:
        barrier.wait()
        results[index] = calls[index]()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def expected(directory: Path, kind: Kind, identity: str) -> list[str]:
    """What two taps must have delivered where the first one selects: only daily edits again, to the canonical text."""
    delivered = Host(directory).delivered(identity)
    if kind is Kind.DAILY:
        return [delivered[0], canonical_text(kind, identity)]
    selected = durable_selected(directory, kind, identity)
    assert selected is not None
    return [selected]


@pytest.mark.parametrize("kind", Kind)
def test_two_threads(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    with Gateway(tmp_path, provider.clients) as gateway:
        for number in range(ROUNDS):
            identity = f"message-{number}"
            before = provider.requests
            at_once(*[partial(gateway.publish, kind, identity)] * 2)
            assert provider.requests - before == 1
            assert violations(tmp_path, kind, identity, 1) == []
            delivered = gateway.host.delivered(identity)
            assert delivered == expected(tmp_path, kind, identity)
            assert delivered[0] != canonical_text(kind, identity)


@pytest.mark.parametrize("kind", Kind)
def test_two_gateways_of_one_process(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """Two states on one directory share no lock in memory."""
    with Gateway(tmp_path, provider.clients) as one, Gateway(tmp_path, provider.clients) as other:
        for number in range(5):
            identity = f"message-{number}"
            before = provider.requests
            at_once(*[partial(at.publish, kind, identity) for at in (one, other)])
            assert violations(tmp_path, kind, identity, provider.requests - before) == []
            assert one.host.delivered(identity) == expected(tmp_path, kind, identity)


@pytest.mark.parametrize("kind", Kind)
def test_two_processes(kind: Kind, lanes: Lanes, tmp_path: Path) -> None:
    for number in range(8):
        identity = f"message-{number}"
        scene = Scene(str(tmp_path), kind.value, identity)
        before = [lane.server.requests for lane in lanes.lanes]
        at_once(*[partial(lane.run, scene) for lane in lanes.lanes])
        requests = sum(lane.server.requests for lane in lanes.lanes) - sum(before)
        assert requests == 1
        assert violations(tmp_path, kind, identity, requests) == []
        assert Host(tmp_path).delivered(identity) == expected(tmp_path, kind, identity)


@pytest.mark.parametrize("kind", Kind)
def test_a_second_tap_waits_until_the_first_has_delivered(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    with Gateway(tmp_path, provider.clients) as gateway:
        second = threading.Thread(target=lambda: gateway.publish(kind, "m"))

        def tap_again() -> None:
            gateway.host.on_delivery = lambda: None
            second.start()
            second.join(0.05)
            assert second.is_alive()
            assert gateway.host.delivered("m") == []

        gateway.host.on_delivery = tap_again
        gateway.publish(kind, "m")
        second.join(5)
        assert gateway.host.delivered("m") == expected(tmp_path, kind, "m")
        assert violations(tmp_path, kind, "m", 1) == []


def test_taps_on_different_messages_do_not_wait_for_each_other(provider: Provider, tmp_path: Path) -> None:
    with Gateway(tmp_path, provider.clients) as gateway:

        def tap_another() -> None:
            gateway.host.on_delivery = lambda: None
            assert gateway.publish(Kind.DAILY, "other").outcome is Outcome.SELECTED

        gateway.host.on_delivery = tap_another
        assert gateway.publish(Kind.DAILY, "one").outcome is Outcome.SELECTED


@pytest.mark.parametrize("mode", [Mode.ENABLED, Mode.SHADOW])
@pytest.mark.parametrize("kind", Kind)
def test_a_tap_after_a_refused_one_selects_nothing(kind: Kind, mode: Mode, provider: Provider, tmp_path: Path) -> None:
    """The refusal left its canonical text and, for daily, no row: the second tap must know all the same."""
    environ: dict[str, str] = {}
    before = provider.requests
    with Gateway(tmp_path, provider.clients, mode=mode, environ=environ) as gateway:
        assert gateway.publish(kind, "m").outcome is Outcome.CREDENTIAL_UNAVAILABLE
        environ.update(ENVIRON)
        assert gateway.publish(kind, "m").outcome is None
        canonical = canonical_text(kind, "m")
        assert gateway.host.delivered("m") == [canonical] * (2 if kind is Kind.DAILY else 1)
        assert provider.requests == before
        fresh = gateway.publish(kind, "another")
        assert fresh.outcome is (Outcome.SELECTED if mode is Mode.ENABLED else Outcome.SHADOW_SELECTED)


def test_a_first_save_after_a_replay_selects_nothing(provider: Provider, tmp_path: Path) -> None:
    with Gateway(tmp_path, provider.clients) as gateway:
        gateway.publish(Kind.DAILY, "m", replay=True)
        assert gateway.publish(Kind.DAILY, "m").outcome is None
        assert gateway.host.delivered("m") == [canonical_text(Kind.DAILY, "m")] * 2


class _FailingOnce:
    """A second tap cannot have the lock between processes, and says when it has found out."""

    def __init__(self, locks: FilePublicationLocks) -> None:
        self._locks = locks
        self.fails = False
        self.failed = threading.Event()

    def among_threads(self, *message: str) -> AbstractContextManager[None]:
        return self._locks.among_threads(*message)

    def hold(self, *message: str) -> AbstractContextManager[None]:
        if self.fails:
            self.failed.set()
            raise LedgerFailed(StoreFault.INPUT_OUTPUT)
        return self._locks.hold(*message)

    def close(self) -> None:
        """The state closes what it opened."""


@pytest.mark.parametrize("kind", [Kind.DAILY, Kind.CALLBACK, Kind.TYPED_NOTE])
def test_a_tap_without_its_lock_waits_for_a_tap_of_its_process(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """Its canonical text must not come before the selected one of the tap that has the lock."""
    with Gateway(tmp_path, provider.clients) as gateway:
        assert isinstance(gateway.state.locks, FilePublicationLocks)
        locks = _FailingOnce(gateway.state.locks)
        gateway.daily._locks = gateway.adaptive._locks = locks
        second = threading.Thread(target=gateway.publish, args=(kind, "m"))

        def in_the_middle() -> None:
            if not second.ident:
                locks.fails = True
                second.start()
                locks.failed.wait(0.3)

        gateway.host.on_delivery = in_the_middle
        gateway.publish(kind, "m")
        second.join()
        delivered = gateway.host.delivered("m")
        assert delivered[0] != canonical_text(kind, "m")
        assert set(delivered[1:]) <= {canonical_text(kind, "m")}


def test_thread_locks_are_forgotten_when_nobody_waits() -> None:
    locks = ThreadLocks()
    with locks.hold("daily", "m"), locks.hold("daily", "other"):
        assert len(locks._locks) == 2
    assert not locks._locks
    at_once(*[partial(_counted, locks, number) for number in range(4)])
    assert not locks._locks


def _counted(locks: ThreadLocks, number: int) -> None:
    for turn in range(200):
        with locks.hold("m", str((number + turn) % 2)):
            pass

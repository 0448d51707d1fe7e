"""asyncio hosts: a cancelled call publishes nothing, whatever its thread still does, and lets go of the message."""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kexpr import failpoints
from kexpr.codes import Outcome
from kexpr.paths.publication import Publication
from tests.integration.paths.conftest import Provider
from tests.integration.paths.invariants import last_state, outcomes, violations
from tests.support.hosts import Gateway, HostFailed, Kind, canonical_text

LAG_S = 0.5
"""The event loop may lag by what a busy machine costs, not by what a blocked call would: gates stay shut for longer."""

WITHOUT_DAILY = (Kind.WEEKLY, Kind.CALLBACK, Kind.TYPED_NOTE)


class Gate:
    """Stops the thread that comes through, until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()

    def stop(self) -> None:
        self.reached.set()
        assert self._opened.wait(10)

    def open(self) -> None:
        self._opened.set()

    def at(self, name: str) -> Callable[[str], None]:
        """A failpoint hook that stops whoever reaches `name` first."""
        return lambda reached: self.stop() if reached == name and not self.reached.is_set() else None


async def at_once() -> None:
    """The host's delivery needs no time."""


async def until_reached(gate: Gate, task: "asyncio.Task[Publication]") -> None:
    while not gate.reached.is_set():
        assert not task.done()
        await asyncio.sleep(0.002)


async def cancel(task: "asyncio.Task[Publication]") -> None:
    """Cancel and see it raised at once, while whatever it waits for still stands."""
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < LAG_S


async def beat(lags: list[float]) -> None:
    """Measures how late the event loop comes round."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.01)
        lags.append(time.monotonic() - before - 0.01)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run the coroutine on a loop that must neither block nor complain."""

    async def watched() -> None:
        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
        lags: list[float] = []
        heart = asyncio.ensure_future(beat(lags))
        await scenario()
        await asyncio.sleep(0.02)
        heart.cancel()
        gc.collect()
        await asyncio.sleep(0)
        assert complaints == []
        assert max(lags) < LAG_S

    asyncio.run(watched())


def stopped_at(step: str, gate: Gate, provider: Provider, gateway: Gateway) -> None:
    """Have the next call stop at a step: a failpoint, or one of the two that have none."""
    if step == "before the claim":
        key = gateway.coordinator._identity_key

        def slow_key() -> bytes:
            if not gate.reached.is_set():
                gate.stop()
            return key()

        gateway.coordinator._identity_key = slow_key
    elif step == "the exchange":
        provider.on_request = lambda: None if gate.reached.is_set() else gate.stop()
    else:
        failpoints.install(gate.at(step))


# Where the call is cancelled, how many requests there were then, and the durable outcome.
STEPS: list[tuple[str, int, Outcome | None]] = [
    ("before the claim", 0, None),
    ("the exchange", 1, Outcome.CANONICAL_TIMEOUT),
    ("coordinator.claimed", 1, Outcome.CANONICAL_TIMEOUT),
    ("coordinator.ruled", 1, Outcome.CANONICAL_TIMEOUT),
    ("coordinator.finalized", 1, Outcome.SELECTED),
]


@pytest.mark.parametrize("at", STEPS, ids=lambda at: at[0])
@pytest.mark.parametrize("kind", Kind)
def test_cancelled_before_anything_is_to_be_delivered(
    kind: Kind, at: tuple[str, int, Outcome | None], provider: Provider, tmp_path: Path
) -> None:
    """The next call delivers what is durable: the selected text only where it had won before, and never daily's."""
    step, requests, outcome = at

    async def scenario() -> None:
        before = provider.requests
        with Gateway(tmp_path, provider.clients) as gateway:
            gate = Gate()
            stopped_at(step, gate, provider, gateway)
            task = asyncio.ensure_future(gateway.publish_async(kind, "m", at_once))
            await until_reached(gate, task)
            await cancel(task)
            assert gateway.host.delivered("m") == []
            again = asyncio.ensure_future(gateway.publish_async(kind, "m", at_once))
            await asyncio.sleep(0.02)
            assert not again.done()
            gate.open()
            publication = await again
            assert (publication.outcome, publication.stopped) == (None, False)
            assert provider.requests - before == requests
            found = outcomes(tmp_path, kind, "m")
            assert found == ([] if outcome is None else [outcome.value])
            [text] = gateway.host.delivered("m")
            is_selected = outcome is Outcome.SELECTED and kind is not Kind.DAILY
            assert (text != canonical_text(kind, "m")) is is_selected
            assert violations(tmp_path, kind, "m", requests) == []

    run(scenario)


@pytest.mark.parametrize("kind", Kind)
def test_cancelled_while_waiting_for_the_message(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """Another call is delivering: the cancelled one leaves nothing behind."""

    async def scenario() -> None:
        with Gateway(tmp_path, provider.clients) as gateway:
            delivering, goes_on = asyncio.Event(), asyncio.Event()

            async def slow() -> None:
                delivering.set()
                await goes_on.wait()

            first = asyncio.ensure_future(gateway.publish_async(kind, "m", slow))
            await delivering.wait()
            second = asyncio.ensure_future(gateway.publish_async(kind, "m", at_once))
            await asyncio.sleep(0.05)
            await cancel(second)
            goes_on.set()
            assert (await first).outcome is Outcome.SELECTED
            assert len(gateway.host.delivered("m")) == 1
            await gateway.publish_async(kind, "m", at_once)
            assert gateway.host.delivered("m")[1:] == ([canonical_text(kind, "m")] if kind is Kind.DAILY else [])
            assert violations(tmp_path, kind, "m", 1) == []

    run(scenario)


BEGINNING = {Kind.WEEKLY: "weekly.mark_sending.before", Kind.CALLBACK: "adaptive.mark_publish_claimed.before"}


@pytest.mark.parametrize("kind", BEGINNING)
def test_cancelled_in_the_last_step_before_the_delivery(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """The step goes on to its end. A task that was marked as sending is unknown then; a card is canonical."""

    async def scenario() -> None:
        with Gateway(tmp_path, provider.clients) as gateway:
            gate = Gate()
            failpoints.install(gate.at(BEGINNING[kind]))
            task = asyncio.ensure_future(gateway.publish_async(kind, "m", at_once))
            await until_reached(gate, task)
            await cancel(task)
            gate.open()
            again = await gateway.publish_async(kind, "m", at_once)
            if kind is Kind.WEEKLY:
                assert again.stopped
                assert gateway.host.delivered("m") == []
                assert last_state(tmp_path, kind, "m") == "unknown"
            else:
                assert gateway.host.delivered("m") == [canonical_text(kind, "m")]
                assert last_state(tmp_path, kind, "m") == "published"
            assert violations(tmp_path, kind, "m", 1) == []

    run(scenario)


@pytest.mark.parametrize("kind", Kind)
def test_cancelled_in_the_delivery(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """The messenger had been asked and nothing had come back: unknown for weekly, canonical for the others."""

    async def scenario() -> None:
        with Gateway(tmp_path, provider.clients) as gateway:
            delivering = asyncio.Event()

            async def hangs() -> None:
                delivering.set()
                await asyncio.sleep(60)

            task = asyncio.ensure_future(gateway.publish_async(kind, "m", hangs))
            await delivering.wait()
            await cancel(task)
            again = await gateway.publish_async(kind, "m", at_once)
            assert again.stopped is (kind is Kind.WEEKLY)
            assert gateway.host.delivered("m") == ([] if kind is Kind.WEEKLY else [canonical_text(kind, "m")])
            if kind is not Kind.DAILY:
                assert last_state(tmp_path, kind, "m") == ("unknown" if kind is Kind.WEEKLY else "published")
            assert violations(tmp_path, kind, "m", 1) == []

    run(scenario)


SETTLING = {Kind.WEEKLY: "weekly.mark_delivered.before", Kind.TYPED_NOTE: "adaptive.mark_published.before"}


@pytest.mark.parametrize("kind", SETTLING)
def test_cancelled_after_the_delivery_is_settled_first(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    async def scenario() -> None:
        with Gateway(tmp_path, provider.clients) as gateway:
            gate = Gate()
            failpoints.install(gate.at(SETTLING[kind]))
            task = asyncio.ensure_future(gateway.publish_async(kind, "m", at_once))
            await until_reached(gate, task)
            for _ in range(2):
                task.cancel()
                await asyncio.sleep(0.01)
                assert not task.done()
            gate.open()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert last_state(tmp_path, kind, "m") == ("delivered" if kind is Kind.WEEKLY else "published")
            await gateway.publish_async(kind, "m", at_once)
            assert len(gateway.host.delivered("m")) == 1
            assert violations(tmp_path, kind, "m", 1) == []

    run(scenario)


@pytest.mark.parametrize("kind", Kind)
def test_a_host_that_fails_is_heard_and_the_message_is_free_again(
    kind: Kind, provider: Provider, tmp_path: Path
) -> None:
    async def fails() -> None:
        raise HostFailed

    async def scenario() -> None:
        with Gateway(tmp_path, provider.clients) as gateway:
            with pytest.raises(HostFailed):
                await gateway.publish_async(kind, "m", fails)
            again = await gateway.publish_async(kind, "m", at_once)
            assert again.stopped is (kind is Kind.WEEKLY)
            assert gateway.host.delivered("m") == ([] if kind is Kind.WEEKLY else [canonical_text(kind, "m")])

    run(scenario)


@contextmanager
def no_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG):
        yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_loop_that_is_gone_leaves_a_thread_that_still_tidies_up(
    provider: Provider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with no_log(caplog), Gateway(tmp_path, provider.clients) as gateway:
        gate = Gate()
        failpoints.install(gate.at("coordinator.ruled"))

        async def scenario() -> None:
            task = asyncio.ensure_future(gateway.publish_async(Kind.WEEKLY, "m", at_once))
            await until_reached(gate, task)
            await cancel(task)

        asyncio.run(scenario())
        gate.open()
        assert gateway.publish(Kind.WEEKLY, "m").requests == 0
        assert gateway.host.delivered("m") == [canonical_text(Kind.WEEKLY, "m")]
        assert outcomes(tmp_path, Kind.WEEKLY, "m") == [Outcome.CANONICAL_TIMEOUT.value]


@pytest.mark.parametrize("kind", Kind)
def test_more_taps_than_threads(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    """Waiting taps take up threads; the one that they wait for must find one all the same."""

    async def scenario() -> None:
        before = provider.requests
        with Gateway(tmp_path, provider.clients, workers=1) as gateway:

            async def slow() -> None:
                await asyncio.sleep(0.02)

            taps = [gateway.publish_async(kind, "m", slow) for _ in range(40)]
            await asyncio.wait_for(asyncio.gather(*taps), 20)
            assert violations(tmp_path, kind, "m", provider.requests - before) == []
            assert len(gateway.host.delivered("m")) == (40 if kind is Kind.DAILY else 1)

    run(scenario)


@pytest.mark.parametrize("kind", WITHOUT_DAILY)
def test_a_call_that_had_no_thread_yet_never_begins(kind: Kind, provider: Provider, tmp_path: Path) -> None:
    async def scenario() -> None:
        with Gateway(tmp_path, provider.clients, workers=1) as gateway:
            gate = Gate()
            blockers = [asyncio.ensure_future(gateway.coordinator.run(lambda _: gate.stop())) for _ in range(29)]
            while gateway.coordinator._threads._work_queue.qsize() > 0:
                await asyncio.sleep(0.002)
            task = asyncio.ensure_future(gateway.publish_async(kind, "m", at_once))
            await asyncio.sleep(0.01)
            await cancel(task)
            gate.open()
            await asyncio.gather(*blockers)
            assert last_state(tmp_path, kind, "m") is None
            assert (await gateway.publish_async(kind, "m", at_once)).outcome is Outcome.SELECTED

    run(scenario)

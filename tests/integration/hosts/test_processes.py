"""What hosts do around a gateway: reload the environment, turn on debug logging, fork, measure, run two bots."""

import asyncio
import io
import logging.config
import os
import warnings

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

import kexpr
from examples import gateway as example
from kexpr.codes import Outcome
from kexpr.testing.canaries import Canaries
from tests.integration.hosts.support import CHAT, NOTE, keyboard, play, rig

pytestmark = pytest.mark.integration


async def tap(on, event):
    on.api.place(CHAT, 1, "체크인을 저장할까요?", keyboard(f"save:{event}"))
    return (await on.fed(on.api.tap(CHAT, 1, f"save:{event}"))).outcome


def test_the_environment_is_read_at_every_attempt(host, tmp_path, monkeypatch):
    """Also that the host itself, once it is connected, has put nothing there that we refuse."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async def scene():
        async with rig(host, tmp_path, environ=os.environ) as on:
            ends = [await tap(on, "event-1")]
            monkeypatch.setenv("OPENAI_API_KEY", "sk-rehearsal-0123456789")
            ends.append(await tap(on, "event-2"))
            monkeypatch.setenv("openai_base_url", "")
            ends.append(await tap(on, "event-3"))
            monkeypatch.delenv("openai_base_url")
            ends.append(await tap(on, "event-4"))
            return ends, on.provider.requests

    ends, requests = asyncio.run(scene())
    assert ends == [
        Outcome.CREDENTIAL_UNAVAILABLE,
        Outcome.SELECTED,
        Outcome.CREDENTIAL_ENVIRONMENT_REJECTED,
        Outcome.SELECTED,
    ]
    assert requests == 2


@pytest.fixture
def debug_log():
    """The host's `dictConfig`: everything at DEBUG, but its own framework's lines, which carry what it is told."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    handler = {"class": "logging.StreamHandler", "stream": stream, "level": "DEBUG"}

    def configure():
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "handlers": {"all": handler},
                "root": {"level": "DEBUG", "handlers": ["all"]},
                "loggers": {
                    "telegram": {"level": "INFO"},
                    **{name: {"level": "DEBUG"} for name in ("openai", "httpx", "httpcore", "kexpr")},
                },
            }
        )
        return stream

    yield configure
    root.handlers[:], root.level = before[0], before[1]
    for name in ("telegram", "openai", "httpx", "httpcore", "kexpr"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_debug_logging_turned_on_in_between_shows_no_content(host, tmp_path, debug_log):
    canaries = Canaries()
    key = "sk-" + canaries.plant("key")
    canaries.adopt("note", NOTE)

    async def scene():
        async with rig(host, tmp_path, environ={"OPENAI_API_KEY": key}) as on:
            await tap(on, canaries.plant("first event"))
            stream = debug_log()
            assert await tap(on, canaries.plant("event")) is Outcome.SELECTED
            publications = await play(on)
            assert (await on.gateway.drain()).clean
            for name in ("httpcore", "kexpr"):
                logging.getLogger(name).debug("control of %s", name)
            return stream.getvalue(), publications, on.provider.recorded

    log, publications, recorded = asyncio.run(scene())
    texts = [publication.text for publication in publications if publication.text]
    bodies = [request.body.decode() for request in recorded]
    assert (len(texts), len(bodies)) == (5, 6)
    for line in {line for text in (*texts, *bodies) for line in text.splitlines() if len(line.encode()) > 20}:
        canaries.adopt("line", line)
    assert "control of httpcore" in log
    assert "control of kexpr" in log
    assert "api.openai.com" not in log, "the HTTP client of the provider speaks again"
    canaries.assert_absent({"log": log})


def in_a_fork(work):
    """What `work` says in a forked child; a child that dies or hangs says nothing."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads, which is what a host does here
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


def test_a_forked_child_publishes_nothing_new_with_what_its_parent_made(host, tmp_path):
    async def scene():
        async with rig(host, tmp_path) as on:
            await tap(on, "event-1")
            on.host.save("event-2")

            def inherited():
                edits: list[str] = []
                daily = on.gateway.daily.first_save(example.check_in("event-2"), edits.append)
                weekly = on.gateway.weekly.deliver(
                    example.weekly_delivery("week-1", CHAT), lambda _, text: edits.append(text)
                )
                canonical = edits == [example.check_in("event-2").canonical_payload]
                return f"{daily.outcome} {canonical} {weekly.stopped} {weekly.text}"

            said = await asyncio.to_thread(in_a_fork, inherited)
            after = await tap(on, "event-3")
            return said, after, on.provider.requests, [store.outstanding() for store in on.gateway.stores]

    said, after, requests, outstanding = asyncio.run(scene())
    assert said.split()[1:] == ["True", "True", "None"]
    assert after is Outcome.SELECTED
    assert requests == 2
    assert outstanding == [(), (), ()]


def test_a_forked_child_that_makes_its_own_state_sees_what_is_durable(host, tmp_path):
    async def scene():
        async with rig(host, tmp_path) as on:
            await tap(on, "event-1")

            def fresh():
                with kexpr.State(tmp_path / "state") as state:
                    daily = state.daily(lambda _: True)
                    return f"{type(daily.recover('event-1')).__name__} {type(daily.recover('event-2')).__name__}"

            return await asyncio.to_thread(in_a_fork, fresh)

    assert asyncio.run(scene()) == "Durable Absent"


def test_two_bots_in_one_process_share_the_hosts_own_registry(host, tmp_path):
    registry = CollectorRegistry()
    Counter("host_messages", "The host's own.", registry=registry).inc(7)
    sink = kexpr.PrometheusSink(registry)

    async def scene():
        async with (
            rig(host, tmp_path / "a", profile="physique-coach", sinks=(sink,), token="1:a") as one,
            rig(host, tmp_path / "b", profile="dualcoachtest", sinks=(sink,), token="2:b", mode="shadow") as two,
        ):
            texts = await asyncio.gather(play(one), play(two))
            assert [on.provider.requests for on in (one, two)] == [4, 4]
            return texts, [len(on.api.visible) for on in (one, two)]

    (enabled, shadow), counts = asyncio.run(scene())
    assert counts == [5, 5]
    assert enabled[0].text != shadow[0].text == shadow[1].text
    page = generate_latest(registry).decode()
    assert "host_messages_total 7.0" in page
    for profile, mode, outcome in (
        ("physique-coach", "enabled", "selected"),
        ("dualcoachtest", "shadow", "shadow_selected"),
    ):
        won = [
            line
            for line in page.splitlines()
            if line.startswith("kexpr_outcomes_total{")
            and all(part in line for part in (f'profile="{profile}"', f'mode="{mode}"', f'outcome="{outcome}"'))
            and line.endswith(" 1.0")
        ]
        assert len(won) == 4

"""The hosts the tests embed kexpr in, each a bot on the loopback Bot API, and what watches them."""

import asyncio
import importlib.metadata
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from telegram import Bot
from telegram.ext import Application
from telegram.request import HTTPXRequest

import kexpr
from examples import gateway as example
from examples.bot_api import TOKEN, BotApi
from examples.gateway import CoachGateway, Host, feature_block
from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.transport import ClientFactory
from tests.support.rehearsal import ENVIRON

__all__ = [
    "CHAT",
    "HOSTS",
    "NOTE",
    "LoopWatch",
    "Rig",
    "keyboard",
    "need_package",
    "play",
    "rig",
    "until",
    "watched_connections",
]

CHAT: Final = 7
NOTE: Final = "별표 **둘**, 밑줄 __둘__, `부호` [이름](https://a.example) | 1 \\ 2 > 3 ~4~ ||가림|| {5}!"
"""Everything that a Markdown renderer would touch."""

_PATIENCE_S: Final = 10.0

Feed = Callable[[Mapping[str, Any]], Awaitable[None]]


def need_package(requirement: str) -> None:
    """The test skips without `name==version`; with REQUIRE_INTEGRATION=1 it fails."""
    name, _, version = requirement.partition("==")
    if version in {found.version for found in importlib.metadata.distributions(name=name)}:
        return
    missing = f"{requirement} is not installed"
    if os.environ.get("REQUIRE_INTEGRATION") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


class WatchedGateway(CoachGateway):
    """Keeps what every call came to."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.publications: list[kexpr.Publication] = []

    async def first_save(self, *args: Any) -> kexpr.Publication:
        return self._kept(await super().first_save(*args))

    async def replay(self, *args: Any) -> kexpr.Publication:
        return self._kept(await super().replay(*args))

    async def publish_card(self, *args: Any) -> kexpr.Publication:
        return self._kept(await super().publish_card(*args))

    async def weekly_tick(self, *args: Any) -> kexpr.Publication:
        return self._kept(await super().weekly_tick(*args))

    def _kept(self, publication: kexpr.Publication) -> kexpr.Publication:
        self.publications.append(publication)
        return publication


@dataclass
class Rig:
    """A connected gateway. `feed` brings an update as the host gets its own, and returns before it is handled."""

    api: BotApi
    provider: RehearsalServer
    gateway: WatchedGateway
    host: Host
    bot: Bot
    adapter: Any
    feed: Feed = field(repr=False)

    async def fed(self, update: Mapping[str, Any]) -> kexpr.Publication:
        """Feed an update and wait for what the gateway makes of it."""
        before = len(self.gateway.publications)
        await self.feed(update)
        await until(lambda: len(self.gateway.publications) > before)
        return self.gateway.publications[-1]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def keyboard(*data: str) -> dict[str, Any]:
    return {"inline_keyboard": [[{"text": name, "callback_data": name} for name in data]]}


async def play(on: Rig) -> list[kexpr.Publication]:
    """Each surface once, and daily and weekly once more: four requests."""
    on.api.place(CHAT, 1, "체크인을 저장할까요?", keyboard("save:event-1", "later"))
    first = await on.fed(on.api.tap(CHAT, 1, "save:event-1"))
    duplicate = await on.fed(on.api.tap(CHAT, 1, "save:event-1"))
    weekly = await on.gateway.weekly_tick(on.bot, example.weekly_delivery("week-1", CHAT))
    again = await on.gateway.weekly_tick(on.bot, example.weekly_delivery("week-1", CHAT))
    on.api.place(CHAT, 2, "검토할 카드가 있습니다.", keyboard("card:session-1", "card:later"))
    card = await on.fed(on.api.tap(CHAT, 2, "card:session-1"))
    on.api.place(CHAT, 3, "메모가 필요합니다.", keyboard("note:session-2"))
    await on.feed(on.api.tap(CHAT, 3, "note:session-2"))
    await until(lambda: CHAT in on.gateway.awaiting_note)
    note = await on.fed(on.api.note(CHAT, NOTE))
    return [first, duplicate, weekly, again, card, note]


@asynccontextmanager
async def _hermes(
    api: BotApi, token: str, extra: dict[str, Any]
) -> AsyncIterator[tuple[Any, Any, Bot, Callable[..., Feed]]]:
    """The public gateway's own adapter, connected and polling."""
    from gateway.config import PlatformConfig
    from gateway.platforms.telegram import TelegramAdapter

    adapter = TelegramAdapter(PlatformConfig(enabled=True, token=token, extra=extra))
    assert await adapter.connect()
    try:

        async def feed(update: Mapping[str, Any]) -> None:
            api.queue(update)

        yield adapter, adapter.config.extra, adapter._bot, lambda gateway: _installed(gateway, adapter._app, feed)
    finally:
        await adapter.disconnect()


@asynccontextmanager
async def _python_telegram_bot(
    api: BotApi, token: str, extra: dict[str, Any]
) -> AsyncIterator[tuple[Any, Any, Bot, Callable[..., Feed]]]:
    builder = Application.builder().token(token).base_url(api.base_url)
    application = builder.request(HTTPXRequest()).get_updates_request(HTTPXRequest()).build()
    async with application:
        await application.start()
        assert application.updater is not None
        await application.updater.start_polling()

        async def feed(update: Mapping[str, Any]) -> None:
            api.queue(update)

        try:
            yield None, extra, application.bot, lambda gateway: _installed(gateway, application, feed)
        finally:
            await application.updater.stop()
            await application.stop()


def _installed(gateway: CoachGateway, application: Any, feed: Feed) -> Feed:
    gateway.install(application, group=-1)
    return feed


HOSTS: Final[Mapping[str, Any]] = {"hermes": _hermes, "python-telegram-bot": _python_telegram_bot}


@asynccontextmanager
async def rig(
    host: str,
    directory: Path,
    *,
    mode: str = "enabled",
    answer: Callable[[bytes], bytes] = answer_bytes,
    faults: tuple[str, ...] = (),
    api: BotApi | None = None,
    sinks: tuple[Any, ...] = (),
    profile: str = "physique-coach",
    token: str = TOKEN,
    environ: Mapping[str, str] = ENVIRON,
) -> AsyncIterator[Rig]:
    """A host of `HOSTS` whose coordinator is built from its own `config.extra`, on the state in `directory`."""
    with ExitStack() as stack:
        bot_api = api or stack.enter_context(BotApi())
        provider = stack.enter_context(RehearsalServer(answer, FaultPlan.parse(faults), record=True))
        extra = {
            "base_url": bot_api.base_url,
            "fallback_ips": ["149.154.167.220"],  # else the adapter looks for some on the network
            "korean_expression_postprocessor": feature_block(mode),
        }
        async with HOSTS[host](bot_api, token, extra) as (adapter, found, bot, install):
            state = stack.enter_context(kexpr.State(directory / "state"))
            telemetry = kexpr.Telemetry(list(sinks), profile=profile)
            stack.callback(telemetry.close)
            coordinator = kexpr.Coordinator(
                kexpr.from_extra(found),
                identity_key=lambda: state.identity_key,
                telemetry=telemetry,
                clients=ClientFactory(_seam=provider.seam),
                environ=environ,
            )
            await asyncio.to_thread(coordinator.warm)
            host_stores = Host()
            gateway = WatchedGateway(state, coordinator, host_stores)
            yield Rig(bot_api, provider, gateway, host_stores, bot, adapter, install(gateway))


class LoopWatch:
    """Measures by how much the event loop was late for a task that wants to run all the time."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    async def __aenter__(self) -> "LoopWatch":
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.002)
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            self.worst_s = max(self.worst_s, time.monotonic() - before - 0.001)


class watched_connections:  # noqa: N801 - used as a context manager, like `suppress`
    """Every address that this process connects to or looks up, outside this machine."""

    _active: ClassVar[list["watched_connections"]] = []
    _hooked = False

    def __enter__(self) -> list[str]:
        self.elsewhere: list[str] = []
        if not watched_connections._hooked:
            watched_connections._hooked = True
            sys.addaudithook(_audit)
        watched_connections._active.append(self)
        return self.elsewhere

    def __exit__(self, *_: object) -> None:
        watched_connections._active.remove(self)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not watched_connections._active or event not in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        return
    address = args[1] if event != "socket.getaddrinfo" else args
    host = address[0] if isinstance(address, tuple) else "127.0.0.1"
    if host not in ("127.0.0.1", "::1", "localhost"):
        for watch in watched_connections._active:
            watch.elsewhere.append(event)

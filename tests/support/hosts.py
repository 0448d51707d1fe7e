"""Hosts for the tests of the paths: they write down what they deliver, and can fail; a gateway on a state directory.

A delivery is one line, written before the host returns, so that it counts even when its process dies the moment after.
"""

import hashlib
import json
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from harness.manifests import synthetic
from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.authority.weekly import Pins, WeeklyTask
from kexpr.clock import Clock, Instant, SystemClock
from kexpr.codes import Mode, Surface, WireVersion
from kexpr.config import Active, Disabled
from kexpr.coordinator import Coordinator
from kexpr.failpoints import reach
from kexpr.paths.adaptive import AdaptivePath, Card
from kexpr.paths.daily import DailyMessage, DailyPath
from kexpr.paths.publication import Preparation, Publication, Timers
from kexpr.paths.weekly import WeeklyDelivery, WeeklyPath, WeeklyReport
from kexpr.state import State
from kexpr.stores import Stores
from kexpr.telemetry import Telemetry
from kexpr.transport import ClientFactory
from tests.support.rehearsal import ENVIRON

DESTINATION: Final = "destination"


class Kind(StrEnum):
    """The paths, and both producers of cards."""

    DAILY = "daily"
    WEEKLY = "weekly"
    CALLBACK = "callback"
    TYPED_NOTE = "typed_note"

    @property
    def surface(self) -> Surface:
        return _SURFACE_OF[self]

    @property
    def ledger(self) -> str:
        """The name of its ledger below a state directory."""
        return self.value if self in (Kind.DAILY, Kind.WEEKLY) else "adaptive"


_SURFACE_OF: Final[Mapping[Kind, Surface]] = {
    Kind.DAILY: Surface.DAILY,
    Kind.WEEKLY: Surface.WEEKLY,
    Kind.CALLBACK: Surface.ADAPTIVE_DUALCOACHTEST,
    Kind.TYPED_NOTE: Surface.ADAPTIVE_PHYSIQUE,
}


class AheadClock:
    """The machine's clocks, ahead by `ahead_ms`: what a process sees that starts so much later."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms
        self._clock = SystemClock()

    def now(self) -> Instant:
        now = self._clock.now()
        return Instant(now.utc_ms + self.ahead_ms, now.boottime_ms + self.ahead_ms, now.boot_id)

    def monotonic(self) -> float:
        return self._clock.monotonic()


class HostFailed(Exception):
    """The messenger said no, or did not say."""


class Failure(StrEnum):
    """Where a delivery fails: nothing was delivered, or it was and the answer got lost."""

    BEFORE = "before"
    AFTER = "after"


class Host:
    """Edits and sends into an append-only file. `on_delivery` runs in the middle of each delivery."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "delivered.jsonl"
        self._failures: list[Failure | None] = []
        self.on_delivery: Callable[[], None] = lambda: None
        self.renders = 0

    def fail_next(self, *failures: Failure | None) -> None:
        self._failures.extend(failures)

    def editing(self, identity: str) -> Callable[[str], None]:
        return lambda text: self._deliver(identity, text)

    def sending(self, identity: str) -> Callable[[str, str], None]:
        def send(destination: str, text: str) -> None:
            assert destination == DESTINATION
            self._deliver(identity, text)

        return send

    def delivered(self, identity: str) -> list[str]:
        """The texts of a message in order, over all processes."""
        if not self._file.exists():
            return []
        rows = [json.loads(line) for line in self._file.read_text("utf-8").splitlines()]
        return [text for found, text in rows if found == identity]

    def _deliver(self, identity: str, text: str) -> None:
        failure = self._failures.pop(0) if self._failures else None
        reach("host.delivering")
        self.on_delivery()
        if failure is Failure.BEFORE:
            raise HostFailed
        line = json.dumps([identity, text], ensure_ascii=False).encode() + b"\n"
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
        reach("host.delivered")
        if failure is Failure.AFTER:
            raise HostFailed


def asynchronous(deliver: Callable[..., None], before: Callable[[], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The host's function as a coroutine function that first awaits `before`."""

    async def deliver_later(*args: str) -> None:
        await before()
        deliver(*args)

    return deliver_later


@dataclass
class Session:
    """An operator session that stays just consumed; its binding is the digest of its identity."""

    just_consumed: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_just_consumed(self, _origin: CardPresentationOrigin) -> bool:
        return self.just_consumed

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        return digest(origin.source_session_id)


class Gateway:
    """What one process has: a state, its authorities, a coordinator and the paths, with a recording host."""

    def __init__(
        self,
        directory: Path,
        clients: ClientFactory | None,
        *,
        mode: Mode = Mode.ENABLED,
        wire: WireVersion = WireVersion.KEXP_2,
        clock: Clock | None = None,
        timers: Timers | None = None,
        workers: int = 4,
        environ: Mapping[str, str] = ENVIRON,
        surfaces: Iterable[Surface] = tuple(Surface),
        stores: Stores | None = None,
    ) -> None:
        self.clock = clock or AheadClock()
        self.host = Host(directory)
        self.session = Session()
        self.telemetry = Telemetry([], profile="physique-coach")
        self.state = State(directory / "state", clock=self.clock, stores=stores)
        self.coordinator = Coordinator(
            Disabled() if mode is Mode.DISABLED else Active(mode, frozenset(surfaces), wire),
            identity_key=lambda: self.state.identity_key,
            telemetry=self.telemetry,
            clients=clients,
            clock=self.clock,
            environ=environ,
            workers=workers,
        )
        self.daily_authority = self.state.daily(lambda _: True)
        self.weekly_authority = self.state.weekly(lambda _: True)
        self.adaptive_authority = self.state.adaptive(lambda: self.session.lock, self.session)
        self.daily = DailyPath(self.coordinator, self.daily_authority, self.state.locks, timers)
        self.weekly = WeeklyPath(self.coordinator, self.weekly_authority, self.state.locks, timers)
        self.adaptive = AdaptivePath(self.coordinator, self.adaptive_authority, self.state.locks, timers)

    def publish(self, kind: Kind, identity: str, *, replay: bool = False) -> Publication:
        """Bring one message as far as it goes; `replay` is daily's other entry."""
        if kind is Kind.WEEKLY:
            return self.weekly.deliver(self.delivery(identity), self.host.sending(identity))
        edit = self.host.editing(identity)
        if kind is Kind.DAILY:
            return (self.daily.replay if replay else self.daily.first_save)(message(identity), edit)
        return self.adaptive.publish(card(kind, identity), edit)

    async def publish_async(
        self, kind: Kind, identity: str, before: Callable[[], Awaitable[None]], *, replay: bool = False
    ) -> Publication:
        """`publish` by the asyncio twins; the host awaits `before` in the middle of its delivery."""
        if kind is Kind.WEEKLY:
            send = asynchronous(self.host.sending(identity), before)
            return await self.weekly.deliver_async(self.delivery(identity), send)
        edit = asynchronous(self.host.editing(identity), before)
        if kind is Kind.DAILY:
            entry = self.daily.replay_async if replay else self.daily.first_save_async
            return await entry(message(identity), edit)
        return await self.adaptive.publish_async(card(kind, identity), edit)

    def preparation(self, kind: Kind, identity: str) -> Preparation:
        if kind is Kind.WEEKLY:
            return self.weekly.preparation(self.delivery(identity))
        if kind is Kind.DAILY:
            return self.daily.preparation(message(identity))
        return self.adaptive.preparation(card(kind, identity))

    def delivery(self, identity: str) -> WeeklyDelivery:
        def render() -> WeeklyReport:
            self.host.renders += 1
            presentation = synthetic(Surface.WEEKLY, ordinal(identity))
            return WeeklyReport(presentation, presentation.canonical_payload)

        return WeeklyDelivery(WeeklyTask(identity), DESTINATION, lambda: pins(identity), render)

    def close(self) -> None:
        self.telemetry.close()
        self.state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def ordinal(identity: str) -> int:
    """Which synthetic presentation stands for the message."""
    return int(digest(identity)[:4], 16)


def canonical_text(kind: Kind, identity: str) -> str:
    return synthetic(kind.surface, ordinal(identity), identity=identity).canonical_payload


def pins(identity: str) -> Pins:
    return Pins(*(digest(f"{name}/{identity}") for name in ("destination", "registry", "config", "template")))


def message(identity: str) -> DailyMessage:
    presentation = synthetic(Surface.DAILY, ordinal(identity), identity=identity)
    return DailyMessage(identity, presentation, presentation.canonical_payload)


def card(kind: Kind, identity: str) -> Card:
    presentation = synthetic(kind.surface, ordinal(identity))
    origin = CardPresentationOrigin(OriginKind(kind.value), identity, f"callback/{identity}", f"message/{identity}")
    return Card(origin, kind.surface, presentation, presentation.canonical_payload, digest(identity))


def identity_of(record: Mapping[str, Any], kind: Kind, identity: str) -> bool:
    """Whether a ledger's record is about the message."""
    if kind is Kind.DAILY:
        return bool(record["finalized_event_id"] == identity)
    if kind is Kind.WEEKLY:
        return bool(record["task_digest"] == WeeklyTask(identity).digest)
    return bool(record["card_digest"] == card(kind, identity).origin.card_digest)


def records(directory: Path, kind: Kind, identity: str) -> list[dict[str, Any]]:
    """The durable records of a message, read without the library; the claim's `mode` and `lease` are added."""
    found: list[dict[str, Any]] = []
    for segment in sorted((directory / "state" / kind.ledger).glob("ledger-*.jsonl")):
        for line in segment.read_bytes().splitlines():
            row = json.loads(line)
            if row["kind"] == "row" and identity_of(row["record"], kind, identity):
                found.append({**row["record"], "mode": row["mode"], "lease": row["lease"]})
    return found

"""One simulated gateway process: the real state, authorities, coordinator and paths over the simulated parts."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol, cast

from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.authority.steps import LedgerOpener
from kexpr.authority.weekly import WeeklyTask
from kexpr.clock import Clock
from kexpr.codes import Mode, Surface, WireVersion
from kexpr.config import Active, Disabled
from kexpr.coordinator import Coordinator
from kexpr.errors import KexprError
from kexpr.failpoints import reach
from kexpr.ledger import maintenance
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.tombstones import Tombstones
from kexpr.paths.adaptive import AdaptivePath, Card
from kexpr.paths.daily import DailyMessage, DailyPath
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import Preparation, Publication
from kexpr.paths.weekly import WeeklyDelivery, WeeklyPath, WeeklyReport
from kexpr.state import State
from kexpr.stores import LEDGERS, OpenedMarks
from kexpr.telemetry import Telemetry
from kexpr.testing.simulation.disk import ProcessFiles
from kexpr.testing.simulation.host import Host, HostFailed, Tap
from kexpr.testing.simulation.invariants import JOURNAL_KINDS, RULES, Kind, Message
from kexpr.testing.simulation.provider import Clients

__all__ = ["DESTINATION", "STATE", "TOMBSTONES", "Gateway", "Presentation", "Settings", "coordinator_of", "message_of"]

STATE: Final = Path("/state")
TOMBSTONES: Final = Path("/state-tombstones")
DESTINATION: Final = "destination"

_KEY: Final = {"OPENAI_API_KEY": "simulated-0123456789"}


class Presentation(Protocol):
    @property
    def canonical_payload(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What a restart may change."""

    mode: Mode = Mode.ENABLED
    wire: WireVersion = WireVersion.KEXP_2
    surfaces: frozenset[Surface] = frozenset(Surface)
    has_key: bool = True


class _Silence:
    """In place of `Telemetry`, which has a thread of its own."""

    def emit(self, record: object) -> None:
        """Nobody listens."""


class _Stores:
    """`kexpr.stores.Stores` on a simulated disk. A wait for a lock is one look: the disk waits in its place."""

    def __init__(self, files: ProcessFiles, clock: Clock, locks: PublicationLocks) -> None:
        self._files = files
        self._clock = clock
        self._locks = locks

    def are_empty(self) -> bool:
        return all(maintenance.is_empty(STATE / name, files=self._files) for name in LEDGERS)

    def opener(self, name: str, *, genesis: str) -> LedgerOpener:
        return partial(
            JsonlLedger.open, STATE / name, clock=self._clock, genesis=genesis, files=self._files, wait_seconds=0
        )

    def open_tombstones(self) -> OpenedMarks:
        return Tombstones.open(TOMBSTONES, files=self._files)

    def open_locks(self) -> PublicationLocks:
        return self._locks


def coordinator_of(
    settings: Settings, identity_key: Callable[[], bytes], clients: Clients, clock: Clock
) -> Coordinator:
    active = Active(settings.mode, settings.surfaces, settings.wire)
    return Coordinator(
        Disabled() if settings.mode is Mode.DISABLED else active,
        identity_key=identity_key,
        telemetry=cast(Telemetry, _Silence()),
        clients=clients,
        clock=clock,
        environ=_KEY if settings.has_key else {},
    )


def _origin(kind: Kind, identity: str) -> CardPresentationOrigin:
    return CardPresentationOrigin(OriginKind(kind.value), identity, f"callback/{identity}", f"message/{identity}")


_KEY_OF: Final[Mapping[Kind, Callable[[str], str]]] = {
    Kind.DAILY: lambda identity: identity,
    Kind.WEEKLY: lambda identity: WeeklyTask(identity).digest,
    Kind.CALLBACK: lambda identity: _origin(Kind.CALLBACK, identity).card_digest,
    Kind.TYPED_NOTE: lambda identity: _origin(Kind.TYPED_NOTE, identity).card_digest,
} | dict.fromkeys(JOURNAL_KINDS, str)
"""The journal's rows have an opaque name instead, which follows from a journal's own key (`Invariants.named`)."""


def message_of(kind: Kind, identity: str, presentation: Presentation) -> Message:
    return Message(kind, _KEY_OF[kind](identity), presentation.canonical_payload)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a host knows of a message."""

    identity: str
    presentation: Presentation = field(repr=False)
    message: Message


class Gateway:
    """Opens everything; raises `LedgerFailed` where the real one does."""

    def __init__(
        self,
        settings: Settings,
        *,
        files: ProcessFiles,
        clock: Clock,
        host: Host,
        clients: Clients,
        locks: PublicationLocks,
        session_lock: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.settings = settings
        self._host = host
        self.state = State(STATE, clock=clock, stores=_Stores(files, clock, locks), files=files)
        self.coordinator = coordinator_of(settings, lambda: self.state.identity_key, clients, clock)
        self.daily_authority = self.state.daily(lambda _: True)
        self.weekly_authority = self.state.weekly(host.is_ready)
        self.adaptive_authority = self.state.adaptive(session_lock, host)
        self._daily = DailyPath(self.coordinator, self.daily_authority, self.state.locks)
        self._weekly = WeeklyPath(self.coordinator, self.weekly_authority, self.state.locks)
        self._adaptive = AdaptivePath(self.coordinator, self.adaptive_authority, self.state.locks)

    def publish(self, subject: Subject, tap: Tap) -> None:
        """One tap, as the asyncio paths do it: a cancellation is a flag until the delivery begins."""
        flag = tap.flag
        held = self._preparation(subject, tap)(flag).begin(flag)
        publication = held.publication
        if publication.text is None:
            return
        if flag.is_set():
            held.drop()
            return
        delivered = False
        try:
            self._deliver(publication)
            delivered = True
        except HostFailed:
            pass
        finally:
            reach("path.delivered")
            held.end(delivered)

    def sweep(self) -> None:
        """End what has expired, as a rollback does."""
        for authority in (self.daily_authority, self.weekly_authority, self.adaptive_authority):
            try:
                authority.expire_outstanding()
            except KexprError:
                continue

    def is_stopped(self, subject: Subject) -> bool:
        """Whether the weekly authority has stopped, or the task has."""
        authority = self.weekly_authority
        if subject.message.kind is not Kind.WEEKLY:
            return False
        return authority._stopped is not None or subject.message.key in authority._stopped_tasks

    def _deliver(self, publication: Publication) -> None:
        assert publication.text is not None
        assert publication.destination in (None, DESTINATION)
        self._host.deliver(publication.text)

    def _preparation(self, subject: Subject, tap: Tap) -> Preparation:
        identity, presentation = subject.identity, subject.presentation
        kind, canonical = subject.message.kind, presentation.canonical_payload
        if kind is Kind.DAILY:
            message = DailyMessage(identity, presentation, canonical)
            return self._daily.preparation(message) if tap.is_first_save else self._daily.replay_preparation(message)
        if kind is Kind.WEEKLY:
            report = WeeklyReport(presentation, canonical)
            task = WeeklyTask(identity)
            return self._weekly.preparation(
                WeeklyDelivery(task, DESTINATION, lambda: self._host.pins(identity), lambda: report)
            )
        binding = self._host.binding(identity)
        card = Card(_origin(kind, identity), RULES[kind].surface, presentation, canonical, binding)
        return self._adaptive.preparation(card)

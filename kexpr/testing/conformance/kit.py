"""What a host gives the suite, and what the suite gives the host's stores."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, Protocol

from kexpr.attempt import ArtifactAuthority, Candidate, Ruling
from kexpr.authority.adaptive_records import CardPresentationOrigin, OriginKind
from kexpr.authority.ports import AdaptiveStore, DailyStore, Store, WeeklyStore
from kexpr.authority.recovery import Recovered
from kexpr.authority.weekly_records import Pins, WeeklyTask
from kexpr.codes import Mode, Outcome, Reason, SlotKind, Surface
from kexpr.errors import Rejected
from kexpr.manifest import Frozen, Manifest, Placeholder, PlaceholderKind, Slot, SlotText, compose
from kexpr.testing.simulation.clock import MachineClock

__all__ = [
    "CANONICAL",
    "DESTINATION",
    "LOST",
    "SELECTED",
    "SUBJECTS",
    "Handle",
    "HostPorts",
    "Kit",
    "Subject",
    "candidate",
    "origin_of",
    "refusing",
    "wins",
]

CANONICAL: Final = "제목\n저장된 기록을 확인했습니다.\n끝"
SELECTED: Final = "제목\n차분히 살펴보니 저장된 기록을 확인했습니다.\n끝"
DESTINATION: Final = "destination"
LOST: Final = Ruling(Outcome.CANONICAL_PROVIDER_ERROR, Reason.HTTP_SERVER_ERROR)


@dataclass
class HostPorts:
    """The host behind the stores: what its events, schedule and operator sessions say now. Give it to your stores."""

    missing_events: set[str] = field(default_factory=set)
    fallen_fences: set[str] = field(default_factory=set)
    spent_sessions: set[str] = field(default_factory=set)
    pins: Pins = field(default_factory=lambda: Pins("1" * 64, "2" * 64, "3" * 64, "4" * 64))
    revision: int = 1
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def finalized_event_exists(self, event_id: str) -> bool:
        return event_id not in self.missing_events

    def ready_fence(self, task_digest: str) -> bool:
        return task_digest not in self.fallen_fences

    def session_lock(self) -> AbstractContextManager[object]:
        return self.lock

    def is_just_consumed(self, origin: CardPresentationOrigin) -> bool:
        return origin.source_session_id not in self.spent_sessions

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        return sha256(f"{origin.source_session_id}/{self.revision}".encode()).hexdigest()

    def change_pins(self) -> None:
        self.pins = replace(self.pins, config_digest="9" * 64)


class Kit(Protocol):
    """The one fixture. Each opening is another process's handle on the same durable state, which begins empty.

    `clock` is what the stores read the time from; None where they have a clock of their own. `pass_lease` lets a claim
    expire, by moving the clock or by waiting.
    """

    @property
    def ports(self) -> HostPorts: ...
    @property
    def clock(self) -> MachineClock | None: ...
    def pass_lease(self) -> None: ...
    def daily(self) -> DailyStore: ...
    def weekly(self) -> WeeklyStore: ...
    def adaptive(self) -> AdaptiveStore: ...


@dataclass(frozen=True, slots=True)
class Handle:
    """One opened store, by artifact identity."""

    store: Store
    artifact: Callable[[str], ArtifactAuthority]
    recover: Callable[[str], Recovered]


@dataclass(frozen=True, slots=True)
class Subject:
    """One of the three stores. `keeps_body`: recovery gives the durable body back, which daily never does."""

    surface: Surface
    keeps_body: bool
    open: Callable[[Kit], Handle]


def origin_of(identity: str, kind: OriginKind = OriginKind.CALLBACK) -> CardPresentationOrigin:
    return CardPresentationOrigin(kind, identity, f"callback/{identity}", f"message/{identity}")


def _daily(kit: Kit) -> Handle:
    store = kit.daily()
    return Handle(store, store.artifact, store.recover)


def _weekly(kit: Kit) -> Handle:
    store = kit.weekly()

    def artifact(identity: str) -> ArtifactAuthority:
        return store.artifact(
            WeeklyTask(identity),
            canonical_body=CANONICAL,
            destination=DESTINATION,
            current_pins=lambda: kit.ports.pins,
        )

    return Handle(store, artifact, lambda identity: store.recover(WeeklyTask(identity)))


def _adaptive(kit: Kit) -> Handle:
    store = kit.adaptive()

    def artifact(identity: str) -> ArtifactAuthority:
        origin = origin_of(identity)
        return store.artifact(
            origin,
            canonical_payload=CANONICAL,
            surface=Surface.ADAPTIVE_DUALCOACHTEST,
            binding_digest=kit.ports.current_binding_digest(origin),
        )

    return Handle(store, artifact, lambda identity: store.recover(origin_of(identity)))


SUBJECTS: Final = {
    "daily": Subject(Surface.DAILY, False, _daily),
    "weekly": Subject(Surface.WEEKLY, True, _weekly),
    "adaptive": Subject(Surface.ADAPTIVE_DUALCOACHTEST, True, _adaptive),
}

_SLOT_OF: Final = {
    Surface.DAILY: SlotKind.DAILY_STATUS,
    Surface.WEEKLY: SlotKind.WEEKLY_RATIONALE,
    Surface.ADAPTIVE_DUALCOACHTEST: SlotKind.DUAL_REASON,
}


def candidate(
    surface: Surface,
    prose: str = "차분히 살펴보니 ",
    *,
    title: str = "제목",
    judge: Callable[[Manifest, tuple[SlotText, ...]], str] = compose,
) -> Candidate:
    """Judged prose for `CANONICAL`; with another `title` it is for another message."""
    expansion = "저장된 기록을 확인했습니다."
    placeholder = Placeholder(PlaceholderKind.SENTENCE, expansion)
    slot = Slot("status", _SLOT_OF[surface], ("s",), ("a",), (placeholder,), expansion)
    manifest = Manifest(surface, (Frozen(f"{title}\n"), slot, Frozen("\n끝")))
    return Candidate(manifest, (SlotText(f"{prose}⟦p⟧", ("⟦p⟧",)),), judge)


def refusing(_manifest: Manifest, _texts: tuple[SlotText, ...]) -> str:
    raise Rejected(Reason.GUARD_MEDICAL)


def wins(surface: Surface, mode: Mode = Mode.ENABLED) -> Ruling:
    outcome = Outcome.SELECTED if mode is Mode.ENABLED else Outcome.SHADOW_SELECTED
    return Ruling(outcome, candidate=candidate(surface))

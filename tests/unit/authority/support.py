"""What the authorities' tests share: a clock to set, a candidate, a world of one store and its processes."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from kexpr.attempt import Candidate, Ruling
from kexpr.authority.adaptive import AdaptiveAuthority, CardPresentationOrigin, OriginKind
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.weekly import Pins, WeeklyAuthority, WeeklyTask
from kexpr.clock import CLAIM_LEASE_MS, Instant
from kexpr.codes import Mode, Outcome, Reason, SlotKind, Surface
from kexpr.errors import Rejected
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.protocol import Ledger, Projection, Record, Row
from kexpr.manifest import Frozen, Manifest, Placeholder, PlaceholderKind, Slot, SlotText, compose
from kexpr.testing.memory_ledger import MemoryLedger, MemoryStore, MemoryTombstones

JANUARY = 1_768_000_000_000
"""2026-01-09 in Unix milliseconds."""

CANONICAL = "제목\n저장된 기록을 확인했습니다.\n끝"
SELECTED = "제목\n차분히 살펴보니 저장된 기록을 확인했습니다.\n끝"
OTHER_CANONICAL = "다른 제목\n저장된 기록을 확인했습니다.\n끝"

KIND_OF = {
    Surface.DAILY: SlotKind.DAILY_STATUS,
    Surface.WEEKLY: SlotKind.WEEKLY_RATIONALE,
    Surface.ADAPTIVE_DUALCOACHTEST: SlotKind.DUAL_JUDGMENT,
    Surface.ADAPTIVE_PHYSIQUE: SlotKind.PHYSIQUE_NOTICE,
}


@dataclass
class SetClock:
    utc_ms: int = JANUARY
    boottime_ms: int = 1_000
    boot_id: str | None = "boot"

    def now(self) -> Instant:
        return Instant(self.utc_ms, self.boottime_ms, self.boot_id)

    def monotonic(self) -> float:
        return self.boottime_ms / 1000

    def pass_ms(self, duration_ms: int) -> None:
        self.utc_ms += duration_ms
        self.boottime_ms += duration_ms

    def expire(self) -> None:
        self.pass_ms(CLAIM_LEASE_MS)


def manifest(surface: Surface, title: str = "제목") -> Manifest:
    expansion = "저장된 기록을 확인했습니다."
    slot = Slot(
        "status", KIND_OF[surface], ("s",), ("a",), (Placeholder(PlaceholderKind.SENTENCE, expansion),), expansion
    )
    return Manifest(surface, (Frozen(f"{title}\n"), slot, Frozen("\n끝")))


def candidate(
    surface: Surface,
    prose: str = "차분히 살펴보니 ",
    *,
    title: str = "제목",
    judge: Callable[[Manifest, tuple[SlotText, ...]], str] = compose,
) -> Candidate:
    return Candidate(manifest(surface, title), (SlotText(f"{prose}⟦p⟧", ("⟦p⟧",)),), judge)


def refusing(_manifest: Manifest, _texts: tuple[SlotText, ...]) -> str:
    raise Rejected(Reason.GUARD_MEDICAL)


def wins(surface: Surface, mode: Mode = Mode.ENABLED) -> Ruling:
    outcome = Outcome.SELECTED if mode is Mode.ENABLED else Outcome.SHADOW_SELECTED
    return Ruling(outcome, candidate=candidate(surface))


LOST = Ruling(Outcome.CANONICAL_PROVIDER_ERROR, Reason.HTTP_SERVER_ERROR)


class Store:
    """Where one authority's rows are: in memory, or in a directory. Each `open` is another process."""

    def __init__(self, clock: SetClock, directory: Path | None = None) -> None:
        self.clock = clock
        self.memory = MemoryStore()
        self._directory = directory
        self._opened: list[JsonlLedger] = []

    def opener(self, *, projection: Projection) -> Ledger:
        if self._directory is None:
            return MemoryLedger(self.memory, self.clock, projection=projection)
        ledger = JsonlLedger.open(self._directory, clock=self.clock, projection=projection)
        self._opened.append(ledger)
        return ledger

    def close(self) -> None:
        """End every process, so that no descriptor outlives its test."""
        for ledger in self._opened:
            ledger.close()

    def rows(self) -> list[Row]:
        rows: list[Row] = []
        self.opener(projection=rows.append).close()
        return rows

    def records(self) -> list[Record]:
        return [row.record for row in self.rows()]

    def put(self, record: Record, *, mode: Mode | None = None) -> None:
        """Append a row that no authority wrote; without a lease, so that it counts as expired."""
        ledger = self.opener(projection=lambda _: None)
        with ledger.transaction() as transaction:
            transaction.append(record, mode=mode)
        ledger.close()


EVENT = "event-canary-4411"
TASK = WeeklyTask("task-canary-7722")
PINS = Pins("destination-pin", "registry-pin", "config-pin", "template-pin")
DESTINATION = "destination-canary-9933"
BINDING = "binding-canary-1188"


def origin(kind: OriginKind = OriginKind.CALLBACK, session: str = "session-canary-5566") -> CardPresentationOrigin:
    return CardPresentationOrigin(kind, session, "callback-canary-3344", "message-canary-2200")


@dataclass
class Session:
    """An `OperatorSession` whose pins a test moves."""

    just_consumed: bool = True
    binding: str = BINDING
    on_ask: Callable[[], object] = field(default=lambda: None)

    def is_just_consumed(self, _origin: CardPresentationOrigin) -> bool:
        self.on_ask()
        return self.just_consumed

    def current_binding_digest(self, _origin: CardPresentationOrigin) -> str:
        return self.binding


@dataclass
class World:
    """One store, its marks and its host; `daily()`, `weekly()` and `adaptive()` open another process on it."""

    store: Store
    marks: MemoryTombstones = field(default_factory=MemoryTombstones)
    events: set[str] = field(default_factory=lambda: {EVENT})
    is_ready: bool = True
    pins: Pins = PINS
    session: Session = field(default_factory=Session)
    session_lock: Callable[[], AbstractContextManager[object]] = nullcontext

    @property
    def clock(self) -> SetClock:
        return self.store.clock

    def daily(self) -> DailyAuthority:
        return DailyAuthority(self.store.opener, self.events.__contains__)

    def weekly(self) -> WeeklyAuthority:
        return WeeklyAuthority(self.store.opener, self.marks, lambda _: self.is_ready)

    def adaptive(self) -> AdaptiveAuthority:
        return AdaptiveAuthority(self.store.opener, self.session_lock, self.session)

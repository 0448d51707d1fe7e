"""The state machines of the authorities, as data: state -> event -> next state (authorities, "State machines").

Enforcement, the diagrams in `docs/state-machines.md` and the exhaustive test all read these tables. What a table does
not hold is an illegal transition: it raises `IllegalTransition` and writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from kexpr.codes import Outcome
from kexpr.errors import IllegalTransition

__all__ = [
    "ADAPTIVE",
    "DAILY",
    "JOURNAL",
    "MACHINES",
    "WEEKLY",
    "AdaptiveEvent",
    "AdaptiveState",
    "DailyEvent",
    "DailyState",
    "JournalEvent",
    "JournalState",
    "Machine",
    "WeeklyEvent",
    "WeeklyState",
]

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Machine(Generic[S, E]):
    """One authority's table. An artifact without a row is in `initial`."""

    name: str
    initial: S
    table: Mapping[S, Mapping[E, S]]

    def step(self, state: S, event: E) -> S:
        """The next state; raises `IllegalTransition`."""
        after = self.table[state].get(event)
        if after is None:
            raise IllegalTransition(self.name, state, event)
        return after


class DailyState(StrEnum):
    ABSENT = "absent"
    CLAIMED = "claimed"
    FINALIZED = "finalized"


class DailyEvent(StrEnum):
    CLAIM = "claim"
    FINALIZE = "finalize"
    EXPIRE = "expire"

    @staticmethod
    def ending(outcome: Outcome) -> "DailyEvent":
        """The event by which a claim ends with `outcome`."""
        return DailyEvent.EXPIRE if outcome is Outcome.CANONICAL_CLAIM_EXPIRED else DailyEvent.FINALIZE


DAILY: Final = Machine(
    "daily",
    DailyState.ABSENT,
    {
        DailyState.ABSENT: {DailyEvent.CLAIM: DailyState.CLAIMED},
        DailyState.CLAIMED: {
            DailyEvent.FINALIZE: DailyState.FINALIZED,
            DailyEvent.EXPIRE: DailyState.FINALIZED,
        },
        DailyState.FINALIZED: {},
    },
)


class WeeklyState(StrEnum):
    READY = "ready"
    PRESENTATION_CLAIMED = "presentation_claimed"
    PREPARED = "prepared"
    SENDING = "sending"
    DELIVERED = "delivered"
    UNKNOWN = "unknown"
    ABANDONED = "abandoned"
    SENT_AUDITED = "sent_audited"


class WeeklyEvent(StrEnum):
    RESERVE = "reserve"
    CLAIM = "claim"
    FINALIZE = "finalize"
    EXPIRE = "expire"
    MARK_SENDING = "mark_sending"
    MARK_DELIVERED = "mark_delivered"
    MARK_UNKNOWN = "mark_unknown"
    MARK_ABANDONED = "mark_abandoned"
    MARK_SENT_AUDITED = "mark_sent_audited"

    @staticmethod
    def ending(outcome: Outcome) -> "WeeklyEvent":
        """The event by which a claim ends with `outcome`."""
        return WeeklyEvent.EXPIRE if outcome is Outcome.CANONICAL_CLAIM_EXPIRED else WeeklyEvent.FINALIZE


WEEKLY: Final = Machine(
    "weekly",
    WeeklyState.READY,
    {
        WeeklyState.READY: {
            WeeklyEvent.RESERVE: WeeklyState.PREPARED,
            WeeklyEvent.CLAIM: WeeklyState.PRESENTATION_CLAIMED,
        },
        WeeklyState.PRESENTATION_CLAIMED: {
            WeeklyEvent.FINALIZE: WeeklyState.PREPARED,
            WeeklyEvent.EXPIRE: WeeklyState.PREPARED,
        },
        WeeklyState.PREPARED: {WeeklyEvent.MARK_SENDING: WeeklyState.SENDING},
        WeeklyState.SENDING: {
            WeeklyEvent.MARK_DELIVERED: WeeklyState.DELIVERED,
            WeeklyEvent.MARK_UNKNOWN: WeeklyState.UNKNOWN,
            WeeklyEvent.MARK_ABANDONED: WeeklyState.ABANDONED,
        },
        WeeklyState.UNKNOWN: {
            WeeklyEvent.MARK_SENT_AUDITED: WeeklyState.SENT_AUDITED,
            WeeklyEvent.MARK_ABANDONED: WeeklyState.ABANDONED,
        },
        WeeklyState.DELIVERED: {},
        WeeklyState.ABANDONED: {},
        WeeklyState.SENT_AUDITED: {},
    },
)


class AdaptiveState(StrEnum):
    CONSUMED = "consumed"
    PRESENTATION_CLAIMED = "presentation_claimed"
    PUBLISH_PENDING = "publish_pending"
    PUBLISH_CLAIMED = "publish_claimed"
    PUBLISHED = "published"


class AdaptiveEvent(StrEnum):
    MARK_PUBLISH_PENDING = "mark_publish_pending"
    CLAIM = "claim"
    FINALIZE = "finalize"
    EXPIRE = "expire"
    MARK_PUBLISH_CLAIMED = "mark_publish_claimed"
    MARK_PUBLISHED = "mark_published"

    @staticmethod
    def ending(outcome: Outcome) -> "AdaptiveEvent":
        """The event by which a claim ends with `outcome`."""
        return AdaptiveEvent.EXPIRE if outcome is Outcome.CANONICAL_CLAIM_EXPIRED else AdaptiveEvent.FINALIZE


ADAPTIVE: Final = Machine(
    "adaptive",
    AdaptiveState.CONSUMED,
    {
        AdaptiveState.CONSUMED: {
            AdaptiveEvent.MARK_PUBLISH_PENDING: AdaptiveState.PUBLISH_PENDING,
            AdaptiveEvent.CLAIM: AdaptiveState.PRESENTATION_CLAIMED,
        },
        AdaptiveState.PRESENTATION_CLAIMED: {
            AdaptiveEvent.FINALIZE: AdaptiveState.PUBLISH_PENDING,
            AdaptiveEvent.EXPIRE: AdaptiveState.PUBLISH_PENDING,
        },
        AdaptiveState.PUBLISH_PENDING: {AdaptiveEvent.MARK_PUBLISH_CLAIMED: AdaptiveState.PUBLISH_CLAIMED},
        AdaptiveState.PUBLISH_CLAIMED: {AdaptiveEvent.MARK_PUBLISHED: AdaptiveState.PUBLISHED},
        AdaptiveState.PUBLISHED: {},
    },
)


class JournalState(StrEnum):
    ABSENT = "absent"
    ATTEMPT_STARTED = "attempt_started"
    FINALIZED = "finalized"


class JournalEvent(StrEnum):
    CLAIM = "claim"
    FINALIZE = "finalize"
    EXPIRE = "expire"


JOURNAL: Final = Machine(
    "journal",
    JournalState.ABSENT,
    {
        JournalState.ABSENT: {JournalEvent.CLAIM: JournalState.ATTEMPT_STARTED},
        JournalState.ATTEMPT_STARTED: {
            JournalEvent.FINALIZE: JournalState.FINALIZED,
            JournalEvent.EXPIRE: JournalState.FINALIZED,
        },
        JournalState.FINALIZED: {},
    },
)

MACHINES: Final = (DAILY, WEEKLY, ADAPTIVE, JOURNAL)

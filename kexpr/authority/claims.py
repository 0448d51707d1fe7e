"""What a row of each authority claims: the artifact whose first row it is, with or without a presentation.

No artifact begins twice. The authorities see to that under their lock; a store with an index of its own sees to it once
more (`PostgresLedger.open`, `claim_of`).
"""

from kexpr.authority.transitions import AdaptiveState, DailyState, WeeklyState
from kexpr.ledger.protocol import Record

__all__ = ["adaptive", "daily", "weekly"]


def daily(record: Record) -> str | None:
    return _identity(record, "finalized_event_id", begins=record.get("phase") == DailyState.CLAIMED)


def weekly(record: Record) -> str | None:
    return _identity(record, "task_digest", begins=_begins(record, WeeklyState.PRESENTATION_CLAIMED, _RESERVED))


def adaptive(record: Record) -> str | None:
    return _identity(record, "card_digest", begins=_begins(record, AdaptiveState.PRESENTATION_CLAIMED, _PENDING))


_RESERVED = (1, WeeklyState.PREPARED)
_PENDING = (1, AdaptiveState.PUBLISH_PENDING)
"""Version and state of the first row of an artifact without a presentation."""


def _begins(record: Record, claimed: str, direct: tuple[int, str]) -> bool:
    state = record.get("state")
    return state == claimed or (record.get("schema_version"), state) == direct


def _identity(record: Record, key: str, *, begins: bool) -> str | None:
    return str(record[key]) if begins else None

"""Rollback: no attempt begins any more, every claim ends, nothing is published (authorities, "Rollback").

In this order: the gate closes, intake stops, workers are cancelled and joined, claims that are left end as expired in
their own store. A claim lives four seconds and none begins after the gate is closed, so that is how long it can take.
Afterwards an operator sets the feature to valid `disabled`, audits and restarts; a disabled process only recovers
durable bytes. Nothing here brings back a path that was removed.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kexpr.authority.adaptive import CardPresentationOrigin
from kexpr.authority.ports import Store
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Outcome
from kexpr.coordinator import Coordinator
from kexpr.errors import AuthorityFailed, StoreFault
from kexpr.ledger.journal import JOURNAL_NAME
from kexpr.private_files import KEY_NAME
from kexpr.state import State
from kexpr.stores import LEDGERS, tombstones_of

__all__ = ["Drained", "drain", "end_outstanding", "rollback_state"]

_LEASE_S: Final = CLAIM_LEASE_MS / 1000
_PATIENCE_S: Final = _LEASE_S + 0.5
"""A claim of an attempt that the gate had just let through began a moment after it closed."""
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Drained:
    """`outcomes` counts what ended meanwhile, by code. `outstanding` are claims that are left, None where a store could
    not be asked. `intake_stopped` and `joined`: the host's callback, and every worker, came to an end.
    """

    outcomes: Mapping[Outcome, int]
    outstanding: int | None
    intake_stopped: bool
    joined: bool
    duration_ms: int

    @property
    def clean(self) -> bool:
        return self.outstanding == 0 and self.intake_stopped and self.joined

    def to_json(self) -> dict[str, object]:
        return {
            "outcomes": {outcome.value: count for outcome, count in sorted(self.outcomes.items())},
            "outstanding": self.outstanding,
            "intake_stopped": self.intake_stopped,
            "joined": self.joined,
            "duration_ms": self.duration_ms,
        }


def drain(
    coordinator: Coordinator, authorities: Iterable[Store], *, stop_intake: Callable[[], None] = lambda: None
) -> Drained:
    """Drain a running gateway, within five seconds. Blocking: an asyncio host calls it in a thread.

    It never raises for a host or a store that fails: what could not be done is in the answer, without a text.
    """
    started = time.monotonic()
    coordinator.close_admission()
    stores = tuple(authorities)
    before = _outcomes(stores)
    intake_stopped = _stopped(stop_intake)
    joined = coordinator.join(max(0.0, _LEASE_S - (time.monotonic() - started)))
    outstanding = end_outstanding(stores, started + _PATIENCE_S)
    after = _outcomes(stores)
    return Drained(
        outcomes=after - before if before is not None and after is not None else {},
        outstanding=outstanding,
        intake_stopped=intake_stopped,
        joined=joined or coordinator.join(0),
        duration_ms=round((time.monotonic() - started) * 1000),
    )


def end_outstanding(authorities: Iterable[Store], until: float) -> int | None:
    """End every claim as it expires, until the monotonic second `until`; how many are left.

    None when a store cannot be used: what it holds is not known.
    """
    stores = tuple(authorities)
    while True:
        left = [_left(store) for store in stores]
        if None in left or not any(left) or time.monotonic() >= until:
            return None if None in left else sum(count or 0 for count in left)
        time.sleep(_POLL_S)


def rollback_state(directory: Path, *, tombstones: Path | None = None) -> Drained:
    """The store part, for a stopped process: end what it left in `directory`, waiting for leases that still run.

    The host's sessions and fences are not asked: ending a claim as expired needs neither. Raises `LedgerFailed` for a
    state that is not whole or not ours, `NOT_REGULAR` where there is none; nothing is made then. An outcome journal is
    none: its claims may have to be recovered with the host's writer, which a restarted gateway does.
    """
    started = time.monotonic()
    ledgers = [name for name in LEDGERS if (directory / name).is_dir()]
    if (directory / JOURNAL_NAME).exists() or (not ledgers and not (directory / KEY_NAME).exists()):
        raise AuthorityFailed(StoreFault.NOT_REGULAR)
    if "weekly" in ledgers and not tombstones_of(directory, tombstones).is_dir():
        raise AuthorityFailed(StoreFault.TOMBSTONE_MISSING)
    with closing(State(directory, tombstones=tombstones)) as state:
        openers: dict[str, Callable[[], Store]] = {
            "daily": lambda: state.daily(lambda _: True),
            "weekly": lambda: state.weekly(lambda _: True),
            "adaptive": lambda: state.adaptive(_no_session_lock, _NoSession()),
        }
        stores = [openers[name]() for name in ledgers]
        before = _outcomes(stores)
        outstanding = end_outstanding(stores, started + _PATIENCE_S)
        after = _outcomes(stores)
    ended = after - before if before is not None and after is not None else Counter()
    return Drained(ended, outstanding, True, True, round((time.monotonic() - started) * 1000))


class _NoSession:
    """Nothing is finalised here, so that nothing is asked; it would hold nothing."""

    def is_just_consumed(self, origin: CardPresentationOrigin) -> bool:
        return False

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        return ""


def _no_session_lock() -> AbstractContextManager[object]:
    return threading.Lock()


def _left(store: Store) -> int | None:
    try:
        store.expire_outstanding()
        return len(store.outstanding())
    except AuthorityFailed:
        return None


def _outcomes(stores: Iterable[Store]) -> Counter[Outcome] | None:
    try:
        return sum((store.outcomes() for store in stores), Counter[Outcome]())
    except AuthorityFailed:
        return None


def _stopped(stop_intake: Callable[[], None]) -> bool:
    try:
        stop_intake()
    except Exception:  # noqa: BLE001 - the host's exception may carry content, and the drain goes on
        return False
    return True

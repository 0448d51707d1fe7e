"""Daily: `absent -> claimed -> finalized`, one claim per finalised check-in event (authorities, "Daily").

Rows hold no text at all: a selected body lives in memory only, in the answer to the very call that made its outcome
durable. After that, and after every crash, the canonical text stands.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kexpr.attempt import Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.finalise import EXPIRED, Asked, Claim, Found, decide, may_end
from kexpr.authority.records import deadline_of, final_outcome, from_record, require, to_record
from kexpr.authority.recovery import Absent, Durable, InFlight, Recovered
from kexpr.authority.steps import LedgerOpener, append, ask, new_attempt_id, require_attempting
from kexpr.authority.transitions import DAILY, DailyEvent, DailyState
from kexpr.clock import lease_from
from kexpr.codes import Mode, Outcome, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, StoreFault
from kexpr.ledger.protocol import Row, Transaction

__all__ = ["DailyArtifact", "DailyAuthority", "DailyPresentationAttemptV1"]

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class DailyPresentationAttemptV1:
    """The record: these keys and no other. `deadline` is UTC text for people; expiry is the envelope's lease."""

    schema_version: int
    finalized_event_id: str = field(repr=False)
    surface: str
    attempt_id: str = field(repr=False)
    phase: str
    deadline: str
    outcome: str | None


@dataclass(frozen=True, slots=True)
class _Held:
    """What the rows of one event add up to."""

    state: DailyState
    attempt: DailyPresentationAttemptV1
    claim: Claim

    @property
    def outcome(self) -> Outcome | None:
        return Outcome(self.attempt.outcome) if self.attempt.outcome else None


class DailyAuthority:
    """The finalised-event domain. Thread-safe, and safe between processes through its ledger.

    Every method raises `AuthorityFailed` when the ledger or the host's port cannot be used; nothing is published then
    that is not canonical.
    """

    def __init__(self, open_ledger: LedgerOpener, finalized_event_exists: Callable[[str], bool]) -> None:
        """`finalized_event_exists` is asked under the record lock; it must not call back into this authority."""
        self._exists = finalized_event_exists
        self._held: dict[str, _Held] = {}
        self._ledger = open_ledger(projection=self._fold)

    def artifact(self, event_id: str) -> "DailyArtifact":
        """What the coordinator drives for one event."""
        return DailyArtifact(self, event_id)

    def claim_finalized_presentation(self, event_id: str, mode: Mode) -> Ticket:
        """Claim the event, durably. Raises `ClaimRefused` for a duplicate and `UNKNOWN_EVENT` for no such event."""
        require_attempting(mode)
        with self._ledger.transaction() as transaction:
            if event_id in self._held:
                raise ClaimRefused
            if not ask(self._exists, event_id):
                raise AuthorityFailed(StoreFault.UNKNOWN_EVENT)
            phase = DAILY.step(DailyState.ABSENT, DailyEvent.CLAIM)
            lease = lease_from(transaction.now)
            attempt = DailyPresentationAttemptV1(
                _VERSION, event_id, Surface.DAILY.wire, new_attempt_id(), phase.value, deadline_of(lease), None
            )
            append(transaction, "daily.claim", to_record(attempt), lease=lease, mode=mode)
            return Ticket(attempt.attempt_id, mode, lease)

    def finalize_finalized_presentation(
        self, event_id: str, ticket: Ticket, ruling: Ruling, cancellation: Cancellation
    ) -> Finalized:
        """End the attempt, durably; see `ArtifactAuthority.finalize`."""
        with self._ledger.transaction() as transaction:
            held = self._held.get(event_id)
            found = Found(
                DAILY.name,
                held.state if held else DailyState.ABSENT,
                held.claim if held else None,
                Finalized(held.outcome) if held and held.outcome else None,
                transaction.now,
            )
            decision = decide(found, Asked(ticket.attempt_id, ruling, cancellation.is_set()))
            if held and decision.is_new:
                self._end(transaction, held, decision.finalized.outcome)
            return decision.finalized

    def expire_finalized_presentation(self, event_id: str) -> Recovered:
        """Append `canonical_claim_expired` if the claim has expired; say what is there then."""
        with self._ledger.transaction() as transaction:
            self._expire(transaction, event_id)
            return self._look(transaction, event_id)

    recover = expire_finalized_presentation
    """What a path asks first, also after a restart."""

    def state(self, event_id: str) -> Recovered:
        """What is there; appends nothing, so that an expired claim still is `InFlight(0)`."""
        with self._ledger.transaction() as transaction:
            return self._look(transaction, event_id)

    def is_fresh(self, event_id: str) -> bool:
        """No row on the event."""
        return isinstance(self.state(event_id), Absent)

    def outstanding(self) -> tuple[str, ...]:
        """Opaque attempt ids of claims without an outcome."""
        with self._ledger.transaction():
            return tuple(held.claim.attempt_id for held in self._claimed().values())

    def outcomes(self) -> Counter[Outcome]:
        """How many presentations ended with each outcome, ever."""
        with self._ledger.transaction():
            return Counter(held.outcome for held in self._held.values() if held.outcome)

    def expire_outstanding(self) -> int:
        """End every expired claim; how many were ended."""
        with self._ledger.transaction() as transaction:
            return sum(self._expire(transaction, event_id) for event_id in self._claimed())

    def close(self) -> None:
        self._ledger.close()

    def _claimed(self) -> dict[str, _Held]:
        return {event_id: held for event_id, held in self._held.items() if held.state is DailyState.CLAIMED}

    def _look(self, transaction: Transaction, event_id: str) -> Recovered:
        held = self._held.get(event_id)
        if held is None:
            return Absent()
        if held.outcome is None:
            return InFlight(held.claim.remaining_ms(transaction.now))
        return Durable(held.outcome, None, held.state)

    def _expire(self, transaction: Transaction, event_id: str) -> bool:
        held = self._held.get(event_id)
        due = held is not None and held.state is DailyState.CLAIMED and held.claim.remaining_ms(transaction.now) == 0
        if held and due:
            self._end(transaction, held, EXPIRED.outcome)
        return due

    def _end(self, transaction: Transaction, held: _Held, outcome: Outcome) -> None:
        event = DailyEvent.ending(outcome)
        phase = DAILY.step(held.state, event)
        attempt = held.attempt
        ended = DailyPresentationAttemptV1(
            _VERSION,
            attempt.finalized_event_id,
            attempt.surface,
            attempt.attempt_id,
            phase.value,
            attempt.deadline,
            outcome.value,
        )
        append(transaction, f"daily.{event}", to_record(ended))

    def _fold(self, row: Row) -> None:
        """One verified row; raises `IllegalHistory` for one that this authority does not write."""
        attempt = from_record(DailyPresentationAttemptV1, row.record)
        require(attempt.schema_version == _VERSION and attempt.surface == Surface.DAILY.wire)
        held = self._held.get(attempt.finalized_event_id)
        if held is None:
            state = DAILY.step(DailyState.ABSENT, DailyEvent.CLAIM)
            require(attempt.outcome is None)
            claim = Claim(attempt.attempt_id, row.mode, row.lease, Surface.DAILY)
        else:
            outcome = final_outcome(attempt.outcome)
            state = DAILY.step(held.state, DailyEvent.ending(outcome))
            claim = held.claim
            require(attempt.attempt_id == claim.attempt_id and attempt.deadline == held.attempt.deadline)
            require(may_end(claim, outcome))
        require(attempt.phase == state)
        self._held[attempt.finalized_event_id] = _Held(state, attempt, claim)


@dataclass(frozen=True, slots=True)
class DailyArtifact:
    """One event, bound; an `ArtifactAuthority`."""

    authority: DailyAuthority
    event_id: str = field(repr=False)

    @property
    def surface(self) -> Surface:
        return Surface.DAILY

    def is_fresh(self) -> bool:
        return self.authority.is_fresh(self.event_id)

    def claim(self, mode: Mode) -> Ticket:
        return self.authority.claim_finalized_presentation(self.event_id, mode)

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        return self.authority.finalize_finalized_presentation(self.event_id, ticket, ruling, cancellation)

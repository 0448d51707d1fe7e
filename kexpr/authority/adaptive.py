"""Adaptive: operator cards (authorities, "Adaptive").

`consumed -> presentation_claimed -> publish_pending -> publish_claimed -> published`; without a presentation
`consumed -> publish_pending`. One row in the publication ledger is the sole commit of a step; the session's state is
what its rows add up to. The pins (just consumed, binding) are the host's, asked inside both locks, at the claim and
again at the end.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from kexpr.attempt import Cancellation, Candidate, Finalized, Ruling, Ticket
from kexpr.authority.adaptive_records import (
    STEP_EVENT,
    CardPresentationOrigin,
    ClaimedCardV2,
    HeldCard,
    OperatorSession,
    OriginKind,
    PendingCardV1,
    PendingCardV2,
    StepV1,
    fold,
)
from kexpr.authority.finalise import EXPIRED, Asked, Claim, Found, decide, winner_of
from kexpr.authority.locks import OrderedLocks
from kexpr.authority.records import deadline_of, to_record
from kexpr.authority.recovery import Absent, Durable, InFlight, Recovered
from kexpr.authority.steps import LedgerOpener, append, ask, holds, new_attempt_id, require_attempting
from kexpr.authority.transitions import ADAPTIVE, AdaptiveEvent, AdaptiveState
from kexpr.clock import lease_from
from kexpr.codes import Mode, Outcome, Reason, Surface, outcome_of
from kexpr.errors import ClaimRefused, IllegalTransition
from kexpr.ledger.protocol import Row, Transaction

__all__ = [
    "AdaptiveArtifact",
    "AdaptiveAuthority",
    "CardPresentationOrigin",
    "OperatorSession",
    "OriginKind",
]


class AdaptiveAuthority:
    """The publication ledger under the host's session lock. Thread-safe, and safe between processes.

    Every method raises `AuthorityFailed` when a lock, the ledger or the host's session cannot be used; then nothing is
    edited. `AuthorityFailed(LOCK_ORDER)`: called from inside one of the locks.
    """

    def __init__(
        self,
        open_ledger: LedgerOpener,
        session_lock: Callable[[], AbstractContextManager[object]],
        session: OperatorSession,
    ) -> None:
        self._session = session
        self._cards: dict[str, HeldCard] = {}
        self._ledger = open_ledger(projection=self._fold)
        self.locks = OrderedLocks(session_lock, self._ledger)

    def artifact(
        self, origin: CardPresentationOrigin, *, canonical_payload: str, surface: Surface, binding_digest: str
    ) -> "AdaptiveArtifact":
        """What the coordinator drives for one card."""
        return AdaptiveArtifact(self, origin, canonical_payload, surface, binding_digest)

    def presentation_identity(self, origin: CardPresentationOrigin, *, binding_digest: str) -> tuple[str, ...]:
        """Validate a fresh card and give its internal identity fields (for aliases and keys, never for people).

        Raises `ClaimRefused` unless the card has no row, its session is just consumed and its binding is current.
        """
        with self.locks.both():
            if origin.card_digest in self._cards or not ask(self._pins_hold, origin, binding_digest):
                raise ClaimRefused
            return ("adaptive", origin.card_digest, binding_digest)

    def mark_publish_pending(self, origin: CardPresentationOrigin, *, payload: str) -> Durable:
        """`consumed -> publish_pending` with the canonical payload and no presentation: the direct canonical edge."""
        card_digest = origin.card_digest
        with self.locks.both() as transaction:
            state = ADAPTIVE.step(self._state(card_digest), AdaptiveEvent.MARK_PUBLISH_PENDING)
            pending = PendingCardV1(1, card_digest, state.value, payload)
            append(transaction, "adaptive.mark_publish_pending", to_record(pending))
            return Durable(None, payload, state)

    def claim_card_presentation(
        self,
        origin: CardPresentationOrigin,
        *,
        canonical_payload: str,
        surface: Surface,
        binding_digest: str,
        mode: Mode,
    ) -> Ticket:
        """`consumed -> presentation_claimed`. Both locks are released before this returns, for the call.

        Raises `ClaimRefused` when there is a row on the card, its session is not just consumed or its binding is not
        current: no attempt, and the direct canonical edge stays open.
        """
        require_attempting(mode)
        card_digest = origin.card_digest
        with self.locks.both() as transaction:
            if card_digest in self._cards or not ask(self._pins_hold, origin, binding_digest):
                raise ClaimRefused
            state = ADAPTIVE.step(AdaptiveState.CONSUMED, AdaptiveEvent.CLAIM)
            lease = lease_from(transaction.now)
            claimed = ClaimedCardV2(
                2,
                card_digest,
                state.value,
                surface.wire,
                canonical_payload,
                new_attempt_id(),
                deadline_of(lease),
                origin.kind.value,
                binding_digest,
            )
            append(transaction, "adaptive.claim", to_record(claimed), lease=lease, mode=mode)
            return Ticket(claimed.claim_id, mode, lease)

    def finalize_card_presentation(
        self,
        origin: CardPresentationOrigin,
        claim_id: str,
        *,
        candidate_or_none: Candidate | None,
        canonical_reason: Reason | None,
        cancellation: Cancellation | None = None,
    ) -> Durable:
        """`presentation_claimed -> publish_pending`; the durable payload is what the caller edits, and no other.

        A candidate wins as the claim's mode says. Without one, `canonical_reason` decides (None: `internal`).
        """

        def ruling_in(mode: Mode | None) -> Ruling:
            if candidate_or_none is not None:
                return Ruling(winner_of(mode), candidate=candidate_or_none)
            reason = canonical_reason or Reason.INTERNAL
            return Ruling(outcome_of(reason), reason)

        with self.locks.both() as transaction:
            held = self._cards.get(origin.card_digest)
            ruling = ruling_in(held.claim.mode if held and held.claim else None)
            self._finalize(transaction, origin, claim_id, ruling, cancellation or Cancellation())
            return self._durable(origin.card_digest)

    def rule_card_presentation(
        self, origin: CardPresentationOrigin, ticket: Ticket, ruling: Ruling, cancellation: Cancellation
    ) -> Finalized:
        """The same step as the coordinator asks for it; see `ArtifactAuthority.finalize`."""
        with self.locks.both() as transaction:
            return self._finalize(transaction, origin, ticket.attempt_id, ruling, cancellation)

    def expire_card_presentation(self, origin: CardPresentationOrigin, claim_id: str) -> Recovered:
        """`recover`, for the holder of a claim. Raises `IllegalTransition` when the card's claim is another."""
        with self.locks.both() as transaction:
            held = self._cards.get(origin.card_digest)
            if held is None or held.claim is None or held.claim.attempt_id != claim_id:
                raise IllegalTransition(ADAPTIVE.name, self._state(origin.card_digest), AdaptiveEvent.EXPIRE)
            self._expire(transaction, origin.card_digest)
            return self._look(transaction, origin.card_digest)

    def recover(self, origin: CardPresentationOrigin) -> Recovered:
        """Make an expired claim `publish_pending` with its canonical payload; say what is there then."""
        with self.locks.both() as transaction:
            self._expire(transaction, origin.card_digest)
            return self._look(transaction, origin.card_digest)

    def state(self, origin: CardPresentationOrigin) -> Recovered:
        """What is there; appends nothing, so that an expired claim still is `InFlight(0)`."""
        with self.locks.both() as transaction:
            return self._look(transaction, origin.card_digest)

    def is_fresh(self, origin: CardPresentationOrigin) -> bool:
        """No row on the card."""
        return isinstance(self.state(origin), Absent)

    def mark_publish_claimed(self, origin: CardPresentationOrigin) -> None:
        """`publish_pending -> publish_claimed`, once ever: whoever returns from this, and no one else, edits."""
        self._step(origin, AdaptiveState.PUBLISH_CLAIMED)

    def mark_published(self, origin: CardPresentationOrigin) -> None:
        """`publish_claimed -> published`, after the edit."""
        self._step(origin, AdaptiveState.PUBLISHED)

    def outstanding(self) -> tuple[str, ...]:
        """Opaque claim ids without an outcome."""
        with self.locks.both():
            return tuple(claim.attempt_id for claim in self._claims().values())

    def outcomes(self) -> Counter[Outcome]:
        """How many presentations ended with each outcome, ever."""
        with self.locks.both():
            return Counter(held.outcome for held in self._cards.values() if held.outcome)

    def expire_outstanding(self) -> int:
        """End every expired claim; how many were ended."""
        with self.locks.both() as transaction:
            return sum(self._expire(transaction, card_digest) for card_digest in self._claims())

    def close(self) -> None:
        self._ledger.close()

    def _claims(self) -> dict[str, Claim]:
        claimed = AdaptiveState.PRESENTATION_CLAIMED
        return {digest: held.claim for digest, held in self._cards.items() if held.state is claimed and held.claim}

    def _state(self, card_digest: str) -> AdaptiveState:
        held = self._cards.get(card_digest)
        return held.state if held else AdaptiveState.CONSUMED

    def _pins_hold(self, origin: CardPresentationOrigin, binding_digest: str) -> bool:
        """Asks the host: to be called through `ask` or `holds`."""
        session = self._session
        return session.is_just_consumed(origin) and session.current_binding_digest(origin) == binding_digest

    def _finalize(
        self,
        transaction: Transaction,
        origin: CardPresentationOrigin,
        claim_id: str,
        ruling: Ruling,
        cancellation: Cancellation,
    ) -> Finalized:
        held = self._cards.get(origin.card_digest)
        if held and held.outcome:
            self._require_no_conflict(held, ruling.candidate)
        found = Found(
            ADAPTIVE.name,
            self._state(origin.card_digest),
            held.claim if held else None,
            _final_of(held),
            transaction.now,
        )
        pins_hold = holds(lambda: held is not None and self._still_bound(origin, held))
        decision = decide(found, Asked(claim_id, ruling, cancellation.is_set(), pins_hold))
        if held and decision.is_new:
            self._end(transaction, held, decision.finalized.outcome, decision.finalized.body)
        return decision.finalized

    def _still_bound(self, origin: CardPresentationOrigin, held: HeldCard) -> bool:
        claimed = held.claimed
        return claimed is not None and (
            origin.kind == claimed.origin_kind and self._pins_hold(origin, claimed.binding_digest)
        )

    def _require_no_conflict(self, held: HeldCard, candidate: Candidate | None) -> None:
        """Two equal candidates are one commit; another text after a selected one is a conflict."""
        if candidate is None or held.outcome is not Outcome.SELECTED or held.payload is None:
            return
        if _body_or_none(candidate) != held.payload:
            raise IllegalTransition(ADAPTIVE.name, held.state, AdaptiveEvent.FINALIZE)

    def _durable(self, card_digest: str) -> Durable:
        held = self._cards[card_digest]
        return Durable(held.outcome, _publishable(held), held.state)

    def _look(self, transaction: Transaction, card_digest: str) -> Recovered:
        held = self._cards.get(card_digest)
        if held is None:
            return Absent()
        if held.state is AdaptiveState.PRESENTATION_CLAIMED and held.claim:
            return InFlight(held.claim.remaining_ms(transaction.now))
        return self._durable(card_digest)

    def _expire(self, transaction: Transaction, card_digest: str) -> bool:
        held = self._cards.get(card_digest)
        if held is None or held.state is not AdaptiveState.PRESENTATION_CLAIMED or held.claim is None:
            return False
        if held.claim.remaining_ms(transaction.now):
            return False
        self._end(transaction, held, EXPIRED.outcome, None)
        return True

    def _end(self, transaction: Transaction, held: HeldCard, outcome: Outcome, selected: str | None) -> None:
        claimed = held.claimed
        assert claimed is not None
        event = AdaptiveEvent.ending(outcome)
        state = ADAPTIVE.step(held.state, event)
        pending = PendingCardV2(
            2,
            claimed.card_digest,
            state.value,
            claimed.surface,
            claimed.canonical_payload if selected is None else selected,
            claimed.claim_id,
            claimed.origin_kind,
            claimed.binding_digest,
            outcome.value,
        )
        append(transaction, f"adaptive.{event}", to_record(pending))

    def _step(self, origin: CardPresentationOrigin, target: AdaptiveState) -> None:
        card_digest = origin.card_digest
        event = STEP_EVENT[target]
        with self.locks.both() as transaction:
            state = ADAPTIVE.step(self._state(card_digest), event)
            append(transaction, f"adaptive.{event}", to_record(StepV1(1, card_digest, state.value)))

    def _fold(self, row: Row) -> None:
        card_digest = str(row.record["card_digest"])
        self._cards[card_digest] = fold(self._cards.get(card_digest), row)


@dataclass(frozen=True, slots=True)
class AdaptiveArtifact:
    """One card, bound; an `ArtifactAuthority`."""

    authority: AdaptiveAuthority
    origin: CardPresentationOrigin
    canonical_payload: str = field(repr=False)
    surface: Surface
    binding_digest: str = field(repr=False)

    def is_fresh(self) -> bool:
        return self.authority.is_fresh(self.origin)

    def claim(self, mode: Mode) -> Ticket:
        return self.authority.claim_card_presentation(
            self.origin,
            canonical_payload=self.canonical_payload,
            surface=self.surface,
            binding_digest=self.binding_digest,
            mode=mode,
        )

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        return self.authority.rule_card_presentation(self.origin, ticket, ruling, cancellation)


def _publishable(held: HeldCard) -> str | None:
    return held.payload if held.state is AdaptiveState.PUBLISH_PENDING else None


def _final_of(held: HeldCard | None) -> Finalized | None:
    """What a final row says; its body only while publishing it is the next step."""
    if held is None or held.outcome is None:
        return None
    return Finalized(held.outcome, body=_publishable(held) if held.outcome is Outcome.SELECTED else None)


def _body_or_none(candidate: Candidate) -> str | None:
    try:
        return candidate.body()
    except Exception:  # noqa: BLE001 - `Rejected`, or a fault whose text may carry content: it is not the durable text
        return None

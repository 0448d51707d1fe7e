"""Adaptive rows and the records of an operator card. Version 1 is the host's own row, 2 has a presentation."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from kexpr.authority.finalise import Claim, may_end
from kexpr.authority.records import digest_of, final_outcome, from_record, require
from kexpr.authority.transitions import ADAPTIVE, AdaptiveEvent, AdaptiveState
from kexpr.codes import Outcome, Surface
from kexpr.ledger.protocol import Row

__all__ = [
    "STEP_EVENT",
    "SURFACES",
    "CardPresentationOrigin",
    "ClaimedCardV2",
    "HeldCard",
    "OperatorSession",
    "OriginKind",
    "PendingCardV1",
    "PendingCardV2",
    "StepV1",
    "fold",
]

_CARD_DOMAIN: Final = "kexpr.adaptive.card.v1"

SURFACES: Final = {surface.wire: surface for surface in (Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE)}
"""The surfaces of operator cards, by wire name."""


class OriginKind(StrEnum):
    """The two producers of fresh cards."""

    CALLBACK = "callback"
    TYPED_NOTE = "typed_note"


@dataclass(frozen=True, slots=True)
class CardPresentationOrigin:
    """Where a fresh card came from. Internal: never serialised or logged; only its kind is stored."""

    kind: OriginKind
    source_session_id: str = field(repr=False)
    callback_data: str = field(repr=False)
    origin_message_id: str = field(repr=False)

    @property
    def card_digest(self) -> str:
        """The opaque identity of the card: a session is consumed once, and one card comes of it."""
        return digest_of(_CARD_DOMAIN, self.source_session_id)

    def __reduce__(self) -> "str | tuple[object, ...]":
        raise TypeError("an origin is never serialised")


class OperatorSession(Protocol):
    """The host's session store. Asked inside both locks; it must not take either."""

    def is_just_consumed(self, origin: CardPresentationOrigin) -> bool:
        """Whether this origin just consumed its session, and nothing has happened on it since."""
        ...

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        """Digest of everything a card is bound to now: origin, card schema, proposal, revision and all pins."""
        ...


@dataclass(frozen=True, slots=True)
class PendingCardV1:
    """`publish_pending` without a presentation: immutable canonical."""

    schema_version: int
    card_digest: str
    state: str
    payload: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClaimedCardV2:
    schema_version: int
    card_digest: str
    state: str
    surface: str
    canonical_payload: str = field(repr=False)
    claim_id: str = field(repr=False)
    deadline: str
    origin_kind: str
    binding_digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PendingCardV2:
    """The one final payload with its outcome."""

    schema_version: int
    card_digest: str
    state: str
    surface: str
    payload: str = field(repr=False)
    claim_id: str = field(repr=False)
    origin_kind: str
    binding_digest: str = field(repr=False)
    outcome: str


@dataclass(frozen=True, slots=True)
class StepV1:
    """A publication step after `publish_pending`."""

    schema_version: int
    card_digest: str
    state: str


STEP_EVENT: Final = {
    AdaptiveState.PUBLISH_CLAIMED: AdaptiveEvent.MARK_PUBLISH_CLAIMED,
    AdaptiveState.PUBLISHED: AdaptiveEvent.MARK_PUBLISHED,
}


@dataclass(frozen=True, slots=True)
class HeldCard:
    """What the rows of one card add up to. What holds text is dropped once it is published."""

    state: AdaptiveState
    claimed: ClaimedCardV2 | None
    claim: Claim | None
    payload: str | None = field(repr=False)
    outcome: Outcome | None


def fold(held: HeldCard | None, row: Row) -> HeldCard:
    """The card after one verified row; raises `IllegalHistory` or `IllegalTransition` for one that we do not write."""
    version, state = row.record.get("schema_version"), row.record.get("state")
    before = held.state if held else AdaptiveState.CONSUMED
    if state in STEP_EVENT:
        return _stepped(held, before, from_record(StepV1, row.record))
    if version == 1:
        pending = from_record(PendingCardV1, row.record)
        require(pending.state == ADAPTIVE.step(before, AdaptiveEvent.MARK_PUBLISH_PENDING))
        return HeldCard(AdaptiveState.PUBLISH_PENDING, None, None, pending.payload, None)
    if held is None:
        return _claimed(from_record(ClaimedCardV2, row.record), row)
    return _pending(held, from_record(PendingCardV2, row.record))


def _claimed(claimed: ClaimedCardV2, row: Row) -> HeldCard:
    require(claimed.schema_version == 2 and claimed.surface in SURFACES and claimed.origin_kind in tuple(OriginKind))
    require(claimed.state == ADAPTIVE.step(AdaptiveState.CONSUMED, AdaptiveEvent.CLAIM))
    claim = Claim(claimed.claim_id, row.mode, row.lease, SURFACES[claimed.surface], claimed.canonical_payload)
    return HeldCard(AdaptiveState.PRESENTATION_CLAIMED, claimed, claim, None, None)


def _pending(held: HeldCard, pending: PendingCardV2) -> HeldCard:
    outcome = final_outcome(pending.outcome)
    require(pending.schema_version == 2 and pending.state == ADAPTIVE.step(held.state, AdaptiveEvent.ending(outcome)))
    claimed, claim = held.claimed, held.claim
    assert claimed is not None
    assert claim is not None
    require(
        (pending.surface, pending.claim_id, pending.origin_kind, pending.binding_digest)
        == (claimed.surface, claimed.claim_id, claimed.origin_kind, claimed.binding_digest)
    )
    require(may_end(claim, outcome))
    require((pending.payload == claimed.canonical_payload) is not (outcome is Outcome.SELECTED))
    return HeldCard(AdaptiveState.PUBLISH_PENDING, claimed, claim, pending.payload, outcome)


def _stepped(held: HeldCard | None, before: AdaptiveState, step: StepV1) -> HeldCard:
    after = ADAPTIVE.step(before, STEP_EVENT[AdaptiveState(step.state)])
    require(step.schema_version == 1 and held is not None)
    assert held is not None
    if after is AdaptiveState.PUBLISHED:
        return HeldCard(after, None, None, None, held.outcome)
    return HeldCard(after, held.claimed, held.claim, held.payload, held.outcome)

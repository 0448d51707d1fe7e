"""How an attempt ends: one pure decision for all three authorities, made under the authority's lock.

The order is that of `ArtifactAuthority.finalize`. Only a live claim of the one who asks can end by what the worker
rules; what it rules is then checked against the durable claim, not against the ticket.
"""

from dataclasses import dataclass, field
from typing import Final

from kexpr.attempt import Candidate, Finalized, Ruling
from kexpr.clock import Instant, Lease
from kexpr.codes import FINAL_OUTCOMES, Mode, Outcome, Reason, Surface
from kexpr.errors import IllegalTransition

__all__ = ["EXPIRED", "Asked", "Claim", "Decision", "Found", "decide", "may_end", "winner_of"]

EXPIRED: Final = Finalized(Outcome.CANONICAL_CLAIM_EXPIRED, Reason.CLAIM_EXPIRED)
_CANCELLED: Final = Finalized(Outcome.CANONICAL_TIMEOUT, Reason.CANCELLED)
_PIN_CHANGED: Final = Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_PIN_CHANGED)
_CANDIDATE_INVALID: Final = Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_CANDIDATE_INVALID)

_WINNER_OF: Final = {Mode.ENABLED: Outcome.SELECTED, Mode.SHADOW: Outcome.SHADOW_SELECTED}
_WINNERS: Final = frozenset(_WINNER_OF.values())


@dataclass(frozen=True, slots=True)
class Claim:
    """A durable claim, as its row and the ledger's envelope say.

    A missing lease means expired, a missing mode means shadow. `canonical_body` is None where the row stores none.
    `finals` are the outcomes that the contract of the claim ends with.
    """

    attempt_id: str = field(repr=False)
    mode: Mode | None
    lease: Lease | None
    surface: Surface
    canonical_body: str | None = field(default=None, repr=False)
    finals: frozenset[Outcome] = FINAL_OUTCOMES

    def remaining_ms(self, now: Instant) -> int:
        return self.lease.remaining_ms(now) if self.lease else 0


@dataclass(frozen=True, slots=True)
class Found:
    """What is durable, read under the lock. `final` is what the final row says, where there is one."""

    authority: str
    state: str
    claim: Claim | None
    final: Finalized | None
    now: Instant


@dataclass(frozen=True, slots=True)
class Asked:
    """What a worker asks for, and whether it still may have it."""

    attempt_id: str = field(repr=False)
    ruling: Ruling
    cancelled: bool
    pins_hold: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """`is_new`: append `finalized` as one row. Otherwise it is durable already."""

    finalized: Finalized
    is_new: bool


def winner_of(mode: Mode | None) -> Outcome:
    """The outcome by which a candidate wins a claim made in `mode`."""
    return _WINNER_OF.get(mode or Mode.SHADOW, Outcome.SHADOW_SELECTED)


def may_end(claim: Claim, outcome: Outcome) -> bool:
    """Whether a claim made in its mode can have `outcome` at all: `selected` is never the end of a shadow claim."""
    return outcome in claim.finals and (outcome not in _WINNERS or outcome is winner_of(claim.mode))


def decide(found: Found, asked: Asked) -> Decision:
    """The one final outcome of an attempt; raises `IllegalTransition`. Pure.

    A final row that is already there is returned as it is, so that a late worker changes nothing.
    """
    if found.final is not None:
        return Decision(found.final, is_new=False)
    claim = found.claim
    if claim is None or claim.attempt_id != asked.attempt_id:
        raise IllegalTransition(found.authority, found.state, "finalize")
    if claim.remaining_ms(found.now) == 0:
        return Decision(EXPIRED, is_new=True)
    if asked.cancelled:
        return Decision(_CANCELLED, is_new=True)
    if not may_end(claim, asked.ruling.outcome):
        raise IllegalTransition(found.authority, found.state, asked.ruling.outcome)
    return Decision(_ruled(claim, asked), is_new=True)


def _ruled(claim: Claim, asked: Asked) -> Finalized:
    ruling = asked.ruling
    if ruling.outcome not in _WINNERS:
        return Finalized(ruling.outcome, ruling.reason)
    if not asked.pins_hold:
        return _PIN_CHANGED
    body = _judged(claim, ruling.candidate)
    if body is None:
        return _CANDIDATE_INVALID
    return Finalized(ruling.outcome, ruling.reason, body if ruling.outcome is Outcome.SELECTED else None)


def _judged(claim: Claim, candidate: Candidate | None) -> str | None:
    """The candidate's body, judged again, if it is one for this claim; None is a refusal."""
    if candidate is None or candidate.manifest.surface is not claim.surface:
        return None
    canonical = candidate.manifest.canonical_body
    if claim.canonical_body not in (None, canonical):
        return None
    try:
        body = candidate.body()
    except Exception:  # noqa: BLE001 - `Rejected`, or a fault of ours whose text may carry content: both refuse
        return None
    return body if type(body) is str and body != canonical else None

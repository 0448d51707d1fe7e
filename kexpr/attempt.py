"""The records that cross between coordinator, authorities and paths, and the one port between them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kexpr.clock import Lease
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.manifest import Manifest, SlotText

__all__ = ["ArtifactAuthority", "Cancellation", "Candidate", "Finalized", "Ruling", "Ticket"]


class Cancellation:
    """Set by a cancelled caller; read by `finalize` under the authority's lock. It never unsets."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()


@dataclass(frozen=True, slots=True)
class Ticket:
    """A durable claim: the right to one request. The mode it carries is the mode it was claimed in."""

    attempt_id: str = field(repr=False)
    mode: Mode
    lease: Lease


@dataclass(frozen=True, slots=True)
class Candidate:
    """Judged prose. `judge` is its contract's whole judgement: it returns the body or raises `Rejected`."""

    manifest: Manifest = field(repr=False)
    texts: tuple[SlotText, ...] = field(repr=False)
    judge: Callable[[Manifest, tuple[SlotText, ...]], str] = field(repr=False)

    def body(self) -> str:
        """The composed body, judged again; raises `Rejected`."""
        return self.judge(self.manifest, self.texts)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the worker asks for. `candidate` is present exactly with `SELECTED` and `SHADOW_SELECTED`; `requests` (0 or
    1) were sent for it, which authorities ignore and evidence counts."""

    outcome: Outcome
    reason: Reason | None = None
    candidate: Candidate | None = None
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Finalized:
    """What is durable. `body` is the selected body (only with `SELECTED`) or None: then the canonical text stands."""

    outcome: Outcome
    reason: Reason | None = None
    body: str | None = field(default=None, repr=False)


class ArtifactAuthority(Protocol):
    """One artifact in the authority that owns it. Bound by a path, driven by the coordinator.

    All methods raise `AuthorityFailed` when the authority cannot be used.
    """

    @property
    def surface(self) -> Surface: ...

    def is_fresh(self) -> bool:
        """No presentation state of any contract or schema version on the artifact yet."""
        ...

    def claim(self, mode: Mode) -> Ticket:
        """Make the claim durable (fsync) before returning; raises `ClaimRefused` when not fresh."""
        ...

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        """Make one final outcome durable, under the authority's lock.

        In this order: a final row that is already there is returned as it is; an expired claim becomes
        `canonical_claim_expired`; a set cancellation becomes `canonical_timeout` with reason `cancelled`; `selected` on
        a claim made in shadow raises `IllegalTransition`; a candidate is judged again and may still be refused.
        """
        ...

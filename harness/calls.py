"""One call of a shadow run: its intent is durable before its claim, its outcome after its path has ended."""

from collections.abc import Callable
from typing import Protocol

from harness.evidence.ledger import EvidenceLedger
from harness.evidence.rows import Slot
from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling, Ticket
from kexpr.codes import NOT_ATTEMPTED, Mode, Outcome, Surface
from kexpr.failpoints import reach
from kexpr.paths.publication import Publication

__all__ = ["CallNotMade", "Intents", "World", "make_call"]


class CallNotMade(Exception):
    """Admission refused a call. No slot was spent; `code` says why."""

    def __init__(self, code: Outcome | None) -> None:
        self.code = code.value if code else "not_applicable"
        super().__init__(self.code)


class World(Protocol):
    """The real paths of the profiles, on a state directory that goes away with it."""

    def prepare(self, slot: Slot, identity: str) -> Publication:
        """Run one path up to its durable text; other bytes than the canonical ones are `commit.bytes_changed`."""
        ...


class Intents:
    """Writes the intent of the current slot between admission and claim; `Coordinator(observe=…)` takes it."""

    def __init__(self, evidence: EvidenceLedger) -> None:
        self._evidence = evidence
        self.slot: Slot | None = None
        self.written = False

    def observe(self, authority: ArtifactAuthority) -> ArtifactAuthority:
        return _Observed(authority, self._write)

    def expect(self, slot: Slot) -> None:
        self.slot = slot
        self.written = False

    def _write(self) -> None:
        assert self.slot is not None
        self._evidence.intent(self.slot)
        self.written = True


class _Observed:
    """An artifact's authority with one more durable step before its claim."""

    def __init__(self, authority: ArtifactAuthority, before_claim: Callable[[], None]) -> None:
        self._authority = authority
        self._before_claim = before_claim

    @property
    def surface(self) -> Surface:
        return self._authority.surface

    def is_fresh(self) -> bool:
        return self._authority.is_fresh()

    def claim(self, mode: Mode) -> Ticket:
        self._before_claim()
        return self._authority.claim(mode)

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        return self._authority.finalize(ticket, ruling, cancellation)


def make_call(evidence: EvidenceLedger, intents: Intents, world: World, slot: Slot, identity: str) -> Outcome:
    """One call through its real path: intent, claim, request, outcome.

    Raises `CallNotMade`, and what the evidence raises.
    """
    intents.expect(slot)
    publication = world.prepare(slot, identity)
    outcome = publication.outcome
    if outcome is None or outcome in NOT_ATTEMPTED or not intents.written:
        raise CallNotMade(outcome)
    evidence.outcome(
        slot, outcome, publication.reason, duration_ms=publication.duration_ms, requests=publication.requests
    )
    reach("harness.outcome_written")
    return outcome

"""One proof over its evidence: adopt a candidate, call each slot once, stop at the first failure.

A crash between two calls resumes here, inside the window; a crash during a call left an intent without outcome, which
ends the candidate before anything else is sent.
"""

from collections.abc import Callable
from typing import Final, Protocol

from harness.candidate import Candidate, Pin
from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import EndReason, RunKind, Slot
from harness.evidence.state import EvidenceView
from harness.policy import POLICY
from harness.profiles import PAIRS
from harness.proof.plan import proof_slots
from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling, Ticket
from kexpr.clock import Clock
from kexpr.codes import NOT_ATTEMPTED, Mode, Outcome, ProviderKind, Surface
from kexpr.failpoints import reach
from kexpr.paths.publication import Publication

__all__ = ["CallNotMade", "Intents", "World", "run_proof"]

_HOUR_MS: Final = 3_600_000


class CallNotMade(Exception):
    """Admission refused a call. No slot was spent; `code` says why."""

    def __init__(self, code: Outcome | None) -> None:
        self.code = code.value if code else "not_applicable"
        super().__init__(self.code)


class World(Protocol):
    """The four real paths of a proof, on a state directory that goes away with it."""

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


def run_proof(
    evidence: EvidenceLedger,
    pin: Pin,
    *,
    provider: ProviderKind,
    clock: Clock,
    open_world: Callable[[Intents], World],
    progress: Callable[[int, Outcome], None],
) -> None:
    """Bring the candidate of `pin` to its end or to 48 outcomes. Raises `CallNotMade`, and what the evidence raises."""
    candidate = _adopt(evidence, pin, clock)
    remaining = _remaining(evidence.view())
    if not remaining:
        return
    spec = RunSpec(RunKind.PROOF, provider, Mode.SHADOW, PAIRS)
    resumes = len(remaining) < POLICY.proof_total
    run = evidence.resume_run(spec) if resumes else evidence.begin_run(spec)
    try:
        intents = Intents(evidence)
        world = open_world(intents)
        for slot in remaining:
            outcome = _call(evidence, intents, world, slot, f"{candidate.id}/{run}/{slot.pair}/{slot.ordinal}")
            progress(POLICY.proof_total - len(remaining) + remaining.index(slot) + 1, outcome)
            if outcome is not Outcome.SHADOW_SELECTED:
                evidence.end_candidate(EndReason.CALL_FAILED)
                return
    finally:
        evidence.finish_run()


def _call(evidence: EvidenceLedger, intents: Intents, world: World, slot: Slot, identity: str) -> Outcome:
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


def _adopt(evidence: EvidenceLedger, pin: Pin, clock: Clock) -> Candidate:
    """The open candidate of the pin, unless an orphan or the end of its window has ended it."""
    view = evidence.view()
    current = view.candidate
    if current is not None and current.ended is None and view.slots:
        age_ms = clock.now().utc_ms - min(slot.intended_utc_ms for slot in view.slots)
        complete = all(slot.outcome is not None for slot in view.slots)
        if not complete:
            evidence.end_candidate(EndReason.CALL_ORPHANED)
        elif _remaining(view) and age_ms > POLICY.proof_window_hours * _HOUR_MS:
            evidence.end_candidate(EndReason.WINDOW_ELAPSED)
    return evidence.ensure_candidate(pin)


def _remaining(view: EvidenceView) -> tuple[Slot, ...]:
    done = {slot.call for slot in view.slots}
    return tuple(slot for slot in proof_slots() if slot not in done)

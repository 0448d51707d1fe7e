"""One proof over its evidence: adopt a candidate, call each slot once, stop at the first failure.

A crash between two calls resumes here, inside the window; a crash during a call left an intent without outcome, which
ends the candidate before anything else is sent.
"""

from collections.abc import Callable, Mapping
from typing import Final

from harness.calls import Intents, World, make_call
from harness.candidate import Candidate, Pin
from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import Check, EndReason, RunKind, Slot
from harness.evidence.state import EvidenceView
from harness.policy import POLICY
from harness.profiles import PAIRS
from harness.proof.plan import proof_slots
from kexpr.clock import Clock
from kexpr.codes import Mode, Outcome, ProviderKind

__all__ = ["run_proof"]

_HOUR_MS: Final = 3_600_000


def run_proof(
    evidence: EvidenceLedger,
    pin: Pin,
    *,
    provider: ProviderKind,
    clock: Clock,
    checks: Mapping[Check, bool],
    open_world: Callable[[Intents], World],
    progress: Callable[[int, Outcome], None],
) -> None:
    """Bring the candidate of `pin` to its end or to 48 outcomes. Raises `CallNotMade`, and what the evidence raises."""
    candidate = _adopt(evidence, pin, clock)
    view = evidence.view()
    remaining = _remaining(view)
    if not remaining:
        return
    spec = RunSpec(RunKind.PROOF, provider, Mode.SHADOW, PAIRS)
    resumes = view.run is not None and view.run.row.run_kind is RunKind.PROOF
    run = evidence.resume_run(spec) if resumes else evidence.begin_run(spec)
    try:
        evidence.record_checks(checks)
        intents = Intents(evidence)
        world = open_world(intents)
        for slot in remaining:
            outcome = make_call(evidence, intents, world, slot, f"{candidate.id}/{run}/{slot.pair}/{slot.ordinal}")
            progress(POLICY.proof_total - len(remaining) + remaining.index(slot) + 1, outcome)
            if outcome is not Outcome.SHADOW_SELECTED:
                evidence.end_candidate(EndReason.CALL_FAILED)
                return
    finally:
        evidence.finish_run()


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

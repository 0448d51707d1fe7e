"""The 48 slots of a proof, in order: a table of the policy's counts, nothing to decide at run time."""

from harness.evidence.rows import RunKind, Slot
from harness.policy import POLICY, GatePolicy
from harness.profiles import PAIRS, PATHS
from kexpr.codes import Surface

__all__ = ["proof_slots"]


def proof_slots(policy: GatePolicy = POLICY) -> tuple[Slot, ...]:
    """Distinct manifests a surface over all its profiles; card producers take turns, so that each has half."""
    next_ordinal = dict.fromkeys(Surface, 0)
    slots: list[Slot] = []
    for pair in PAIRS:
        paths = PATHS[pair.surface]
        for _ in range(policy.calls_of(pair)):
            ordinal = next_ordinal[pair.surface]
            next_ordinal[pair.surface] += 1
            slots.append(Slot(RunKind.PROOF, pair, paths[ordinal % len(paths)], ordinal))
    return tuple(slots)

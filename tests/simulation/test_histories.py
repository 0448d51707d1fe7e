"""Seeded histories over the simulated world: at least 100,000 steps, each of them checked."""

import pytest

from kexpr.testing.simulation.invariants import JOURNAL_KINDS, STATE_KINDS
from kexpr.testing.simulation.world import EVENTS, World
from tests.simulation.conftest import BLOCKS
from tests.simulation.histories import Coverage, run_history

HISTORIES = 25
"""A block."""

LEAST_STEPS = 100_000


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    return Coverage()


def test_any_history_keeps_the_promises(block: int, seed: int | None, coverage: Coverage) -> None:
    seeds = [seed] if seed is not None else range(block * HISTORIES, (block + 1) * HISTORIES)
    for number in seeds:
        run_history(number, coverage)


def test_the_histories_went_everywhere(coverage: Coverage) -> None:
    """What no history went through, none has tested."""
    assert coverage.steps >= LEAST_STEPS
    assert coverage.checks >= BLOCKS * HISTORIES
    expected = [f"{kind} {what}" for kind in STATE_KINDS for what in _EXPECTED]
    expected += [f"{kind} {what}" for kind in JOURNAL_KINDS for what in _EXPECTED_OF_JOURNAL]
    missing = [what for what in [*expected, *EVENTS, *_STARTS, "lied to"] if not coverage.seen[what]]
    assert missing == []


_EXPECTED = (
    "requests",
    "selected",
    "canonical",
    "shadow_selected",
    "canonical_provider_error",
    "canonical_timeout",
    "canonical_invalid",
    "canonical_claim_expired",
)
_EXPECTED_OF_JOURNAL = (
    "requests",
    "selected",
    "canonical",
    "shadow_selected",
    "timeout",
    "invalid_response",
    "claim_expired_canonical",
)
_STARTS = ("start torn_tail", "start key_missing", "start input_output")


@pytest.mark.parametrize("number", [3, 11, 28])
def test_a_seed_is_a_history(number: int) -> None:
    """The same choices, steps, rows and texts, or no failure could be replayed."""
    first, second = (run_history(number) for _ in range(2))
    assert first.trace == second.trace
    assert first.steps == second.steps
    assert _ends_of(first) == _ends_of(second)
    assert first.machine == second.machine


def test_another_seed_is_another_history() -> None:
    assert run_history(1).trace != run_history(2).trace


def _ends_of(world: World) -> list[object]:
    return [
        (world.invariants.visible(subject.message), [fact.record for fact in world.invariants.facts(subject.message)])
        for subject in world.subjects
    ]

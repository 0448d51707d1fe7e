"""Two gateways that start at once on an empty disk: one is stopped wherever it is when the other has made a name."""

from kexpr.testing.simulation.gateway import STATE, Settings
from kexpr.testing.simulation.invariants import Kind
from tests.simulation.crashes import alone

LONGEST_START = 200
"""Steps; a start takes fewer."""


def start_at_once() -> int:
    """For each step of one start: there the other makes the ledger's directory and stops; the first goes on and taps.

    Then the other goes on too. How many of the interleavings let the first one make its request meanwhile.
    """
    requests = 0
    for steps in range(LONGEST_START):
        world = alone(Kind.CALLBACK, slots=2)
        with world.running():
            first, second = (world.open(slot, Settings()) for slot in world.slots)
            world.resume(first, steps)
            while not (second.done or world.disk.find(str(STATE / "adaptive"))):
                world.resume(second if second in world.scheduler.runnable() else first, 0)
            world.finish(first)
            world.finish(world.tap_on(world.slots[0], world.subjects[0]))
            requests += 0 if second.done else world.invariants.requests(world.subjects[0].message)
            world.settle()
    return requests


def test_two_starts_at_once() -> None:
    assert start_at_once() > 50

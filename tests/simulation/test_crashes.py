"""Every crash of every path: before each step, with each state that the disk may be left in, then a fresh process."""

import pytest

from kexpr.codes import Mode
from kexpr.testing.simulation.invariants import Kind
from tests.simulation.crashes import (
    crashed,
    crashes,
    cut,
    kill_in_every_state,
    lose_power,
    recover,
    repaired,
    survivors,
)

MODES = (Mode.ENABLED, Mode.SHADOW, Mode.DISABLED)
LEAST_STATES = {Mode.ENABLED: 2_000, Mode.SHADOW: 2_000, Mode.DISABLED: 90}
"""Byte for byte, the rows of an attempt."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", Kind)
def test_every_state_of_the_disk_after_a_power_cut(kind: Kind, mode: Mode) -> None:
    """Equal states after the repair are one: a fresh process is tried on each that is another."""
    tried: set[object] = set()
    states = 0
    for crash in crashes(kind, mode):
        for keeps_names in (True, False):
            for content in survivors(crash.disk):
                states += 1
                disk = crash.disk.fork()
                cut(disk, content, keeps_names)
                left = (repaired(disk), crash.held)
                if left not in tried:
                    tried.add(left)
                    with crashed(kind, crash, mode) as world:
                        lose_power(world, content, keeps_names)
                        recover(world)
    assert states > LEAST_STATES[mode]
    assert len(tried) >= 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", Kind)
def test_a_kill_in_every_state(kind: Kind, mode: Mode) -> None:
    kill_in_every_state(kind, mode)

"""The conformance kit on our own stores, on a host's smallest ones, and on one broken store for each invariant."""

from pathlib import Path

import pytest

from kexpr.authority.adaptive import AdaptiveAuthority
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.weekly import WeeklyAuthority
from kexpr.state import State
from kexpr.testing.conformance import HostPorts, Kit, checks
from kexpr.testing.simulation.clock import MachineClock, ProcessClock
from tests.support.toy_stores import Defect, ToyKit

CHECKS = checks()


class FileKit:
    """Our three authorities on a state directory; each opening is another process's state."""

    def __init__(self, directory: Path) -> None:
        self.ports = HostPorts()
        self.clock = MachineClock()
        self._directory = directory
        self._opened: list[State] = []

    def pass_lease(self) -> None:
        self.clock.pass_ms(4_000)

    def daily(self) -> DailyAuthority:
        return self._state().daily(self.ports.finalized_event_exists)

    def weekly(self) -> WeeklyAuthority:
        return self._state().weekly(self.ports.ready_fence)

    def adaptive(self) -> AdaptiveAuthority:
        return self._state().adaptive(self.ports.session_lock, self.ports)

    def _state(self) -> State:
        self._opened.append(State(self._directory / "state", clock=ProcessClock(self.clock)))
        return self._opened[-1]

    def close(self) -> None:
        for state in self._opened:
            state.close()


@pytest.fixture
def file_kit(tmp_path: Path):
    kit = FileKit(tmp_path)
    yield kit
    kit.close()


@pytest.mark.parametrize("name", CHECKS)
def test_our_stores_on_files(name: str, file_kit: Kit) -> None:
    CHECKS[name](file_kit)


@pytest.mark.parametrize("name", CHECKS)
def test_the_smallest_stores(name: str) -> None:
    CHECKS[name](ToyKit())


@pytest.mark.parametrize("defect", list(Defect), ids=lambda defect: defect.name.lower())
def test_a_broken_store_is_noticed_by_the_check_of_its_invariant(defect: Defect) -> None:
    of_invariant = {name: check for name, check in CHECKS.items() if name.endswith(f": {defect.value}")}
    assert of_invariant
    for name, check in of_invariant.items():
        with pytest.raises(AssertionError):
            check(ToyKit(defect))
            pytest.fail(f"{name} noticed nothing")


def test_every_invariant_has_a_broken_store() -> None:
    rules = {name.partition(": ")[2] for name in CHECKS}
    assert rules == {defect.value for defect in Defect}


def test_surfaces_and_clocks_can_be_chosen() -> None:
    daily = checks("daily", own_clock=True)
    assert {name.partition(": ")[0] for name in daily} == {"daily"}
    assert not [name for name in daily if "boot" in name or "jumps" in name]
    assert len(checks("daily")) == len(daily) + 2

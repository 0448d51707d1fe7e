"""Hypothesis chooses what happens, over the same world, and shrinks what it finds."""

from contextlib import ExitStack

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kexpr.codes import Mode, WireVersion
from kexpr.testing.simulation.gateway import Settings
from kexpr.testing.simulation.world import World
from tests.simulation.scenery import SCENERY

EVENTS = (
    World.cancel,
    World.sweep,
    World.close_admission,
    World.pass_time,
    World.jump_clock,
    World.kill,
    World.cut_power,
    World.repair,
    World.break_disk,
    World.fail_host,
    World.change_provider,
    World.change_pins,
    World.use_session,
    World.fence,
    World.back_up,
    World.put_back,
    World.lose_key,
    World.find_key,
    World.fail_lock,
    World.lose_lease,
)


class Gateways(RuleBasedStateMachine):
    """Two slots, a few messages; each rule is one event or lets one task go on."""

    @initialize(seed=st.integers(0, 1 << 16))
    def begin(self, seed: int) -> None:
        self.world = World(seed, SCENERY)
        self.stack = ExitStack()
        self.stack.enter_context(self.world.running())

    @rule(slot=st.integers(0, 1), mode=st.sampled_from(Mode), wire=st.sampled_from(WireVersion), readable=st.booleans())
    def start(self, slot: int, mode: Mode, wire: WireVersion, readable: bool) -> None:
        place = self.world.slots[slot]
        if place.process is None:
            self.world.finish(self.world.open(place, Settings(mode, wire), readable))

    @rule()
    def tap(self) -> None:
        self.world.tap()

    @precondition(lambda self: self.world.scheduler.runnable())
    @rule(choice=st.integers(0, 9), budget=st.integers(0, 120))
    def go_on(self, choice: int, budget: int) -> None:
        ready = self.world.scheduler.runnable()
        self.world.resume(ready[choice % len(ready)], budget)

    @rule(event=st.sampled_from(EVENTS))
    def happen(self, event: "object") -> None:
        assert callable(event)
        event(self.world)

    @invariant()
    def everything_durable_is_right(self) -> None:
        if hasattr(self, "world"):
            self.world.check()
            assert self.world.violation is None

    def teardown(self) -> None:
        if hasattr(self, "world"):
            with self.stack:
                self.world.settle()


Gateways.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestGateways = Gateways.TestCase

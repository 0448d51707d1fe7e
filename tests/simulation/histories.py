"""One history by its seed, and the command that replays it when it fails."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from kexpr.testing.simulation.invariants import Kind
from kexpr.testing.simulation.world import World
from tests.simulation.scenery import SCENERY

STEPS = 1_000
"""About so many a history, before it settles."""

_SHOWN = 40


@dataclass
class Coverage:
    """What histories went through, so that a test can see that they went anywhere."""

    steps: int = 0
    checks: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, world: World) -> None:
        self.steps += world.steps
        self.checks += world.invariants.checks
        self.seen.update(f"start {fault}" for fault in world.start_faults)
        self.seen.update(world.happened)
        self.seen.update(["lied to"] * world.was_lied_to)
        for subject in world.subjects:
            message = subject.message
            visible = world.invariants.visible(message)
            kind = message.kind.value
            self.seen[f"{kind} requests"] += world.invariants.requests(message)
            self.seen[f"{kind} selected"] += any(text != message.canonical for text in visible)
            self.seen[f"{kind} canonical"] += message.canonical in visible
            self.seen.update(f"{kind} {fact.outcome}" for fact in world.invariants.facts(message) if fact.outcome)


class HistoryFailed(AssertionError):
    """Names the command that replays it."""

    def __init__(self, seed: int, why: BaseException, trace: list[str]) -> None:
        lines = "\n  ".join(trace[-_SHOWN:])
        replay = f".venv/bin/python -m pytest -q tests/simulation --seed {seed}"
        super().__init__(f"seed {seed}: {why!r}\n  {lines}\nreplay: {replay}")
        self.seed = seed


def run_history(
    seed: int,
    coverage: Coverage | None = None,
    *,
    kinds: Sequence[Kind] = (),
    favourites: Mapping[str, float] = MappingProxyType({}),
) -> World:
    """Raises `HistoryFailed`; the replay it names has no `kinds` and no `favourites`."""
    world = World(seed, SCENERY, kinds=kinds, favourites=favourites)
    failure: Exception | None = None
    try:
        world.run(STEPS)
    except Exception as error:
        failure = error
    if failure is not None:
        raise HistoryFailed(seed, failure, world.trace) from failure
    if coverage is not None:
        coverage.add(world)
    return world

"""A process killed at every named step of every path on PostgreSQL, and its restarts: within the lease and after it.

The cases and what must hold of them are those of `tests/integration/paths/test_crashes.py`.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kexpr.codes import Mode
from tests.integration.paths import test_crashes as crashes
from tests.integration.paths.conftest import Lane, Lanes, R, T
from tests.support.hosts import Kind

_STEPS = {f"postgres.{name}" for name in ("before_insert", "after_insert", "before_commit", "after_commit")}
_EVERY_POINT = [(Kind.DAILY, Mode.ENABLED), (Kind.WEEKLY, Mode.ENABLED), (Kind.CALLBACK, Mode.ENABLED)]
_SOME_POINTS = [(Kind.TYPED_NOTE, Mode.ENABLED), *((kind, Mode.SHADOW) for kind in Kind)]
_SOME = 5


class _Some(Lanes):
    """Runs a few of the cases, drawn by a seed; the files' tests run them all."""

    def __init__(self, lanes: Lanes, seed: str, at_most: int) -> None:
        super().__init__(lanes.lanes)
        self._draw = random.Random(seed)
        self._at_most = at_most

    def map(self, case: Callable[[Lane, T], list[R]], arguments: Sequence[T]) -> list[R]:
        chosen = self._draw.sample(arguments, min(self._at_most, len(arguments)))
        return super().map(case, chosen)


def _killed_at_steps(kind: Kind, mode: Mode, lanes: Lanes, root: Path) -> None:
    clean = crashes.clean_run(lanes, root, kind, mode)
    of_files = {name for name in crashes.COMMON_STEPS if name.startswith("ledger.")}
    assert set(clean.reached) >= {*crashes.STEPS[kind], *crashes.COMMON_STEPS, *_STEPS} - of_files

    def killed_at(lane: Lane, point: crashes.Point) -> list[str]:
        return crashes.case(root, kind, mode, lane, {"kill": point})

    assert lanes.map(killed_at, crashes.points(clean.reached)) == []


@pytest.mark.parametrize(("kind", "mode"), _EVERY_POINT)
def test_killed_at_every_step(kind: Kind, mode: Mode, lanes: Lanes, tmp_path: Path) -> None:
    _killed_at_steps(kind, mode, lanes, tmp_path)


@pytest.mark.parametrize(("kind", "mode"), _SOME_POINTS)
def test_killed_at_some_steps(kind: Kind, mode: Mode, lanes: Lanes, tmp_path: Path) -> None:
    _killed_at_steps(kind, mode, _Some(lanes, f"{kind} {mode}", _SOME), tmp_path)


@pytest.mark.parametrize("kind", [Kind.DAILY, Kind.WEEKLY, Kind.TYPED_NOTE])
def test_killed_again_in_the_recovery(kind: Kind, lanes: Lanes, tmp_path: Path) -> None:
    some = _Some(lanes, kind, 2 * _SOME)
    crashes.test_killed_again_at_every_step_of_the_recovery(kind, some, tmp_path)

"""Whole processes: wall time and peak memory, two commands in turn."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

__all__ = ["Run", "alternate", "measure"]


@dataclass(frozen=True, slots=True)
class Run:
    wall_s: float
    peak_mb: float


def measure(command: Sequence[str]) -> Run:
    """One run of a command that must succeed; what it prints is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [part.replace("{dir}", str(Path(folder) / "out")) for part in command]
        started = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} exited with {process.returncode}")
    return Run(wall_s, usage.ru_maxrss / 1024)


def alternate(first: Sequence[str], second: Sequence[str], rounds: int) -> tuple[Run, Run, float]:
    """(median of the first, median of the second, median of the wall ratios) over rounds after one warm-up."""
    pairs = [(measure(first), measure(second)) for _ in range(rounds + 1)][1:]
    ratio = median(one.wall_s / other.wall_s for one, other in pairs)
    return _middle([one for one, _ in pairs]), _middle([other for _, other in pairs]), ratio


def _middle(runs: list[Run]) -> Run:
    return Run(median(run.wall_s for run in runs), max(run.peak_mb for run in runs))

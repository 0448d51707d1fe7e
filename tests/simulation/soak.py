"""Histories without end: `python -m tests.simulation.soak --minutes N [--first SEED]`. Exit 1 on the first failure."""

import argparse
import secrets
import sys
import time

from kexpr.exits import Exit
from tests.simulation.histories import Coverage, HistoryFailed, run_history

_REPORT_SECONDS = 10.0


def soak(minutes: float, first: int, report_seconds: float = _REPORT_SECONDS) -> int:
    """Run seeds from `first` on for `minutes`, telling how far it is; the exit code."""
    coverage = Coverage()
    started = reported = time.monotonic()
    seed = first
    while time.monotonic() - started < minutes * 60:
        try:
            run_history(seed, coverage)
        except HistoryFailed as failed:
            print(failed, flush=True)
            return Exit.NOT_GOOD
        seed += 1
        if time.monotonic() - reported >= report_seconds:
            reported = time.monotonic()
            _report(coverage, seed - first, reported - started)
    _report(coverage, seed - first, time.monotonic() - started)
    return Exit.GOOD


def _report(coverage: Coverage, histories: int, seconds: float) -> None:
    print(f"{histories} histories, {coverage.steps} steps, {coverage.steps / seconds:.0f} steps/s", flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=int, default=None, help="the first seed; drawn when not given")
    chosen = parser.parse_args(arguments)
    first = secrets.randbelow(1 << 40) if chosen.first is None else chosen.first
    print(f"seeds from {first} on", flush=True)
    return soak(chosen.minutes, first)


if __name__ == "__main__":
    sys.exit(main())

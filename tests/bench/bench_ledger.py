"""`python -m tests.bench.bench_ledger [--rows N] [--directory DIR]`: the ledger's bars, side by side in one run.

Prints one JSON object: append over its floor (one write and one fsync of as many bytes), append at row N over append at
row 1,000, and verified rows a second. Use a directory on the machine's disk, not a tmpfs.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kexpr.clock import SystemClock
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.maintenance import verify
from tests.unit.ledger.support import build

_ROUNDS = 400
_RECORD = {"attempt_id": "0" * 32, "phase": "claimed", "schema_version": 1, "surface": "daily.v1", "task": "f" * 64}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=Path.cwd())
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(dir=options.directory, prefix="bench-ledger-"))
    try:
        print(json.dumps(_measure(root, options.rows), indent=2))
    finally:
        shutil.rmtree(root)


def _measure(root: Path, rows: int) -> dict[str, object]:
    small, large = root / "small", root / "large"
    build(small, 1_000)
    build(large, rows)
    os.sync()
    line_bytes = (small / "ledger-2000-01.jsonl").stat().st_size // 1_001
    verify_seconds = min(_seconds(lambda: verify(large)) for _ in range(3))
    started = time.perf_counter()
    ledgers = {name: _open(path) for name, path in (("small", small), ("large", large))}
    open_seconds = time.perf_counter() - started
    with (root / "floor").open("ab", buffering=0) as floor:
        steps: dict[str, Callable[[], object]] = {
            "floor": lambda: _durable_write(floor.fileno(), b"x" * line_bytes),
            "small": lambda: _append(ledgers["small"]),
            "large": lambda: _append(ledgers["large"]),
        }
        times = _interleaved(steps)
    for ledger in ledgers.values():
        ledger.close()
    return {
        "rows": rows,
        "line_bytes": line_bytes,
        "append_us": {name: round(value * 1e6, 1) for name, value in times.items()},
        "append_over_floor": round(times["small"] / times["floor"], 3),
        "append_large_over_small": round(times["large"] / times["small"], 3),
        "verify_rows_per_second": round(rows / verify_seconds),
        "open_rows_per_second": round(rows / open_seconds),
    }


def _interleaved(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median of each step's times, taken in turns and in changing order so that the disk's moods fall on all."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for round_number in range(_ROUNDS):
        for name, step in sorted(steps.items(), reverse=round_number % 2 == 1):
            times[name].append(_seconds(step))
    return {name: statistics.median(values[20:]) for name, values in times.items()}


def _seconds(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def _open(path: Path) -> JsonlLedger:
    return JsonlLedger.open(path, projection=lambda row: None, clock=SystemClock())


def _durable_write(fd: int, data: bytes) -> None:
    os.write(fd, data)
    os.fsync(fd)


def _append(ledger: JsonlLedger) -> None:
    with ledger.transaction() as transaction:
        transaction.append(_RECORD)


if __name__ == "__main__":
    main()

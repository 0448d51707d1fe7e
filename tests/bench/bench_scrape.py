"""`python -m tests.bench.bench_scrape [--rows N] [--directory DIR]`: what a scrape costs at N rows and at 1,000.

Prints one JSON object: the median time of reading the delta, collecting and rendering, taken in turns at both sizes;
with nothing new since the last scrape, and after one more call (an intent and an outcome, and readiness judged anew).
"""

import argparse
import json
import multiprocessing
import shutil
import statistics
import tempfile
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Final

from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import RunKind, Slot
from harness.metrics import Exposition
from harness.profiles import PAIRS, PathKind
from harness.readiness.assess import assess
from harness.reading import EvidenceReader
from kexpr.codes import Mode, ProviderKind
from tests.bench.bench_evidence import build
from tests.unit.harness.evidence_samples import call

SMALL: Final = 1_000
_RUN: Final = RunSpec(RunKind.OBSERVATION, ProviderKind.LIVE, Mode.SHADOW, PAIRS)
_ORDINALS: Final = count(900_000_000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=Path.cwd())
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(dir=options.directory, prefix="bench-scrape-"))
    try:
        print(json.dumps(_measure(root, options.rows), indent=2))
    finally:
        shutil.rmtree(root)


def _measure(root: Path, rows: int) -> dict[str, object]:
    with ExitStack() as opened:
        directories = {size: root / f"rows-{size}" for size in (SMALL, rows)}
        expositions = {size: _opened(opened, directory, size) for size, directory in directories.items()}
        steady: dict[int, list[float]] = {size: [] for size in directories}
        for _ in range(200):
            for size, exposition in expositions.items():
                steady[size].append(_scrape_ms(exposition))
        size_bytes = len(expositions[rows].render()[1])
        after_a_call = {size: _after_calls(directories[size], expositions[size]) for size in directories}
    return {
        "rows": rows,
        "exposition_bytes": size_bytes,
        "scrape_ms": {size: round(statistics.median(times), 2) for size, times in steady.items()},
        "scrape_after_a_call_ms": {size: round(statistics.median(times), 2) for size, times in after_a_call.items()},
    }


def _opened(opened: ExitStack, directory: Path, rows: int) -> Exposition:
    builder = multiprocessing.get_context("spawn").Process(target=build, args=(directory, rows))
    builder.start()
    builder.join()
    exposition = Exposition(opened.enter_context(EvidenceReader(directory, assess)).read)
    exposition.render()
    return exposition


def _scrape_ms(exposition: Exposition) -> float:
    started = time.perf_counter()
    exposition.render()
    return (time.perf_counter() - started) * 1000


def _after_calls(directory: Path, exposition: Exposition) -> list[float]:
    evidence = EvidenceLedger.open(directory)
    evidence.begin_run(_RUN)
    times = []
    for _ in range(20):
        call(evidence, Slot(RunKind.OBSERVATION, PAIRS[0], PathKind.DAILY, next(_ORDINALS), "2027-03-01"))
        times.append(_scrape_ms(exposition))
    evidence.finish_run()
    evidence.close()
    return times


if __name__ == "__main__":
    main()

"""`python -m tests.bench.bench_evidence [--rows N] [--directory DIR]`: the bars of the evidence at a million rows.

Prints one JSON object: opening with the whole fold (rows a second), the peak memory of the process that did it, and the
cost of a summary, a readiness and one more call. The calls are of 400 days and all pairs; one in 1,000 failed.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from harness.candidate import Candidate
from harness.evidence.ledger import EvidenceLedger, RunSpec, read_prefix
from harness.evidence.rows import EvidenceRow, IntentRow, OutcomeRow, PinRow, RunKind, Slot, encode
from harness.policy import POLICY
from harness.profiles import PAIRS, PATHS
from harness.readiness.assess import assess
from kexpr.codes import Mode, Outcome, ProviderKind, Reason
from kexpr.ledger.protocol import Record
from kexpr.ledger.rows import KIND_ROW, KIND_SEGMENT, Chain
from kexpr.ledger.rows import encode as encode_line
from tests.unit.harness.evidence_samples import PIN, call

DAYS = 400
_FIRST = date(2026, 1, 1)
_ACCEPTED: Final = (Outcome.SHADOW_SELECTED, None)
_FAILED: Final = (Outcome.CANONICAL_TIMEOUT, Reason.TIMEOUT_DEADLINE)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=Path.cwd())
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(dir=options.directory, prefix="bench-evidence-"))
    try:
        print(json.dumps(_measure(root / "evidence", options.rows), indent=2))
    finally:
        shutil.rmtree(root)


def _measure(directory: Path, rows: int) -> dict[str, object]:
    builder = multiprocessing.get_context("spawn").Process(target=build, args=(directory, rows))
    builder.start()
    builder.join()
    started, cpu_started = time.perf_counter(), time.process_time()
    evidence = EvidenceLedger.open(directory)
    open_seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    peak = _peak_mb()
    summary_ms = _median_ms(evidence.summary)
    summary = evidence.summary()
    as_of = (_FIRST + timedelta(days=DAYS - 1)).isoformat()
    assess_ms = _median_ms(lambda: assess(summary, POLICY, as_of))
    evidence.begin_run(RunSpec(RunKind.OBSERVATION, ProviderKind.LIVE, Mode.SHADOW, PAIRS))
    ordinals = iter(range(900_000_000, 901_000_000))
    calling_ms = _median_ms(lambda: call(evidence, _slot(next(ordinals), DAYS)))
    evidence.finish_run()
    evidence.close()
    started = time.perf_counter()
    read_prefix(directory, summary.head)
    prefix_seconds = time.perf_counter() - started
    return {
        "rows": summary.head.sequence,
        "bytes_a_row": sum(path.stat().st_size for path in directory.glob("*.jsonl")) // rows,
        "open_and_fold_rows_per_second": round(rows / open_seconds),
        "open_and_fold_seconds": round(open_seconds, 2),
        "open_and_fold_cpu_seconds": round(cpu_seconds, 2),
        "peak_memory_mb": round(peak),
        "summary_ms": summary_ms,
        "assess_ms": assess_ms,
        "intent_and_outcome_ms": calling_ms,
        "read_prefix_seconds": round(prefix_seconds, 2),
    }


def build(directory: Path, rows: int) -> None:
    """One live candidate whose calls are spread over `DAYS` days, in monthly segments, written without fsync."""
    directory.mkdir(mode=0o700, parents=True)
    chain = Chain()
    calls = (rows - 2) // 2
    month, lines = "", list[bytes]()
    for number, row in enumerate(_rows(calls)):
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=max(0, number - 2) // 2 * DAYS // calls)
        if f"{moment:%Y-%m}" != month:
            _write(directory, month, lines)
            month = f"{moment:%Y-%m}"
            chain.begin(month)
            lines = [_line(chain, KIND_SEGMENT, chain.header(), moment)]
        lines.append(_line(chain, KIND_ROW, encode(row), moment))
    _write(directory, month, lines)


def _rows(calls: int) -> Iterator[EvidenceRow]:
    candidate = Candidate(PIN.digest, 0)
    run = RunSpec(RunKind.OBSERVATION, ProviderKind.LIVE, Mode.SHADOW, PAIRS).row(candidate, 1, resumed=False)
    yield PinRow.of(candidate, PIN)
    yield run
    for number in range(calls):
        intent = IntentRow.of(run, _slot(number, number * DAYS // calls))
        yield intent
        outcome, reason = _FAILED if number % 1_001 == 1_000 else _ACCEPTED
        yield OutcomeRow(candidate.id, 1, intent.slot, outcome, reason, number % 5_000, 1)


def _slot(number: int, day: int) -> Slot:
    pair = PAIRS[number % len(PAIRS)]
    paths = PATHS[pair.surface]
    path = paths[number // len(PAIRS) % len(paths)]
    return Slot(RunKind.OBSERVATION, pair, path, number, (_FIRST + timedelta(days=day)).isoformat())


def _line(chain: Chain, kind: str, record: Record, moment: datetime) -> bytes:
    utc = f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
    line = encode_line(kind, record, sequence=chain.sequence + 1, previous=chain.digest, utc=utc, lease=None, mode=None)
    chain.advance(line)
    return line


def _write(directory: Path, month: str, lines: list[bytes]) -> None:
    if lines:
        path = directory / f"ledger-{month}.jsonl"
        path.touch(0o600)
        path.write_bytes(b"\n".join(lines) + b"\n")


def _median_ms(step: Callable[[], object]) -> float:
    times = []
    for _ in range(50):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    return round(statistics.median(times) * 1000, 2)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

"""Time and memory of `kexpr-harness report` over 1,000,000 evidence rows: `python -m tests.bench.bench_report [ROWS]`.

The evidence is written by the ledger's own code, without its fsyncs. The report runs in a process of its own.
"""

import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from unittest import mock

from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import RunKind, Slot
from harness.observation.run import utc_day
from harness.observation.simulate import SimulatedCalendar
from harness.profiles import PAIRS, PATHS
from kexpr.codes import Mode, Outcome, ProviderKind
from tests.support.reports import write_live

ROWS = 1_000_000
DAYS = 14
_REPORT = """
import resource, sys
from harness.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
sys.exit(code)
"""


def write(directory: Path, rows: int) -> None:
    """Fourteen days of live calls, as many a day as it takes."""
    calendar = SimulatedCalendar()
    today = utc_day(calendar)
    with closing(write_live(directory, days=1)) as evidence:
        before = evidence.head().sequence
    calls = (rows - before) // 2 // len(PAIRS) // DAYS
    with closing(EvidenceLedger.open(directory, calendar)) as evidence:
        evidence.begin_run(RunSpec(RunKind.OBSERVATION, ProviderKind.LIVE, Mode.SHADOW, PAIRS))
        for back in reversed(range(DAYS)):
            day = today - timedelta(days=back)
            for pair in PAIRS:
                for ordinal in range(10_000, 10_000 + calls):
                    paths = PATHS[pair.surface]
                    slot = Slot(RunKind.OBSERVATION, pair, paths[ordinal % len(paths)], ordinal, day.isoformat())
                    evidence.intent(slot)
                    evidence.outcome(slot, Outcome.SHADOW_SELECTED, None, duration_ms=ordinal % 2_000, requests=1)
        evidence.finish_run()


def main() -> None:
    """A process of its own writes: what the writer held would count as the report's memory, across fork and exec."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as root:
        state, out = Path(root) / "state", Path(root) / "out"
        state.mkdir(mode=0o700)
        writer = multiprocessing.get_context("spawn").Process(target=_write_unsynced, args=(state / "evidence", rows))
        writer.start()
        writer.join()
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        started = time.perf_counter()
        command = [sys.executable, "-c", _REPORT, "report", "--state", str(state), "--out", str(out), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - started
    processor = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    result, megabytes = done.stdout.splitlines()
    head = json.loads(result)["evidence_head"].partition(":")[0]
    print(f"report over {int(head):,} rows: {seconds:.1f} s ({processor:.1f} s of processor), {megabytes} MB")


def _write_unsynced(directory: Path, rows: int) -> None:
    with mock.patch("os.fsync"):
        write(directory, rows)


if __name__ == "__main__":
    main()

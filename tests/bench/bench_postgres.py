"""`python -m tests.bench.bench_postgres [--rounds N]`: an append in PostgreSQL beside one in files.

Starts a server of its own with its default durability; the two append in turn. Prints one JSON object: median and 95th
percentile of an append, microseconds, and appends a second of one writer. Server and files are below the system's
temporary directory unless `TMPDIR` says otherwise.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from kexpr.clock import SystemClock
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.postgres import PostgresLedger
from kexpr.ledger.protocol import Ledger
from tests.support.postgres import installed, running

_RECORD = {"attempt_id": "0" * 32, "phase": "claimed", "schema_version": 1, "surface": "daily.v1", "task": "f" * 64}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1_000)
    rounds = parser.parse_args().rounds
    with running() as cluster, tempfile.TemporaryDirectory() as root:
        conninfo = installed(cluster).conninfo
        ledgers: dict[str, Ledger] = {
            "jsonl": JsonlLedger.open(Path(root) / "ledger", projection=lambda row: None, clock=SystemClock()),
            "postgres": PostgresLedger.open(conninfo, "bench", projection=lambda row: None),
        }
        times: dict[str, list[float]] = {name: [] for name in ledgers}
        for _ in range(rounds):
            for name, ledger in ledgers.items():
                times[name].append(_append_us(ledger))
        for ledger in ledgers.values():
            ledger.close()
    print(json.dumps({name: _summary(values) for name, values in times.items()}, indent=2))


def _append_us(ledger: Ledger) -> float:
    started = time.perf_counter()
    with ledger.transaction() as transaction:
        transaction.append(_RECORD)
    return (time.perf_counter() - started) * 1e6


def _summary(times_us: list[float]) -> dict[str, float]:
    return {
        "median_us": round(statistics.median(times_us)),
        "p95_us": round(statistics.quantiles(times_us, n=20)[-1]),
        "appends_per_second": round(1e6 / statistics.fmean(times_us)),
    }


if __name__ == "__main__":
    main()

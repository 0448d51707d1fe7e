"""A real Prometheus: history that the real collector gave at simulated times, and a live scrape of a real exporter.

Fourteen days cannot be waited for. The rows of the evidence are read up to each simulated hour and the collector asked
what it would have shown then; `promtool` turns that into blocks, and evaluates the recording rules over them.
"""

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from harness.evidence.state import EvidenceState
from harness.metrics import registry_of
from harness.policy import POLICY
from harness.readiness.assess import assess
from harness.reading import Reading
from kexpr.clock import SystemClock
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.protocol import GENESIS_DIGEST, Head, Row
from tests.support.programs import need

__all__ = ["STEP_SECONDS", "Prometheus", "backfill", "prometheus"]

STEP_SECONDS: Final = 3_600
_LOOKBACK: Final = "65m"
_ONE_BLOCK: Final = "--max-block-duration=744h"
"""Otherwise one for every two hours, each of which reads the whole history."""
_START_SECONDS: Final = 30
Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def instant(self, expression: str) -> list[dict[str, Any]]:
        """The samples of now: `metric` and `value` (time and text)."""
        return self._ask("query", {"query": expression})["result"]  # type: ignore[no-any-return]

    def range(self, expression: str, start_s: int, end_s: int) -> list[dict[str, Any]]:
        """The series between two Unix times: `metric` and `values`."""
        words = {"query": expression, "start": str(start_s), "end": str(end_s), "step": str(STEP_SECONDS)}
        return self._ask("query_range", words)["result"]  # type: ignore[no-any-return]

    def label_values(self, label: str, selector: str) -> list[str]:
        return self._ask(f"label/{label}/values", {"match[]": selector})  # type: ignore[no-any-return]

    def rules(self) -> list[dict[str, Any]]:
        """Each loaded rule: `name`, `type` and `health`; an alerting one's `state`."""
        return [rule for group in self._ask("rules", {})["groups"] for rule in group["rules"]]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _ask(self, path: str, words: Mapping[str, str]) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(words)}", timeout=30) as answer:
            return json.load(answer)["data"]


def backfill(data: Path, evidence: Path, rules: Path, *, end_s: int, labels: Mapping[str, str]) -> int:
    """Blocks in `data` for the hours of the evidence until `end_s`, recorded series too; the first Unix time in them.

    `labels` are those that a scrape would add; the groups of `rules` are evaluated at their own interval.
    """
    rows = _rows(evidence)
    start_s = (_unix(rows[0]) // STEP_SECONDS - 1) * STEP_SECONDS
    times = range(start_s, end_s, STEP_SECONDS)
    history = data.with_name("history.om")
    with history.open("w", encoding="utf-8") as file:
        file.writelines(_lines(rows, times, labels))
        file.write("# EOF\n")
    _promtool("create-blocks-from", "openmetrics", _ONE_BLOCK, history, data)
    with prometheus(data, "scrape_configs: []") as raw:
        _promtool(
            "create-blocks-from", "rules", _ONE_BLOCK, f"--url={raw.url}", f"--start={start_s}", f"--end={times[-1]}",
            f"--output-dir={data}", rules,
        )  # fmt: skip
    return start_s


@contextlib.contextmanager
def prometheus(data: Path, configuration: str) -> Iterator[Prometheus]:
    """A server over `data` until the block ends. Its lookback is longer than a step, so that no hour falls through."""
    path = data.with_name("prometheus.yml")
    path.write_text(configuration, "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        need("prometheus"),
        f"--config.file={path}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=10y",
        f"--query.lookback-delta={_LOOKBACK}",
        f"--web.listen-address={address}",
    ]
    with data.with_name("prometheus.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        server = Prometheus(f"http://{address}")
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not server.is_ready():
                assert process.poll() is None, data.with_name("prometheus.log").read_text()[-2_000:]
                assert time.monotonic() < deadline, "prometheus is not ready"
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()
            process.wait(20)


def _rows(evidence: Path) -> list[Row]:
    rows: list[Row] = []
    JsonlLedger.open(evidence, projection=rows.append, clock=SystemClock()).close()
    return rows


def _unix(row: Row) -> int:
    return int(datetime.fromisoformat(row.utc).timestamp())


def _lines(rows: list[Row], times: Iterable[int], labels: Mapping[str, str]) -> Iterator[str]:
    """The exposition of all times, a series at a time, as the format asks."""
    history: dict[Series, list[str]] = {}
    for time_s, samples in zip(times, _collected(rows, times), strict=True):
        for series, value in (*samples.items(), (("up", ()), 1.0)):
            history.setdefault(series, []).append(f" {value!r} {time_s}\n")
    for (name, own), values in history.items():
        quoted = ",".join(f'{key}="{text}"' for key, text in (*own, *labels.items()))
        yield from (f"{name}{{{quoted}}}{value}" for value in values)


def _collected(rows: list[Row], times: Iterable[int]) -> Iterator[dict[Series, float]]:
    """What the collector shows at each time, of the rows until then."""
    state, waiting, head = EvidenceState(), iter([*rows]), Head(0, GENESIS_DIGEST)
    following = next(waiting, None)
    shown: tuple[tuple[int, str], dict[Series, float]] | None = None
    for time_s in times:
        while following is not None and _unix(following) <= time_s:
            state.apply(following)
            head = Head(following.sequence, GENESIS_DIGEST)
            following = next(waiting, None)
        as_of = datetime.fromtimestamp(time_s, UTC).date().isoformat()
        if shown is None or shown[0] != (head.sequence, as_of):
            summary = state.summary(head, run_in_progress=False)
            reading = Reading(assess(summary, POLICY, as_of), None, time_s * 1_000)
            shown = (head.sequence, as_of), _samples(reading)
        yield shown[1]


def _samples(reading: Reading) -> dict[Series, float]:
    return {
        (sample.name, tuple(sample.labels.items())): float(sample.value)
        for metric in registry_of(lambda: reading).collect()
        for sample in metric.samples
    }


def _promtool(*arguments: object) -> None:
    done = subprocess.run(
        [need("promtool"), "tsdb", *map(str, arguments)], capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2_000:]

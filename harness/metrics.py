"""Prometheus metrics of the evidence (harness, "Metrics and dashboards").

Counters are read from the ledger, so they survive restarts. Every label value is of a closed set and every reachable
label set is there from the first scrape, at 0. A scrape costs the same however long the evidence is.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from harness.evidence.rows import RunKind
from harness.evidence.summary import Calls, EvidenceSummary, OutcomeSeries, ReasonSeries
from harness.policy import POLICY, GatePolicy
from harness.profiles import PAIRS, Pair
from harness.readiness.model import GateVerdict, Readiness
from harness.readiness.window import sum_of
from harness.reading import Reading
from kexpr import __version__
from kexpr.codes import Reason, Surface
from kexpr.telemetry.families import (
    BUILD,
    DURATION,
    DURATION_BOUNDS_S,
    LAST_OUTCOME,
    OUTCOMES,
    REJECTIONS,
    Family,
    reachable_outcomes,
)

__all__ = ["EvidenceCollector", "Exposition", "registry_of"]

_PAIR_LABELS: Final = ("profile", "surface")

GATE_PASSED: Final = Family(
    "kexpr_harness_gate_passed",
    "1 where a gate of a phase is passed by evidence that is verified; rehearsal evidence never passes.",
    (*_PAIR_LABELS, "phase", "gate"),
)
WINDOW_DAYS: Final = Family(
    "kexpr_harness_window_days", "Consecutive covered UTC days of the observation window.", _PAIR_LABELS
)
ACCEPTED: Final = Family(
    "kexpr_harness_accepted", "Calls of the observation window that ended shadow_selected.", _PAIR_LABELS
)
ORPHANS: Final = Family(
    "kexpr_harness_orphans", "Calls of the newest candidate that nobody saw end and nobody will.", _PAIR_LABELS
)
PROOF_DEADLINE: Final = Family(
    "kexpr_harness_proof_deadline_timestamp_seconds",
    "Unix time at which the window of a begun and unfinished proof closes; 0 without one.",
)
CHAIN_VALID: Final = Family(
    "kexpr_evidence_chain_valid",
    "1 where the evidence is read and its chain verified; with 0 the other figures are older or missing.",
)


def registry_of(read: Callable[[], Reading]) -> CollectorRegistry:
    """A registry with the evidence's metrics and nothing of the process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EvidenceCollector(read))
    return registry


class EvidenceCollector(Collector):
    """`kexpr_*` of what `read` returns at each scrape."""

    def __init__(self, read: Callable[[], Reading], policy: GatePolicy = POLICY) -> None:
        self._read = read
        self._policy = policy

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not read the evidence."""
        return ()

    def collect(self) -> Iterable[Metric]:
        return _families(self._read(), self._policy)


class Exposition:
    """The text of a scrape. A family is rendered again only when it says something else; for one thread at a time."""

    def __init__(self, read: Callable[[], Reading], policy: GatePolicy = POLICY) -> None:
        self._read = read
        self._policy = policy
        self._last: tuple[Reading, bytes] | None = None
        self._rendered: dict[str, tuple[list[Sample], bytes]] = {}

    def render(self) -> tuple[Reading, bytes]:
        """A new reading, and its metrics in the Prometheus text format."""
        reading = self._read()
        if self._last is None or not _same(self._last[0], reading):
            self._last = reading, b"".join(map(self._text, _families(reading, self._policy)))
        return reading, self._last[1]

    def _text(self, metric: Metric) -> bytes:
        before = self._rendered.get(metric.name)
        if before is None or before[0] != metric.samples:
            registry = CollectorRegistry(auto_describe=False)
            registry.register(_Constant(metric))
            before = self._rendered[metric.name] = metric.samples, generate_latest(registry)
        return before[1]


class _Constant(Collector):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        return (self._metric,)


def _same(one: Reading, other: Reading) -> bool:
    """The readiness is kept by the reader until something changes."""
    return one.readiness is other.readiness and one.fault is other.fault


def _families(reading: Reading, policy: GatePolicy) -> Iterator[Metric]:
    valid = reading.fault is None
    summary = reading.summary
    yield _gauge(CHAIN_VALID, [((), float(valid))])
    yield InfoMetricFamily(BUILD.name, BUILD.help, value={"version": __version__})
    if valid or summary.head.sequence:
        yield from _of_evidence(reading.readiness, policy)
    yield _gates(reading.readiness, valid=valid)


def _of_evidence(readiness: Readiness, policy: GatePolicy) -> Iterator[Metric]:
    """Counters that were never read are left out, since a counter that starts again at 0 would count twice."""
    summary = readiness.summary
    yield _outcomes(summary)
    yield _rejections(summary)
    yield _durations(summary)
    yield _pairs(LAST_OUTCOME, lambda pair: summary.last_outcome_utc_ms.get(pair, 0) / 1000)
    windows = {judged.pair: judged.window for judged in readiness.pairs}
    yield _pairs(WINDOW_DAYS, lambda pair: windows[pair].days)
    yield _pairs(ACCEPTED, lambda pair: windows[pair].accepted)
    yield _pairs(ORPHANS, lambda pair: _calls(summary, pair).orphans)
    yield _gauge(PROOF_DEADLINE, [((), _proof_deadline_s(summary, policy))])


def _gauge(family: Family, samples: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in samples:
        metric.add_metric(labels, value)
    return metric


def _pairs(family: Family, value: Callable[[Pair], float]) -> Metric:
    return _gauge(family, (((pair.profile.value, pair.surface.value), value(pair)) for pair in PAIRS))


def _outcomes(summary: EvidenceSummary) -> Metric:
    metric = CounterMetricFamily(OUTCOMES.name, OUTCOMES.help, labels=OUTCOMES.labels)
    for pair in PAIRS:
        for mode, outcome, version in reachable_outcomes():
            series = OutcomeSeries(pair.profile, pair.surface, mode, outcome, version)
            labels = (pair.profile.value, pair.surface.value, mode.value, outcome.value, version.value)
            metric.add_metric(labels, summary.outcome_totals.get(series, 0))
    return metric


def _rejections(summary: EvidenceSummary) -> Metric:
    metric = CounterMetricFamily(REJECTIONS.name, REJECTIONS.help, labels=REJECTIONS.labels)
    for surface in Surface:
        for reason in Reason:
            total = summary.reason_totals.get(ReasonSeries(surface, reason), 0)
            metric.add_metric((surface.value, reason.value), total)
    return metric


def _durations(summary: EvidenceSummary) -> Metric:
    metric = HistogramMetricFamily(DURATION.name, DURATION.help, labels=DURATION.labels)
    bounds = [*(str(bound) for bound in DURATION_BOUNDS_S), "+Inf"]
    for pair in PAIRS:
        counts = accumulate(summary.durations.get(pair, (0,) * len(bounds)))
        buckets = [(bound, float(count)) for bound, count in zip(bounds, counts, strict=True)]
        sum_s = summary.duration_sums_ms.get(pair, 0) / 1000
        metric.add_metric((pair.profile.value, pair.surface.value), buckets, sum_value=sum_s)
    return metric


def _gates(readiness: Readiness, *, valid: bool) -> Metric:
    return _gauge(
        GATE_PASSED,
        (
            (
                (judged.pair.profile.value, judged.pair.surface.value, phase.phase.value, gate.code.value),
                float(valid and gate.verdict is GateVerdict.PASSED),
            )
            for judged in readiness.pairs
            for phase in judged.phases
            for gate in phase.gates
        ),
    )


def _calls(summary: EvidenceSummary, pair: Pair, kind: RunKind | None = None) -> Calls:
    cells = summary.pairs[pair].cells
    return sum_of(calls for cell, calls in cells.items() if kind in (None, cell.run_kind))


def _proof_deadline_s(summary: EvidenceSummary, policy: GatePolicy) -> float:
    candidate = summary.candidate
    begun = [first for pair in PAIRS if (first := summary.pairs[pair].proof_first_utc_ms) is not None]
    if candidate is None or candidate.ended is not None or not begun:
        return 0.0
    ended = sum(_calls(summary, pair, RunKind.PROOF).outcomes for pair in PAIRS)
    return 0.0 if ended >= policy.proof_total else min(begun) / 1000 + policy.proof_window_hours * 3600

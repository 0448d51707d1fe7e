"""Prometheus metrics in the gateway's own process and registry. Every allowed label set is born at 0."""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kexpr import __version__
from kexpr.codes import NOT_ATTEMPTED, Reason, Surface
from kexpr.errors import TelemetryRefused
from kexpr.telemetry.families import (
    BUILD,
    DURATION,
    DURATION_BOUNDS_S,
    LAST_OUTCOME,
    OUTCOMES,
    REJECTIONS,
    reachable_outcomes,
)
from kexpr.telemetry.fanout import SinkHealth
from kexpr.telemetry.record import (
    OutcomeRecord,
    SinkFailure,
    SinkName,
    TelemetryRecord,
    event_of,
    is_reachable,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

__all__ = ["PrometheusSink"]


class PrometheusSink:
    """`kexpr_*` metrics in `registry`. One sink may serve several `Telemetry` objects, each with its own profile.

    A second sink on one registry is refused by `prometheus_client` (duplicated time series).
    """

    name: Final = SinkName.PROMETHEUS

    def __init__(self, registry: "CollectorRegistry") -> None:
        from prometheus_client import Counter, Gauge, Histogram, Info

        self._profiles: set[str] = set()
        self._outcomes = Counter(OUTCOMES.name, OUTCOMES.help, OUTCOMES.labels, registry=registry)
        self._rejections = Counter(REJECTIONS.name, REJECTIONS.help, REJECTIONS.labels, registry=registry)
        self._duration = Histogram(
            DURATION.name, DURATION.help, DURATION.labels, buckets=DURATION_BOUNDS_S, registry=registry
        )
        self._last = Gauge(LAST_OUTCOME.name, LAST_OUTCOME.help, LAST_OUTCOME.labels, registry=registry)
        Info(BUILD.name, BUILD.help, registry=registry).info({"version": __version__})
        self._health = _HealthCollector()
        registry.register(self._health)
        for surface in Surface:
            for reason in Reason:
                self._rejections.labels(surface.value, reason.value)

    def bind(self, profile: str, health: SinkHealth) -> None:
        """Give birth to the label sets of `profile` and watch `health`."""
        self._health.watch(health)
        self._profiles.add(profile)
        for surface in Surface:
            self._duration.labels(profile, surface.value)
            self._last.labels(profile, surface.value)
            for mode, outcome, version in reachable_outcomes():
                self._outcomes.labels(profile, surface.value, mode.value, outcome.value, version.value)

    def emit(self, record: TelemetryRecord) -> None:
        if not isinstance(record, OutcomeRecord):
            return
        codes = event_of(record)
        if codes is None or record.profile not in self._profiles or not is_reachable(record.mode, record.outcome):
            raise TelemetryRefused
        surface = codes["surface"]
        reason = None if record.reason is None else Reason(record.reason).value
        self._outcomes.labels(record.profile, surface, codes["mode"], codes["outcome"], codes["contract_version"]).inc()
        if reason is not None:
            self._rejections.labels(surface, reason).inc()
        if record.outcome not in NOT_ATTEMPTED:
            self._duration.labels(record.profile, surface).observe(record.duration_ms / 1000)
        self._last.labels(record.profile, surface).set(record.at_utc_s)


class _HealthCollector:
    """`kexpr_sink_failures_total{sink,failure}`, read at scrape: also the failures of the sink that reports them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: list[SinkHealth] = []

    def watch(self, health: SinkHealth) -> None:
        with self._lock:
            self._watched.append(health)

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily

        with self._lock:
            readings = [health.counts() for health in self._watched]
        family = CounterMetricFamily(
            "kexpr_sink_failures", "Records that a telemetry sink did not take.", labels=("sink", "failure")
        )
        for sink in SinkName:
            for failure in SinkFailure:
                family.add_metric((sink.value, failure.value), sum(reading[sink, failure] for reading in readings))
        yield family

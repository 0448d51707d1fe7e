"""Metrics: names, label sets born at 0, closed label values."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kexpr import __version__
from kexpr.codes import Invalid, Mode, Outcome, Reason, Surface, WireVersion
from kexpr.errors import TelemetryRefused
from kexpr.telemetry import ConfigInvalid, PrometheusSink, SinkFailure, SinkHealth, SinkName, Telemetry
from tests.unit.telemetry.records import AT_UTC_S, REJECTED, STAMPED, FixedClock, RaisingSink

LABELS = {
    "profile": "physique-coach",
    "surface": "daily",
    "mode": "shadow",
    "outcome": "canonical_validation_rejected",
    "contract_version": "kexp-wire-2",
}


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def sink(registry):
    sink = PrometheusSink(registry)
    sink.bind("physique-coach", SinkHealth())
    return sink


def _samples(registry, name):
    return [s for metric in registry.collect() for s in metric.samples if s.name == name]


def test_every_allowed_label_set_is_born_at_0(registry, sink):
    outcomes = _samples(registry, "kexpr_outcomes_total")
    expected = {
        (surface.value, mode, outcome.value, version.value)
        for surface in Surface
        for mode in ("shadow", "enabled")
        for outcome in Outcome
        for version in WireVersion
        if (mode, outcome) not in (("shadow", Outcome.SELECTED), ("enabled", Outcome.SHADOW_SELECTED))
    }
    seen = {
        (s.labels["surface"], s.labels["mode"], s.labels["outcome"], s.labels["contract_version"]) for s in outcomes
    }
    assert seen == expected
    assert len(outcomes) == len(expected)
    assert {s.value for s in outcomes} == {0.0}
    rejections = _samples(registry, "kexpr_rejections_total")
    assert {(s.labels["surface"], s.labels["reason"]) for s in rejections} == {
        (surface.value, reason.value) for surface in Surface for reason in Reason
    }
    assert {s.value for s in rejections} == {0.0}
    for name in ("kexpr_attempt_duration_seconds_count", "kexpr_last_outcome_timestamp_seconds"):
        samples = _samples(registry, name)
        assert {s.labels["surface"] for s in samples} == {surface.value for surface in Surface}
        assert {s.value for s in samples} == {0.0}
    failures = _samples(registry, "kexpr_sink_failures_total")
    assert {(s.labels["sink"], s.labels["failure"]) for s in failures} == {
        (name.value, failure.value) for name in SinkName for failure in SinkFailure
    }


def test_one_rejected_attempt(registry, sink):
    sink.emit(STAMPED)
    value = registry.get_sample_value
    assert value("kexpr_outcomes_total", LABELS) == 1
    assert value("kexpr_rejections_total", {"surface": "daily", "reason": "guard.numeral"}) == 1
    where = {"profile": "physique-coach", "surface": "daily"}
    assert value("kexpr_attempt_duration_seconds_sum", where) == 0.812
    assert value("kexpr_attempt_duration_seconds_bucket", {**where, "le": "0.75"}) == 0
    assert value("kexpr_attempt_duration_seconds_bucket", {**where, "le": "1.0"}) == 1
    assert value("kexpr_last_outcome_timestamp_seconds", where) == AT_UTC_S
    assert value("kexpr_build_info", {"version": __version__}) == 1


def test_what_was_not_attempted_has_no_duration(registry, sink):
    sink.emit(replace(STAMPED, outcome=Outcome.OVERLOADED, reason=None))
    assert sum(s.value for s in _samples(registry, "kexpr_attempt_duration_seconds_count")) == 0
    assert sum(s.value for s in _samples(registry, "kexpr_outcomes_total")) == 1
    assert sum(s.value for s in _samples(registry, "kexpr_rejections_total")) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "another"},
        {"surface": "a name"},
        {"mode": Mode.ENABLED, "outcome": Outcome.SHADOW_SELECTED},
        {"mode": Mode.DISABLED},
        {"contract_version": "kexp-wire-9"},
    ],
)
def test_no_label_set_is_born_later(registry, sink, change):
    before = len(generate_latest(registry).splitlines())
    with pytest.raises(TelemetryRefused):
        sink.emit(replace(STAMPED, **change))
    assert len(generate_latest(registry).splitlines()) == before
    assert sum(s.value for s in _samples(registry, "kexpr_outcomes_total")) == 0


def test_an_unknown_reason_changes_nothing(registry, sink):
    with pytest.raises(ValueError):
        sink.emit(replace(STAMPED, reason="free text"))  # type: ignore[arg-type]
    assert sum(s.value for s in _samples(registry, "kexpr_outcomes_total")) == 0


def test_an_invalid_configuration_is_no_outcome(registry, sink):
    before = generate_latest(registry)
    sink.emit(ConfigInvalid(Invalid.UNKNOWN_KEY))
    assert generate_latest(registry) == before


def test_failures_of_all_sinks_are_one_static_metric(registry):
    telemetry = Telemetry([RaisingSink(), PrometheusSink(registry)], "physique-coach", clock=FixedClock())
    telemetry.emit(REJECTED)
    telemetry.emit(replace(REJECTED, contract_version="free text"))
    assert telemetry.close(5)
    value = registry.get_sample_value
    assert value("kexpr_sink_failures_total", {"sink": "custom", "failure": "raised"}) == 2
    assert value("kexpr_sink_failures_total", {"sink": "prometheus", "failure": "raised"}) == 1
    assert value("kexpr_outcomes_total", LABELS) == 1
    assert b"free text" not in generate_latest(registry)


def test_one_sink_serves_two_profiles(registry):
    sink = PrometheusSink(registry)
    first, second = Telemetry([sink], "physique-coach"), Telemetry([sink], "dualcoachtest")
    first.emit(REJECTED)
    second.emit(REJECTED)
    assert first.close(5)
    assert second.close(5)
    for profile in ("physique-coach", "dualcoachtest"):
        assert registry.get_sample_value("kexpr_outcomes_total", {**LABELS, "profile": profile}) == 1

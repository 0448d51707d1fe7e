"""The metrics of the evidence: names, closed labels, births at 0, broken evidence, and no content."""

import subprocess
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from harness.evidence.rows import EndReason
from harness.evidence.summary import Calls
from harness.metrics import Exposition, registry_of
from harness.profiles import PAIRS, Profile
from harness.readiness.gates import GATES
from harness.readiness.model import LADDERS, GateCode, Phase
from harness.reading import NO_EVIDENCE
from kexpr import __version__
from kexpr.codes import Mode, Outcome, Reason, Surface, WireVersion
from kexpr.errors import StoreFault
from kexpr.telemetry import PrometheusSink, SinkHealth
from kexpr.telemetry.families import reachable_outcomes
from tests.support.evidence import FIRST_UTC_MS, reading, summary
from tests.support.programs import need

LABEL_VALUES: dict[str, set[Any]] = {
    "profile": set(Profile),
    "surface": set(Surface),
    "mode": {Mode.SHADOW, Mode.ENABLED},
    "outcome": set(Outcome),
    "contract_version": set(WireVersion),
    "reason": set(Reason),
    "phase": set(Phase),
    "gate": set(GateCode),
    "version": {__version__},
    "le": {"0.05", "0.1", "0.25", "0.5", "0.75", "1.0", "1.5", "2.0", "3.0", "4.0", "+Inf"},
}
PAIR = {"profile": "physique-coach", "surface": "daily"}
NAMES = {
    "kexpr_outcomes_total",
    "kexpr_rejections_total",
    "kexpr_attempt_duration_seconds_bucket",
    "kexpr_attempt_duration_seconds_count",
    "kexpr_attempt_duration_seconds_sum",
    "kexpr_last_outcome_timestamp_seconds",
    "kexpr_harness_gate_passed",
    "kexpr_harness_window_days",
    "kexpr_harness_accepted",
    "kexpr_harness_orphans",
    "kexpr_harness_proof_deadline_timestamp_seconds",
    "kexpr_evidence_chain_valid",
    "kexpr_build_info",
}


def samples(seen):
    return [sample for metric in registry_of(lambda: seen).collect() for sample in metric.samples]


def value(seen, name, **labels):
    (found,) = (sample for sample in samples(seen) if sample.name == name and sample.labels == labels)
    return found.value


def test_the_names_are_these_and_every_label_value_is_of_a_closed_set():
    for seen in (reading(NO_EVIDENCE), reading(summary())):
        found = samples(seen)
        assert {sample.name for sample in found} == NAMES
        for sample in found:
            for label, text in sample.labels.items():
                assert text in {str(allowed) for allowed in LABEL_VALUES[label]}, sample


def test_every_reachable_label_set_is_born_at_0_and_no_other_is():
    found = samples(reading(NO_EVIDENCE))
    assert {sample.value for sample in found if sample.name == "kexpr_outcomes_total"} == {0}
    assert {tuple(sample.labels.values()) for sample in found if sample.name == "kexpr_outcomes_total"} == {
        (pair.profile, pair.surface, mode, outcome, version)
        for pair in PAIRS
        for mode, outcome, version in reachable_outcomes()
    }
    assert {tuple(sample.labels.values()) for sample in found if sample.name == "kexpr_rejections_total"} == {
        (surface, reason) for surface in Surface for reason in Reason
    }
    gates = [tuple(s.labels.values()) for s in found if s.name == "kexpr_harness_gate_passed"]
    expected = [
        (pair.profile, pair.surface, phase, gate) for pair in PAIRS for phase in LADDERS[pair] for gate in GATES[phase]
    ]
    assert sorted(gates) == sorted(expected)


def test_the_label_sets_do_not_change_with_the_evidence():
    def sets(seen):
        return {(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples(seen)}

    assert sets(reading(NO_EVIDENCE)) == sets(reading(summary()))


def test_the_library_offers_the_same_metrics_under_the_same_names_and_labels():
    registry = CollectorRegistry()
    PrometheusSink(registry).bind("physique-coach", SinkHealth())
    ours = {(s.name, frozenset(s.labels)) for s in samples(reading(summary()))}
    library = {
        (s.name, frozenset(s.labels))
        for metric in registry.collect()
        for s in metric.samples
        if not s.name.endswith("_created") and not s.name.startswith("kexpr_sink_failures")
    }
    assert library <= ours


def test_figures_are_the_summary_s():
    seen = reading(summary(failures=3))
    shadow = {**PAIR, "mode": "shadow", "contract_version": "kexp-wire-2"}
    assert value(seen, "kexpr_outcomes_total", **shadow, outcome="shadow_selected") == 12
    assert value(seen, "kexpr_outcomes_total", **shadow, outcome="canonical_timeout") == 3
    assert value(seen, "kexpr_rejections_total", surface="daily", reason="timeout.deadline") == 3
    assert value(seen, "kexpr_attempt_duration_seconds_bucket", **PAIR, le="0.05") == 1
    assert value(seen, "kexpr_attempt_duration_seconds_bucket", **PAIR, le="4.0") == 6
    assert value(seen, "kexpr_attempt_duration_seconds_bucket", **PAIR, le="+Inf") == 10
    assert value(seen, "kexpr_attempt_duration_seconds_count", **PAIR) == 10
    assert value(seen, "kexpr_attempt_duration_seconds_sum", **PAIR) == 12.345
    assert value(seen, "kexpr_last_outcome_timestamp_seconds", **PAIR) == FIRST_UTC_MS / 1000
    assert value(seen, "kexpr_harness_window_days", **PAIR) == 9
    assert value(seen, "kexpr_harness_accepted", **PAIR) == 9
    assert value(seen, "kexpr_harness_gate_passed", **PAIR, phase="P1", gate="chain_intact") == 1
    assert value(seen, "kexpr_harness_gate_passed", **PAIR, phase="P2", gate="accepted") == 0
    assert value(seen, "kexpr_evidence_chain_valid") == 1
    assert value(seen, "kexpr_build_info", version=__version__) == 1


def test_orphans_are_counted_by_pair():
    calls = dict.fromkeys(PAIRS, Calls()) | {PAIRS[1]: Calls(intents=6, outcomes=4, orphans=2)}
    seen = reading(summary(proof_calls=calls))
    assert value(seen, "kexpr_harness_orphans", profile="physique-coach", surface="weekly") == 2
    assert value(seen, "kexpr_harness_orphans", **PAIR) == 0


def test_a_begun_proof_has_a_deadline_until_it_is_finished_or_ended():
    name = "kexpr_harness_proof_deadline_timestamp_seconds"
    begun = summary(proof_calls=dict.fromkeys(PAIRS, Calls(intents=9, outcomes=9, accepted=9)))
    assert value(reading(begun), name) == FIRST_UTC_MS / 1000 + 24 * 3600
    finished = summary(proof_calls=dict.fromkeys(PAIRS, Calls(intents=12, outcomes=12, accepted=12)))
    assert value(reading(finished), name) == 0
    ended = replace(begun, candidates=(replace(begun.candidates[0], ended=EndReason.CALL_FAILED),))
    assert value(reading(ended), name) == 0
    assert value(reading(NO_EVIDENCE), name) == 0


def test_broken_evidence_is_said_and_no_gate_is_passed():
    broken = reading(summary(), fault=StoreFault.CHAIN_BROKEN)
    assert value(broken, "kexpr_evidence_chain_valid") == 0
    assert {s.value for s in samples(broken) if s.name == "kexpr_harness_gate_passed"} == {0}
    shadow = {**PAIR, "mode": "shadow", "contract_version": "kexp-wire-2"}
    assert value(broken, "kexpr_outcomes_total", **shadow, outcome="shadow_selected") == 12


def test_counters_that_were_never_read_are_not_there():
    never = reading(NO_EVIDENCE, fault=StoreFault.CHAIN_BROKEN)
    found = {sample.name for sample in samples(never)}
    assert found == {"kexpr_evidence_chain_valid", "kexpr_build_info", "kexpr_harness_gate_passed"}


def test_a_scrape_is_rendered_again_when_the_reading_says_something_else():
    readings = [reading(summary())]
    exposition = Exposition(lambda: readings[-1])
    _, first = exposition.render()
    assert first == generate_latest(registry_of(lambda: readings[0]))
    readings.append(replace(readings[0], utc_ms=0))
    again, text = exposition.render()
    assert (again.utc_ms, text is first) == (0, True)
    readings.append(replace(readings[0], fault=StoreFault.CHAIN_BROKEN))
    assert b"kexpr_evidence_chain_valid 0.0" in exposition.render()[1]
    readings.append(reading(summary(failures=2)))
    assert exposition.render()[1] == generate_latest(registry_of(lambda: readings[-1]))


def test_registering_reads_nothing():
    def fail():
        raise AssertionError

    registry_of(fail)


@pytest.mark.parametrize("seen", [reading(NO_EVIDENCE), reading(summary())], ids=["empty", "full"])
def test_promtool_says_no_more_than_that_days_are_no_base_unit(seen):
    """The specification names `kexpr_harness_window_days`, so that the one remark stands."""
    done = subprocess.run(
        [need("promtool"), "check", "metrics"],
        input=generate_latest(registry_of(lambda: seen)),
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert done.stdout == b""
    assert done.stderr == b'kexpr_harness_window_days use base unit "seconds" instead of "days"\n'

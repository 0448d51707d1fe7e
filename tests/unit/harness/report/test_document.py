"""The canonical document: its bytes, its figures, and what it says of each state."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evidence.summary import EvidenceSummary
from harness.policy import POLICY
from harness.profiles import PAIRS
from harness.readiness.assess import assess
from harness.readiness.model import GateCode, Phase
from harness.readiness.phases import block_text, digest_of
from harness.report.document import SCHEMA, canonical, next_phase
from harness.report.source import Judged
from harness.verdict import Verdict
from tests.support.reports import STATES, judged
from tests.support.summaries import PIN, clean_summary, day

FIRST = PAIRS[0]


def leaves(value: Any):
    if isinstance(value, Mapping):
        for key, item in value.items():
            assert isinstance(key, str)
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("name", STATES)
def test_a_document_is_integers_texts_and_nothing_else(name):
    for document in judged(name).documents().values():
        assert document["schema"] == SCHEMA
        assert {type(leaf) for leaf in leaves(document)} <= {int, str, bool, type(None)}
        assert json.loads(canonical(document)) == document


def shuffled(summary: EvidenceSummary, seed: int) -> EvidenceSummary:
    """The same evidence, folded in another order."""
    order = random.Random(seed)

    def mix(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
        items = list(mapping.items())
        order.shuffle(items)
        return dict(items)

    pairs = {
        pair: replace(
            evidence, cells=mix(evidence.cells), outcomes=mix(evidence.outcomes), reasons=mix(evidence.reasons)
        )
        for pair, evidence in mix(summary.pairs).items()
    }
    return replace(summary, pairs=pairs, checks=mix(summary.checks), audits=mix(summary.audits))


@given(st.sampled_from(sorted(STATES)), st.integers(0, 1_000))
def test_the_order_of_folding_changes_no_byte(name, seed):
    state = STATES[name]
    readiness = assess(shuffled(state.summary, seed), POLICY, state.as_of, state.anchor, anchor_holds=state.holds)
    other = Judged(readiness, POLICY, state.holds).documents()
    for stem, document in judged(name).documents().items():
        assert canonical(other[stem]) == canonical(document)


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("empty", "INSUFFICIENT", "no_audit"),
        ("failures", "NOT_READY", "calls_failed"),
        ("lapsed", "INSUFFICIENT", "lapsed"),
        ("ended", "NOT_READY", "candidate_ended"),
        ("rehearsal", "REHEARSAL", "rehearsal_only"),
        ("broken", "INVALID", "anchor_mismatch"),
    ],
)
def test_the_first_cause_is_the_one_behind_the_verdict(name, verdict, reason):
    document = judged(name).document(FIRST)
    assert document["verdict"] == verdict
    assert document["causes"][0]["reason"] == reason
    assert GateCode.PREVIOUS_PHASE not in {cause["gate"] for cause in document["causes"]}


@pytest.mark.parametrize("name", ["ready", "enabled", "today_open", "audited"])
def test_what_is_ready_has_no_cause_against_it(name):
    document = judged(name).document(FIRST)
    assert (document["verdict"], document["causes"]) == (Verdict.READY, [])


def test_the_next_block_is_that_of_the_phase_with_its_digest():
    document = judged("ready").document(FIRST)
    text = block_text(FIRST.profile, Phase.P3, PIN.wire_version)
    assert document["config"]["next"] == {"phase": "P3", "yaml": text, "sha256": digest_of(text)}
    assert document["config"]["rollback"]["phase"] == "P0"
    assert judged("enabled").document(FIRST)["config"]["next"] is None


def test_the_ladder_is_climbed_one_phase_at_a_time():
    for name, following in (("empty", Phase.P1), ("audited", Phase.P2), ("ready", Phase.P3), ("enabled", None)):
        assert next_phase(judged(name).pair(FIRST)) is following


def test_figures_are_those_of_the_specification():
    proves = judged("empty").document(FIRST)["proves"]
    assert (proves["clean_calls_to_5_percent"], proves["clean_calls_to_1_percent"]) == (59, 299)
    bounds = {row["gate"]: row["upper"] for row in proves["gate_bounds"]}
    assert bounds["proof_of_pair"].startswith("0.2209")  # 12 of 12: 22.1 %
    assert bounds["accepted"].startswith("0.2588")  # 10 of 10: 25.9 %
    assert bounds["proof_calls"].startswith("0.0605")  # 48 of 48: 6.1 %
    chances = {row["gate"]: row["0.10"] for row in proves["pass_chances"]}
    assert chances["accepted"] == "0.348678"


def test_the_joint_bound_is_the_one_over_four_surfaces():
    ten = judged_with_observed_calls(10)
    assert ten["calls"] == 10
    assert ten["joint_upper"].startswith("0.3548")  # 10 of 10 on each of four: 35.5 %


def judged_with_observed_calls(calls: int) -> dict[str, Any]:
    summary = clean_summary(range(calls))
    cells = {cell: counts for cell, counts in summary.pairs[FIRST].cells.items() if cell.date != "-"}
    pairs = {**summary.pairs, FIRST: replace(summary.pairs[FIRST], cells=cells)}
    readiness = assess(replace(summary, pairs=pairs), POLICY, day(calls - 1))
    proves: dict[str, Any] = Judged(readiness, POLICY, True).document(FIRST)["proves"]
    return proves


def test_each_day_of_the_strip_says_what_became_of_it():
    states = {it["date"]: it["state"] for it in judged("failures").document(FIRST)["strip"]}
    assert len(states) == 14
    assert states[day(4)] == "covered"
    assert states[day(5)] == "failed"  # only the mirror saw it
    assert states[day(9)] == "failed"
    assert states[day(10)] == "failed"  # an orphan
    assert states[day(12)] == "missed"
    assert {it["state"] for it in judged("empty").document(FIRST)["strip"]} == {"before"}


def test_a_day_that_is_not_over_takes_no_place_in_the_strip():
    strip = judged("today_open").document(FIRST)["strip"]
    assert (strip[0]["date"], strip[-1]["date"]) == (day(0), day(13))
    assert {it["state"] for it in strip} == {"covered"}


def test_kinds_of_traffic_stand_apart():
    document = judged("failures").document(FIRST)
    kinds = {(row["run_kind"], row["traffic"]): row["accepted"] for row in document["traffic"]}
    assert kinds == {("observation", "organic"): 1, ("observation", "synthetic"): 9, ("proof", "synthetic"): 12}
    assert document["traffic_kinds"] == ["organic", "synthetic"]
    assert sum(row["orphans"] for row in document["traffic"]) == 1


def test_every_candidate_is_counted():
    document = judged("failures").document(FIRST)
    assert [it["ended"] for it in document["candidates"]] == ["call_failed", None]
    assert document["candidate"]["restart"] == 1


def test_a_rehearsal_of_any_pair_marks_every_report():
    assert all(document["rehearsal"] for document in judged("rehearsal").documents().values())
    assert not any(document["rehearsal"] for document in judged("ready").documents().values())

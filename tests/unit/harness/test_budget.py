"""The budget table: pinned, counted again, and true to what the contract says of both wires."""

import base64
import json
import os
import statistics
import subprocess
import sys
from dataclasses import replace

import pytest

from harness import budget
from harness.budget import (
    CHAT_OVERHEAD_TOKENS,
    RATE_TOKENS_PER_SECOND,
    SHAPES,
    Budget,
    Row,
    StaleBudget,
    compute,
    load,
    pinned_text,
)
from harness.contracts import TERMS
from kexpr.codes import Surface, WireVersion
from kexpr.manifest import Manifest
from kexpr.wire.completion import TokenLimits

ONE, TWO = WireVersion.KEXP_1, WireVersion.KEXP_2
DUAL = Surface.ADAPTIVE_DUALCOACHTEST

ROW = Row(
    Surface.DAILY,
    1,
    90,
    request_bytes=6144,
    prompt_tokens=600,
    least_answer_tokens=20,
    full_answer_tokens=160,
    limits=TokenLimits(600, 160, 760),
)


def tokens(text: str) -> int:
    return budget._tokenizer()(text)


@pytest.mark.parametrize("wire", WireVersion)
def test_the_pinned_table_is_what_is_counted_now(wire: WireVersion):
    """On failure: `python -m harness.budget > harness/data/budget.json`."""
    assert load(wire) == compute(wire)


def test_the_pinned_file_is_what_the_command_writes():
    assert json.loads(pinned_text()) == {
        wire.value: {
            "instructions_digest": TERMS[wire].instructions_digest,
            "rows": [
                {name: getattr(row, name) for name in Row.__slots__ if name != "limits"}
                | {"surface": row.surface.value}
                for row in load(wire).rows
            ],
        }
        for wire in WireVersion
    }


@pytest.mark.parametrize("wire", WireVersion)
def test_every_surface_and_slot_count_has_a_row(wire: WireVersion):
    rows = [(row.surface, row.slots) for row in load(wire).rows]
    assert rows == [(surface, len(kinds)) for surface, kinds in SHAPES]
    assert {slots for surface, slots in rows if surface is DUAL} == {1, 2, 3, 4, 5}
    assert {surface for surface, _ in rows} == set(Surface)


def test_wire_2_is_feasible_everywhere():
    assert load(TWO).feasible
    assert all(row.possible and row.feasible for row in load(TWO).rows)


def test_wire_1_is_infeasible_and_with_two_slots_impossible():
    table = load(ONE)
    assert not table.feasible
    for row in table.rows:
        assert row.possible is (row.slots == 1)
        assert not row.feasible, "an answer of 120 characters does not fit beside what it has to echo"


@pytest.mark.parametrize(
    ("field", "value"),
    [("request_bytes", 6145), ("prompt_tokens", 601), ("full_answer_tokens", 161)],
)
def test_each_limit_counts(field: str, value: int):
    assert ROW.feasible
    changed = replace(ROW, **{field: value})  # type: ignore[arg-type]
    assert not changed.feasible
    assert changed.possible is (field == "full_answer_tokens")
    assert not Budget(TWO, (ROW, changed)).feasible


def test_the_total_counts_too():
    tight = replace(ROW, limits=TokenLimits(600, 160, 759))
    assert not tight.feasible
    assert tight.possible


def test_the_anchor_grammar_is_judged_by_its_own_limits():
    table = load(WireVersion.ANCHOR_GRAMMAR)
    assert table.feasible
    assert table.to_json()["limits"] == {
        "prompt": 600,
        "completion": 384,
        "total": 984,
        "request_bytes": 6144,
        "read_timeout_s": 2.0,
    }
    assert not replace(table.rows[0], full_answer_tokens=385).feasible
    assert replace(table.rows[0], full_answer_tokens=384).feasible


def test_time_is_a_warning_and_no_verdict():
    assert ROW.slow
    assert ROW.feasible
    assert ROW.full_answer_seconds == round(160 / RATE_TOKENS_PER_SECOND, 2)
    assert not replace(ROW, full_answer_tokens=2 * RATE_TOKENS_PER_SECOND).slow


def test_the_json_form():
    shown = json.loads(json.dumps(load(TWO).to_json()))
    assert shown["wire"] == "kexp-wire-2"
    assert shown["feasible"] is True
    assert shown["rate_tokens_per_second"] == RATE_TOKENS_PER_SECOND
    assert shown["limits"] == {
        "prompt": 600,
        "completion": 160,
        "total": 760,
        "request_bytes": 6144,
        "read_timeout_s": 2.0,
    }
    assert set(shown["rows"][0]) == {
        "surface", "slots", "limit", "request_bytes", "prompt_tokens", "least_answer_tokens", "full_answer_tokens",
        "possible", "feasible", "full_answer_seconds", "slow",
    }  # fmt: skip


def test_a_table_of_other_instructions_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budget, "TERMS", {TWO: replace(TERMS[TWO], instructions_digest="0" * 64)})
    with pytest.raises(StaleBudget):
        load(TWO)


def test_reading_the_table_loads_no_tokenizer():
    code = (
        "import sys; from harness.budget import load; from kexpr.codes import WireVersion; load(WireVersion.KEXP_2);"
        "print(sorted({'bpe_openai', 'openai', 'httpx'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"


def test_the_contracts_figures_for_an_empty_answer_of_wire_1_lie_in_the_spread():
    """118 tokens for one slot and 199 for two are one draw of aliases; no draw of two comes near 160."""

    def alias(prefix: str) -> str:
        return prefix + base64.b32encode(os.urandom(20)).decode().lower()[:20]

    def empty_answer(surface: str, slots: int) -> int:
        echoed = [
            {
                "slot": alias("l_"),
                "semantic": [alias("s_")],
                "actions": [alias("a_")],
                "placeholders": [f"⟦{alias('p_')}⟧"],
                "generated_ko": "",
            }
            for _ in range(slots)
        ]
        top = {"schema_version": "kexp-wire-1", "surface": surface, "artifact_key": alias("k_"), "slots": echoed}
        return tokens(json.dumps(top, ensure_ascii=False, separators=(",", ":")))

    for surface, slots, figure in (("daily.v1", 1, 118), ("weekly.v1", 2, 199)):
        drawn = [empty_answer(surface, slots) for _ in range(400)]
        assert min(drawn) <= figure <= max(drawn)
        assert abs(statistics.median(drawn) - figure) <= 8
        assert slots == 1 or min(drawn) > 160


def test_the_prose_is_of_average_cost():
    """The contract: Korean costs about 0.6 tokens a character, a placeholder 9 to 12."""
    prose = budget._AVERAGE_PROSE
    assert 0.58 <= tokens(prose) / len(prose) <= 0.66


def test_full_prose_uses_exactly_its_limit():
    issued = budget._issue_prose(TWO, Manifest(Surface.DAILY, (budget._prose_slot(SHAPES[0][1][0], 0),)), 3)
    (slot,) = issued.slots
    for draw in range(200):
        (text,) = budget._full_text(issued, draw)
        assert len(text) - len(slot.tokens[0]) == slot.limit == 90
        assert text.endswith(" " + slot.tokens[0])


def test_the_chat_overhead_is_that_of_two_messages():
    assert 2 * 3 + tokens("system") + tokens("user") + 3 == CHAT_OVERHEAD_TOKENS

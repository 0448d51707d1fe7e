"""What must hold of readiness whatever the evidence is."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from harness.evidence.rows import RunKind, Traffic
from harness.evidence.summary import Audit, Calls, Cell, Check, EvidenceSummary, MirrorCount
from harness.policy import POLICY
from harness.profiles import PAIRS, PATHS, Pair, Profile
from harness.readiness.assess import assess
from harness.readiness.model import LADDERS, GateVerdict, Phase, Readiness
from harness.statistics import anytime_upper, e_value
from harness.verdict import Verdict
from kexpr.codes import Mode, ProviderKind
from tests.support.summaries import add_calls, approved, clean_summary, day, one_call

pairs = st.sampled_from(PAIRS)
days = st.integers(0, 20).map(day)
counts = st.integers(0, 3)


@st.composite
def cells(draw: st.DrawFn, pair: Pair) -> Cell:
    proof = draw(st.booleans())
    return Cell(
        run_kind=RunKind.PROOF if proof else RunKind.OBSERVATION,
        date="-" if proof else draw(days),
        path=draw(st.sampled_from(PATHS[pair.surface])),
        provider=draw(st.sampled_from(ProviderKind)),
        traffic=draw(st.sampled_from(Traffic)),
        mode=draw(st.sampled_from([Mode.SHADOW, Mode.ENABLED])),
    )


@st.composite
def calls(draw: st.DrawFn) -> Calls:
    accepted, refused, orphans, open_calls = draw(counts), draw(counts), draw(counts), draw(counts)
    outcomes = accepted + refused
    return Calls(outcomes + orphans + open_calls, outcomes, accepted, draw(st.integers(0, outcomes)), orphans)


@st.composite
def summaries(draw: st.DrawFn) -> EvidenceSummary:
    """Near a clean promotion, so that each gate is seen on both sides."""
    summary = clean_summary(
        draw(st.one_of(st.just(range(14)), st.sets(st.integers(0, 20)).map(sorted))),
        provider=draw(st.sampled_from([ProviderKind.LIVE, ProviderKind.LIVE, ProviderKind.REHEARSAL])),
    )
    for pair in draw(st.lists(pairs, max_size=3)):
        summary = add_calls(summary, pair, draw(cells(pair)), draw(calls()))
    for pair in draw(st.lists(pairs, max_size=2)):
        summary = approved(summary, pair, draw(st.sampled_from(LADDERS[pair])))
    return replace(
        summary,
        checks=draw(st.one_of(st.just(summary.checks), st.dictionaries(st.sampled_from(Check), st.booleans()))),
        audits=draw(st.one_of(st.just(summary.audits), st.dictionaries(st.sampled_from(Profile), audits))),
    )


audits = st.builds(Audit, st.just("1" * 64), st.booleans(), st.just(0))


def passed(readiness: Readiness) -> set[tuple[Pair, Phase, str]]:
    return {
        (pair.pair, phase.phase, gate.code)
        for pair in readiness.pairs
        for phase in pair.phases
        for gate in phase.gates
        if gate.verdict in (GateVerdict.PASSED, GateVerdict.REHEARSAL)
    }


@given(summaries(), pairs, st.data(), days)
def test_a_failure_turns_no_gate_green(summary: EvidenceSummary, pair: Pair, data: st.DataObject, as_of: str) -> None:
    failure = data.draw(st.sampled_from([one_call(accepted=False), Calls(1, 1, 0, 0, 0), Calls(1, 0, 0, 0, 1)]))
    cell = data.draw(cells(pair))
    before = passed(assess(summary, POLICY, as_of))
    after = passed(assess(add_calls(summary, pair, cell, failure), POLICY, as_of))
    assert after <= before


@given(summaries(), pairs, days, st.integers(1, 4))
def test_the_mirror_only_counts_against(summary: EvidenceSummary, pair: Pair, as_of: str, failures: int) -> None:
    before = passed(assess(summary, POLICY, as_of))
    evidence = summary.pairs[pair]
    for mirror in (MirrorCount(as_of, 10, 0), MirrorCount(as_of, 10, failures)):
        changed = replace(summary, pairs={**summary.pairs, pair: replace(evidence, mirror=(mirror,))})
        assert passed(assess(changed, POLICY, as_of)) <= before


@given(summaries(), days, st.randoms())
def test_order_does_not_matter(summary: EvidenceSummary, as_of: str, random: object) -> None:
    def shuffled(mapping: Mapping[Cell, Calls]) -> dict[Cell, Calls]:
        items = list(mapping.items())
        random.shuffle(items)  # type: ignore[attr-defined]
        return dict(items)

    other = replace(
        summary,
        pairs={pair: replace(it, cells=shuffled(it.cells)) for pair, it in reversed(list(summary.pairs.items()))},
        approvals=summary.approvals[::-1],
    )
    assert assess(other, POLICY, as_of).pairs == assess(summary, POLICY, as_of).pairs


@given(summaries(), days)
def test_rehearsal_is_never_ready(summary: EvidenceSummary, as_of: str) -> None:
    rehearsed = replace(
        summary,
        pairs={
            pair: replace(
                it, cells={replace(cell, provider=ProviderKind.REHEARSAL): calls for cell, calls in it.cells.items()}
            )
            for pair, it in summary.pairs.items()
        },
    )
    for pair in assess(rehearsed, POLICY, as_of).pairs:
        assert all(phase.verdict is not Verdict.READY for phase in pair.phases if phase.phase is not Phase.P0)


@given(summaries(), days)
def test_no_phase_is_better_than_the_one_before_it(summary: EvidenceSummary, as_of: str) -> None:
    order = [Verdict.READY, Verdict.REHEARSAL, Verdict.INSUFFICIENT, Verdict.NOT_READY, Verdict.INVALID]
    for pair in assess(summary, POLICY, as_of).pairs:
        ranks = [order.index(phase.verdict) for phase in pair.phases]
        assert ranks == sorted(ranks)


@given(summaries(), days)
def test_verdict_and_reasons_agree(summary: EvidenceSummary, as_of: str) -> None:
    for pair in assess(summary, POLICY, as_of).pairs:
        for phase in pair.phases:
            assert all((gate.reason is None) == (gate.verdict is GateVerdict.PASSED) for gate in phase.gates)
            all_passed = all(gate.verdict is GateVerdict.PASSED for gate in phase.gates)
            assert (phase.verdict is Verdict.READY) == all_passed


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_each_phase_can_be_reached_from_the_one_before(pair: Pair) -> None:
    """Step by step, each with the evidence that the phase before it made possible."""
    whole = clean_summary()
    audited = replace(whole, pairs={it: replace(e, cells={}) for it, e in whole.pairs.items()}, checks={})
    proved = replace(
        whole,
        pairs={
            it: replace(e, cells={cell: n for cell, n in e.cells.items() if cell.run_kind is RunKind.PROOF})
            for it, e in whole.pairs.items()
        },
    )
    p0, p1, p2, last = LADDERS[pair]
    steps = {p0: audited, p1: proved, p2: whole, last: approved(whole, pair, last)}
    for phase, summary in steps.items():
        result = next(it for it in assess(summary, POLICY, day(14)).pairs if it.pair == pair)
        assert (result.phase, result.verdict) == (phase, Verdict.READY)


@given(st.integers(0, 6), st.integers(0, 300), st.floats(0.005, 0.9))
def test_the_e_value_is_the_mixture_over_the_likelihood(failures: int, more: int, rate: float) -> None:
    calls_made = failures + more
    at_rate = stats.binom.logpmf(failures, calls_made, rate)
    mixed, _ = integrate.quad(
        lambda p: float(stats.binom.pmf(failures, calls_made, p)), 0, rate, limit=200, epsabs=0, epsrel=1e-9
    )
    expected = mixed / rate / float(2.718281828459045**at_rate)
    assert e_value(failures, calls_made, rate) == pytest.approx(expected, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("failures", "calls_needed"), [(0, 88), (1, 134), (2, 174)])
def test_calls_needed_to_promote_at_five_percent(failures: int, calls_needed: int) -> None:
    assert e_value(failures, calls_needed - 1, 0.05) < 20 <= e_value(failures, calls_needed, 0.05)


def test_looking_every_day_fools_the_e_process_rarely() -> None:
    """Ville: at a true rate of 5 %, E ever reaches 20 with probability at most 5 %; 2,000 histories of 300 calls."""
    import numpy as np

    draws = np.random.default_rng(20_260_301)
    promotes = cache(lambda seen, looked: e_value(seen, looked, 0.05) >= 20)
    reached = 0
    for _ in range(2_000):
        failures = np.cumsum(draws.random(300) < 0.05).tolist()
        reached += any(promotes(seen, looked) for looked, seen in enumerate(failures, start=1))
    assert 0 < reached / 2_000 <= 0.05


@given(st.integers(0, 5), st.integers(0, 200))
def test_the_anytime_bound_is_where_the_e_value_turns(failures: int, more: int) -> None:
    bound = anytime_upper(failures, failures + more)
    assert failures / max(failures + more, 1) <= bound <= 1
    if bound < 1:
        assert e_value(failures, failures + more, min(bound + 1e-6, 0.999999)) >= 20 * 0.999

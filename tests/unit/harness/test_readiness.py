"""Every gate of every phase, passed and not, by one change of clean evidence."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.evidence.rows import EndReason, RunKind, Traffic
from harness.evidence.summary import Calls, Cell, Check, EvidenceSummary
from harness.policy import POLICY
from harness.profiles import PAIRS, PATHS, Pair, PathKind, Profile
from harness.readiness.assess import assess
from harness.readiness.gates import GATES
from harness.readiness.model import (
    LADDERS,
    Gate,
    GateCode,
    GateReason,
    GateVerdict,
    PairReadiness,
    Phase,
    Readiness,
)
from harness.readiness.phases import SURFACES, block_of, block_text, digest_of
from harness.verdict import Verdict
from kexpr.codes import Mode, ProviderKind, Surface, WireVersion
from kexpr.config import FEATURE_KEY, Active, Disabled, from_extra
from kexpr.ledger.protocol import Head
from kexpr.strict_yaml import load
from tests.support.summaries import (
    add_calls,
    approved,
    clean_summary,
    day,
    empty_summary,
    failed,
    mirrored,
    one_call,
)

DAILY = PAIRS[0]
WEEKLY = PAIRS[1]
DUAL = next(pair for pair in PAIRS if pair.surface is Surface.ADAPTIVE_DUALCOACHTEST)
AS_OF = day(14)


def of(readiness: Readiness, pair: Pair = DAILY) -> PairReadiness:
    return next(it for it in readiness.pairs if it.pair == pair)


def gate(summary: EvidenceSummary, code: GateCode, *, pair: Pair = DAILY, as_of: str = AS_OF) -> Gate:
    """The gate in the phase that asks it first."""
    phases = of(assess(summary, POLICY, as_of), pair).phases
    return next(it for phase in phases for it in phase.gates if it.code is code)


def test_clean_live_evidence_is_ready_to_be_enabled() -> None:
    readiness = assess(clean_summary(), POLICY, AS_OF)
    assert [(it.phase, it.verdict) for it in readiness.pairs] == [(Phase.P2, Verdict.READY)] * 5
    assert all(it.window.days == 14 and it.window.accepted == 14 and not it.window.gaps for it in readiness.pairs)


def test_an_approval_begins_the_last_phase_of_its_pair_alone() -> None:
    readiness = assess(approved(clean_summary(), DAILY, Phase.P3), POLICY, AS_OF)
    assert (of(readiness).phase, of(readiness).verdict) == (Phase.P3, Verdict.READY)
    assert of(readiness, WEEKLY).phase is Phase.P2
    assert of(readiness, WEEKLY).phases[-1].verdict is Verdict.INSUFFICIENT


def test_rehearsal_evidence_satisfies_no_gate_of_calls() -> None:
    readiness = assess(clean_summary(provider=ProviderKind.REHEARSAL), POLICY, AS_OF)
    assert {it.verdict for it in readiness.pairs} == {Verdict.REHEARSAL}
    gates = {it.code: it for it in of(readiness).phases[2].gates}
    assert gates[GateCode.DAYS_COVERED].verdict is GateVerdict.REHEARSAL
    assert gates[GateCode.PREVIOUS_PHASE].reason is GateReason.REHEARSAL_ONLY


def test_one_rehearsed_day_among_live_ones_is_a_rehearsal() -> None:
    summary = add_calls(clean_summary(), DAILY, _cell(day(5), ProviderKind.REHEARSAL), one_call())
    readiness = assess(summary, POLICY, AS_OF)
    assert of(readiness).verdict is Verdict.REHEARSAL
    assert of(readiness, WEEKLY).verdict is Verdict.READY


def test_no_evidence_is_insufficient_in_the_first_phase() -> None:
    readiness = assess(empty_summary(), POLICY, AS_OF)
    assert [(it.phase, it.verdict) for it in readiness.pairs] == [(Phase.P0, Verdict.INSUFFICIENT)] * 5


def test_a_failure_on_day_nine_stops_its_surface_alone() -> None:
    readiness = assess(failed(clean_summary(), WEEKLY, day(8)), POLICY, AS_OF)
    assert (of(readiness, WEEKLY).phase, of(readiness, WEEKLY).verdict) == (Phase.P2, Verdict.NOT_READY)
    assert [it.verdict for it in readiness.pairs if it.pair != WEEKLY] == [Verdict.READY] * 4


def test_a_failure_leaves_the_window_fourteen_days_later() -> None:
    summary = failed(clean_summary(range(1, 30)), DAILY, day(0))
    assert of(assess(summary, POLICY, day(13))).verdict is Verdict.NOT_READY
    assert of(assess(summary, POLICY, day(14))).verdict is Verdict.READY


def test_a_gap_restarts_the_count_and_is_counted() -> None:
    summary = clean_summary([*range(6), *range(7, 20)])
    at_end = of(assess(summary, POLICY, day(20)))
    assert (at_end.window.days, at_end.window.gaps, at_end.verdict) == (13, 1, Verdict.INSUFFICIENT)
    assert at_end.window.first == day(7)


def test_calls_after_the_day_are_not_seen() -> None:
    assert of(assess(clean_summary(), POLICY, day(9))).window.days == 10


def test_readiness_lapses_two_days_after_the_last_covered_one() -> None:
    assert of(assess(clean_summary(), POLICY, day(15))).verdict is Verdict.READY
    late = of(assess(clean_summary(), POLICY, day(16)))
    assert late.verdict is Verdict.INSUFFICIENT
    assert late.window.gaps == 2


@pytest.mark.parametrize(
    ("anchor", "holds", "verdict"),
    [
        (Head(500, "f" * 64), True, Verdict.READY),
        (Head(499, "0" * 64), True, Verdict.READY),
        (Head(499, "0" * 64), False, Verdict.INVALID),
        (Head(500, "0" * 64), True, Verdict.INVALID),
        (Head(501, "f" * 64), True, Verdict.INVALID),
    ],
)
def test_a_chain_without_its_anchor_is_invalid(anchor: Head, holds: bool, verdict: Verdict) -> None:
    readiness = assess(clean_summary(), POLICY, AS_OF, anchor, anchor_holds=holds)
    assert {it.verdict for it in readiness.pairs} == {verdict}


def _cell(on: str, provider: ProviderKind = ProviderKind.LIVE, path: PathKind = PathKind.DAILY) -> Cell:
    return Cell(RunKind.OBSERVATION, on, path, provider, Traffic.SYNTHETIC, Mode.SHADOW)


def _proof(calls: Calls) -> Callable[[EvidenceSummary], EvidenceSummary]:
    cell = Cell(RunKind.PROOF, "-", PathKind.DAILY, ProviderKind.LIVE, Traffic.SYNTHETIC, Mode.SHADOW)
    return lambda summary: add_calls(summary, DAILY, cell, calls)


def _check(check: Check, passed: bool) -> Callable[[EvidenceSummary], EvidenceSummary]:
    return lambda summary: replace(summary, checks={**summary.checks, check: passed})


def _no_check(check: Check) -> Callable[[EvidenceSummary], EvidenceSummary]:
    return lambda summary: replace(summary, checks={it: True for it in Check if it is not check})


def _audit(ready: bool) -> Callable[[EvidenceSummary], EvidenceSummary]:
    return lambda summary: replace(
        summary, audits={profile: replace(audit, ready=ready) for profile, audit in summary.audits.items()}
    )


def _slow_proof(summary: EvidenceSummary) -> EvidenceSummary:
    evidence = summary.pairs[DUAL]
    late = replace(evidence, proof_last_utc_ms=(evidence.proof_first_utc_ms or 0) + 86_400_001)
    return replace(summary, pairs={**summary.pairs, DUAL: late})


def _uneven_proof(summary: EvidenceSummary) -> EvidenceSummary:
    """As many calls as are asked, but one of the weekly pair's was another one of the daily pair."""
    weekly = Cell(RunKind.PROOF, "-", PathKind.WEEKLY, ProviderKind.LIVE, Traffic.SYNTHETIC, Mode.SHADOW)
    return add_calls(_proof(one_call())(summary), WEEKLY, weekly, Calls(-1, -1, -1, -1))


def _other_policy(summary: EvidenceSummary) -> EvidenceSummary:
    (candidate,) = summary.candidates
    pinned = replace(candidate, pin=replace(candidate.pin, policy_digest="6" * 64))
    return replace(summary, candidates=(pinned,))


CASES: list[tuple[GateCode, Callable[[EvidenceSummary], EvidenceSummary], GateVerdict, GateReason]] = [
    (GateCode.CONFIG_AUDIT, lambda it: replace(it, audits={}), GateVerdict.MISSING, GateReason.NO_AUDIT),
    (GateCode.CONFIG_AUDIT, _audit(False), GateVerdict.FAILED, GateReason.AUDIT_NOT_READY),
    (GateCode.CANDIDATE_OPEN, lambda it: replace(it, candidates=()), GateVerdict.MISSING, GateReason.NO_CANDIDATE),
    (
        GateCode.CANDIDATE_OPEN,
        lambda it: replace(it, candidates=clean_summary(ended=EndReason.OPERATOR).candidates),
        GateVerdict.FAILED,
        GateReason.CANDIDATE_ENDED,
    ),
    (GateCode.CANDIDATE_OPEN, _other_policy, GateVerdict.FAILED, GateReason.POLICY_CHANGED),
    (GateCode.BUDGET_FEASIBLE, _check(Check.BUDGET, False), GateVerdict.FAILED, GateReason.CHECK_FAILED),
    (GateCode.GUARD_AT_BAR, _check(Check.GUARD, False), GateVerdict.FAILED, GateReason.CHECK_FAILED),
    (GateCode.CANARIES_CLEAN, _check(Check.CANARIES, False), GateVerdict.FAILED, GateReason.CHECK_FAILED),
    (GateCode.BUDGET_FEASIBLE, _no_check(Check.BUDGET), GateVerdict.MISSING, GateReason.NOT_CHECKED),
    (GateCode.GUARD_AT_BAR, _no_check(Check.GUARD), GateVerdict.MISSING, GateReason.NOT_CHECKED),
    (GateCode.CANARIES_CLEAN, _no_check(Check.CANARIES), GateVerdict.MISSING, GateReason.NOT_CHECKED),
    (GateCode.PROOF_CALLS, _proof(one_call()), GateVerdict.FAILED, GateReason.CALLS_EXTRA),
    (GateCode.PROOF_CALLS, _proof(Calls(-1, -1, -1, -1)), GateVerdict.MISSING, GateReason.CALLS_MISSING),
    (GateCode.PROOF_CALLS, _uneven_proof, GateVerdict.MISSING, GateReason.CALLS_MISSING),
    (GateCode.PROOF_CALLS, _proof(Calls(0, 0, -1, 0)), GateVerdict.FAILED, GateReason.CALLS_FAILED),
    (GateCode.PROOF_WINDOW, _slow_proof, GateVerdict.FAILED, GateReason.WINDOW_EXCEEDED),
    (
        GateCode.PROOF_REQUESTS,
        _proof(Calls(0, 0, 0, 1)),
        GateVerdict.BROKEN,
        GateReason.MORE_REQUESTS_THAN_INTENTS,
    ),
    (
        GateCode.PROOF_REQUESTS,
        _proof(Calls(0, 0, 0, -1)),
        GateVerdict.FAILED,
        GateReason.FEWER_REQUESTS_THAN_INTENTS,
    ),
    (GateCode.PROOF_NO_ORPHAN, _proof(Calls(0, -1, -1, 0, 1)), GateVerdict.FAILED, GateReason.ORPHANED),
    (GateCode.DAYS_COVERED, lambda _: clean_summary(range(1, 14)), GateVerdict.MISSING, GateReason.DAYS_MISSING),
    (GateCode.ACCEPTED, lambda _: clean_summary(range(9)), GateVerdict.MISSING, GateReason.TOO_FEW_ACCEPTED),
    (GateCode.NO_FAILURE, lambda it: failed(it, DAILY, day(3)), GateVerdict.FAILED, GateReason.CALLS_FAILED),
    (
        GateCode.NO_ORPHAN,
        lambda it: failed(it, DAILY, day(3), outcomes=0, orphans=1),
        GateVerdict.FAILED,
        GateReason.ORPHANED,
    ),
    (
        GateCode.REQUESTS_EQUAL_INTENTS,
        lambda it: failed(it, DAILY, day(3), requests=0),
        GateVerdict.FAILED,
        GateReason.FEWER_REQUESTS_THAN_INTENTS,
    ),
    (
        GateCode.REQUESTS_EQUAL_INTENTS,
        lambda it: failed(it, DAILY, day(3), requests=2),
        GateVerdict.BROKEN,
        GateReason.MORE_REQUESTS_THAN_INTENTS,
    ),
    (GateCode.RECENT, lambda _: clean_summary(range(12)), GateVerdict.MISSING, GateReason.LAPSED),
    (GateCode.MIRROR_CLEAN, lambda it: mirrored(it, DAILY, day(3), 2), GateVerdict.FAILED, GateReason.MIRROR_FAILURE),
    (GateCode.APPROVAL, lambda it: it, GateVerdict.MISSING, GateReason.NOT_APPROVED),
    (
        GateCode.PREVIOUS_PHASE,
        lambda it: replace(it, audits={}),
        GateVerdict.MISSING,
        GateReason.PREVIOUS_NOT_PASSED,
    ),
]


@pytest.mark.parametrize(
    ("code", "change", "verdict", "reason"), CASES, ids=[f"{code}-{reason}" for code, _, _, reason in CASES]
)
def test_each_gate_says_why_it_is_not_passed(
    code: GateCode,
    change: Callable[[EvidenceSummary], EvidenceSummary],
    verdict: GateVerdict,
    reason: GateReason,
) -> None:
    result = gate(change(clean_summary()), code)
    assert (result.verdict, result.reason) == (verdict, reason)
    if code is not GateCode.APPROVAL:
        before = gate(clean_summary(), code)
        assert (before.verdict, before.reason) == (GateVerdict.PASSED, None)


def test_every_gate_and_reason_has_a_case() -> None:
    special = {GateCode.CHAIN_INTACT, GateCode.BOTH_PRODUCERS}
    assert {code for code, *_ in CASES} | special == set(GateCode)
    elsewhere = {GateReason.ANCHOR_MISMATCH, GateReason.REHEARSAL_ONLY, GateReason.PRODUCER_MISSING}
    assert {reason for *_, reason in CASES} | elsewhere == set(GateReason)
    assert {code for codes in GATES.values() for code in codes} == set(GateCode)


def test_a_card_is_enabled_only_after_both_producers_were_seen() -> None:
    both = clean_summary()
    callback_only = replace(
        both,
        pairs={
            **both.pairs,
            DUAL: replace(
                both.pairs[DUAL],
                cells={
                    replace(cell, path=PathKind.CALLBACK): calls
                    for cell, calls in both.pairs[DUAL].cells.items()
                    if cell.run_kind is RunKind.OBSERVATION
                }
                | {cell: calls for cell, calls in both.pairs[DUAL].cells.items() if cell.run_kind is RunKind.PROOF},
            ),
        },
    )
    assert gate(both, GateCode.BOTH_PRODUCERS, pair=DUAL).verdict is GateVerdict.PASSED
    assert gate(callback_only, GateCode.BOTH_PRODUCERS, pair=DUAL).reason is GateReason.PRODUCER_MISSING


def test_an_approval_of_another_candidate_or_phase_does_not_count() -> None:
    old = approved(clean_summary(), DAILY, Phase.P3)
    old = replace(old, approvals=tuple(replace(it, candidate="0" * 16 + "-0") for it in old.approvals))
    assert gate(old, GateCode.APPROVAL).reason is GateReason.NOT_APPROVED
    assert gate(approved(clean_summary(), DAILY, Phase.P4), GateCode.APPROVAL).reason is GateReason.NOT_APPROVED


def test_mirror_failures_before_the_window_are_over() -> None:
    summary = mirrored(clean_summary(range(1, 15)), DAILY, day(0), 5)
    assert gate(summary, GateCode.MIRROR_CLEAN, as_of=day(14)).verdict is GateVerdict.PASSED


def test_enabled_traffic_covers_no_day_of_the_shadow() -> None:
    cell = replace(_cell(day(14)), mode=Mode.ENABLED)
    summary = add_calls(clean_summary(), DAILY, cell, one_call())
    assert of(assess(summary, POLICY, day(15))).window.last == day(13)


def test_bounds_say_how_much_is_proved() -> None:
    bounds = of(assess(clean_summary(), POLICY, AS_OF), WEEKLY).bounds
    assert (bounds.calls, bounds.failures, bounds.manifests) == (20, 0, 20)
    assert bounds.upper == pytest.approx(0.1391, abs=1e-4)
    assert bounds.clean_calls_to_5_percent == 59 - 20
    assert bounds.clean_calls_to_1_percent == 299 - 20
    assert bounds.upper < bounds.anytime_upper < 1


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("wire", [WireVersion.KEXP_1, WireVersion.KEXP_2])
def test_each_phase_has_a_block_that_the_library_takes(phase: Phase, profile: Profile, wire: WireVersion) -> None:
    parsed = from_extra({FEATURE_KEY: block_of(profile, phase, wire)})
    on = SURFACES[phase][profile]
    if not on:
        assert isinstance(parsed, Disabled)
        return
    assert isinstance(parsed, Active)
    assert parsed.surfaces == frozenset(on)
    assert parsed.mode is (Mode.SHADOW if phase in (Phase.P1, Phase.P2) else Mode.ENABLED)
    assert parsed.wire is wire


def test_the_text_of_a_block_reads_back_as_the_block() -> None:
    text = block_text(Profile.PHYSIQUE_COACH, Phase.P3, WireVersion.KEXP_2)
    extra = load(text.encode())
    assert extra == {
        "platforms": {
            "telegram": {"extra": {FEATURE_KEY: block_of(Profile.PHYSIQUE_COACH, Phase.P3, WireVersion.KEXP_2)}}
        }
    }
    assert len(digest_of(text)) == 64


def test_each_pair_is_enabled_by_the_phase_of_its_surface() -> None:
    for pair, ladder in LADDERS.items():
        assert pair.surface in SURFACES[ladder[-1]][pair.profile]
        assert PATHS[pair.surface]


def test_the_worst_gate_decides() -> None:
    summary = failed(clean_summary(range(1, 14), provider=ProviderKind.REHEARSAL), WEEKLY, day(3))
    phase = of(assess(summary, POLICY, AS_OF), WEEKLY).phases[2]
    assert (phase.deciding.code, phase.deciding.reason) == (GateCode.NO_FAILURE, GateReason.CALLS_FAILED)
    assert of(assess(clean_summary(), POLICY, AS_OF)).phases[2].deciding.reason is None

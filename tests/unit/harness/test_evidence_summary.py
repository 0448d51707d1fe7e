"""What a summary counts, and that a prefix gives the summary of its time."""

from pathlib import Path

import pytest

from harness.evidence import EndReason, EvidenceLedger, EvidenceRefused, RunKind, RunSpec, Slot, Traffic
from harness.evidence.ledger import read_prefix
from harness.evidence.rows import Check, MirrorRow, MirrorTally
from harness.evidence.state import Refusal
from harness.evidence.summary import Calls, Cell, MirrorCount, OutcomeSeries
from harness.profiles import PAIRS, PATHS, PathKind, Profile
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, Surface, WireVersion
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Head
from tests.unit.harness.evidence_samples import OBSERVATION, OTHER_PIN, PIN, PROOF, SteppingClock, call, proof_slot

DAY = "2026-09-21"
DAILY, CARD = PAIRS[0], PAIRS[3]
DIGEST = "d" * 64


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "evidence"


@pytest.fixture
def evidence(directory: Path):
    opened = EvidenceLedger.open(directory, SteppingClock())
    opened.ensure_candidate(PIN)
    yield opened
    opened.close()


def _observed(ordinal: int = 12, path: PathKind = PathKind.DAILY) -> Slot:
    pair = DAILY if path is PathKind.DAILY else CARD
    return Slot(RunKind.OBSERVATION, pair, path, ordinal, DAY)


def _mirror(lines: int, failures: int = 1, *, month: str = "2026-09") -> MirrorRow:
    return MirrorRow(
        Profile.PHYSIQUE_COACH, month, lines, DIGEST, (MirrorTally(Surface.DAILY, f"{month}-03", 4, failures),)
    )


def test_calls_are_told_apart_by_day_path_provider_and_traffic(evidence: EvidenceLedger) -> None:
    evidence.begin_run(OBSERVATION)
    call(evidence, _observed())
    call(evidence, _observed(12, PathKind.CALLBACK))
    call(evidence, _observed(13, PathKind.TYPED_NOTE), Outcome.CANONICAL_TIMEOUT)
    evidence.finish_run()
    cells = evidence.summary().pairs[CARD].cells
    synthetic = (ProviderKind.REHEARSAL, Traffic.SYNTHETIC, Mode.SHADOW)
    assert cells == {
        Cell(RunKind.OBSERVATION, DAY, PathKind.CALLBACK, *synthetic): Calls(1, 1, 1, 1),
        Cell(RunKind.OBSERVATION, DAY, PathKind.TYPED_NOTE, *synthetic): Calls(1, 1, 0, 1),
    }
    assert evidence.summary().pairs[CARD].observation_manifests == 2


def test_organic_traffic_counts_apart_and_as_no_manifest(evidence: EvidenceLedger) -> None:
    evidence.begin_run(RunSpec(RunKind.OBSERVATION, ProviderKind.LIVE, Mode.SHADOW, (DAILY,), Traffic.ORGANIC))
    call(evidence, _observed())
    evidence.finish_run()
    seen = evidence.summary().pairs[DAILY]
    assert {cell.traffic for cell in seen.cells} == {Traffic.ORGANIC}
    assert seen.observation_manifests == 0


def test_an_open_call_is_in_progress_while_its_run_lives_and_an_orphan_after_it(evidence: EvidenceLedger) -> None:
    evidence.begin_run(OBSERVATION)
    evidence.intent(_observed())
    (calls,) = evidence.summary().pairs[DAILY].cells.values()
    assert (calls.in_progress, calls.failures, evidence.summary().in_progress) == (1, 0, 1)
    evidence.finish_run()
    for _ in range(2):
        (calls,) = evidence.summary().pairs[DAILY].cells.values()
        assert (calls.in_progress, calls.failures, calls.orphans) == (0, 1, 1)
        evidence.begin_run(OBSERVATION)
        evidence.finish_run()


def test_totals_outlive_candidates_and_pairs_do_not(evidence: EvidenceLedger) -> None:
    evidence.begin_run(PROOF)
    call(evidence, proof_slot())
    evidence.finish_run()
    evidence.ensure_candidate(OTHER_PIN)
    summary = evidence.summary()
    labels = OutcomeSeries(
        Profile.PHYSIQUE_COACH, Surface.DAILY, Mode.SHADOW, Outcome.SHADOW_SELECTED, WireVersion.KEXP_2
    )
    assert summary.outcome_totals == {labels: 1}
    assert not summary.pairs[DAILY].cells
    assert [it.ended for it in summary.candidates] == [EndReason.PIN_CHANGED, None]


def test_latency_falls_into_inclusive_buckets_and_refusals_into_none(evidence: EvidenceLedger) -> None:
    evidence.begin_run(OBSERVATION)
    for ordinal, duration_ms in enumerate((50, 51, 4_001)):
        slot = _observed(12 + ordinal)
        evidence.intent(slot)
        evidence.outcome(slot, Outcome.SHADOW_SELECTED, None, duration_ms=duration_ms, requests=1)
    refused = _observed(20)
    evidence.intent(refused)
    evidence.outcome(refused, Outcome.OVERLOADED, None, duration_ms=1, requests=0)
    evidence.finish_run()
    assert evidence.summary().pairs[DAILY].latency == (1, 1, *[0] * 8, 1)
    assert evidence.summary().duration_sums_ms[DAILY] == 50 + 51 + 4_001


@pytest.mark.parametrize("found", [(False,), (False, True), (True, False), (True, False, True)])
def test_a_leak_is_not_taken_back_by_a_later_clean_run(evidence: EvidenceLedger, found: tuple[bool, ...]) -> None:
    for passed in found:
        evidence.record_check(Check.CANARIES, passed=passed)
    assert evidence.summary().checks == {Check.CANARIES: False}
    evidence.ensure_candidate(OTHER_PIN)
    evidence.record_check(Check.CANARIES, passed=True)
    assert evidence.summary().checks == {Check.CANARIES: True}


def test_checks_are_the_candidates_and_audits_are_not(evidence: EvidenceLedger) -> None:
    evidence.record_check(Check.GUARD, passed=True)
    evidence.record_audit(Profile.DUALCOACHTEST, DIGEST, ready=True)
    assert evidence.summary().checks == {Check.GUARD: True}
    evidence.ensure_candidate(OTHER_PIN)
    assert not evidence.summary().checks
    assert evidence.summary().audits[Profile.DUALCOACHTEST].ready


def test_an_approval_needs_an_open_candidate_and_an_opaque_name(evidence: EvidenceLedger) -> None:
    candidate = evidence.ensure_candidate(PIN).id

    def approve(approver: str, phase: str = "P3") -> None:
        evidence.record_approval(candidate, DAILY, phase, report_digest=DIGEST, config_digest=DIGEST, approver=approver)

    approve("approver-7")
    (approval,) = evidence.summary().approvals
    assert (approval.pair, approval.phase, approval.approver) == (DAILY, "P3", "approver-7")
    for approver in ("김민수", "A", "ab", "x" * 33, "-ab"):
        with pytest.raises(LedgerFailed, match=StoreFault.ILLEGAL_HISTORY):
            approve(approver)
    with pytest.raises(LedgerFailed):
        approve("approver-7", "P9")
    evidence.end_candidate(EndReason.OPERATOR)
    with pytest.raises(EvidenceRefused, match=Refusal.CANDIDATE_ENDED):
        approve("approver-7")
    evidence.ensure_candidate(OTHER_PIN)
    with pytest.raises(EvidenceRefused, match=Refusal.NO_CANDIDATE):
        approve("approver-7")


def test_a_mirror_goes_on_only_behind_what_was_counted(evidence: EvidenceLedger) -> None:
    evidence.record_mirror(_mirror(10))
    with pytest.raises(EvidenceRefused, match=Refusal.MIRROR_OUT_OF_ORDER):
        evidence.record_mirror(_mirror(10))
    evidence.record_mirror(_mirror(11, 0))
    evidence.record_mirror(_mirror(3, month="2026-10"))
    assert evidence.mirrored(Profile.PHYSIQUE_COACH, "2026-09") == _mirror(11, 0)
    assert evidence.mirrored(Profile.DUALCOACHTEST, "2026-09") is None
    assert evidence.summary().pairs[DAILY].mirror == (MirrorCount("2026-09-03", 8, 1), MirrorCount("2026-10-03", 4, 1))


@pytest.mark.parametrize(
    "row",
    [
        MirrorRow(Profile.PHYSIQUE_COACH, "2026-09", 1, DIGEST, (MirrorTally(Surface.DAILY, "2026-08-01", 1, 0),)),
        MirrorRow(Profile.PHYSIQUE_COACH, "2026-09", 1, DIGEST, (MirrorTally(Surface.DAILY, "2026-09-01", 1, 2),)),
        MirrorRow(Profile.DUALCOACHTEST, "2026-09", 1, DIGEST, (MirrorTally(Surface.DAILY, "2026-09-01", 1, 0),)),
        MirrorRow(Profile.PHYSIQUE_COACH, "2026-13", 1, DIGEST, ()),
        MirrorRow(Profile.PHYSIQUE_COACH, "2026-09", -1, DIGEST, ()),
    ],
)
def test_an_inconsistent_mirror_row_is_not_written(evidence: EvidenceLedger, row: MirrorRow) -> None:
    before = evidence.head()
    with pytest.raises(LedgerFailed, match=StoreFault.ILLEGAL_HISTORY):
        evidence.record_mirror(row)
    assert evidence.head() == before


def test_each_prefix_gives_the_summary_of_its_time(evidence: EvidenceLedger, directory: Path) -> None:
    seen = [evidence.summary()]
    steps = [
        lambda: evidence.record_check(Check.BUDGET, passed=True),
        lambda: evidence.begin_run(PROOF),
        lambda: call(evidence, proof_slot()),
        lambda: evidence.intent(proof_slot(1)),
        evidence.finish_run,
        lambda: evidence.record_audit(Profile.PHYSIQUE_COACH, DIGEST, ready=False),
        lambda: evidence.ensure_candidate(OTHER_PIN),
        lambda: evidence.record_mirror(_mirror(10)),
    ]
    for step in steps:
        step()
        seen.append(evidence.summary())
    for summary in seen:
        if not summary.in_progress:
            assert read_prefix(directory, summary.head) == summary


def test_a_prefix_reads_beside_a_run_and_refuses_another_head(evidence: EvidenceLedger, directory: Path) -> None:
    evidence.begin_run(OBSERVATION)
    evidence.intent(_observed())
    head = evidence.head()
    assert read_prefix(directory, head).pairs[DAILY].cells[
        Cell(RunKind.OBSERVATION, DAY, PATHS[Surface.DAILY][0], ProviderKind.REHEARSAL, Traffic.SYNTHETIC, Mode.SHADOW)
    ] == Calls(1, 0, 0, 0, 1)
    for other in (Head(head.sequence, "0" * 64), Head(head.sequence + 1, head.digest)):
        with pytest.raises(LedgerFailed, match=StoreFault.HEAD_MISMATCH):
            read_prefix(directory, other)
    with pytest.raises(LedgerFailed, match=StoreFault.HEAD_MISMATCH):
        read_prefix(directory / "nothing", head)
    assert not (directory / "nothing").exists()


def test_what_was_read_does_not_change(evidence: EvidenceLedger) -> None:
    evidence.begin_run(OBSERVATION)
    before = evidence.summary()
    call(evidence, _observed())
    assert not before.pairs[DAILY].cells
    assert not before.outcome_totals
    assert evidence.summary().pairs[DAILY].outcomes == {Outcome.SHADOW_SELECTED: 1}


def test_reasons_are_counted_by_surface(evidence: EvidenceLedger) -> None:
    evidence.begin_run(OBSERVATION)
    slot = _observed()
    evidence.intent(slot)
    evidence.outcome(slot, Outcome.CANONICAL_VALIDATION_REJECTED, Reason.GUARD_NUMERAL, duration_ms=5, requests=1)
    ((series, count),) = evidence.summary().reason_totals.items()
    assert (series.surface, series.reason, count) == (Surface.DAILY, Reason.GUARD_NUMERAL, 1)

"""The evidence ledger: what may follow what, orphans, the run lock, and what a reader refuses."""

import multiprocessing
import os
import signal
import stat
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from harness.candidate import Candidate
from harness.evidence import (
    EndReason,
    EvidenceLedger,
    EvidenceRefused,
    Refusal,
    RunKind,
    RunSpec,
    Slot,
)
from harness.evidence.ledger import RUN_LOCK_NAME
from harness.evidence.summary import ReasonSeries
from harness.profiles import PAIRS, PATHS, Pair, PathKind, Profile
from harness.report.reference import is_day
from kexpr.clock import SystemClock
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, Surface
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.protocol import Head
from kexpr.testing.canaries import Canaries
from tests.unit.harness.evidence_samples import OBSERVATION, OTHER_PIN, PIN, PROOF, SteppingClock, call, proof_slot


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "evidence"


@pytest.fixture
def evidence(directory):
    opened = EvidenceLedger.open(directory, SteppingClock())
    yield opened
    opened.close()


@pytest.fixture
def running(evidence):
    evidence.ensure_candidate(PIN)
    evidence.begin_run(PROOF)
    return evidence


def _refused(code):
    return pytest.raises(EvidenceRefused, match=f"^{code.value}$")


def _illegal():
    return pytest.raises(LedgerFailed, match=f"^{StoreFault.ILLEGAL_HISTORY.value}$")


def test_a_whole_proof_is_counted(running):
    for pair, calls in zip(PAIRS, (12, 6, 6, 12, 12), strict=True):
        for ordinal in range(calls):
            call(running, proof_slot(ordinal, pair))
    view = running.view()
    assert (view.intents, view.outcomes, view.requests) == (48, 48, 48)
    assert view.orphans == view.in_progress == ()
    summary = running.summary()
    assert sum(summary.outcome_totals.values()) == 48
    assert {series.outcome for series in summary.outcome_totals} == {Outcome.SHADOW_SELECTED}
    assert {slot.call.path for slot in view.slots} == set(PathKind)
    assert view.candidate is not None
    assert view.candidate.candidate == Candidate(PIN.digest, 0)
    assert view.run is not None
    assert view.run.row.run == 1
    assert all(slot.intended_utc_ms > view.run.started_utc_ms for slot in view.slots)


def test_rejections_are_counted_by_reason(running):
    slot = proof_slot()
    running.intent(slot)
    running.outcome(slot, Outcome.CANONICAL_VALIDATION_REJECTED, Reason.GUARD_NUMERAL, duration_ms=900, requests=1)
    summary = running.summary()
    assert summary.reason_totals == {ReasonSeries(PAIRS[0].surface, Reason.GUARD_NUMERAL): 1}
    assert summary.pairs[PAIRS[0]].reasons == {Reason.GUARD_NUMERAL: 1}


def test_reopening_gives_the_same_view(running, directory):
    call(running, proof_slot())
    running.finish_run()
    again = EvidenceLedger.open(directory, SteppingClock())
    assert again.view() == running.view()
    assert again.head() == running.head()
    again.close()


def test_a_slot_is_never_called_twice(running, directory):
    slot = proof_slot()
    running.intent(slot)
    with _refused(Refusal.DUPLICATE_SLOT):
        running.intent(slot)
    running.outcome(slot, Outcome.SHADOW_SELECTED, None, duration_ms=1, requests=1)
    with _refused(Refusal.DUPLICATE_SLOT):
        running.intent(slot)
    running.finish_run()
    again = EvidenceLedger.open(directory, SteppingClock())
    again.resume_run(PROOF)
    with _refused(Refusal.DUPLICATE_SLOT):
        again.intent(slot)
    assert again.view().intents == 1
    again.close()


def test_only_days_that_there_are_can_be_observed(evidence):
    evidence.ensure_candidate(PIN)
    evidence.begin_run(OBSERVATION)
    days = {f"20{year:02}-{month:02}-{day:02}" for year in (26, 28) for month in range(14) for day in range(33)}
    for day in sorted(days):
        try:
            evidence.intent(Slot(RunKind.OBSERVATION, PAIRS[0], PathKind.DAILY, 12, day))
        except LedgerFailed:
            continue
        days.remove(day)
        assert date.fromisoformat(day).isoformat() == day
    assert not [day for day in days if is_day(day)]


def test_the_path_kind_does_not_make_another_slot(running):
    pair = Pair(Profile.PHYSIQUE_COACH, Surface.ADAPTIVE_PHYSIQUE)
    call(running, Slot(RunKind.PROOF, pair, PathKind.CALLBACK, 3))
    with _refused(Refusal.DUPLICATE_SLOT):
        running.intent(Slot(RunKind.PROOF, pair, PathKind.TYPED_NOTE, 3))


def test_an_outcome_needs_its_intent_and_comes_once(running):
    slot = proof_slot()
    with _refused(Refusal.UNKNOWN_SLOT):
        running.outcome(slot, Outcome.SHADOW_SELECTED, None, duration_ms=1, requests=1)
    call(running, slot)
    with _refused(Refusal.UNKNOWN_SLOT):
        running.outcome(slot, Outcome.SHADOW_SELECTED, None, duration_ms=1, requests=1)
    assert running.view().requests == 1


def test_an_intent_needs_a_run_that_this_object_holds(evidence, directory):
    with _refused(Refusal.NO_CANDIDATE):
        evidence.begin_run(PROOF)
    with _refused(Refusal.NO_RUN):
        evidence.intent(proof_slot())
    evidence.ensure_candidate(PIN)
    evidence.begin_run(PROOF)
    other = EvidenceLedger.open(directory, SteppingClock())
    with _refused(Refusal.NO_RUN):
        other.intent(proof_slot())
    evidence.finish_run()
    with _refused(Refusal.NO_RUN):
        evidence.intent(proof_slot())
    other.close()


@pytest.mark.parametrize(
    "slot",
    [
        Slot(RunKind.OBSERVATION, PAIRS[0], PathKind.DAILY, 0, "2026-09-21"),
        Slot(RunKind.PROOF, PAIRS[4], PathKind.CALLBACK, 0),
    ],
)
def test_an_intent_belongs_to_its_run(evidence, slot):
    evidence.ensure_candidate(PIN)
    evidence.begin_run(replace(PROOF, surfaces=PAIRS[:4]))
    with _refused(Refusal.NOT_IN_RUN):
        evidence.intent(slot)


@pytest.mark.parametrize(
    "slot",
    [
        Slot(RunKind.PROOF, Pair(Profile.DUALCOACHTEST, Surface.DAILY), PathKind.DAILY, 0),
        Slot(RunKind.PROOF, PAIRS[0], PathKind.WEEKLY, 0),
        Slot(RunKind.PROOF, PAIRS[0], PathKind.DAILY, 0, "2026-09-21"),
        Slot(RunKind.OBSERVATION, PAIRS[0], PathKind.DAILY, 0),
        Slot(RunKind.PROOF, PAIRS[0], PathKind.DAILY, -1),
        Slot(RunKind.OBSERVATION, PAIRS[0], PathKind.DAILY, 0, "민수의 날"),
    ],
)
def test_a_slot_that_cannot_be_is_not_written(running, slot):
    head = running.head()
    with _illegal():
        running.intent(slot)
    assert running.head() == head
    call(running, proof_slot())


@pytest.mark.parametrize(
    "ending",
    [
        {"outcome": Outcome.CANONICAL_TIMEOUT, "reason": Reason.GUARD_DATE},
        {"outcome": Outcome.SHADOW_SELECTED, "reason": Reason.GUARD_DATE},
        {"outcome": Outcome.OVERLOADED, "requests": 1},
        {"outcome": Outcome.SHADOW_SELECTED, "requests": 2},
        {"outcome": Outcome.SHADOW_SELECTED, "duration_ms": -1},
        {"outcome": "text from a provider"},
    ],
)
def test_an_outcome_that_cannot_be_is_not_written(running, ending):
    slot = proof_slot()
    running.intent(slot)
    fields = {"reason": None, "duration_ms": 1, "requests": 0} | ending
    with pytest.raises((LedgerFailed, AttributeError)):
        running.outcome(slot, **fields)
    assert running.view().outcomes == 0


def test_selected_cannot_come_out_of_shadow(running):
    slot = proof_slot()
    running.intent(slot)
    with _refused(Refusal.UNREACHABLE_OUTCOME):
        running.outcome(slot, Outcome.SELECTED, None, duration_ms=1, requests=1)


def test_a_crash_in_a_call_leaves_an_orphan(running, directory):
    call(running, proof_slot(0))
    running.intent(proof_slot(1))
    assert running.orphans() == ()
    assert len(running.view().in_progress) == 1
    running.close()
    again = EvidenceLedger.open(directory, SteppingClock())
    (orphan,) = again.orphans()
    assert orphan == proof_slot(1).key(Candidate(PIN.digest, 0).id)
    with _refused(Refusal.ORPHANED):
        again.resume_run(PROOF)
    with _refused(Refusal.ORPHANED):
        again.begin_run(PROOF)
    again.end_candidate(EndReason.CALL_ORPHANED)
    assert again.ensure_candidate(PIN) == Candidate(PIN.digest, 1)
    view = again.view()
    assert view.orphans == (orphan,)
    assert [candidate.orphans for candidate in view.candidates] == [1, 0]
    assert [candidate.ended for candidate in view.candidates] == [EndReason.CALL_ORPHANED, None]
    again.begin_run(PROOF)
    again.intent(proof_slot(1))
    again.close()


def test_an_observation_goes_on_after_an_orphan_but_never_sends_it_again(evidence, directory):
    slot = Slot(RunKind.OBSERVATION, PAIRS[0], PathKind.DAILY, 0, "2026-09-21")
    evidence.ensure_candidate(PIN)
    evidence.begin_run(OBSERVATION)
    evidence.intent(slot)
    evidence.finish_run()
    assert len(evidence.orphans()) == 1
    assert evidence.begin_run(OBSERVATION) == 2
    with _refused(Refusal.DUPLICATE_SLOT):
        evidence.intent(slot)
    with _refused(Refusal.UNKNOWN_SLOT):
        evidence.outcome(slot, Outcome.SHADOW_SELECTED, None, duration_ms=1, requests=1)
    call(evidence, replace(slot, date="2026-09-22"))
    assert len(evidence.orphans()) == 1


def test_another_observer_sees_progress_and_not_an_orphan(running, directory):
    running.intent(proof_slot())
    observer = EvidenceLedger.open(directory, SteppingClock())
    assert observer.orphans() == ()
    assert len(observer.view().in_progress) == 1
    running.outcome(proof_slot(), Outcome.SHADOW_SELECTED, None, duration_ms=1, requests=1)
    assert observer.view().in_progress == ()
    assert observer.view().outcomes == 1
    observer.close()


def test_one_run_at_a_time(running, directory):
    other = EvidenceLedger.open(directory, SteppingClock())
    for attempt in (
        lambda: other.begin_run(PROOF),
        lambda: other.resume_run(PROOF),
        lambda: other.end_candidate(EndReason.OPERATOR),
        lambda: other.ensure_candidate(OTHER_PIN),
        lambda: other.pin(Candidate(OTHER_PIN.digest, 1), OTHER_PIN),
        lambda: running.begin_run(PROOF),
        lambda: running.ensure_candidate(PIN),
    ):
        with _refused(Refusal.RUN_LOCKED):
            attempt()
    running.finish_run()
    other.begin_run(PROOF)
    other.close()


def _die_in_a_call(directory: Path, ready) -> None:
    evidence = EvidenceLedger.open(directory, SystemClock())
    evidence.ensure_candidate(PIN)
    evidence.begin_run(PROOF)
    evidence.intent(proof_slot())
    ready.set()
    signal.pause()


def test_a_killed_process_leaves_an_orphan_and_no_lock(directory):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_die_in_a_call, args=(directory, ready))
    process.start()
    assert ready.wait(30)
    evidence = EvidenceLedger.open(directory, SystemClock())
    assert len(evidence.view().in_progress) == 1
    with _refused(Refusal.RUN_LOCKED):
        evidence.begin_run(PROOF)
    process.kill()
    process.join(30)
    assert len(evidence.orphans()) == 1
    evidence.end_candidate(EndReason.CALL_ORPHANED)
    evidence.close()


def test_a_second_pin_for_the_same_restart_is_refused(evidence):
    evidence.pin(Candidate(PIN.digest, 0), PIN)
    for candidate, pin in ((Candidate(PIN.digest, 0), PIN), (Candidate(OTHER_PIN.digest, 1), OTHER_PIN)):
        with _refused(Refusal.CANDIDATE_OPEN):
            evidence.pin(candidate, pin)
    evidence.end_candidate(EndReason.OPERATOR)
    for restart in (0, 2):
        with _refused(Refusal.RESTART_OUT_OF_ORDER):
            evidence.pin(Candidate(OTHER_PIN.digest, restart), OTHER_PIN)
    evidence.pin(Candidate(OTHER_PIN.digest, 1), OTHER_PIN)
    assert [candidate.candidate.restart for candidate in evidence.view().candidates] == [0, 1]


def test_a_pin_must_have_its_own_digest(evidence):
    with _illegal():
        evidence.pin(Candidate(OTHER_PIN.digest, 0), PIN)


def test_the_same_pin_goes_on_and_another_starts_anew(evidence):
    first = evidence.ensure_candidate(PIN)
    assert evidence.ensure_candidate(PIN) == first
    second = evidence.ensure_candidate(OTHER_PIN)
    assert (second.pin_digest, second.restart) == (OTHER_PIN.digest, 1)
    assert evidence.view().candidates[0].ended is EndReason.PIN_CHANGED
    assert evidence.ensure_candidate(PIN).restart == 2


def test_an_ended_candidate_takes_nothing_but_the_outcome_of_a_call_under_way(running):
    running.intent(proof_slot(0))
    running.end_candidate(EndReason.CALL_FAILED)
    with _refused(Refusal.CANDIDATE_ENDED):
        running.intent(proof_slot(1))
    with _refused(Refusal.CANDIDATE_ENDED):
        running.end_candidate(EndReason.OPERATOR)
    running.outcome(proof_slot(0), Outcome.SHADOW_SELECTED, None, duration_ms=1, requests=1)
    running.finish_run()
    with _refused(Refusal.CANDIDATE_ENDED):
        running.begin_run(PROOF)
    view = running.view()
    assert (view.intents, view.outcomes, view.orphans) == (1, 1, ())


def test_a_run_is_resumed_only_as_what_it_was(running):
    call(running, proof_slot())
    running.finish_run()
    for other in (
        OBSERVATION,
        replace(PROOF, provider=ProviderKind.LIVE),
        replace(PROOF, mode=Mode.ENABLED),
        replace(PROOF, surfaces=PAIRS[:2]),
    ):
        with _refused(Refusal.RUN_OUT_OF_ORDER):
            running.resume_run(other)
    assert running.resume_run(PROOF) == 1
    call(running, proof_slot(1))
    view = running.view()
    assert view.run is not None
    assert view.run.resumes == 1
    assert view.candidate is not None
    assert view.candidate.runs == 1
    running.finish_run()
    assert running.begin_run(PROOF) == 2


def test_there_is_nothing_to_resume_at_first(evidence):
    evidence.ensure_candidate(PIN)
    with _refused(Refusal.RUN_OUT_OF_ORDER):
        evidence.resume_run(PROOF)
    assert evidence.begin_run(PROOF) == 1


def test_a_dirty_checkout_may_rehearse_but_not_run_live(evidence):
    evidence.ensure_candidate(replace(PIN, dirty=True))
    with _refused(Refusal.DIRTY_CHECKOUT):
        evidence.begin_run(replace(PROOF, provider=ProviderKind.LIVE))
    assert evidence.begin_run(PROOF) == 1


@pytest.mark.parametrize(
    "spec",
    [
        replace(PROOF, surfaces=()),
        replace(PROOF, surfaces=PAIRS[::-1]),
        replace(PROOF, surfaces=(PAIRS[0], PAIRS[0])),
        replace(PROOF, mode=Mode.DISABLED),
    ],
)
def test_a_run_that_cannot_be_is_refused_and_leaves_no_lock(evidence, spec):
    evidence.ensure_candidate(PIN)
    with _illegal():
        evidence.begin_run(spec)
    assert evidence.begin_run(PROOF) == 1


def test_the_head_moves_with_every_row_and_anchors_the_chain(running, directory):
    heads = [running.head()]
    for ordinal in range(3):
        call(running, proof_slot(ordinal))
        heads.append(running.head())
    assert len({head.digest for head in heads}) == 4
    running.close()
    EvidenceLedger.open(directory, SteppingClock(), expected=heads[1]).close()
    with pytest.raises(LedgerFailed, match=StoreFault.HEAD_MISMATCH.value):
        EvidenceLedger.open(directory, SteppingClock(), expected=Head(heads[1].sequence, "f" * 64))


def test_a_failed_opening_leaves_no_descriptor(running, directory):
    running.close()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(LedgerFailed):
            EvidenceLedger.open(directory, SteppingClock(), expected=Head(1, "f" * 64))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_everything_is_private(running, directory):
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert RUN_LOCK_NAME in {path.name for path in directory.iterdir()}


@pytest.mark.parametrize("plant", [lambda path, out: path.symlink_to(out), lambda path, out: os.link(out, path)])
def test_a_planted_run_lock_is_refused(evidence, directory, tmp_path, plant):
    (tmp_path / "outside").touch(0o600)
    plant(directory / RUN_LOCK_NAME, tmp_path / "outside")
    with pytest.raises(LedgerFailed):
        evidence.ensure_candidate(PIN)


def _records(directory) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    JsonlLedger.open(directory, projection=lambda row: rows.append(dict(row.record)), clock=SteppingClock()).close()
    return rows


def _forge(directory, *records) -> None:
    """A chain that verifies, around records that this code may never have written."""
    ledger = JsonlLedger.open(directory, projection=lambda _row: None, clock=SteppingClock())
    with ledger.transaction() as transaction:
        for record in records:
            transaction.append(record)
    ledger.close()


@pytest.fixture
def genuine(running, directory):
    """The records of: pin, run, intent, outcome, intent, outcome, end."""
    call(running, proof_slot(0))
    call(running, proof_slot(1))
    running.end_candidate(EndReason.OPERATOR)
    running.close()
    return _records(directory)


def test_a_forged_copy_of_genuine_rows_is_read(genuine, tmp_path):
    _forge(tmp_path / "copy", *genuine)
    EvidenceLedger.open(tmp_path / "copy").close()


def test_rows_hold_exactly_their_fields(genuine):
    assert [row["type"] for row in genuine] == ["pin", "run", "intent", "outcome", "intent", "outcome", "end"]
    common = {"type", "schema_version", "candidate"}
    assert [set(row) - common for row in (*genuine[:4], genuine[6])] == [
        {"restart", "pin_digest", "pin"},
        {"run", "resumed", "run_kind", "provider", "traffic", "mode", "surfaces"},
        {
            *("run", "slot", "run_kind", "profile", "surface", "path", "ordinal", "date"),
            *("provider", "traffic", "mode"),
        },
        {"run", "slot", "outcome", "reason", "duration_ms", "requests"},
        {"end_reason"},
    ]
    assert all(common <= row.keys() for row in genuine)
    assert genuine[2]["slot"] == f"{PIN.digest[:16]}-0/proof/physique-coach/daily/-/0"


_MISSING = object()


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (0, {"pin_digest": "7" * 64}),
        (0, {"restart": 1}),
        (0, {"restart": False}),
        (0, {"pin": None}),
        (0, {"candidate": "someone"}),
        (1, {"surfaces": ["physique-coach/weekly", "physique-coach/daily"]}),
        (1, {"surfaces": "physique-coach/daily"}),
        (1, {"surfaces": [["physique-coach/daily"]]}),
        (1, {"run": 2}),
        (1, {"run": True}),
        (1, {"resumed": 0}),
        (1, {"resumed": True}),
        (2, {"note": "a customer's words"}),
        (2, {"ordinal": _MISSING}),
        (2, {"ordinal": 1}),
        (2, {"ordinal": "0"}),
        (2, {"profile": "another"}),
        (2, {"mode": "enabled"}),
        (2, {"path": "weekly"}),
        (2, {"provider": "live"}),
        (2, {"type": "intention"}),
        (2, {"type": None}),
        (2, {"schema_version": 2}),
        (2, {"schema_version": True}),
        (2, {"slot": "x"}),
        (3, {"outcome": "text"}),
        (3, {"outcome": "selected"}),
        (3, {"reason": "guard.date"}),
        (3, {"requests": 2}),
        (3, {"requests": True}),
        (3, {"duration_ms": 1.5}),
        (3, {"run": 2}),
        (6, {"end_reason": "because"}),
    ],
)
def test_a_reader_refuses_a_changed_row(genuine, tmp_path, index, change):
    record = {key: value for key, value in (genuine[index] | change).items() if value is not _MISSING}
    _forge(tmp_path / "forged", *genuine[:index], record)
    with _illegal() as refused:
        EvidenceLedger.open(tmp_path / "forged")
    assert refused.value.__context__ is None


@pytest.mark.parametrize(
    "order",
    [
        (1,),
        (0, 0),
        (0, 2),
        (0, 1, 1),
        (0, 1, 3),
        (0, 1, 2, 2),
        (0, 1, 2, 3, 3),
        (0, 1, 2, 3, 2),
        (0, 6, 1),
        (0, 6, 6),
        (0, 6, 0),
        (0, 1, 6, 2),
        (6,),
    ],
)
def test_a_reader_refuses_rows_out_of_order(genuine, tmp_path, order):
    _forge(tmp_path / "forged", *(genuine[index] for index in order))
    with _illegal():
        EvidenceLedger.open(tmp_path / "forged")


@pytest.mark.parametrize("field", ["package_version", "commit", "model", "generator_version", "lexicon_digest"])
def test_no_pinned_text_is_free(genuine, tmp_path, field):
    canaries = Canaries()
    pin = dict(genuine[0]["pin"]) | {field: canaries.plant_korean(field)}
    _forge(tmp_path / "forged", genuine[0] | {"pin": pin})
    with _illegal() as refused:
        EvidenceLedger.open(tmp_path / "forged")
    canaries.assert_absent({"error": repr(refused.value)})


def test_a_refused_row_from_elsewhere_ends_the_use_of_the_handle(running, directory):
    """Rows are judged also when they arrive while the evidence is open."""
    _forge(directory, {"type": "unknown", "schema_version": 1})
    with _illegal():
        running.view()
    with pytest.raises(LedgerFailed):
        running.intent(proof_slot())


def test_slots_of_every_path_have_legal_keys(running):
    for pair in PAIRS:
        for ordinal, path in enumerate(PATHS[pair.surface]):
            call(running, Slot(RunKind.PROOF, pair, path, ordinal))
    keys = {slot.call.key("c") for slot in running.view().slots}
    assert len(keys) == 7


def test_the_spec_of_a_run_is_frozen():
    with pytest.raises(AttributeError):
        PROOF.mode = Mode.ENABLED  # type: ignore[misc]
    assert isinstance(PROOF, RunSpec)

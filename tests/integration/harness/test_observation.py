"""The observation from its commands: idempotent, interrupted, raced, with gaps, and simulated."""

import itertools
import json
import signal
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness import preflight
from harness.cli import main
from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import RunKind, Traffic
from harness.observation.plan import CALLS_PER_DAY_MAX, due_slots
from harness.observation.run import DueResult, Word
from harness.observation.session import Options, observe_on
from harness.observation.simulate import SimulatedCalendar
from harness.profiles import PAIRS, PATHS, PathKind
from harness.proof.session import EVIDENCE
from harness.readiness.model import Phase
from harness.readiness.phases import block_text
from harness.rehearsal.faults import FaultPlan
from harness.stage import rehearsal_clients
from kexpr.codes import Mode, Outcome, ProviderKind, Surface, WireVersion
from kexpr.exits import Exit
from kexpr.ledger import maintenance

DAY = date(2026, 9, 21)


def run(capsys, *arguments: str) -> tuple[int, Any, str]:
    code = main([*arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out) if captured.out else None, captured.err


class Stage:
    """One provider and one calendar over several runs."""

    def __init__(self, state: Path, *faults: str) -> None:
        self.state = state
        self.faults = faults
        self.calendar = SimulatedCalendar()
        self.configs = preflight.check_config(WireVersion.KEXP_2)

    def observe(self, day: date, *, calls_per_day: int = 1, **hooks: Any) -> DueResult:
        self.calendar.go_to(day)
        options = Options(self.state, WireVersion.KEXP_2, live=False, calls_per_day=calls_per_day)
        evidence = EvidenceLedger.open(self.state / EVIDENCE, self.calendar)
        try:
            with rehearsal_clients(FaultPlan.parse(self.faults)) as (clients, _):
                return observe_on(evidence, clients, self.configs, options, self.calendar, **hooks)
        finally:
            evidence.close()

    def summary(self):
        evidence = EvidenceLedger.open(self.state / EVIDENCE, self.calendar)
        try:
            return evidence.summary()
        finally:
            evidence.close()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "state").mkdir(mode=0o700)
    return Stage(tmp_path / "state")


def test_the_plan_has_every_pair_every_day_and_no_manifest_twice() -> None:
    days = [DAY + timedelta(days=offset) for offset in range(40)]
    slots = [slot for day in days for slot in due_slots(day, 2)]
    assert len({slot.key("c") for slot in slots}) == len(slots) == 40 * 2 * 5
    for pair in PAIRS:
        of_pair = [slot for slot in slots if slot.pair == pair]
        assert len({slot.ordinal for slot in of_pair}) == len(of_pair)
        assert min(slot.ordinal for slot in of_pair) >= 12
    assert len(due_slots(DAY, CALLS_PER_DAY_MAX)) == 500
    assert not {s.ordinal for s in due_slots(DAY, CALLS_PER_DAY_MAX)} & {
        s.ordinal for s in due_slots(DAY + timedelta(days=1), CALLS_PER_DAY_MAX)
    }


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if len(PATHS[pair.surface]) == 2], ids=str)
def test_card_producers_take_turns_by_day(pair) -> None:
    paths = [slot.path for offset in range(14) for slot in due_slots(DAY + timedelta(days=offset)) if slot.pair == pair]
    assert paths.count(PathKind.CALLBACK) == paths.count(PathKind.TYPED_NOTE) == 7
    assert all(one is not two for one, two in itertools.pairwise(paths))


def test_a_day_is_observed_once(stage: Stage) -> None:
    assert stage.observe(DAY) == DueResult(Word.RAN, "2026-09-21", 5, 5)
    assert stage.observe(DAY) == DueResult(Word.NOTHING_DUE, "2026-09-21")
    assert stage.observe(DAY, calls_per_day=3) == DueResult(Word.RAN, "2026-09-21", 10, 10)
    assert stage.observe(DAY + timedelta(days=1)).word is Word.RAN


def test_a_missed_day_is_said_once_and_never_filled(stage: Stage) -> None:
    stage.observe(DAY)
    late = stage.observe(DAY + timedelta(days=3))
    assert (late.word, late.missed, late.calls) == (Word.MISSED_DAY, ("2026-09-22", "2026-09-23"), 5)
    assert stage.observe(DAY + timedelta(days=3)).word is Word.NOTHING_DUE
    days = {cell.date for cell in stage.summary().pairs[PAIRS[0]].cells}
    assert days == {"2026-09-21", "2026-09-24"}


def test_a_clock_that_went_back_fills_nothing(stage: Stage) -> None:
    stage.observe(DAY)
    stage.observe(DAY + timedelta(days=2))
    head = stage.summary().head
    assert stage.observe(DAY + timedelta(days=1)) == DueResult(Word.NOTHING_DUE, "2026-09-22")
    assert stage.observe(DAY, calls_per_day=2) == DueResult(Word.NOTHING_DUE, "2026-09-21")
    assert stage.summary().head == head
    assert stage.observe(DAY + timedelta(days=3)).word is Word.RAN


def test_a_run_over_midnight_is_of_the_day_it_began(stage: Stage) -> None:
    def midnight(_slot: object) -> None:
        stage.calendar.go_to(DAY + timedelta(days=1))

    assert stage.observe(DAY, starting=midnight).day == "2026-09-21"
    assert {cell.date for pair in stage.summary().pairs.values() for cell in pair.cells} == {"2026-09-21"}
    assert stage.observe(DAY + timedelta(days=1)) == DueResult(Word.RAN, "2026-09-22", 5, 5)


def test_own_traffic_of_a_gateway_is_no_day_of_the_schedule(stage: Stage) -> None:
    stage.observe(DAY)
    evidence = EvidenceLedger.open(stage.state / EVIDENCE, stage.calendar)
    evidence.begin_run(RunSpec(RunKind.OBSERVATION, ProviderKind.REHEARSAL, Mode.SHADOW, PAIRS, Traffic.ORGANIC))
    slot = evidence.intent_organic(PAIRS[0], PathKind.DAILY, "2026-09-22")
    evidence.outcome(slot, Outcome.SHADOW_SELECTED, None, duration_ms=1, requests=1)
    evidence.close()
    assert stage.observe(DAY + timedelta(days=2)).missed == ("2026-09-22",)


def test_a_failed_call_ends_neither_day_nor_candidate(stage: Stage) -> None:
    stage.faults = ("http_500@2",)
    result = stage.observe(DAY)
    assert (result.word, result.calls, result.accepted) == (Word.RAN, 5, 4)
    stage.faults = ()
    assert stage.observe(DAY).word is Word.NOTHING_DUE
    summary = stage.summary()
    assert len(summary.candidates) == 1
    assert summary.candidates[0].ended is None
    assert summary.pairs[PAIRS[1]].outcomes == {Outcome.CANONICAL_PROVIDER_ERROR: 1}


def test_stopping_leaves_the_rest_of_the_day_due(stage: Stage) -> None:
    seen: list[object] = []
    result = stage.observe(DAY, starting=seen.append, stopping=lambda: len(seen) == 2)
    assert result.calls == len(seen) == 2
    assert stage.observe(DAY).calls == 3


def test_a_run_of_somebody_else_is_locked(stage: Stage) -> None:
    def other(_slot: object) -> None:
        if not locked:
            locked.append(stage.observe(DAY).word)

    locked: list[Word] = []
    assert stage.observe(DAY, starting=other).calls == 5
    assert locked == [Word.LOCKED]


@pytest.mark.parametrize(
    "point", ["coordinator.claimed", "coordinator.answered", "coordinator.finalized", "harness.outcome_written"]
)
def test_a_killed_run_leaves_at_most_an_orphan_and_the_rest_goes_on(point: str, tmp_path: Path, capsys) -> None:
    command = ["observe", "run", "--due", "--state", str(tmp_path)]
    killed = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_command", point, "3", *command],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL
    code, result, _ = run(capsys, *command)
    assert (code, result["word"]) == (Exit.GOOD, "ran")
    assert result["calls"] == 2
    _, status, _ = run(capsys, "observe", "status", "--state", str(tmp_path))
    orphans = [pair["orphans"] for pair in status["pairs"]]
    lost = 0 if point == "harness.outcome_written" else 1
    assert sum(orphans) == lost
    assert [pair["verdict"] for pair in status["pairs"]].count("NOT_READY") == lost
    assert run(capsys, *command)[1]["word"] == "nothing_due"


def test_runs_at_once_make_each_call_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness.cli", "observe", "run", "--due", "--state", str(tmp_path), "--json"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(4)]
    results = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert sum(result["calls"] for result in results) == 5
    assert {result["word"] for result in results} <= {"ran", "nothing_due", "locked"}
    evidence = EvidenceLedger.open(tmp_path / EVIDENCE)
    cells = [calls for pair in evidence.summary().pairs.values() for calls in pair.cells.values()]
    evidence.close()
    assert [calls.requests for calls in cells] == [1] * 5


def test_fourteen_days_in_seconds(tmp_path: Path, capsys) -> None:
    code, result, _ = run(capsys, "observe", "simulate", "--days", "14", "--out", str(tmp_path / "s"))
    assert code == Exit.GOOD
    assert len(result["pairs"]) == 5
    for pair in result["pairs"]:
        assert (pair["days_covered"], pair["failures"], pair["verdict"]) == (14, 0, "REHEARSAL")
        assert pair["accepted"] >= 10
    assert maintenance.verify(tmp_path / "s" / EVIDENCE).head.sequence == result["evidence_head"]["sequence"]
    assert b"\xea" not in b"".join(path.read_bytes() for path in (tmp_path / "s" / EVIDENCE).glob("*.jsonl"))
    assert not list((tmp_path / "s").glob("state-*"))


def test_a_timeout_on_day_nine_stops_the_weekly_surface_alone(tmp_path: Path, capsys) -> None:
    command = ("observe", "simulate", "--days", "14", "--fault", "timeout@day9:weekly", "--out", str(tmp_path / "s"))
    code, result, _ = run(capsys, *command)
    assert code == Exit.NOT_GOOD
    for pair in result["pairs"]:
        if pair["surface"] == Surface.WEEKLY:
            assert pair["verdict"] == "NOT_READY"
            assert {"gate": "no_failure", "verdict": "failed", "reason": "calls_failed"} in pair["gates"]
        else:
            assert (pair["verdict"], pair["failures"]) == ("REHEARSAL", 0)


def test_a_short_simulation_is_insufficient(tmp_path: Path, capsys) -> None:
    code, result, _ = run(capsys, "observe", "simulate", "--days", "3", "--out", str(tmp_path / "s"))
    assert code == Exit.INSUFFICIENT
    assert {pair["verdict"] for pair in result["pairs"]} == {"INSUFFICIENT"}


def test_a_simulation_goes_on_as_an_observation(tmp_path: Path, capsys) -> None:
    """The calendar ends today; the candidate is the same, so that there is nothing left to do."""
    run(capsys, "observe", "simulate", "--days", "2", "--out", str(tmp_path / "s"))
    assert run(capsys, "observe", "run", "--due", "--state", str(tmp_path / "s"))[1]["word"] == "nothing_due"


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["observe", "run", "--state", "S"], Exit.USAGE, "--due"),
        (["observe", "run", "--due", "--state", "S", "--live"], Exit.USAGE, "--live needs"),
        (["observe", "run", "--due", "--state", "S", "--calls-per-day", "0"], Exit.USAGE, "calls-per-day"),
        (["observe", "status", "--state", "S"], Exit.INVALID, "no evidence"),
        (["observe", "simulate", "--days", "0", "--out", "S"], Exit.USAGE, "--days"),
        (["observe", "simulate", "--out", "S", "--fault", "nonsense@day1"], Exit.USAGE, "nonsense"),
        (["audit", "--state", "S", "--profile", "physique-coach", "--config", "none.yaml"], Exit.INVALID, "none.yaml"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    arguments: list[str], code: int, word: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    said = capsys.readouterr()
    assert word in said.err
    assert said.out == ""


def test_the_status_says_what_is_due_next(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    state = ("--state", str(tmp_path))
    run(capsys, "observe", "run", "--due", *state)
    today = datetime.now(UTC).date()
    _, status, _ = run(capsys, "observe", "status", *state)
    assert [pair["next_due"] for pair in status["pairs"]] == [(today + timedelta(days=1)).isoformat()] * 5
    later = today + timedelta(days=3)
    monkeypatch.setattr("harness.observation.run.utc_day", lambda _clock: later)
    _, status, _ = run(capsys, "observe", "status", *state)
    assert {(pair["next_due"], pair["last_day"]) for pair in status["pairs"]} == {(str(later), str(today))}
    assert main(["observe", "status", *state]) == Exit.GOOD
    assert str(later) in capsys.readouterr().out


def test_broken_evidence_is_invalid(tmp_path: Path, capsys) -> None:
    run(capsys, "observe", "run", "--due", "--state", str(tmp_path))
    (segment,) = (tmp_path / EVIDENCE).glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"requests":1', b'"requests":0', 1))
    for command in (["observe", "status"], ["observe", "run", "--due"]):
        code, _, error = run(capsys, *command, "--state", str(tmp_path))
        assert code == Exit.INVALID
        assert "chain_broken" in error


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (block_text(PAIRS[0].profile, Phase.P1, WireVersion.KEXP_2), Exit.GOOD),
        (block_text(PAIRS[0].profile, Phase.P3, WireVersion.KEXP_2), Exit.GOOD),
        ("platforms: {telegram: {extra: {}}}\n", Exit.GOOD),
        (block_text(PAIRS[0].profile, Phase.P1, WireVersion.KEXP_2).replace("weekly: true", "weekly: false"), 1),
        ("platforms: {telegram: {extra: {physique_checkin: {coaching_feedback_enabled: false}}}}\n", 1),
        ("platforms: &a {}\n", Exit.INVALID),
    ],
    ids=["P1", "P3", "absent", "no phase", "legacy", "anchor"],
)
def test_an_audit_is_recorded(text: str, code: int, tmp_path: Path, capsys) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(text, "utf-8")
    command = ("audit", "--state", str(tmp_path / "s"), "--profile", "physique-coach", "--config", str(config))
    assert run(capsys, *command)[0] == code
    evidence = EvidenceLedger.open(tmp_path / "s" / EVIDENCE)
    audits = evidence.summary().audits
    evidence.close()
    assert [audit.ready for audit in audits.values()] == ([] if code == Exit.INVALID else [code == Exit.GOOD])

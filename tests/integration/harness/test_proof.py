"""The controlled proof from its command: clean, failing, interrupted, repeated."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import cli, main
from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import RunKind
from harness.policy import POLICY
from harness.profiles import PAIRS, PathKind
from harness.proof import session
from harness.proof.plan import proof_slots
from harness.rehearsal.faults import FAULTS
from kexpr.clock import SystemClock
from kexpr.codes import Mode, Outcome, ProviderKind, Surface
from kexpr.exits import Exit


def prove(capsys, *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = main(["proof", "--json", *arguments])
    captured = capsys.readouterr()
    return code, json.loads(captured.out) if captured.out else {}, captured.err


def test_the_plan_is_the_specified_one():
    slots = proof_slots()
    assert len(slots) == len(set(slots)) == 48
    assert [sum(slot.pair == pair for slot in slots) for pair in PAIRS] == [12, 6, 6, 12, 12]
    for surface in Surface:
        ordinals = [slot.ordinal for slot in slots if slot.pair.surface is surface]
        assert sorted(ordinals) == list(range(12))
    for surface in (Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE):
        paths = [slot.path for slot in slots if slot.pair.surface is surface]
        assert paths.count(PathKind.CALLBACK) == paths.count(PathKind.TYPED_NOTE) == 6


def test_clean(tmp_path, capsys):
    code, result, error = prove(capsys, "--out", str(tmp_path / "p"))
    assert code == Exit.GOOD
    assert result["calls"] == result["requests"] == result["calls_required"] == 48
    assert result["outcomes"] == {"shadow_selected": 48}
    assert (result["orphans"], result["provider"], result["verdict"]) == (0, "rehearsal", "REHEARSAL")
    assert "warning" in error
    written = json.loads((tmp_path / "p" / "proof.json").read_text())
    assert written == result
    assert "REHEARSAL" in (tmp_path / "p" / "proof.md").read_text()
    metrics = (tmp_path / "p" / "metrics.prom").read_text()
    shadow = [line for line in metrics.splitlines() if "kexpr_outcomes_total" in line and "shadow_selected" in line]
    assert sum(float(line.split()[-1]) for line in shadow) == 48
    assert not list((tmp_path / "p").glob("state-*"))


def test_the_last_line_and_the_head_are_printed(tmp_path, capsys):
    assert main(["proof", "--out", str(tmp_path / "p")]) == Exit.GOOD
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "48/48 shadow_selected · 48 requests · 0 orphans · REHEARSAL"
    assert lines[-2].startswith("evidence head 102:")


def test_a_complete_proof_is_read_again_and_spends_nothing(tmp_path, capsys):
    _, first, _ = prove(capsys, "--out", str(tmp_path))
    code, again, _ = prove(capsys, "--out", str(tmp_path), "--fault", "http_500@*")
    assert (code, again) == (Exit.GOOD, first)


def test_a_failed_call_ends_the_candidate_and_the_next_one_is_counted(tmp_path, capsys):
    code, result, _ = prove(capsys, "--out", str(tmp_path), "--fault", "http_500@17")
    assert code == Exit.NOT_GOOD
    assert result["outcomes"] == {"canonical_provider_error": 1, "shadow_selected": 16}
    assert result["reasons"] == {"http.server_error": 1}
    assert (result["requests"], result["verdict"], result["ended"]) == (17, "NOT_READY", "call_failed")
    code, second, _ = prove(capsys, "--out", str(tmp_path))
    assert (code, second["restart"], second["calls"], second["verdict"]) == (Exit.GOOD, 1, 48, "REHEARSAL")


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in {"drip", "stall", "stall_body"}])
def test_every_fault_ends_as_it_must(name, tmp_path, capsys):
    """Call 20 is a weekly message: two slots, so that reordering and omission are faults too."""
    _, result, _ = prove(capsys, "--out", str(tmp_path), "--fault", f"{name}@20")
    expected = FAULTS[name].outcome
    if expected is Outcome.SHADOW_SELECTED:
        assert result["outcomes"] == {"shadow_selected": 48}
    else:
        assert result["outcomes"] == {expected.value: 1, "shadow_selected": 19}
        assert result["requests"] <= 20


def killed(out: Path, point: str, number: int) -> None:
    command = [sys.executable, "-m", "tests.support.killed_command", point, str(number), "proof", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_a_crash_between_two_calls_is_resumed(tmp_path, capsys):
    """The outcome of call 5 is durable; the state directory of the dead run counts for nothing."""
    killed(tmp_path, "harness.outcome_written", 5)
    code, result, _ = prove(capsys, "--out", str(tmp_path))
    assert (code, result["calls"], result["requests"], result["restart"]) == (Exit.GOOD, 48, 48, 0)


def test_a_proof_goes_on_after_a_run_of_another_kind(tmp_path, capsys):
    killed(tmp_path, "harness.outcome_written", 20)
    assert main(["observe", "run", "--due", "--state", str(tmp_path), "--json"]) == Exit.GOOD
    assert json.loads(capsys.readouterr().out)["calls"] == 5
    code, result, _ = prove(capsys, "--out", str(tmp_path))
    assert (code, result["calls"], result["restart"]) == (Exit.GOOD, 48, 0)


@pytest.mark.parametrize("point", ["coordinator.claimed", "coordinator.answered", "coordinator.finalized"])
def test_a_crash_during_a_call_is_an_orphan_and_ends_the_candidate(point, tmp_path, capsys):
    killed(tmp_path, point, 5)
    evidence = EvidenceLedger.open(tmp_path / session.EVIDENCE)
    assert len(evidence.orphans()) == 1
    evidence.close()
    code, result, _ = prove(capsys, "--out", str(tmp_path))
    assert (code, result["restart"], result["calls"], result["orphans"]) == (Exit.GOOD, 1, 48, 0)
    evidence = EvidenceLedger.open(tmp_path / session.EVIDENCE)
    first, second = evidence.view().candidates
    evidence.close()
    assert (first.ended, first.intents, first.outcomes) == ("call_orphaned", 5, 4)
    assert second.intents == second.outcomes == second.requests == 48


def test_the_window_ends_a_candidate(tmp_path, capsys, monkeypatch):
    killed(tmp_path, "harness.outcome_written", 5)

    class Tomorrow(SystemClock):
        def now(self):
            from dataclasses import replace

            now = super().now()
            return replace(now, utc_ms=now.utc_ms + (POLICY.proof_window_hours * 3600 + 1) * 1000)

    monkeypatch.setattr(session, "SystemClock", Tomorrow)
    code, result, _ = prove(capsys, "--out", str(tmp_path))
    assert (code, result["restart"], result["calls"]) == (Exit.GOOD, 1, 48)


def test_a_run_in_progress_locks_others_out(tmp_path, capsys):
    killed(tmp_path, "harness.outcome_written", 5)
    evidence = EvidenceLedger.open(tmp_path / session.EVIDENCE)
    evidence.resume_run(RunSpec(RunKind.PROOF, ProviderKind.REHEARSAL, Mode.SHADOW, PAIRS))
    code, _, error = prove(capsys, "--out", str(tmp_path))
    evidence.close()
    assert (code, "run_locked" in error) == (Exit.INVALID, True)


def test_broken_evidence_stops_before_any_call(tmp_path, capsys):
    prove(capsys, "--out", str(tmp_path))
    (segment,) = (tmp_path / session.EVIDENCE).glob("ledger-*.jsonl")
    content = segment.read_bytes()
    segment.write_bytes(content.replace(b"shadow_selected", b"shadow_rejected", 1))
    code, result, error = prove(capsys, "--out", str(tmp_path))
    assert (code, result) == (Exit.INVALID, {})
    assert "cannot be used" in error


def test_wire_1_is_stopped_by_its_budget(tmp_path, capsys):
    code, _, error = prove(capsys, "--out", str(tmp_path / "p"), "--wire", "1")
    assert code == Exit.INVALID
    assert "weekly with 2 slots" in error
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fault", "http_500"], "does not say on which call"),
        (["--fault", "nonsense@1"], "unknown fault"),
        (["--fault", "http_500@0"], "counted from 1"),
        (["--live"], "RUN_KOREAN_EXPRESSION_LIVE"),
        (["--live", "--fault", "http_500@1"], "does not go with --live"),
        (["--wire", "3"], "3"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_usage_errors(arguments, said, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("RUN_KOREAN_EXPRESSION_LIVE", raising=False)
    code, result, error = prove(capsys, "--out", str(tmp_path / "p"), *arguments)
    assert (code, result) == (Exit.USAGE, {})
    assert said in error


def test_live_refuses_an_unclean_environment_and_a_rehearsal_does_not_read_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RUN_KOREAN_EXPRESSION_LIVE", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    code, _, error = prove(capsys, "--out", str(tmp_path / "live"), "--live")
    assert (code, "credential_environment_rejected" in error) == (Exit.INVALID, True)
    assert not (tmp_path / "live").exists()
    code, result, _ = prove(capsys, "--out", str(tmp_path / "rehearsal"))
    assert (code, result["verdict"]) == (Exit.GOOD, "REHEARSAL")


def test_nothing_below_telegram_can_be_reached(tmp_path, capsys):
    """The proof marks nothing as sending, so that no host could send: its weekly rows end at `prepared`."""
    from kexpr.authority.weekly import WeeklyAuthority

    def refuse(*_: object) -> None:
        raise AssertionError("a proof sends nothing")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WeeklyAuthority, "mark_customer_task_sending", refuse)
        code, _, _ = prove(capsys, "--out", str(tmp_path / "here"))
    assert code == Exit.GOOD
    program = "import sys; from harness.cli import main; print(main(sys.argv[1:]), 'telegram' in sys.modules)"
    command = [sys.executable, "-c", program, "proof", "--out", str(tmp_path / "alone"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "0 False"


def test_help_names_every_command():
    result = CliRunner().invoke(cli, ["--help"])
    assert all(name in result.output for name in ("proof", "budget", "guard"))


def test_a_corpus_that_is_no_file_does_not_hang(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["guard", "score", "--corpus", str(pipe)]) == Exit.INVALID
    assert "not a regular file" in capsys.readouterr().err


def test_an_interrupted_proof_says_nothing_of_its_inside(tmp_path):
    command = [sys.executable, "-m", "harness.cli", "proof", "--out", str(tmp_path / "p"), "--fault", "stall@3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 20
        while not list(tmp_path.glob("p/evidence/ledger-*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, "Traceback" in err) == (130, "", False)

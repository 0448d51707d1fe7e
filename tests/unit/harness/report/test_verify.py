"""A report is made again from what it names; an approval is of such a report only. On real ledgers."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cli import cli
from harness.cli import main as harness_main
from harness.evidence.ledger import EvidenceLedger, EvidenceRefused, RunSpec
from harness.evidence.rows import RunKind, Slot
from harness.profiles import PAIRS, PathKind
from harness.readiness.model import LADDERS, Phase
from harness.readiness.phases import block_text
from harness.report.approve import ApprovalRefused, Refusal, Request, approve
from harness.report.catalogue import Language
from harness.report.files import MAX_BYTES, read_report, rendered, write_all
from harness.report.reference import head_text, parse_head, reference_in
from harness.report.source import ReportRefused, Why, judge_now
from harness.report.verify import verify
from kexpr.codes import Mode, ProviderKind
from kexpr.cutover import read_extra
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.exits import Exit
from kexpr.ledger.protocol import Head
from kexpr.testing.canaries import Canaries
from tests.support.reports import LIVE_PIN, live_state, observe_failure

FIRST = PAIRS[0]
STEM = "physique-coach-daily"


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("live")
    return live_state(root / "state")


@pytest.fixture
def state(written, tmp_path) -> Path:
    """A copy that a test may write to."""
    copy: Path = tmp_path / "state"
    shutil.copytree(written, copy)
    return Path(copy)


def evidence_of(state: Path) -> Path:
    return state / "evidence"


def files_of(state: Path, language: Language = Language.EN, anchor: Head | None = None) -> dict[str, bytes]:
    return rendered(judge_now(evidence_of(state), None, anchor).documents(), language)


def head_of(state: Path) -> Head:
    with closing(EvidenceLedger.open(evidence_of(state))) as evidence:
        return evidence.head()


def config_of(path: Path, phase: Phase = Phase.P3, more: str = "") -> Path:
    path.write_text(block_text(FIRST.profile, phase, LIVE_PIN.wire_version) + more, "utf-8")
    return path


def request_of(tmp_path: Path, **changes: Any) -> Request:
    values: dict[str, Any] = {"phase": Phase.P3, "approver": "approver-1", "today": None}
    values |= {"config": config_of(tmp_path / "next.yaml")} | changes
    if values["today"] is None:
        values["today"] = judge_now(evidence_of(tmp_path / "state"), None, None).readiness.as_of
    return Request(**values)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], standalone_mode=False)


@pytest.mark.parametrize("language", Language)
def test_every_form_of_every_report_verifies(written, language):
    before = {path: path.read_bytes() for path in evidence_of(written).iterdir()}
    for name, data in files_of(written, language, head_of(written)).items():
        verified = verify(data, evidence_of(written))
        assert verified is not None, name
    assert {path: path.read_bytes() for path in evidence_of(written).iterdir()} == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(data=st.data())
def test_a_changed_byte_never_verifies(written, data):
    extension = data.draw(st.sampled_from([".json", ".html", ".md", ".csv"]))
    report = _reports(written)[STEM + extension]
    position = data.draw(st.integers(0, len(report) - 1))
    changed = bytes([report[position] ^ data.draw(st.integers(1, 255))])
    try:
        assert verify(report[:position] + changed + report[position + 1 :], evidence_of(written)) is None
    except LedgerFailed as failed:
        fault: object = failed.code  # the byte was of the head
    except ReportRefused as refused:
        fault = refused.code  # the byte was of the day
    else:
        fault = None
    assert fault in (None, StoreFault.HEAD_MISMATCH, Why.DAY_BEFORE_EVIDENCE)


_KEPT: dict[Path, dict[str, bytes]] = {}


def _reports(state: Path) -> dict[str, bytes]:
    if state not in _KEPT:
        _KEPT[state] = files_of(state)
    return _KEPT[state]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"\xff\xfe",
        b'{"schema":"kexpr-report/1"}',
        b"[" * 100_000,
        b'{"schema":' + b"[" * 100_000,
    ],
)
def test_what_is_no_report_does_not_verify(written, data):
    assert verify(data, evidence_of(written)) is None


def test_older_reports_still_verify_when_the_head_has_moved(state):
    reports = files_of(state)
    with closing(EvidenceLedger.open(evidence_of(state))) as evidence:
        observe_failure(evidence)
    assert files_of(state)[f"{STEM}.json"] != reports[f"{STEM}.json"]
    assert all(verify(data, evidence_of(state)) for data in reports.values())


def test_a_report_of_other_evidence_is_a_head_mismatch(state, tmp_path):
    other = live_state(tmp_path / "other")
    with pytest.raises(LedgerFailed) as raised:
        verify(files_of(state)[f"{STEM}.html"], evidence_of(other))
    assert raised.value.code is StoreFault.HEAD_MISMATCH


def test_the_anchor_is_looked_for_in_the_chain(state):
    head = head_of(state)
    wrong = Head(head.sequence - 1, "0" * 64)
    intact = json.loads(files_of(state, anchor=head)[f"{STEM}.json"])
    broken = files_of(state, anchor=wrong)
    assert intact["verdict"] == "READY"
    assert intact["evidence"]["anchor"] == {"sequence": head.sequence, "digest": head.digest, "holds": True}
    assert json.loads(broken[f"{STEM}.json"])["verdict"] == "INVALID"
    assert verify(broken[f"{STEM}.json"], evidence_of(state)) is not None
    with pytest.raises(LedgerFailed):
        verify(broken[f"{STEM}.json"], evidence_of(state), wrong)


def test_an_anchor_beyond_the_head_does_not_hold(state):
    beyond = Head(head_of(state).sequence + 5, "a" * 64)
    report = files_of(state, anchor=beyond)[f"{STEM}.md"]
    assert verify(report, evidence_of(state)) is not None
    assert json.loads(files_of(state, anchor=beyond)[f"{STEM}.json"])["verdict"] == "INVALID"


def test_no_report_while_a_call_is_in_progress(state):
    run_spec = RunSpec(RunKind.OBSERVATION, ProviderKind.LIVE, Mode.SHADOW, PAIRS)
    with closing(EvidenceLedger.open(evidence_of(state))) as evidence:
        evidence.begin_run(run_spec)
        evidence.intent(Slot(RunKind.OBSERVATION, FIRST, PathKind.DAILY, 7_777, "2099-01-01"))
        with pytest.raises(ReportRefused, match="call_in_progress"):
            judge_now(evidence_of(state), None, None)


def test_no_report_without_evidence_or_under_another_policy(state, tmp_path):
    with pytest.raises(ReportRefused, match="no_evidence"):
        judge_now(tmp_path / "none", None, None)
    assert not (tmp_path / "none").exists()
    with closing(EvidenceLedger.open(evidence_of(state))) as evidence:
        evidence.ensure_candidate(replace(LIVE_PIN, policy_digest="9" * 64))
    with pytest.raises(ReportRefused, match="other_policy"):
        judge_now(evidence_of(state), None, None)


def test_a_ready_report_is_approved_and_the_phase_begins(state, tmp_path):
    request = request_of(tmp_path, config=config_of(tmp_path / "next.yaml", more="other:\n  key: 1\n"))
    reports = files_of(state)
    done = approve(evidence_of(state), reports[f"{STEM}.html"], request)
    assert done.pair == FIRST
    after = json.loads(files_of(state)[f"{STEM}.json"])
    (approval,) = after["approvals"]
    assert (approval["phase"], approval["approver"]) == ("P3", "approver-1")
    assert approval["report_digest"] == reference_in(reports[f"{STEM}.html"].decode()).digest  # type: ignore[union-attr]
    assert (after["phase"], after["verdict"], after["next_phase"]) == ("P3", "READY", None)
    assert done.head == head_of(state)
    assert verify(reports[f"{STEM}.html"], evidence_of(state)) is not None
    with pytest.raises(ApprovalRefused, match=Refusal.NOT_THE_NEXT_PHASE):
        approve(evidence_of(state), reports[f"{STEM}.html"], request)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_each_pair_has_its_own_phase(state, tmp_path, pair):
    phase = LADDERS[pair][-1]
    path = tmp_path / "config.yaml"
    path.write_text(block_text(pair.profile, phase, LIVE_PIN.wire_version), "utf-8")
    report = files_of(state)[f"{pair.profile}-{pair.surface}.json"]
    assert approve(evidence_of(state), report, request_of(tmp_path, phase=phase, config=path)).pair == pair


def refused(state: Path, report: bytes, request: Request) -> Refusal:
    before = head_of(state)
    with pytest.raises(ApprovalRefused) as raised:
        approve(evidence_of(state), report, request)
    assert head_of(state) == before
    return raised.value.code


def test_what_is_not_approved(state, tmp_path):
    reports = files_of(state)
    good = reports[f"{STEM}.json"]
    assert refused(state, good.replace(b"READY", b"READi"), request_of(tmp_path)) is Refusal.REPORT_DIFFERS
    assert refused(state, reports["index.html"], request_of(tmp_path)) is Refusal.REPORT_OF_NO_PAIR
    assert refused(state, good, request_of(tmp_path, phase=Phase.P4)) is Refusal.NOT_THE_NEXT_PHASE
    assert refused(state, good, request_of(tmp_path, today="2099-01-01")) is Refusal.NO_LONGER_READY
    other = config_of(tmp_path / "other.yaml", Phase.P1)
    assert refused(state, good, request_of(tmp_path, config=other)) is Refusal.CONFIG_OF_OTHER_PHASE
    legacy = tmp_path / "legacy.yaml"
    legacy.write_text(
        "platforms:\n  telegram:\n    extra:\n      physique_checkin:\n        coaching_feedback_enabled: false\n",
        "utf-8",
    )
    assert refused(state, good, request_of(tmp_path, config=legacy)) is Refusal.CONFIG_NOT_READY


def test_a_failure_since_the_report_forbids_the_approval(state, tmp_path):
    report = files_of(state)[f"{STEM}.json"]
    with closing(EvidenceLedger.open(evidence_of(state))) as evidence:
        observe_failure(evidence)
    assert refused(state, report, request_of(tmp_path)) is Refusal.NO_LONGER_READY


def test_a_candidate_that_begins_during_the_approval_is_not_approved(state, tmp_path, monkeypatch):
    report = files_of(state)[f"{STEM}.json"]

    def begin_another(path: Path) -> tuple[object, str]:
        with closing(EvidenceLedger.open(evidence_of(state))) as evidence:
            evidence.ensure_candidate(replace(LIVE_PIN, lexicon_digest="0" * 64))
        return read_extra(path)

    monkeypatch.setattr("harness.report.approve.read_extra", begin_another)
    with pytest.raises(EvidenceRefused, match="no_candidate"):
        approve(evidence_of(state), report, request_of(tmp_path))
    assert not judge_now(evidence_of(state), None, None).readiness.summary.approvals


def test_the_commands_end_to_end(state, tmp_path):
    out = tmp_path / "out"
    written = run("report", "--state", state, "--out", out)
    assert written.return_value == Exit.GOOD, written.output
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    assert len(first) == 24
    assert run("report", "--state", state, "--out", out).return_value == Exit.GOOD
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    for path in out.iterdir():
        assert run("verify-report", path, "--state", state).return_value == Exit.GOOD
    report, config = out / f"{STEM}.html", config_of(tmp_path / "next.yaml")
    arguments = ("--state", state, "--report", report, "--phase", "P3", "--approver", "kim-01", "--config", config)
    done = run("approve", *arguments, "--json")
    assert done.return_value == Exit.GOOD, done.output
    assert json.loads(done.output)["evidence_head"] == head_text(head_of(state))
    assert run("verify-report", report, "--state", state).return_value == Exit.GOOD
    report.write_bytes(report.read_bytes().replace(b"Ready", b"ready", 1))
    assert run("verify-report", report, "--state", state).return_value == Exit.NOT_GOOD
    moved = json.loads(run("report", "--state", state, "--out", tmp_path / "new", "--json").output)
    assert moved["pairs"][0] == {"pair": "physique-coach/daily", "phase": "P3", "verdict": "READY"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--as-of", "2026-13-01"), Exit.USAGE),
        (("--as-of", "2020-01-01"), Exit.USAGE),
        (("--as-of", "2099-12-31"), Exit.INSUFFICIENT),
        (("--as-of", "2100-01-01"), Exit.USAGE),
        (("--as-of", "9999-12-31"), Exit.USAGE),
        (("--anchor", "1"), Exit.USAGE),
        (("--anchor", "2:" + "a" * 64), Exit.INVALID),
        (("--lang", "fr"), Exit.USAGE),
    ],
)
def test_exit_codes_of_report(written, tmp_path, arguments, code, capsys):
    assert harness_main(["report", "--state", str(written), "--out", str(tmp_path / "o"), *arguments]) == code


def test_exit_codes_of_what_is_not_there(written, tmp_path, capsys):
    nothing = str(tmp_path / "nothing")
    assert harness_main(["report", "--state", nothing, "--out", nothing]) == Exit.INVALID
    assert harness_main(["verify-report", nothing, "--state", str(written)]) == Exit.INVALID
    report = tmp_path / "report.json"
    report.write_bytes(_reports(written)[f"{STEM}.json"])
    assert harness_main(["verify-report", str(report), "--state", nothing]) == Exit.INVALID
    anchored = ["verify-report", str(report), "--state", str(written), "--anchor", "3:" + "a" * 64]
    assert harness_main(anchored) == Exit.INVALID
    capsys.readouterr()


@pytest.mark.parametrize("approver", ["ab", "Kim", "kim mina", "-kim", "k" * 33, "김민아", "kim\n"])
def test_an_approver_is_opaque(written, tmp_path, approver, capsys):
    report = tmp_path / "report.json"
    report.write_bytes(_reports(written)[f"{STEM}.json"])
    config = config_of(tmp_path / "next.yaml")
    code = harness_main(
        [
            "approve",
            "--state",
            str(written),
            "--report",
            str(report),
            "--phase",
            "P3",
            "--approver",
            approver,
            "--config",
            str(config),
        ]
    )
    assert code == Exit.USAGE
    assert approver not in capsys.readouterr().out


def test_no_output_holds_what_a_configuration_holds(state, tmp_path, capfd):
    canaries = Canaries()
    secret, korean = canaries.plant("config value"), canaries.plant_korean("config text")
    more = f"other:\n  token: {secret}\n  text: {korean}\n"
    out = tmp_path / "out"
    assert harness_main(["report", "--state", str(state), "--out", str(out), "--lang", "ko"]) == Exit.GOOD
    base = ["approve", "--state", str(state), "--report", str(out / f"{STEM}.html"), "--approver", "kim-01"]
    for phase, config in (
        ("P4", config_of(tmp_path / "a.yaml", more=more)),
        ("P3", config_of(tmp_path / "b.yaml", Phase.P1, more)),
        ("P3", config_of(tmp_path / "c.yaml", more=f"bad: [{secret}\n")),
        ("P3", config_of(tmp_path / "d.yaml", more=more)),
    ):
        harness_main([*base, "--phase", phase, "--config", str(config)])
    assert harness_main(["report", "--state", str(state), "--out", str(out)]) == Exit.GOOD
    captured = capfd.readouterr()
    outputs = {"stdout": captured.out.encode(), "stderr": captured.err.encode()}
    outputs |= {path.name: path.read_bytes() for path in [*out.iterdir(), *evidence_of(state).iterdir()]}
    assert not canaries.leaks(outputs)


def test_files_are_replaced_whole_and_read_up_to_a_limit(tmp_path):
    write_all(tmp_path / "r", {"index.html": b"one"})
    write_all(tmp_path / "r", {"index.html": b"two"})
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["index.html"]
    assert read_report(tmp_path / "r" / "index.html") == b"two"
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert read_report(large) is None


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path):
    (tmp_path / "index.html").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_all(tmp_path, {"index.html": b"one"})
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_two_processes_may_write_the_same_reports_at_once(tmp_path):
    program = (
        "import sys, pathlib; from harness.report.files import write_all\n"
        "for _ in range(300): write_all(pathlib.Path(sys.argv[1]), {'index.html': b'x' * 100_000})"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    writers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("index.html", 100_000)]


@pytest.mark.parametrize("text", ["", "1", "1:", "01:" + "a" * 64, "1:" + "A" * 64, "-1:" + "a" * 64, "1:" + "a" * 63])
def test_what_is_no_head(text):
    assert parse_head(text) is None

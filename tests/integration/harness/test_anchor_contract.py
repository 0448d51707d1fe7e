"""The anchor grammar through the commands that open prose has: proof, budget, observation, status and reports."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.calls import Intents
from harness.cli import main
from harness.evidence.ledger import EvidenceLedger
from harness.profiles import PAIRS, Pair
from harness.proof.plan import proof_slots
from harness.proof.session import EVIDENCE
from harness.rehearsal.faults import FAULTS, FaultPlan
from harness.stage import Stage, rehearsal_clients
from harness.watch import ContentWatch
from kexpr.attempt import ArtifactAuthority
from kexpr.clock import SystemClock
from kexpr.codes import Mode, Outcome, Reason, Surface, WireVersion
from kexpr.config import Active
from kexpr.exits import Exit

JUDGED = sorted(
    name
    for name, fault in FAULTS.items()
    if fault.outcome is Outcome.CANONICAL_VALIDATION_REJECTED or name in {"reordered", "redirect_302", "reset_in_head"}
)
"""Those of which this contract's own judge decides, and two of the shared transport, which has tests of its own."""

V3 = ("--contract", "korean-expression-v3")


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main([*arguments, *V3, "--json"])
    out = capsys.readouterr().out
    return code, json.loads(out) if out else {}


def test_a_clean_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = command(capsys, "proof", "--out", str(tmp_path / "p"))
    assert code == Exit.GOOD
    assert (result["wire"], result["verdict"]) == (WireVersion.ANCHOR_GRAMMAR, "REHEARSAL")
    assert result["outcomes"] == {"shadow_selected": 48}
    assert result["calls"] == result["requests"] == 48
    assert [pair["calls"] for pair in result["pairs"]] == [12, 6, 6, 12, 12]
    metrics = (tmp_path / "p" / "metrics.prom").read_text()
    assert 'contract_version="korean-expression-v3"' in metrics
    assert not list((tmp_path / "p").glob("state-*"))
    evidence = EvidenceLedger.open(tmp_path / "p" / EVIDENCE, SystemClock())
    candidate = evidence.summary().candidate
    evidence.close()
    assert candidate is not None
    assert candidate.pin.config_schema_version == "korean-expression-v3"


@pytest.mark.parametrize("fault", JUDGED)
def test_every_fault_of_an_answer_ends_as_it_must(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    """Call 13 is the first weekly message: two slots, so that reordering and omission are faults too."""
    code, result = command(capsys, "proof", "--out", str(tmp_path), "--fault", f"{fault}@13")
    assert (code, result["calls"], result["requests"]) == (Exit.NOT_GOOD, 13, 13)
    assert result["outcomes"] == {FAULTS[fault].outcome: 1, "shadow_selected": 12}


class NoIntents(Intents):
    """Calls outside of any evidence."""

    def __init__(self) -> None:
        """Nothing to write to."""

    def observe(self, authority: ArtifactAuthority) -> ArtifactAuthority:
        return authority


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_a_selected_body_has_nobody_to_go_to(tmp_path: Path, pair: Pair) -> None:
    """Even with the contract enabled the world has no host writer and no edit: reaching for one is a failure."""
    slot = next(slot for slot in proof_slots() if slot.pair == pair)
    configs = {pair.profile: Active(Mode.ENABLED, frozenset(Surface), WireVersion.ANCHOR_GRAMMAR)}
    with rehearsal_clients(FaultPlan.parse(())) as (clients, _), ContentWatch() as watch:
        stage = Stage(configs, clients, tmp_path, SystemClock(), watch)
        with closing(stage):
            publication = stage.open(NoIntents()).prepare(slot, "identity")
    expected = Reason.COMMIT_PUBLICATION if pair.surface is Surface.DAILY else Reason.COMMIT_WRITER
    assert (publication.reason, publication.requests) == (expected, 1)


def test_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    code, result = command(capsys, "budget")
    assert (code, result["wire"], result["feasible"]) == (Exit.GOOD, "korean-expression-v3", True)
    assert result["limits"]["completion"] == 384
    assert {row["surface"] for row in result["rows"]} == {pair.surface.value for pair in PAIRS}


def test_the_contract_has_no_other_wire(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["proof", *V3, "--wire", "2", "--out", str(tmp_path / "p")]) == Exit.USAGE
    assert main(["budget", *V3, "--wire", "1"]) == Exit.USAGE
    assert not (tmp_path / "p").exists()


def simulated(capsys: pytest.CaptureFixture[str], out: Path, *faults: str) -> tuple[int, dict[str, dict[str, Any]]]:
    code, result = command(capsys, "observe", "simulate", "--days", "2", "--out", str(out), *faults)
    return code, {f"{pair['profile']}/{pair['surface']}": pair for pair in result["pairs"]}


def reasons(pair: dict[str, Any]) -> dict[str, str]:
    return {gate["gate"]: gate["reason"] for gate in pair["gates"]}


def test_one_call_a_surface_is_enough_and_no_guard_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, pairs = simulated(capsys, tmp_path / "s")
    assert code == Exit.INSUFFICIENT
    assert len(pairs) == len(PAIRS)
    for pair in pairs.values():
        shown = reasons(pair)
        assert shown["days_covered"] == "days_missing"
        assert shown["accepted"] == "rehearsal_only"
        assert "guard_at_bar" not in shown
    assert main(["observe", "status", "--state", str(tmp_path / "s"), "--json"]) == Exit.GOOD
    assert len(json.loads(capsys.readouterr().out)["pairs"]) == len(PAIRS)
    assert main(["report", "--state", str(tmp_path / "s"), "--out", str(tmp_path / "r")]) == Exit.INSUFFICIENT
    page = (tmp_path / "r" / "physique-coach-adaptive_physique.md").read_text()
    assert "adaptive_operator: true" in page
    assert "schema_version: korean-expression-v3" in page


def test_a_failure_of_one_surface_holds_every_surface(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, pairs = simulated(capsys, tmp_path / "s", "--fault", "http_500@day2:weekly")
    assert code == Exit.NOT_GOOD
    assert {reasons(pair)["no_failure"] for pair in pairs.values()} == {"calls_failed"}


def test_due_runs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("observe", "run", "--due", "--state", str(tmp_path))
    assert command(capsys, *arguments)[1]["word"] == "ran"
    assert command(capsys, *arguments)[1]["word"] == "nothing_due"


def test_a_block_of_the_contract_passes_the_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from harness.profiles import Profile
    from harness.readiness.model import Phase
    from harness.readiness.phases import block_of, block_text
    from kexpr.config import Disabled, parse_block

    for profile in Profile:
        for phase in Phase:
            parsed = parse_block(block_of(profile, phase, WireVersion.ANCHOR_GRAMMAR))
            assert isinstance(parsed, Active | Disabled)
    path = tmp_path / "config.yaml"
    path.write_text(block_text(Profile.DUALCOACHTEST, Phase.P1, WireVersion.ANCHOR_GRAMMAR), "utf-8")
    arguments = ("audit", "--state", str(tmp_path / "s"), "--profile", "dualcoachtest", "--config", str(path))
    assert command(capsys, *arguments)[1]["phases"] == ["P1", "P2"]

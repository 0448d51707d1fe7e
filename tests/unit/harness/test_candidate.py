"""Pins, candidates, checkouts, the gate policy and the five pairs."""

import os
import re
import subprocess
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from harness.candidate import UNKNOWN_COMMIT, Candidate, Checkout, Pin, checkout_of, current_pin
from harness.evidence import EvidenceLedger
from harness.policy import POLICY, GatePolicy
from harness.profiles import PAIRS, PATHS, Pair, Profile
from kexpr import __version__
from kexpr.codes import Surface, WireVersion
from kexpr.config import WIRE_OF_SCHEMA
from tests.unit.harness.evidence_samples import PIN, SteppingClock

CHANGES: dict[str, Any] = {
    "package_version": "0.1.1",
    "commit": "f" * 40,
    "dirty": True,
    "config_schema_version": 1,
    "wire_version": WireVersion.KEXP_1,
    "model": "gpt-4.1-nano",
    "generator_version": "kexpr-manifests-2",
    "generator_seed": 1,
} | {field.name: "9" * 64 for field in fields(Pin) if field.name.endswith("_digest")}


@pytest.mark.parametrize("field", [field.name for field in fields(Pin)])
def test_any_change_is_another_candidate(field):
    assert replace(PIN, **{field: CHANGES[field]}).digest != PIN.digest


def test_the_digest_is_a_pure_function_of_the_pin():
    assert PIN.digest == replace(PIN).digest
    assert re.fullmatch("[0-9a-f]{64}", PIN.digest)


def test_a_candidate_has_a_short_name():
    assert Candidate("ab" * 32, 3).id == "abababababababab-3"


@pytest.mark.parametrize("wire", WIRE_OF_SCHEMA.values())
def test_the_current_pin_can_be_written(tmp_path, wire):
    pin = current_pin(wire)
    assert (pin.package_version, pin.wire_version, pin.model) == (__version__, wire, "gpt-4.1-mini")
    assert pin.config_schema_version == {WireVersion.KEXP_1: 1, WireVersion.KEXP_2: 2}[wire]
    assert pin.policy_digest == POLICY.digest
    evidence = EvidenceLedger.open(tmp_path / "evidence", SteppingClock())
    assert evidence.ensure_candidate(pin) == evidence.ensure_candidate(current_pin(wire))
    evidence.close()


def test_a_commit_beside_a_process_does_not_change_its_pin(monkeypatch):
    before = current_pin(WireVersion.KEXP_2)
    monkeypatch.setattr("harness.candidate._git_status", lambda root: ["# branch.oid " + "f" * 40, "? new"])
    assert current_pin(WireVersion.KEXP_2) == before


def test_the_policy_is_pinned():
    stricter = replace(POLICY, guard_recall_permille=POLICY.guard_recall_permille + 1)
    assert current_pin(WireVersion.KEXP_2, stricter).digest != current_pin(WireVersion.KEXP_2).digest


def _git(root: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout"
    (root / "kexpr").mkdir(parents=True)
    (root / "kexpr" / "a.py").write_text("A = 1\n")
    _git(root, "init", "-q")
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "First")
    return root


def test_a_clean_checkout(checkout):
    assert checkout_of(checkout) == Checkout(_git(checkout, "rev-parse", "HEAD"), dirty=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "kexpr" / "a.py").write_text("A = 2\n"),
        lambda root: (root / "kexpr" / "new.py").write_text("B = 1\n"),
        lambda root: (root / "kexpr" / "a.py").unlink(),
        lambda root: (root / "pyproject.toml").write_text("[project]\n"),
    ],
)
def test_a_dirty_checkout(checkout, change):
    change(checkout)
    assert checkout_of(checkout).dirty


def test_files_outside_the_packages_do_not_matter(checkout):
    (checkout / "proof.json").write_text("{}")
    assert not checkout_of(checkout).dirty


def test_no_variable_leads_git_elsewhere(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert checkout_of(checkout).commit == _git(checkout, "rev-parse", "HEAD")


def test_an_installed_package_is_no_checkout(checkout):
    """Also where the environment lies below somebody's own repository."""
    (checkout / "site-packages").mkdir()
    assert checkout_of(checkout / "site-packages") == Checkout(UNKNOWN_COMMIT, dirty=False)


def test_a_checkout_that_git_cannot_read_counts_as_dirty(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert checkout_of(checkout) == Checkout(UNKNOWN_COMMIT, dirty=True)


def test_a_repository_without_a_commit_counts_as_dirty(tmp_path):
    _git(tmp_path, "init", "-q")
    assert checkout_of(tmp_path) == Checkout(UNKNOWN_COMMIT, dirty=True)


def test_the_proof_has_48_calls():
    assert POLICY.proof_total == 48
    by_surface = {surface: sum(POLICY.calls_of(p) for p in PAIRS if p.surface is surface) for surface in Surface}
    assert set(by_surface.values()) == {12}
    assert POLICY.calls_of(Pair(Profile.DUALCOACHTEST, Surface.WEEKLY)) == 6


@pytest.mark.parametrize("field", [field.name for field in fields(GatePolicy)])
def test_every_bar_is_in_the_digest(field):
    value = getattr(POLICY, field)
    changed: Any = (*value, 1) if isinstance(value, tuple) else value + 1
    assert replace(POLICY, **{field: changed}).digest != POLICY.digest


def test_the_pairs_are_the_five_of_the_specification():
    assert [str(pair) for pair in PAIRS] == [
        "physique-coach/daily",
        "physique-coach/weekly",
        "dualcoachtest/weekly",
        "dualcoachtest/adaptive_dualcoachtest",
        "physique-coach/adaptive_physique",
    ]
    assert set(PATHS) == set(Surface)

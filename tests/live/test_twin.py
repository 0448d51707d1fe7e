"""The hermetic twin of the live check: the same code on the rehearsal server, and that each of its rules can fail."""

import logging
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.commands.shared import LIVE_SWITCH
from harness.rehearsal.faults import FaultPlan
from harness.stage import rehearsal_clients
from kexpr.codes import Surface, WireVersion
from kexpr.exits import Exit
from kexpr.paths.publication import Preparation, Publication
from tests.live.check import Checked, check_contract
from tests.live.isolation import Forbidden, isolated
from tests.live.run import MARKER, child_environment, main

WIRES = pytest.mark.parametrize("wire", [WireVersion.KEXP_2, WireVersion.ANCHOR_GRAMMAR])
ROOT = Path(__file__).parent.parent.parent
ALL = {LIVE_SWITCH: "1", "OPENAI_API_KEY": "dummy-key-canary-0123456789", "OTHER": "other-canary"}


def checked(wire: WireVersion, directory: Path, capfd: pytest.CaptureFixture[str], *faults: str) -> tuple[Checked, int]:
    with rehearsal_clients(FaultPlan.parse(faults)) as (clients, server):
        result = check_contract(wire, clients, directory, capfd.readouterr)
        return result, server.requests


@WIRES
def test_every_surface_passes_with_one_request_each(
    wire: WireVersion, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result, requests = checked(wire, tmp_path, capfd)
    assert result == Checked(dict.fromkeys(Surface, True), (), clean=True)
    assert requests == len(Surface)
    assert result.lines() == [f"{surface}: pass" for surface in Surface]


@WIRES
def test_a_failing_call_fails_its_surface_alone(
    wire: WireVersion, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result, _ = checked(wire, tmp_path, capfd, "http_500@2")
    assert not result.good
    assert [surface for surface, passed in result.passed.items() if not passed] == [Surface.WEEKLY]


@pytest.mark.parametrize("channel", ["stdout", "stderr", "log"])
@WIRES
def test_content_that_comes_out_fails(
    wire: WireVersion,
    channel: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from harness import world

    leaks: dict[str, Callable[[str | None], None]] = {
        "stdout": print,
        "stderr": lambda text: print(text, file=sys.stderr),
        "log": lambda text: logging.getLogger("host").debug("%s", text),
    }
    leak = leaks[channel]
    taken = world._taken

    def leaking(preparation: Preparation) -> Publication:
        publication = taken(preparation)
        leak(publication.text)
        return publication

    monkeypatch.setattr(world, "_taken", leaking)
    result, _ = checked(wire, tmp_path, capfd)
    assert all(result.passed.values())
    assert not result.clean
    assert not result.good


def test_no_transport_can_be_imported_or_built(tmp_path: Path) -> None:
    telegram = pytest.importorskip("telegram")
    with isolated(tmp_path) as tried:
        with pytest.raises(Forbidden):
            import telegram.ext
        for call in (lambda: telegram.Bot("1:a"), lambda: telegram.Bot.send_message(None)):
            with pytest.raises(Forbidden):
                call()
        with pytest.raises(Forbidden):
            telegram.Bot.edit_message_text(None)
    assert tried == ["transport_import", *["transport_call"] * 3]
    assert sys.modules["telegram"] is telegram


def test_no_other_host_and_no_other_file(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out.txt"
    inside.mkdir()
    with isolated(inside) as tried:
        (inside / "kept").write_text("x")
        with pytest.raises(Forbidden):
            outside.write_text("x")
        with pytest.raises(Forbidden):
            socket.getaddrinfo("api.telegram.org", 443)
    assert tried == ["write_outside", "other_host"]
    outside.write_text("allowed again")


@pytest.mark.parametrize("missing", [LIVE_SWITCH, "OPENAI_API_KEY", "switch", None])
def test_the_child_gets_the_flag_and_the_key_or_nothing(missing: str | None) -> None:
    environ = {name: value for name, value in ALL.items() if name != missing}
    forwarded = child_environment(environ, switch=missing != "switch")
    assert forwarded == ({name: ALL[name] for name in (LIVE_SWITCH, "OPENAI_API_KEY")} if missing is None else {})
    assert child_environment({**ALL, LIVE_SWITCH: "0"}, switch=True) == {}
    assert child_environment({**ALL, "OPENAI_API_KEY": ""}, switch=True) == {}


STUB = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(repr(sorted(set(os.environ) - {'LC_CTYPE'})))"


@pytest.mark.parametrize("switch", [True, False])
def test_the_child_runs_in_an_emptied_environment_and_nothing_is_printed(
    switch: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", STUB, str(tmp_path / "names")]
    code = main(["--live"] if switch else [], ALL, command)
    assert code == (Exit.GOOD if switch else Exit.INSUFFICIENT)
    assert (tmp_path / "names").read_text() == repr(sorted([LIVE_SWITCH, "OPENAI_API_KEY"]) if switch else [])
    printed = "".join(capfd.readouterr())
    assert not [value for value in ("dummy-key-canary", "other-canary") if value in printed]


def test_the_childs_code_is_ours(tmp_path: Path) -> None:
    assert main(["--live"], ALL, [sys.executable, "-c", "raise SystemExit(1)"]) == 1
    assert main(["--please"], ALL, [sys.executable, "-c", ""]) == Exit.USAGE


@pytest.mark.parametrize(("selected", "code"), [("tests/live", 0), ("tests/unit/test_docs.py", 5)])
def test_without_flag_and_key_it_skips_and_collecting_zero_fails(selected: str, code: int) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", MARKER, "-p", "no:cacheprovider", selected]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert ("2 skipped" in done.stdout) is (code == 0)

"""`kexpr ledger`: what an operator sees of whole, torn, broken and foreign ledgers."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kexpr.cli import main
from kexpr.codes import Mode
from kexpr.exits import Exit
from kexpr.ledger import maintenance
from kexpr.state import State
from kexpr.testing.canaries import Canaries
from tests.unit.ledger.support import Opened, build, segment_files


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    build(tmp_path / "ledger", 5)
    return tmp_path / "ledger"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A gateway's state directory with a claim on the daily surface."""
    with State(tmp_path / "state") as opened:
        opened.daily(lambda _: True).artifact("event-1").claim(Mode.SHADOW)
    return tmp_path / "state"


def ran(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main(["ledger", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def data(capsys, *arguments: object) -> tuple[int, dict[str, object]]:
    code, out, _ = ran(capsys, *arguments, "--json")
    (entry,) = json.loads(out)["ledgers"]
    return code, entry


def tear(ledger: Path) -> None:
    with segment_files(ledger)[-1].open("ab") as file:
        file.write(b'{"kind":"row"')


def breaks(ledger: Path) -> None:
    segment = segment_files(ledger)[0]
    first, *rest = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(first + rest[0].replace(b"row", b"roe", 1) + b"".join(rest[1:]))


def test_a_whole_ledger(ledger: Path, capsys) -> None:
    head = maintenance.head(ledger)
    text = f"{head.sequence}:{head.digest}"
    assert ran(capsys, "head", ledger) == (Exit.GOOD, text + "\n", "")
    code, out, _ = ran(capsys, "verify", ledger)
    assert (code, out) == (Exit.GOOD, f"intact, 5 rows in 1 segments, head {text}\n")
    code, out, _ = ran(capsys, "repair", ledger)
    assert (code, out) == (Exit.GOOD, f"nothing was torn, head {text}\n")
    expected = {"sequence": head.sequence, "digest": head.digest}
    assert data(capsys, "verify", ledger) == (
        Exit.GOOD,
        {"ledger": "ledger", "rows": 5, "segments": 1, "head": expected},
    )


def test_a_head_kept_elsewhere(ledger: Path, capsys) -> None:
    _, kept, _ = ran(capsys, "head", ledger)
    with Opened(ledger) as opened:
        opened.append({"n": 6})
    code, out, _ = ran(capsys, "verify", ledger, "--expected", kept.strip())
    assert code == Exit.GOOD
    assert f"intact relative to {kept.strip()}, 6 rows" in out
    for other in (f"99:{'0' * 64}", kept.strip()[:-1] + ("0" if kept.strip()[-1] != "0" else "1")):
        code, out, err = ran(capsys, "verify", ledger, "--expected", other)
        assert (code, out) == (Exit.INVALID, "")
        assert "head_mismatch" in err


def test_a_torn_tail_is_moved_and_nothing_else(ledger: Path, capsys) -> None:
    before = segment_files(ledger)[-1].read_bytes()
    tear(ledger)
    for command in ("verify", "head"):
        code, out, err = ran(capsys, command, ledger)
        assert (code, out) == (Exit.INVALID, "")
        assert "torn_tail" in err
    code, entry = data(capsys, "repair", ledger)
    assert (code, entry["size_bytes"]) == (Exit.GOOD, 13)
    assert (ledger / str(entry["quarantined"])).read_bytes() == b'{"kind":"row"'
    assert segment_files(ledger)[-1].read_bytes() == before
    assert data(capsys, "repair", ledger)[1]["quarantined"] is None
    assert ran(capsys, "verify", ledger)[0] == Exit.GOOD


@pytest.mark.parametrize("command", ["verify", "head", "repair"])
def test_corruption_is_refused_and_left(command: str, ledger: Path, capsys) -> None:
    breaks(ledger)
    before = segment_files(ledger)[0].read_bytes()
    code, out, err = ran(capsys, command, ledger)
    assert (code, out) == (Exit.INVALID, "")
    assert "chain_broken" in err
    assert segment_files(ledger)[0].read_bytes() == before
    assert data(capsys, command, ledger) == (Exit.INVALID, {"ledger": "ledger", "invalid": "chain_broken"})


def test_what_is_no_ledger(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "open").mkdir(mode=0o755)
    for path, code in (("none", "not_regular"), ("file", "not_regular"), ("open", "not_private")):
        exit_code, out, err = ran(capsys, "verify", tmp_path / path)
        assert (exit_code, out) == (Exit.INVALID, "")
        assert code in err


def test_a_state_directory_is_looked_at_whole_and_with_its_key(state: Path, capsys) -> None:
    code, out, _ = ran(capsys, "verify", state)
    assert code == Exit.GOOD
    assert out.startswith("daily: intact, ")
    (state / "identity.key").write_bytes(b"k" * 32)
    code, _, err = ran(capsys, "verify", state)
    assert code == Exit.INVALID
    assert "key_mismatch" in err


@pytest.mark.parametrize(
    "expected", ["", "1", "1:", "x:" + "0" * 64, "1:" + "0" * 63, "1:" + "G" * 64, "-1:" + "0" * 64]
)
def test_a_head_that_is_none_is_usage(expected: str, ledger: Path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ledger", "verify", str(ledger), f"--expected={expected}"])
    assert ended.value.code == Exit.USAGE


def test_nothing_of_a_row_is_printed(tmp_path: Path, capsys) -> None:
    canaries = Canaries()
    ledger = tmp_path / "ledger"
    with Opened(ledger) as opened:
        opened.append({"text": canaries.plant_korean("a row"), "key": canaries.plant("another")})
    outputs: dict[str, str | bytes] = {}
    for step in (lambda: None, lambda: tear(ledger), lambda: breaks(ledger)):
        step()
        for command in ("verify", "head", "repair"):
            for more in ([], ["--json"]):
                _, out, err = ran(capsys, command, ledger, *more)
                outputs[f"{len(outputs)}"] = out + err
    canaries.assert_absent(outputs)


def test_ten_thousand_rows_take_a_moment(tmp_path: Path) -> None:
    """The bar is 0.3 s on an idle machine (design, "Bars"); CI is given three times that."""
    build(tmp_path / "ledger", 10_000)
    command = [sys.executable, "-m", "kexpr.cli", "ledger", "verify", str(tmp_path / "ledger")]
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - started)
    assert min(taken) < 0.9

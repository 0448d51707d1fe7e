"""A ledger on a small tmpfs that runs full for real, and goes on once there is space again.

The mount lives in a mount namespace of the worker's own, so nothing is left behind.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.programs import need

ROOT = Path(__file__).parents[3]

FILL = """
import sys
from pathlib import Path
from kexpr.errors import LedgerFailed
from kexpr.ledger.maintenance import repair, verify
from tests.unit.ledger.support import Opened
disk = Path(sys.argv[1])
ballast = disk / "ballast"
ballast.write_bytes(bytes(16384))
acknowledged = 0
with Opened(disk / "ledger") as opened:
    codes = []
    while len(codes) < 2:
        try:
            opened.append({"n": acknowledged, "text": "x" * 200})
            acknowledged += 1
        except LedgerFailed as failed:
            codes.append(failed.code.value)
ballast.unlink()
repair(disk / "ledger")
with Opened(disk / "ledger") as opened:
    assert [record["n"] for record in opened.records] == list(range(acknowledged))
    opened.append({"n": acknowledged})
assert verify(disk / "ledger").rows == acknowledged + 1
assert acknowledged > 10
print(*codes)
"""


def _on_a_small_disk(mount_point: Path, size: str, *arguments: str) -> list[str]:
    """The output lines of Python with `arguments`, in a mount namespace where `mount_point` is a tmpfs of `size`."""
    need("unshare")
    if os.geteuid() != 0:
        _not_here("mounting a tmpfs needs root")
    mount = f'mount -t tmpfs -o size={size},mode=0700 none "$1" && shift && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", mount, "sh", str(mount_point), sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        _not_here("mounting a tmpfs is not permitted here")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _not_here(reason: str) -> NoReturn:
    if os.environ.get("REQUIRE_INTEGRATION") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def test_a_ledger_survives_a_full_disk(tmp_path: Path) -> None:
    assert _on_a_small_disk(tmp_path, "64k", "-c", FILL, str(tmp_path)) == ["input_output poisoned"]


def test_a_path_survives_a_full_disk(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    wrong, left = _on_a_small_disk(state, "512k", "-m", "tests.integration.faults.full_disk", str(tmp_path))
    assert wrong == ""
    assert len(set(left.split())) >= 2, "the disk always ran full at the same row"


def test_a_refused_mount_fails_where_integration_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_INTEGRATION", "1")
    with pytest.raises(pytest.fail.Exception):
        _not_here("refused")
    monkeypatch.delenv("REQUIRE_INTEGRATION")
    with pytest.raises(pytest.skip.Exception):
        _not_here("refused")

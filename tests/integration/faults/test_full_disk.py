"""A ledger on a small tmpfs that runs full for real, and goes on once there is space again.

The mount lives in a mount namespace of the worker's own, so nothing is left behind.
"""

import os
import subprocess
import sys
from pathlib import Path

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


def test_a_ledger_survives_a_full_disk(tmp_path: Path) -> None:
    need("unshare")
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    mount = 'mount -t tmpfs -o size=64k none "$1" && exec "$2" -c "$3" "$1"'
    command = ["unshare", "-m", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, FILL]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("mounting a tmpfs is not permitted here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["input_output", "poisoned"]

"""`make live`: the live marker in a child process whose environment is empty but for the flag and the key.

Both are forwarded only when the switch (`--live`, `make live LIVE=1`), the flag and the key are all there, and neither
is ever printed. Exit code: the child's; 5 when nothing was forwarded, since then nothing was called.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.commands.shared import LIVE_SWITCH
from kexpr.exits import Exit

__all__ = ["MARKER", "child_environment", "main"]

MARKER: Final = "live_korean_expression"
_SWITCH: Final = "--live"
_KEY: Final = "OPENAI_API_KEY"
_ROOT: Final = Path(__file__).parent.parent.parent
_COMMAND: Final = (
    *(sys.executable, "-m", "pytest", "-m", MARKER, "tests/live", "-q", "--tb=no", "--show-capture=no"),
    *("-p", "no:cacheprovider"),
)


def child_environment(environ: Mapping[str, str], *, switch: bool) -> dict[str, str]:
    """The flag and the key when all three are there, else nothing."""
    if switch and environ.get(LIVE_SWITCH) == "1" and environ.get(_KEY):
        return {LIVE_SWITCH: "1", _KEY: environ[_KEY]}
    return {}


def main(argv: Sequence[str], environ: Mapping[str, str], command: Sequence[str] = _COMMAND) -> int:
    """Run the marker once. pytest fails by itself when it collects nothing."""
    if list(argv) not in ([], [_SWITCH]):
        print(f"usage: python -m tests.live.run [{_SWITCH}]", file=sys.stderr)
        return Exit.USAGE
    environment = child_environment(environ, switch=_SWITCH in argv)
    code = subprocess.run(command, cwd=_ROOT, env=environment, check=False).returncode
    if not environment and code == 0:
        print(f"nothing was called: needs LIVE=1, {LIVE_SWITCH}=1 and {_KEY}", file=sys.stderr)
        return Exit.INSUFFICIENT
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))

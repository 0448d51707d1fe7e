"""Runs a `kexpr-harness` command, killed at the n-th reach of a failpoint: `killed_command NAME N ARG…`."""

import os
import signal
import sys

from harness.cli import main
from kexpr import failpoints


def die_at(name: str, number: int) -> None:
    seen = 0

    def hook(reached: str) -> None:
        nonlocal seen
        seen += reached == name
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.install(hook)


if __name__ == "__main__":
    point, count, *arguments = sys.argv[1:]
    die_at(point, int(count))
    sys.exit(main(arguments))

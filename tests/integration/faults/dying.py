"""A forked process that SIGKILLs itself at a failpoint."""

import os
import signal
from collections.abc import Callable

from kexpr import failpoints

__all__ = ["dies_at"]


def dies_at(name: str, play: Callable[[], object], *, nth: int = 1) -> bool:
    """Run `play` in a process of its own; whether it was killed at the n-th reach of `name`, rather than ended."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    left = nth

    def hook(reached: str) -> None:
        nonlocal left
        left -= reached == name
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        failpoints.install(hook)
        play()
    finally:
        os._exit(1)

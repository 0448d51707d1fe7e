"""`python -m tests.integration.ledger.worker DIR COMMAND …`: one process over a ledger, for tests that end it."""

import fcntl
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kexpr import failpoints
from kexpr.errors import LedgerFailed, StoreFault
from tests.unit.ledger.support import Opened, segment_files


def append(directory: Path, name: str, count: str) -> None:
    """Append `count` rows, from a line on stdin on; prints each sequence once it is acknowledged."""
    with Opened(directory) as opened:
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(int(count)):
            print(opened.append({"n": n, "worker": name}).sequence, flush=True)


def kill_at(directory: Path, failpoint: str, nth: str) -> None:
    """Append two rows; SIGKILL oneself when `failpoint` is reached for the nth time."""
    left = int(nth)

    def hook(name: str) -> None:
        nonlocal left
        left -= name == failpoint
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.install(hook)
    append(directory, "killed", "2")


def tear(directory: Path, room_bytes: str) -> None:
    """Append under a file size limit that leaves room for a part of the row; prints the codes of two attempts."""
    with Opened(directory) as opened:
        opened.append({"n": 0})
        size = segment_files(directory)[0].stat().st_size
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(room_bytes), resource.RLIM_INFINITY))
        for _ in range(2):
            print(_code(lambda: opened.append({"n": 1})).value, flush=True)


def fork(directory: Path) -> None:
    """Use inherited and fresh handles in children; prints what the first child may not do and who holds the lock."""
    with Opened(directory) as opened:
        with opened.ledger.transaction() as transaction:
            child = os.fork()
            if child == 0:
                print(_code(lambda: transaction.append({"n": 0})).value, flush=True)
            else:
                os.waitpid(child, 0)
                print("held" if _is_locked(directory) else "lost", flush=True)
                transaction.append({"n": 1})
        if child == 0:
            for use in (opened.ledger.head, lambda: opened.append({"n": 0})):
                print(_code(use).value, flush=True)
            opened.ledger.close()
            print(_code(lambda: Opened(directory, wait_seconds=0.05)).value, flush=True)
            os._exit(0)
        fresh = os.fork()
        if fresh == 0:
            with Opened(directory) as own:
                own.append({"n": 2})
            os._exit(0)
        os.waitpid(fresh, 0)
        opened.append({"n": 3})


def _is_locked(directory: Path) -> bool:
    with (directory / "lock").open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def hold(directory: Path, seconds: str) -> None:
    """Hold the lock, saying so."""
    with Opened(directory) as opened, opened.ledger.transaction():
        print("held", flush=True)
        time.sleep(float(seconds))


def _code(use: Callable[[], object]) -> StoreFault:
    try:
        use()
    except LedgerFailed as failed:
        return failed.code
    raise AssertionError("not refused")


_COMMANDS: dict[str, Callable[..., None]] = {
    "append": append,
    "fork": fork,
    "hold": hold,
    "kill_at": kill_at,
    "tear": tear,
}

if __name__ == "__main__":
    _COMMANDS[sys.argv[2]](Path(sys.argv[1]), *sys.argv[3:])

"""Processes that die: `python -m tests.integration.paths.worker SOCKET CA` forks one child for each scene on stdin.

The parent has loaded and warmed everything and has one thread, so a child costs milliseconds and is a process of its
own: its death by SIGKILL is a real one.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from kexpr import failpoints
from kexpr.authority.steps import LedgerOpener
from kexpr.codes import Mode, WireVersion
from kexpr.errors import LedgerFailed
from kexpr.stores import PostgresStores
from kexpr.transport import ClientFactory, Seam
from tests.support.hosts import AheadClock, Gateway, Kind


@dataclass(frozen=True)
class Scene:
    """One process: it publishes one message once, `ahead_ms` in the future.

    It dies at the n-th reach of `kill`, or `kill_after_ms` after it began to publish, wherever that is.
    """

    directory: str
    kind: str
    identity: str
    mode: str = Mode.ENABLED.value
    wire: str = WireVersion.KEXP_2.value
    replay: bool = False
    ahead_ms: int = 0
    kill: tuple[str, int] | None = None
    kill_after_ms: float = 0.0
    conninfo: str = ""
    """Of the PostgreSQL that has the ledgers; empty for files."""


@dataclass(frozen=True)
class Ended:
    """How a scene's process ended. `killed` leaves all else empty."""

    killed: bool
    reached: list[str] = field(default_factory=list)
    outcome: str | None = None
    wait_ms: int = 0
    stopped: bool = False
    requests: int = 0
    renders: int = 0
    raised: str = ""


class Forker:
    """The parent's end. One scene at a time; another thread has another forker."""

    def __init__(self, seam: Seam) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.paths.worker", seam.socket_path, seam.ca_pem_path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, scene: Scene) -> Ended:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(scene)) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Recorder:
    """The failpoint hook of a child."""

    def __init__(self, kill: tuple[str, int] | None) -> None:
        self._kill = kill
        self.reached: list[str] = []

    def __call__(self, name: str) -> None:
        self.reached.append(name)
        if self._kill and name == self._kill[0] and self.reached.count(name) == self._kill[1]:
            os.kill(os.getpid(), signal.SIGKILL)


def _play(scene: Scene, clients: ClientFactory) -> Ended:
    recorder = _Recorder(scene.kill)
    failpoints.install(recorder)
    clock = AheadClock(scene.ahead_ms)
    with Gateway(
        Path(scene.directory),
        clients,
        mode=Mode(scene.mode),
        wire=WireVersion(scene.wire),
        clock=clock,
        timers=_NoTimers(),
        stores=_AheadStores(scene.conninfo, clock) if scene.conninfo else None,
    ) as gateway:
        # Without a handler the alarm ends the process at once, also in the middle of a system call.
        signal.setitimer(signal.ITIMER_REAL, scene.kill_after_ms / 1000)
        try:
            publication = gateway.publish(Kind(scene.kind), scene.identity, replay=scene.replay)
        except Exception as error:
            return Ended(False, recorder.reached, raised=type(error).__name__)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return Ended(
            False,
            recorder.reached,
            publication.outcome,
            publication.wait_ms,
            publication.stopped,
            publication.requests,
            gateway.host.renders,
        )


class _AheadStores(PostgresStores):
    """Those of a server whose time is `clock`'s, for no test waits for the end of a lease."""

    def __init__(self, conninfo: str, clock: AheadClock) -> None:
        super().__init__(conninfo)
        self._clock = clock

    def opener(self, name: str, *, genesis: str) -> LedgerOpener:
        return partial(super().opener(name, genesis=genesis), _clock=self._clock)  # type: ignore[call-arg]


class _NoTimers:
    """The next scene is what looks again."""

    def call_later(self, delay_ms: int, call: object) -> None:
        pass


def _fork(scene: Scene, clients: ClientFactory) -> dict[str, Any]:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            ended = _play(scene, clients)
        except LedgerFailed as failed:
            ended = Ended(False, raised=f"{failed.code} at the start")
        os.write(write_end, json.dumps(asdict(ended)).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGALRM):
        return asdict(Ended(killed=True))
    return dict(json.loads(said))


def main(socket_path: str, ca_pem_path: str) -> None:
    from kexpr.guard import warm

    clients = ClientFactory(_seam=Seam(socket_path, ca_pem_path))
    clients.warm()
    warm()
    assert threading.active_count() == 1
    for line in sys.stdin:
        scene = Scene(**json.loads(line))
        if scene.kill is not None:
            scene = Scene(**{**asdict(scene), "kill": tuple(scene.kill)})
        if scene.conninfo:
            import psycopg  # noqa: F401 - loaded here once, not in each child
        print(json.dumps(_fork(scene, clients)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

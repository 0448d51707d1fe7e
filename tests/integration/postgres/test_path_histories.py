"""Seeded histories of gateway processes on one database: they publish, race, change mode, are killed, lose connections.

Two processes at a time, each against a provider of its own, so that each request has its message. The checker is the
one of the files' tests; it reads the deliveries, the rows and the providers.
"""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest

from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode
from tests.integration.paths.conftest import Lanes
from tests.integration.paths.invariants import last_state, outcomes, violations
from tests.integration.paths.worker import Ended, Scene
from tests.integration.postgres.conftest import Shared
from tests.support.hosts import Host, Kind, canonical_text
from tests.support.postgres import execute

_ROUNDS = 24
_RECENT = 4
"""So many messages are in play at a time."""
_STEPS = (
    "coordinator.claimed",
    "coordinator.finalized",
    "host.delivering",
    "host.delivered",
    "path.delivered",
    "postgres.before_insert",
    "postgres.before_commit",
    "postgres.after_commit",
)
_MODES = (Mode.ENABLED, Mode.ENABLED, Mode.ENABLED, Mode.SHADOW, Mode.DISABLED)
_TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kexpr' AND state IS NOT NULL
"""


@dataclass
class _Message:
    kind: Kind
    identity: str
    is_saved: bool = False
    requests: int = 0


@dataclass
class _History:
    directory: Path
    lanes: Lanes
    draw: random.Random
    messages: list[_Message] = field(default_factory=list)
    ahead_ms: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def add(self) -> None:
        self.messages.append(_Message(self.draw.choice(list(Kind)), f"message-{len(self.messages)}"))

    def round(self) -> None:
        """Two processes at once, often at one message."""
        if self.draw.random() < 0.6:
            self.add()
        first = self.draw.choice(self.messages[-_RECENT:])
        # A first save of an event runs in one process, and nothing else at the event until it has ended.
        may_race = first.is_saved or first.kind is not Kind.DAILY
        again = first if may_race and self.draw.random() < 0.5 else self._another(first)
        scenes = [self._scene(message) for message in (first, again)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._play, (0, 1), (first, again), scenes))
        self.ahead_ms += self.draw.choice((0, 0, 1_000, CLAIM_LEASE_MS))

    def settle(self) -> list[str]:
        """Without further faults each message is brought as far as it may go; what is wrong then, in words."""
        wrong: list[str] = []
        for _ in range(2):
            self.ahead_ms += CLAIM_LEASE_MS
            for message in self.messages:
                scene = Scene(str(self.directory), message.kind, message.identity, replay=message.kind is Kind.DAILY)
                ended = self._play(0, message, scene)
                wrong += [f"{message.identity}: raised {ended.raised}"] if ended.raised else []
        return wrong

    def _another(self, message: _Message) -> _Message:
        return self.draw.choice([other for other in self.messages[-_RECENT:] if other is not message])

    def _scene(self, message: _Message) -> Scene:
        replay = message.kind is Kind.DAILY and message.is_saved
        message.is_saved = True
        scene = Scene(str(self.directory), message.kind, message.identity, mode=self.draw.choice(_MODES), replay=replay)
        death = self.draw.random()
        if death < 0.5:
            return replace(scene, kill=(self.draw.choice(_STEPS), self.draw.randint(1, 3)))
        return replace(scene, kill_after_ms=self.draw.uniform(1, 40)) if death < 0.7 else scene

    def _play(self, number: int, message: _Message, scene: Scene) -> Ended:
        lane = self.lanes.lanes[number]
        before = lane.server.requests
        ended = lane.run(replace(scene, ahead_ms=self.ahead_ms))
        message.requests += lane.server.requests - before
        self.seen["killed" if ended.killed else ended.raised or str(ended.outcome)] += 1
        return ended


@contextmanager
def _cutting(conninfo: str, seed: int) -> Iterator[None]:
    """The server ends every connection of a gateway, again and again."""
    draw, over = random.Random(seed), Event()

    def cut() -> None:
        while not over.wait(draw.uniform(0.02, 0.25)):
            execute(conninfo, _TERMINATE)

    with ThreadPoolExecutor(1) as pool:
        cutting = pool.submit(cut)
        try:
            yield
        finally:
            over.set()
            cutting.result()


def _unsettled(shared: Shared, directory: Path, message: _Message) -> list[str]:
    delivered = Host(directory).delivered(message.identity)
    if message.kind is Kind.DAILY:
        is_settled = delivered[-1:] == [canonical_text(message.kind, message.identity)]
    elif message.kind is Kind.WEEKLY:
        is_settled = bool(delivered) or shared.may_have_been_sent(message.identity)
    else:
        is_settled = bool(delivered) and last_state(directory, message.kind, message.identity) == "published"
    return [] if is_settled else ["left behind"]


@pytest.mark.parametrize("seed", range(2))
def test_any_history(seed: int, shared: Shared, lanes: Lanes, tmp_path: Path) -> None:
    directory = tmp_path / "host"
    directory.mkdir(mode=0o700)
    shared.give_key(directory)
    history = _History(directory, lanes, random.Random(seed))
    for _ in range(_RECENT):
        history.add()
    with _cutting(shared.conninfo, seed):
        for _ in range(_ROUNDS):
            history.round()
    wrong = history.settle()
    found: Counter[str] = Counter()
    for message in history.messages:
        broken = violations(directory, message.kind, message.identity, message.requests)
        broken += _unsettled(shared, directory, message)
        wrong += [f"seed {seed}, {message.identity}: {what}" for what in broken]
        found.update(outcomes(directory, message.kind, message.identity))
    assert wrong == []
    assert found["selected"]
    assert history.seen["killed"] >= 3

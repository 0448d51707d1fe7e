"""A provider for gateways of this process, and two lanes: each a provider and a process that forks gateways."""

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr import failpoints
from kexpr.transport import ClientFactory
from tests.integration.paths.worker import Ended, Forker, Scene

LANES = 2
FAULTS = ("http_500", "html_200", "prose_medical", "prose_noop", "usage_missing", "reset_in_head")

T = TypeVar("T")
R = TypeVar("R")


class Provider:
    """A rehearsal provider that a test can stop in the middle of a call, or have misbehave (`server.label`)."""

    def __init__(self) -> None:
        plan = FaultPlan.parse(f"{name}@{name}" for name in FAULTS)
        self.on_request: Callable[[], None] = lambda: None
        self.server = RehearsalServer(self._answer, plan)

    @property
    def requests(self) -> int:
        return self.server.requests

    @property
    def clients(self) -> ClientFactory:
        return self._clients

    def _answer(self, body: bytes) -> bytes:
        self.on_request()
        return answer_bytes(body)

    def warm(self) -> None:
        self._clients = ClientFactory(_seam=self.server.seam)
        self._clients.warm()


@dataclass(frozen=True)
class Lane:
    server: RehearsalServer
    forker: Forker

    def run(self, scene: Scene) -> Ended:
        return self.forker.run(scene)


class Lanes:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self._free: queue.SimpleQueue[Lane] = queue.SimpleQueue()
        for lane in lanes:
            self._free.put(lane)

    def map(self, case: Callable[[Lane, T], list[R]], arguments: Sequence[T]) -> list[R]:
        """All that the cases return, run as many at a time as there are lanes."""

        def one(argument: T) -> list[R]:
            lane = self._free.get()
            try:
                return case(lane, argument)
            finally:
                self._free.put(lane)

        with ThreadPoolExecutor(len(self.lanes)) as threads:
            return [result for results in threads.map(one, arguments) for result in results]


@pytest.fixture(scope="session")
def lanes() -> Iterator[Lanes]:
    with ExitStack() as stack:
        servers = [stack.enter_context(RehearsalServer(answer_bytes, FaultPlan())) for _ in range(LANES)]
        yield Lanes([Lane(server, stack.enter_context(Forker(server.seam))) for server in servers])


@pytest.fixture(scope="session")
def _provider() -> Iterator[Provider]:
    provider = Provider()
    with provider.server:
        provider.warm()
        yield provider


@pytest.fixture
def provider(_provider: Provider) -> Iterator[Provider]:
    yield _provider
    _provider.on_request = lambda: None
    _provider.server.label = ""


@pytest.fixture(autouse=True)
def _no_failpoint_is_left() -> Iterator[None]:
    yield
    failpoints.install(None)

"""A provider without a network: late, lost, repeated and wrong answers; it counts requests by artifact."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Final

from kexpr.clock import Clock
from kexpr.codes import ProviderKind, Reason
from kexpr.errors import Rejected
from kexpr.testing.simulation.clock import MachineClock
from kexpr.testing.simulation.disk import Draw
from kexpr.testing.simulation.scheduler import Scheduler
from kexpr.transport import ClientFactory, CompletionRequest, SealedClient

__all__ = ["BEHAVIOURS", "Clients", "Provider"]

BEHAVIOURS: Final = ("prompt", "late", "too_late", "lost", "unsent", "repeated", "wrong", "html")


class Provider:
    """`answer(content)` is the text that a model would give to a wire request; `on_request` sees each request."""

    def __init__(self, answer: Callable[[str], str], machine: MachineClock, scheduler: Scheduler, draw: Draw) -> None:
        self.requests: Counter[str] = Counter()
        self.behaviours: tuple[str, ...] = ("prompt",)
        self.on_request: Callable[[str], None] = lambda artifact: None
        self._answer = answer
        self._machine = machine
        self._scheduler = scheduler
        self._draw = draw
        self._previous = b"{}"

    def behaviour(self) -> str:
        return self.behaviours[self._draw(len(self.behaviours))]

    def receive(self, artifact: str, request: CompletionRequest, behaviour: str) -> bytes:
        """From here on a request was made. Raises `Rejected` for an answer that gets lost."""
        self.requests[artifact] += 1
        self.on_request(artifact)
        self._pass(behaviour)
        if behaviour == "lost":
            raise Rejected(Reason.TIMEOUT_DEADLINE)
        answers = {"wrong": b'{"schema_version":0}', "html": b"<html>", "repeated": self._previous}
        body = answers.get(behaviour) or _completion(self._answer(request.content))
        self._previous = body
        self._scheduler.step("answered")
        return body

    def _pass(self, behaviour: str) -> None:
        """Time passes while the model writes, and other tasks run."""
        whole_ms = {"late": 2_000, "lost": 3_000, "too_late": 4_500}.get(behaviour, 20)
        for _ in range(4):
            self._machine.pass_ms(whole_ms // 4)
            self._scheduler.step("provider")


class Clients(ClientFactory):
    """The client factory of one simulated process."""

    def __init__(self, provider: Provider, clock: Clock, artifact: Callable[[], str], scheduler: Scheduler) -> None:
        self.provider = provider
        self.clock = clock
        self.artifact = artifact
        self.scheduler = scheduler

    @property
    def provider_kind(self) -> ProviderKind:
        return ProviderKind.REHEARSAL

    def warm(self) -> None:
        """There is nothing to load."""

    def open(self, api_key: str, deadline: float) -> SealedClient:
        return _Client(self, deadline)


class _Client(SealedClient):
    """Sends once, and not after its deadline."""

    def __init__(self, clients: Clients, deadline: float) -> None:
        self._clients = clients
        self._until = deadline
        self._sent = 0

    @property
    def provider_kind(self) -> ProviderKind:
        return ProviderKind.REHEARSAL

    @property
    def requests_sent(self) -> int:
        return self._sent

    def complete(self, request: CompletionRequest) -> bytes:
        clients = self._clients
        clients.scheduler.step("connect")
        behaviour = clients.provider.behaviour()
        if behaviour == "unsent":
            raise Rejected(Reason.NET_CONNECT)
        if clients.clock.monotonic() >= self._until:
            raise Rejected(Reason.TIMEOUT_DEADLINE)
        self._sent = 1
        return clients.provider.receive(clients.artifact(), request, behaviour)


def _completion(content: str) -> bytes:
    """A chat completion around `content`."""
    return json.dumps(
        {
            "object": "chat.completion",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}},
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        },
        ensure_ascii=False,
    ).encode()

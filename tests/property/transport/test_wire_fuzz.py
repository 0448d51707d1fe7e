"""Whatever bytes come back: one request, and either an answer of bounded size or one code."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.rehearsal.faults import Fault, FaultPlan
from harness.rehearsal.misbehaviour import CUT, Call, Step
from harness.rehearsal.server import RehearsalServer
from kexpr.codes import Outcome, Reason
from kexpr.errors import Rejected
from kexpr.transport import ANSWER_BYTES, ClientFactory, CompletionRequest, SealedClient

REQUEST = CompletionRequest("instructions", "content", {"max_completion_tokens": 160})
BODY = b'{"choices":[]}'
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n" + BODY
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n"
    + BODY
    + b"\r\n0\r\n\r\n"
)


@dataclass(frozen=True)
class Says(FaultPlan):
    """A plan whose one fault sends what the test put there."""

    steps: list[Step] = field(default_factory=list)

    def fault_for(self, number: int, label: str) -> Fault:
        return Fault(Outcome.CANONICAL_INVALID, script=self._script)

    def _script(self, call: Call) -> Iterator[Step]:
        yield from tuple(self.steps)


@pytest.fixture(scope="module")
def provider() -> Iterator[tuple[RehearsalServer, Says, ClientFactory]]:
    plan = Says()
    with RehearsalServer(lambda _: b"{}", plan) as server:
        yield server, plan, ClientFactory(_seam=server.seam)


def complete(client: SealedClient) -> bytes | Reason:
    try:
        return client.complete(REQUEST)
    except Rejected as rejected:
        return rejected.reason


def mutations(reply: bytes) -> st.SearchStrategy[bytes]:
    """The reply with one slice replaced by other bytes."""
    noise = st.binary(max_size=40) | st.sampled_from(
        [b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"Content-Length: 9\r\n", b"HTTP/1.1 "]
    )
    return st.tuples(st.integers(0, len(reply)), st.integers(0, 60), noise).map(
        lambda cut: reply[: cut[0]] + cut[2] + reply[cut[0] + cut[1] :]
    )


@given(
    data=mutations(REPLY) | mutations(CHUNKED) | st.binary(max_size=300),
    pieces=st.integers(1, 4),
    end=st.sampled_from([[], [CUT]]),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_end_as_an_answer_or_a_code(provider, data, pieces, end):
    server, plan, factory = provider
    size = len(data) // pieces + 1
    plan.steps[:] = [*(data[start : start + size] for start in range(0, len(data), size)), *end]
    before = server.requests
    client = factory.open("sk-x", time.monotonic() + 1)
    started = time.monotonic()
    result = complete(client)
    if isinstance(result, Reason):
        assert result.partition(".")[0] in ("http", "net", "timeout")
    else:
        assert len(result) <= ANSWER_BYTES
        assert b"HTTP/1." in data
    assert time.monotonic() - started < 2
    assert server.requests - before == client.requests_sent == 1


@pytest.mark.parametrize("reply", [REPLY, CHUNKED])
def test_without_a_mutation_the_answer_arrives(provider, reply):
    _, plan, factory = provider
    plan.steps[:] = [reply]
    assert factory.open("sk-x", time.monotonic() + 1).complete(REQUEST) == BODY

"""The factory: what it loads, when, and what becomes of a failure to load."""

import subprocess
import sys

import certifi
import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport import ClientFactory, CompletionRequest, Seam


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def reason_of(call) -> Reason:
    with pytest.raises(Rejected) as refused:
        call()
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    return refused.value.reason


def test_importing_it_loads_no_http_stack():
    run("""
import sys
import kexpr.transport
kexpr.transport.ClientFactory().provider_kind
heavy = {"openai", "httpx", "httpx2", "httpcore", "httpcore2", "certifi", "pydantic", "asyncio", "email"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
""")


def test_warming_makes_the_first_attempt_load_nothing_more():
    run("""
import sys, time
from kexpr.errors import Rejected
from kexpr.transport import ClientFactory, CompletionRequest, Seam
factory = ClientFactory()
factory.warm()
warmed = set(sys.modules)
try:
    factory.open("sk-x", time.monotonic() - 1).complete(CompletionRequest("", "", {"temperature": 0.5}))
except Rejected as rejected:
    assert rejected.reason == "timeout.deadline", rejected
assert set(sys.modules) == warmed, set(sys.modules) - warmed
""")


def test_an_sdk_that_cannot_be_imported_is_one_code():
    run("""
import sys
sys.modules["openai"] = None
from kexpr.errors import Rejected
from kexpr.transport import ClientFactory
try:
    ClientFactory().warm()
except Rejected as rejected:
    assert rejected.reason == "provider.client", rejected
    assert rejected.__cause__ is rejected.__context__ is None
else:
    raise AssertionError("warm")
""")


def test_roots_that_cannot_be_read_are_one_code_until_they_can(monkeypatch):
    factory = ClientFactory()
    with monkeypatch.context() as broken:
        broken.setattr(certifi, "where", lambda: "/nonexistent.pem")
        assert reason_of(factory.warm) is Reason.PROVIDER_CLIENT
        assert reason_of(lambda: factory.open("sk-x", 0.0)) is Reason.PROVIDER_CLIENT
    factory.warm()


@pytest.mark.parametrize("key", ["", "sk x", "sk-x\r\nX-Evil: 1", "키"])
def test_a_key_that_cannot_stand_in_a_header_opens_no_client(key):
    assert reason_of(lambda: ClientFactory().open(key, 0.0)) is Reason.PROVIDER_CLIENT


def test_no_repr_shows_the_key():
    client = ClientFactory(_seam=Seam("/nowhere", certifi.where())).open("sk-canary", 0.0)
    assert "canary" not in repr(client) + str(client)


def test_a_request_over_the_budget_sends_nothing_and_uses_the_client_up():
    client = ClientFactory().open("sk-x", 1e9)
    request = CompletionRequest("x" * 7_000, "", {"max_completion_tokens": 160})
    assert reason_of(lambda: client.complete(request)) is Reason.BUDGET_REQUEST_BYTES
    assert client.requests_sent == 0
    assert reason_of(lambda: client.complete(request)) is Reason.NET_SECOND_REQUEST

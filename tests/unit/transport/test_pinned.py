"""What the transport is asked for is compared with the pin before any I/O."""

import json
import time

import httpx
import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport.exchange import Exchange
from kexpr.transport.pinned import PinnedTransport
from kexpr.transport.tls import build_untrusting_context

URL = "https://api.openai.com/v1/chat/completions"
BODY = {"model": "gpt-4.1-mini", "n": 1}


class NoDial:
    """Fails the test when the transport connects."""

    def connect(self, exchange: Exchange):
        raise AssertionError("connected")


class CountingDial:
    def connect(self, exchange: Exchange):
        raise exchange.failed(Reason.NET_CONNECT)


def transport_for(dial: NoDial | CountingDial) -> PinnedTransport:
    exchange = Exchange(time.monotonic() + 5)
    exchange.body = json.dumps(BODY, separators=(",", ":")).encode()
    return PinnedTransport(exchange, dial, build_untrusting_context(), "sk-x")


def refusal(transport: PinnedTransport, request: httpx.Request) -> Reason:
    with pytest.raises(Rejected) as refused:
        transport.handle_request(request)
    return refused.value.reason


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", URL),
        ("PUT", URL),
        ("POST", "http://api.openai.com/v1/chat/completions"),
        ("POST", "http://api.openai.com:443/v1/chat/completions"),
        ("POST", "https://api.openai.com:8443/v1/chat/completions"),
        ("POST", "https://api.openai.com./v1/chat/completions"),
        ("POST", "https://API-openai.com/v1/chat/completions"),
        ("POST", "https://api.openai.com.elsewhere.example/v1/chat/completions"),
        ("POST", "https://user:pass@api.openai.com/v1/chat/completions"),
        ("POST", "https://api.openai.com/v1/chat/completions/"),
        ("POST", "https://api.openai.com/v1/chat/completions?x=1"),
        ("POST", "https://api.openai.com//v1/chat/completions"),
        ("POST", "https://api.openai.com/v1/responses"),
    ],
)
def test_anything_but_the_pin_is_refused(method, url):
    assert refusal(transport_for(NoDial()), httpx.Request(method, url, json=BODY)) is Reason.NET_NOT_PINNED


@pytest.mark.parametrize("extra", [{"stream": True}, {"tools": []}, {"user": "u"}, {"n": 2}, {"store": True}])
def test_a_body_that_is_not_the_sealed_one_is_refused(extra):
    request = httpx.Request("POST", URL, json={**BODY, **extra})
    assert refusal(transport_for(NoDial()), request) is Reason.PROVIDER_CLIENT


@pytest.mark.parametrize("content", [b"", b"not json", b"[]", b"\xff"])
def test_a_body_that_is_no_object_is_refused(content):
    assert refusal(transport_for(NoDial()), httpx.Request("POST", URL, content=content)) is Reason.PROVIDER_CLIENT


@pytest.mark.parametrize(
    "url", [URL, "https://api.openai.com:443/v1/chat/completions", "HTTPS://API.OPENAI.COM/v1/chat/completions"]
)
def test_the_pin_in_its_spellings_is_tried_once(url):
    transport = transport_for(CountingDial())
    assert refusal(transport, httpx.Request("POST", url, json=BODY)) is Reason.NET_CONNECT
    assert refusal(transport, httpx.Request("POST", url, json=BODY)) is Reason.NET_SECOND_REQUEST

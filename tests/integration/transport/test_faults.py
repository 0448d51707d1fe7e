"""Every fault of the rehearsal provider against the sealed client: one request at most, one code or the raw answer."""

import json
import time
from collections.abc import Iterator

import pytest

from harness.rehearsal.faults import FAULTS
from harness.rehearsal.server import RehearsalServer
from kexpr.codes import Outcome, Reason, outcome_of
from kexpr.transport import ANSWER_BYTES
from tests.integration.transport.support import CONTENT, REQUEST, open_sealed, refusal, rehearsal

DEADLINE_S = 0.5

REASONS = {
    **{f"http_{code}": Reason.HTTP_CLIENT_ERROR for code in (400, 401, 403, 404, 408, 409, 429)},
    **{f"http_{code}": Reason.HTTP_SERVER_ERROR for code in (500, 503)},
    **{f"http_{code}": Reason.HTTP_UNEXPECTED_STATUS for code in (204, 206)},
    **{f"redirect_{code}": Reason.HTTP_REDIRECT for code in (301, 302, 307, 308)},
    **{f"redirect_away_{code}": Reason.HTTP_REDIRECT for code in (301, 302, 307, 308)},
    "reset_before_head": Reason.NET_RESET,
    "reset_in_head": Reason.NET_RESET,
    "reset_after_head": Reason.NET_RESET,
    "close_before_head": Reason.NET_RESET,
    "truncated_at_end_of_stream": Reason.NET_RESET,
    "truncated_body": Reason.HTTP_PROTOCOL,
    "truncated_chunks": Reason.HTTP_PROTOCOL,
    "bad_chunks": Reason.HTTP_PROTOCOL,
    "bad_status_line": Reason.HTTP_PROTOCOL,
    "two_lengths": Reason.HTTP_PROTOCOL,
    "switching_protocols": Reason.HTTP_PROTOCOL,
    "giant_head": Reason.HTTP_HEAD_SIZE,
    "flood_of_continue": Reason.HTTP_HEAD_SIZE,
    "giant_body": Reason.HTTP_BODY_SIZE,
    "giant_length": Reason.HTTP_BODY_SIZE,
    "gzip_bomb": Reason.HTTP_CONTENT_ENCODING,
    "html_200": Reason.HTTP_CONTENT_TYPE,
    "text_type": Reason.HTTP_CONTENT_TYPE,
    "no_type": Reason.HTTP_CONTENT_TYPE,
    "event_stream": Reason.HTTP_CONTENT_TYPE,
    "wrong_certificate_name": Reason.NET_TLS,
    "untrusted_ca": Reason.NET_TLS,
    "tls_garbage": Reason.NET_TLS,
    "tls_closed": Reason.NET_RESET,
    "drip": Reason.TIMEOUT_DEADLINE,
    "stall": Reason.TIMEOUT_DEADLINE,
    "timeout": Reason.TIMEOUT_DEADLINE,
}
NOTHING_SENT = {"wrong_certificate_name", "untrusted_ca", "tls_garbage", "tls_closed"}
REFUSED_BELOW = {Outcome.CANONICAL_PROVIDER_ERROR, Outcome.CANONICAL_TIMEOUT}


@pytest.fixture(scope="module")
def server() -> Iterator[RehearsalServer]:
    # Each fault on the calls labelled with its own name.
    with rehearsal(*(f"{name}@{name}" for name in FAULTS)) as running:
        open_sealed(running)
        yield running


def test_each_fault_that_ends_below_the_answer_has_its_reason():
    assert set(REASONS) == {name for name, fault in FAULTS.items() if fault.outcome in REFUSED_BELOW}
    for name, reason in REASONS.items():
        assert outcome_of(reason) is FAULTS[name].outcome


@pytest.mark.parametrize("name", REASONS)
def test_it_ends_in_one_code_after_at_most_one_request(server, name):
    server.label = name
    before = server.requests
    client = open_sealed(server, DEADLINE_S)
    started = time.monotonic()
    assert refusal(client) is REASONS[name]
    assert time.monotonic() - started < DEADLINE_S + 1.0
    expected = 0 if name in NOTHING_SENT else 1
    assert client.requests_sent == expected
    assert server.requests - before == expected
    assert refusal(client) is Reason.NET_SECOND_REQUEST
    assert server.requests - before == expected


@pytest.mark.parametrize("name", sorted(set(FAULTS) - set(REASONS)))
def test_what_is_wrong_inside_the_answer_arrives_byte_for_byte(server, name):
    server.label = name
    body = open_sealed(server).complete(REQUEST)
    assert len(body) <= ANSWER_BYTES
    fault = FAULTS[name]
    if fault.outcome is Outcome.SHADOW_SELECTED:
        assert json.loads(body)["choices"][0]["message"]["content"] == CONTENT
    elif fault.content is not None:
        assert json.loads(body)["choices"][0]["message"]["content"] == fault.content(CONTENT)
        assert fault.content(CONTENT) != CONTENT or name == "reordered"
    elif fault.completion is not None:
        completion = json.loads(body)
        server.label = ""
        ordinary = json.loads(open_sealed(server).complete(REQUEST))
        for volatile in ("id", "created"):
            completion.pop(volatile)
            ordinary.pop(volatile)
        assert completion == fault.completion(ordinary) != ordinary
    else:
        server.label = ""
        assert body != open_sealed(server).complete(REQUEST)

"""The one request there is."""

import json

import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport import REQUEST_BYTES, CompletionRequest

OPEN_PROSE = {"max_completion_tokens": 160}
ANCHOR_GRAMMAR = {"temperature": 0.7, "max_tokens": 384}


def reason_of(request: CompletionRequest) -> Reason:
    with pytest.raises(Rejected) as refused:
        request.body()
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    return refused.value.reason


@pytest.mark.parametrize("parameters", [OPEN_PROSE, ANCHOR_GRAMMAR])
def test_the_body_is_exactly_the_contract(parameters):
    body = json.loads(CompletionRequest("지침", '{"a":1}', parameters).body())
    assert body == {
        "model": "gpt-4.1-mini",
        "n": 1,
        "response_format": {"type": "json_object"},
        "store": False,
        "messages": [{"role": "system", "content": "지침"}, {"role": "user", "content": '{"a":1}'}],
        **parameters,
    }


def test_korean_is_sent_as_it_is_because_bytes_are_budgeted():
    assert "지침".encode() in CompletionRequest("지침", "", OPEN_PROSE).body()


def test_the_byte_budget_is_exact():
    spare = REQUEST_BYTES - len(CompletionRequest("", "", OPEN_PROSE).body())
    assert len(CompletionRequest("x" * spare, "", OPEN_PROSE).body()) == REQUEST_BYTES == 6_144
    assert reason_of(CompletionRequest("x" * spare, "y", OPEN_PROSE)) is Reason.BUDGET_REQUEST_BYTES


@pytest.mark.parametrize(
    "name", ["stream", "tools", "user", "n", "model", "store", "messages", "extra_headers", "seed"]
)
def test_no_other_parameter_can_be_sent(name):
    assert reason_of(CompletionRequest("", "", {**OPEN_PROSE, name: 1})) is Reason.PROVIDER_CLIENT


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_json_does_not_have_is_refused(number):
    assert reason_of(CompletionRequest("", "", {"temperature": number})) is Reason.PROVIDER_CLIENT


def test_text_without_utf8_is_refused_and_not_carried_by_the_error():
    assert reason_of(CompletionRequest("secret \ud800", "", OPEN_PROSE)) is Reason.PROVIDER_CLIENT


def test_the_repr_has_no_content():
    assert "secret" not in repr(CompletionRequest("secret-1", "secret-2", {"temperature": 0.5}))

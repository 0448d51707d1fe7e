"""The completion envelope: everything the SDK would let pass."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.wire.completion import MAX_COMPLETION_BYTES, TokenLimits, read_completion
from tests.unit.wire.shapes import completion

LIMITS = TokenLimits(600, 160, 760)
CONTENT = '{"key":"k_aaaaaa","slots":{}}'
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}

Body = dict[str, Any]


def encode(body: object) -> bytes:
    return json.dumps(body).encode()


def change(edit: Callable[[Body], object]) -> bytes:
    body = copy.deepcopy(completion(CONTENT))
    edit(body)
    return encode(body)


def message(**fields: object) -> bytes:
    return change(lambda body: body["choices"][0]["message"].update(fields))


def choice(**fields: object) -> bytes:
    return change(lambda body: body["choices"][0].update(fields))


def usage(**fields: object) -> bytes:
    return change(lambda body: body["usage"].update(fields))


def test_a_plain_completion_gives_its_content():
    assert read_completion(encode(completion(CONTENT)), LIMITS) == CONTENT


def test_what_carries_nothing_may_be_there_or_not():
    assert read_completion(message(tool_calls=[], function_call=None, audio=None), LIMITS) == CONTENT
    least = {
        "choices": [{"message": {"role": "assistant", "content": CONTENT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 600, "completion_tokens": 160, "total_tokens": 760},
    }
    assert read_completion(encode(least), LIMITS) == CONTENT


REFUSED: list[tuple[str, bytes, Reason]] = [
    ("html", b"<!doctype html><html></html>", Reason.JSON_SYNTAX),
    ("empty", b"", Reason.JSON_SYNTAX),
    ("list", encode([completion(CONTENT)]), Reason.COMPLETION_MALFORMED),
    ("null", b"null", Reason.COMPLETION_MALFORMED),
    ("error body", encode({"error": {"message": "x"}}), Reason.COMPLETION_MALFORMED),
    ("choices object", change(lambda b: b.update(choices={})), Reason.COMPLETION_MALFORMED),
    ("no choice", change(lambda b: b.update(choices=[])), Reason.COMPLETION_CHOICES),
    ("two choices", change(lambda b: b["choices"].append(b["choices"][0])), Reason.COMPLETION_CHOICES),
    ("choice null", change(lambda b: b.update(choices=[None])), Reason.COMPLETION_MALFORMED),
    ("no message", choice(message=None), Reason.COMPLETION_MALFORMED),
    ("message text", choice(message=CONTENT), Reason.COMPLETION_MALFORMED),
    ("wrong role", message(role="user"), Reason.COMPLETION_MALFORMED),
    ("no role", change(lambda b: b["choices"][0]["message"].pop("role")), Reason.COMPLETION_MALFORMED),
    ("length", choice(finish_reason="length"), Reason.COMPLETION_FINISH_REASON),
    ("content filter", choice(finish_reason="content_filter"), Reason.COMPLETION_FINISH_REASON),
    ("no finish reason", choice(finish_reason=None), Reason.COMPLETION_FINISH_REASON),
    ("finish reason list", choice(finish_reason=["stop"]), Reason.COMPLETION_FINISH_REASON),
    ("refusal", message(refusal="no", content=None), Reason.COMPLETION_REFUSAL),
    ("refusal beside content", message(refusal="no"), Reason.COMPLETION_REFUSAL),
    ("empty refusal", message(refusal=""), Reason.COMPLETION_REFUSAL),
    ("tool call", message(tool_calls=[CALL]), Reason.COMPLETION_TOOL_CALL),
    ("tool call object", message(tool_calls={}), Reason.COMPLETION_TOOL_CALL),
    ("function call", message(function_call={"name": "f", "arguments": ""}), Reason.COMPLETION_TOOL_CALL),
    ("null content", message(content=None), Reason.COMPLETION_NO_CONTENT),
    ("empty content", message(content=""), Reason.COMPLETION_NO_CONTENT),
    ("content parts", message(content=[{"type": "text", "text": CONTENT}]), Reason.COMPLETION_MALFORMED),
    ("content number", message(content=1), Reason.COMPLETION_MALFORMED),
    ("no usage", change(lambda b: b.pop("usage")), Reason.BUDGET_USAGE_MISSING),
    ("null usage", change(lambda b: b.update(usage=None)), Reason.BUDGET_USAGE_MISSING),
    ("usage list", change(lambda b: b.update(usage=[])), Reason.BUDGET_USAGE_MISSING),
    *(
        (f"{key} {value!r}", usage(**{key: value}), Reason.BUDGET_USAGE_MISSING)
        for key in ("prompt_tokens", "completion_tokens", "total_tokens")
        for value in (None, True, False, "10", 10.0, [10])
    ),
    ("no prompt tokens", change(lambda b: b["usage"].pop("prompt_tokens")), Reason.BUDGET_USAGE_MISSING),
    ("prompt 601", usage(prompt_tokens=601), Reason.BUDGET_PROMPT_TOKENS),
    ("prompt -1", usage(prompt_tokens=-1), Reason.BUDGET_PROMPT_TOKENS),
    ("completion 161", usage(completion_tokens=161), Reason.BUDGET_COMPLETION_TOKENS),
    ("completion -1", usage(completion_tokens=-1), Reason.BUDGET_COMPLETION_TOKENS),
    ("total 761", usage(total_tokens=761), Reason.BUDGET_TOTAL_TOKENS),
    ("duplicate usage", encode(completion(CONTENT))[:-1] + b',"usage":{}}', Reason.JSON_DUPLICATE_KEY),
    ("NaN", encode(completion(CONTENT))[:-1] + b',"x":NaN}', Reason.JSON_NUMBER),
    ("trailing", encode(completion(CONTENT)) + b"{}", Reason.JSON_SYNTAX),
    ("two bodies", encode(completion(CONTENT)) * 2, Reason.JSON_SYNTAX),
    ("surrogate", encode(completion("\ud800")), Reason.JSON_SURROGATE),
    ("deep", encode(completion(CONTENT))[:-1] + b',"x":' + b"[" * 50 + b"]" * 50 + b"}", Reason.JSON_DEPTH),
    ("giant", encode(completion(CONTENT)) + b" " * MAX_COMPLETION_BYTES, Reason.JSON_SIZE),
]


@pytest.mark.parametrize(("body", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_it_refuses(body: bytes, reason: Reason):
    with pytest.raises(Rejected) as refused:
        read_completion(body, LIMITS)
    assert refused.value.reason is reason
    assert refused.value.__context__ is None


def test_the_size_bound_is_64_kib():
    body = encode(completion(CONTENT))
    assert read_completion(body + b" " * (64 * 1024 - len(body)), LIMITS) == CONTENT


def test_the_limits_are_those_given():
    body = encode(completion(CONTENT))
    assert read_completion(body, TokenLimits(500, 100, 600)) == CONTENT
    for limits in (TokenLimits(499, 100, 600), TokenLimits(500, 99, 600), TokenLimits(500, 100, 599)):
        with pytest.raises(Rejected):
            read_completion(body, limits)

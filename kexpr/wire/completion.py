"""The chat completion around an answer, judged from its raw bytes (contract, sections 3, 4 and 6).

The official SDK validates none of this: wrong types, a second choice, missing usage and an HTML page all pass it. Keys
that carry nothing we use may be there; what we use must be there exactly.
"""

from dataclasses import dataclass
from typing import Final, cast

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.wire.strict_json import loads

__all__ = ["MAX_COMPLETION_BYTES", "TokenLimits", "read_completion"]

MAX_COMPLETION_BYTES: Final = 64 * 1024

_Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The most tokens a reported usage may show."""

    prompt: int
    completion: int
    total: int


def read_completion(body: bytes, limits: TokenLimits) -> str:
    """The content of the only choice of a `chat.completion`; raises `Rejected`."""
    completion = _object(loads(body, MAX_COMPLETION_BYTES))
    choice = _only_choice(completion)
    message = _object(choice.get("message"))
    if message.get("role") != "assistant":
        raise Rejected(Reason.COMPLETION_MALFORMED)
    _no_refusal(message)
    _no_tool_call(message)
    if choice.get("finish_reason") != "stop":
        raise Rejected(Reason.COMPLETION_FINISH_REASON)
    content = message.get("content")
    if content is None or content == "":
        raise Rejected(Reason.COMPLETION_NO_CONTENT)
    if type(content) is not str:
        raise Rejected(Reason.COMPLETION_MALFORMED)
    _check_usage(completion.get("usage"), limits)
    return content


def _object(value: object) -> _Object:
    if type(value) is not dict:
        raise Rejected(Reason.COMPLETION_MALFORMED)
    return cast(_Object, value)


def _only_choice(completion: _Object) -> _Object:
    choices = completion.get("choices")
    if type(choices) is not list:
        raise Rejected(Reason.COMPLETION_MALFORMED)
    if len(choices) != 1:
        raise Rejected(Reason.COMPLETION_CHOICES)
    return _object(choices[0])


def _no_refusal(message: _Object) -> None:
    if message.get("refusal") is not None:
        raise Rejected(Reason.COMPLETION_REFUSAL)


def _no_tool_call(message: _Object) -> None:
    if message.get("function_call") is not None or message.get("tool_calls") not in (None, []):
        raise Rejected(Reason.COMPLETION_TOOL_CALL)


def _check_usage(usage: object, limits: TokenLimits) -> None:
    """Exact ints only: `True` is not 1, and a count that is not there is not 0."""
    if type(usage) is not dict:
        raise Rejected(Reason.BUDGET_USAGE_MISSING)
    counts = cast(_Object, usage)
    for key, most, reason in (
        ("prompt_tokens", limits.prompt, Reason.BUDGET_PROMPT_TOKENS),
        ("completion_tokens", limits.completion, Reason.BUDGET_COMPLETION_TOKENS),
        ("total_tokens", limits.total, Reason.BUDGET_TOTAL_TOKENS),
    ):
        count = counts.get(key)
        if type(count) is not int:
            raise Rejected(Reason.BUDGET_USAGE_MISSING)
        if not 0 <= count <= most:
            raise Rejected(reason)

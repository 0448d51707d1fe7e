"""The chat completion a provider would send around an answer."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Answer", "Completion", "Usage", "UsageEstimator", "build_completion", "encode", "estimate_usage"]

Completion = dict[str, object]
"""One `chat.completion` object, before it is written as JSON."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as a provider reports them."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """The message of the model; `usage` None lets the server's estimator count."""

    content: str = field(repr=False)
    finish_reason: str = "stop"
    usage: Usage | None = None


UsageEstimator = Callable[[bytes, str], Usage]
"""From the request body and the answer's content."""

_BYTES_PER_PROMPT_TOKEN: Final = 6
_CHARACTERS_PER_COMPLETION_TOKEN: Final = 2


def estimate_usage(request_body: bytes, content: str) -> Usage:
    """A plausible count without a tokenizer; at most 590 and 150: a rehearsal fails only where it is told to."""
    return Usage(
        prompt_tokens=min(590, 1 + len(request_body) // _BYTES_PER_PROMPT_TOKEN),
        completion_tokens=min(150, 1 + len(content) // _CHARACTERS_PER_COMPLETION_TOKEN),
    )


def build_completion(answer: Answer, usage: Usage, number: int) -> Completion:
    """What the API documents for a non-streaming answer; `number` tells one completion from the next."""
    return {
        "id": f"chatcmpl-rehearsal{number:06d}",
        "object": "chat.completion",
        "created": 1_750_000_000 + number,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.content, "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": answer.finish_reason,
            }
        ],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "service_tier": "default",
        "system_fingerprint": "fp_rehearsal",
    }


def encode(completion: Completion) -> bytes:
    return json.dumps(completion, ensure_ascii=False, indent=2).encode()

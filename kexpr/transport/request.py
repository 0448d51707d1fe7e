"""The one request there is (contract, section 6): two messages and a few numbers; everything else is a constant."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport.exchange import REQUEST_BYTES

__all__ = ["MODEL", "CompletionRequest"]

MODEL: Final = "gpt-4.1-mini"
_PARAMETERS: Final = frozenset({"max_completion_tokens", "max_tokens", "temperature"})


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """`instructions` is the system message, `content` the user message; `parameters` hold numbers by name."""

    instructions: str = field(repr=False)
    content: str = field(repr=False)
    parameters: Mapping[str, int | float] = field(repr=False)

    def arguments(self) -> dict[str, object]:
        """Arguments of the SDK call, and the members of the body."""
        return {
            "model": MODEL,
            "n": 1,
            "response_format": {"type": "json_object"},
            "store": False,
            "messages": [
                {"role": "system", "content": self.instructions},
                {"role": "user", "content": self.content},
            ],
            **self.parameters,
        }

    def body(self) -> bytes:
        """The exact HTTP body, UTF-8.

        Raises `Rejected`: `provider.client` for a parameter that is not known or cannot be written, or text that has no
        UTF-8; `budget.request_bytes` for more than 6,144 bytes.
        """
        body = self._encoded()
        if body is None:
            raise Rejected(Reason.PROVIDER_CLIENT)
        if len(body) > REQUEST_BYTES:
            raise Rejected(Reason.BUDGET_REQUEST_BYTES)
        return body

    def _encoded(self) -> bytes | None:
        if not self.parameters.keys() <= _PARAMETERS:
            return None
        try:
            text = json.dumps(self.arguments(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            return text.encode("utf-8")
        except (TypeError, ValueError):
            return None

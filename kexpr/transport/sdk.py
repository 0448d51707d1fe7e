"""The official SDK, both lines (2.24 to 3.x), over a transport of ours. Imported lazily (needs openai and httpx)."""

from typing import Any, Final, cast

import httpx
import openai

from kexpr.transport.exchange import CONNECT_S, POOL_S, READ_S, WRITE_S
from kexpr.transport.request import CompletionRequest

__all__ = ["build_sdk_client", "create_completion", "load_everything"]

_BASE_URL: Final = "https://api.openai.com/v1"
_TIMEOUT: Final = httpx.Timeout(connect=CONNECT_S, read=READ_S, write=WRITE_S, pool=POOL_S)


class _QuietOpenAI(openai.OpenAI):
    def platform_headers(self) -> dict[str, str]:
        """None: the SDK's own runs `uname` through PATH on the first request."""
        return {}


def build_sdk_client(api_key: str, transport: httpx.BaseTransport) -> openai.OpenAI:
    http_client = httpx.Client(trust_env=False, follow_redirects=False, timeout=_TIMEOUT, transport=transport)
    return _QuietOpenAI(
        api_key=api_key,
        base_url=_BASE_URL,
        organization=None,
        project=None,
        webhook_secret=None,
        max_retries=0,
        # The 3.x line names another client class in its signature, and takes this one.
        http_client=cast(Any, http_client),
    )


def create_completion(client: openai.OpenAI, request: CompletionRequest) -> bytes:
    """The raw body of the answer; the SDK validates nothing, so nothing is parsed here."""
    create = cast(Any, client.chat.completions.with_raw_response).create
    content: bytes = create(**request.arguments()).content
    return content


class _Nowhere(httpx.BaseTransport):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={}, request=request)


def load_everything() -> None:
    """One request that goes nowhere: it loads what the SDK loads lazily, so that no attempt's deadline pays for it."""
    client = build_sdk_client("none", _Nowhere())
    create_completion(client, CompletionRequest("", "", {"max_completion_tokens": 1}))

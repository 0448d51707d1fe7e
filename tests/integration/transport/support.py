"""One rehearsal server, the sealed client and a plain one beside it."""

import json
import ssl
import subprocess
import sys
import time

import httpx
import openai
import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.server import RehearsalServer
from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport import ClientFactory, CompletionRequest, SealedClient

PROMPT = "canary-prompt-4f1d"
KEY = "sk-canary-key-77aa"
CONTENT = json.dumps({"key": "k_aaaaaa", "slots": {"l_aaaaaa": "canary-answer-90be ⟦p_aaaaaa⟧"}}, ensure_ascii=False)
REQUEST = CompletionRequest("instructions", PROMPT, {"max_completion_tokens": 160})


def rehearsal(*faults: str) -> RehearsalServer:
    return RehearsalServer(lambda _: CONTENT.encode(), FaultPlan.parse(faults), record=True)


def open_sealed(server: RehearsalServer, seconds: float = 2.0) -> SealedClient:
    return ClientFactory(_seam=server.seam).open(KEY, time.monotonic() + seconds)


def refusal(client: SealedClient) -> Reason:
    """The reason it ends with; nothing of a third party's exception may come with it."""
    with pytest.raises(Rejected) as refused:
        client.complete(REQUEST)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    return refused.value.reason


def plain_transport(server: RehearsalServer, verify: ssl.SSLContext | None = None) -> httpx.HTTPTransport:
    context = verify or ssl.create_default_context(cafile=server.seam.ca_pem_path)
    return httpx.HTTPTransport(uds=server.seam.socket_path, verify=context)


def plain_client(server: RehearsalServer, seconds: float = 2.0, retries: int = 0) -> openai.OpenAI:
    """As an application would build it; redirects as in the SDK's own HTTP client."""
    http_client = httpx.Client(transport=plain_transport(server), follow_redirects=True, timeout=seconds)
    return openai.OpenAI(api_key=KEY, http_client=http_client, max_retries=retries)  # type: ignore[arg-type, unused-ignore]


def ask(client: openai.OpenAI) -> object:
    """Ask once and close the client."""
    with client:
        return ask_again(client)


def ask_again(client: openai.OpenAI) -> object:
    return client.chat.completions.create(
        model="gpt-4.1-mini", messages=[{"role": "user", "content": PROMPT}], max_completion_tokens=160
    )


def ask_raw(client: openai.OpenAI) -> bytes:
    with client:
        response = client.chat.completions.with_raw_response.create(
            model="gpt-4.1-mini", messages=[{"role": "user", "content": PROMPT}], max_completion_tokens=160
        )
    return response.http_response.content


PLAIN = f"""
import json, os, ssl, sys, time
import httpx, openai
transport = httpx.HTTPTransport(uds=sys.argv[1], verify=ssl.create_default_context(cafile=sys.argv[2]))
client = openai.OpenAI(api_key="{KEY}", http_client=httpx.Client(transport=transport), max_retries=0)
def ask():
    return client.chat.completions.create(model="gpt-4.1-mini", messages=[{{"role": "user", "content": "{PROMPT}"}}])
"""

SEALED = f"""
import json, os, sys, time
from kexpr.errors import Rejected
from kexpr.transport import ClientFactory, CompletionRequest, Seam
factory = ClientFactory(_seam=Seam(sys.argv[1], sys.argv[2]))
factory.warm()
def ask():
    request = CompletionRequest("", "{PROMPT}", {{"max_completion_tokens": 160}})
    return factory.open("{KEY}", time.monotonic() + 3).complete(request)
"""


def run_against(server: RehearsalServer, code: str, env: dict[str, str] | None = None) -> str:
    """Run `code` in a process of its own with `sys.argv[1:]` = socket, root; its standard output."""
    seam = server.seam
    done = subprocess.run(
        [sys.executable, "-c", code, seam.socket_path, seam.ca_pem_path],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

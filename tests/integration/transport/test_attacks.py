"""Each measured hole twice: the attack works on a plain client, and fails on the sealed one."""

import json
import os
import selectors
import socket
import ssl
import threading
import time

import httpx
import openai
import pytest

from harness.rehearsal.authority import Authority
from kexpr.codes import ProviderKind, Reason
from kexpr.errors import Rejected
from kexpr.transport import REFUSED_NAMES, ClientFactory, Seam, exchange, network, route
from tests.integration.transport.support import (
    CONTENT,
    KEY,
    PLAIN,
    PROMPT,
    REQUEST,
    SEALED,
    ask,
    ask_again,
    ask_raw,
    open_sealed,
    plain_client,
    plain_transport,
    refusal,
    rehearsal,
    run_against,
)

SENT_HEADERS = {
    "host": "api.openai.com",
    "accept": "application/json",
    "accept-encoding": "identity",
    "connection": "close",
    "content-type": "application/json",
    "user-agent": "kexpr",
    "authorization": f"Bearer {KEY}",
}
ON_3 = int(openai.__version__.partition(".")[0]) >= 3


def headers_of(head: bytes) -> dict[str, str]:
    lines = head.decode().split("\r\n")[1:-2]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


def assert_sealed_request(head: bytes, body: bytes) -> None:
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    headers = headers_of(head)
    assert headers.pop("content-length") == str(len(body))
    assert headers == SENT_HEADERS
    assert body == REQUEST.body()


def fails_within(seconds: float, call) -> bool:
    """Whether the call is over after so many seconds; if not it goes on in its thread until the server stops."""
    done = threading.Event()

    def run() -> None:
        try:
            call()
        except openai.OpenAIError:
            pass
        done.set()

    threading.Thread(target=run, daemon=True).start()
    return done.wait(seconds)


# The request


def test_identifying_headers():
    with rehearsal() as server:
        ask(plain_client(server))
        assert any(name.startswith("x-stainless-") for name in headers_of(server.recorded[0].head))
        open_sealed(server).complete(REQUEST)
        assert_sealed_request(server.recorded[1].head, server.recorded[1].body)


def test_platform_probe(tmp_path):
    probe = tmp_path / "uname"
    probe.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/ran\n')
    probe.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with rehearsal() as server:
        run_against(server, SEALED + "ask()", environment)
        assert not (tmp_path / "ran").exists()
        run_against(server, PLAIN + "ask()", environment)
        assert (tmp_path / "ran").exists()
        assert server.requests == 2


# The environment


def test_organisation_and_project_from_the_environment(monkeypatch):
    with rehearsal() as server:
        sealed = open_sealed(server)
        monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-canary")
        client = openai.OpenAI(
            api_key=KEY,
            organization=None,
            project=None,
            http_client=httpx.Client(transport=plain_transport(server)),  # type: ignore[arg-type, unused-ignore]
        )
        ask(client)
        assert headers_of(server.recorded[0].head)["openai-organization"] == "org-canary"
        assert headers_of(server.recorded[0].head)["openai-project"] == "proj-canary"
        # Set after the client was opened, too late to be refused: not sent all the same.
        sealed.complete(REQUEST)
        assert_sealed_request(server.recorded[1].head, server.recorded[1].body)


@pytest.mark.skipif(not ON_3, reason="the 2.x line does not read it")
def test_headers_from_the_environment(monkeypatch):
    with rehearsal() as server:
        sealed = open_sealed(server)
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer other\nHost: elsewhere.example\nX-Evil: 1")
        ask(plain_client(server))
        assert headers_of(server.recorded[0].head)["authorization"] == "Bearer other"
        assert headers_of(server.recorded[0].head)["host"] == "elsewhere.example"
        sealed.complete(REQUEST)
        assert_sealed_request(server.recorded[1].head, server.recorded[1].body)


@pytest.mark.parametrize("base_url", ["https://elsewhere.example/v1", ""])
def test_base_url_from_the_environment(monkeypatch, base_url):
    hosts = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        assert request.headers["authorization"] == f"Bearer {KEY}"
        return httpx.Response(200, json={})

    with rehearsal() as server:
        sealed = open_sealed(server)
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        transport = httpx.MockTransport(elsewhere)
        client = openai.OpenAI(api_key=KEY, max_retries=0, http_client=httpx.Client(transport=transport))  # type: ignore[arg-type, unused-ignore]
        if base_url:
            ask(client)
        assert str(client.base_url) != "https://api.openai.com/v1/"
        assert hosts == (["elsewhere.example"] if base_url else [])
        sealed.complete(REQUEST)
        assert_sealed_request(server.recorded[0].head, server.recorded[0].body)


def test_a_proxy_from_the_environment(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with httpx.Client() as client, pytest.raises(httpx.ConnectError):
        client.get("https://api.openai.com/")
    with rehearsal() as server:
        monkeypatch.delenv("HTTPS_PROXY")
        sealed = open_sealed(server)
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        sealed.complete(REQUEST)
        assert server.requests == 1


@pytest.mark.parametrize("value", ["", "x"])
@pytest.mark.parametrize("name", sorted(REFUSED_NAMES))
def test_an_unclean_environment_opens_no_client(monkeypatch, name, value):
    factory = ClientFactory()
    factory.warm()
    # The host reloads its environment while it runs.
    monkeypatch.setenv(name.lower(), value)
    for refused in (factory.warm, lambda: factory.open(KEY, 0.0), ClientFactory().warm):
        with pytest.raises(Rejected) as caught:
            refused()
        assert caught.value.reason is Reason.PROVIDER_ENVIRONMENT


def test_key_log(monkeypatch, tmp_path):
    key_log = tmp_path / "keys"
    with rehearsal() as server:
        sealed = open_sealed(server)
        monkeypatch.setenv("SSLKEYLOGFILE", str(key_log))
        sealed.complete(REQUEST)
        assert not key_log.exists()
        ask(plain_client(server))
        assert "CLIENT_TRAFFIC_SECRET" in key_log.read_text()


# The peer's identity


@pytest.mark.parametrize("fault", ["wrong_certificate_name", "untrusted_ca"])
def test_another_certificate(fault):
    with rehearsal(f"{fault}@*") as server:
        careless = ssl.create_default_context()
        careless.check_hostname = False
        careless.verify_mode = ssl.CERT_NONE
        with httpx.Client(transport=plain_transport(server, careless)) as client:
            assert client.post("https://api.openai.com/v1/chat/completions", json={}).status_code == 200
        sealed = open_sealed(server)
        assert refusal(sealed) is Reason.NET_TLS
        assert sealed.requests_sent == 0
        assert server.requests == 1


def test_roots_from_the_environment(monkeypatch, tmp_path):
    other_root = tmp_path / "other.pem"
    Authority().write_root(other_root)
    with rehearsal() as server:
        monkeypatch.setenv("SSL_CERT_FILE", server.seam.ca_pem_path)
        transport = httpx.HTTPTransport(uds=server.seam.socket_path)
        with httpx.Client(transport=transport) as client:
            assert client.post("https://api.openai.com/v1/chat/completions", json={}).status_code == 200
        factory = ClientFactory(_seam=Seam(server.seam.socket_path, str(other_root)))
        assert refusal(factory.open(KEY, time.monotonic() + 2)) is Reason.NET_TLS
        assert server.requests == 1


@pytest.mark.parametrize("code", [307, 308])
def test_a_redirect_posts_the_prompt_again(code):
    with rehearsal(f"redirect_{code}@1", f"redirect_{code}@3") as server:
        ask(plain_client(server))
        assert [PROMPT.encode() in request.body for request in server.recorded] == [True, True]
        assert refusal(open_sealed(server)) is Reason.HTTP_REDIRECT
        assert server.requests == 3


# Time


def test_the_way_over_tcp(monkeypatch):
    """All of the live path but the roots: name, address, TCP, TLS for the pinned name."""
    with rehearsal() as server, socket.create_server(("127.0.0.1", 0)) as relay:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", relay.getsockname())]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        threading.Thread(target=relay_once, args=(relay, server.seam.socket_path), daemon=True).start()
        factory = ClientFactory()
        factory._route = route.Route(route.TcpDial(), server.seam.ca_pem_path)
        assert factory.provider_kind is ProviderKind.REHEARSAL
        answer = json.loads(factory.open(KEY, time.monotonic() + 3).complete(REQUEST))
        assert answer["choices"][0]["message"]["content"] == CONTENT
        assert_sealed_request(server.recorded[0].head, server.recorded[0].body)


def relay_once(listener: socket.socket, path: str) -> None:
    """Carry bytes both ways for one connection, until either side ends."""
    accepted, _ = listener.accept()
    with accepted, socket.socket(socket.AF_UNIX) as onward:
        onward.connect(path)
        pairs = {accepted: onward, onward: accepted}
        with selectors.DefaultSelector() as selector:
            for side in pairs:
                selector.register(side, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select(5):
                    assert isinstance(key.fileobj, socket.socket)
                    data = key.fileobj.recv(65_536)
                    if not data:
                        return
                    pairs[key.fileobj].sendall(data)


def test_retries_that_the_server_asks_for():
    with rehearsal("http_429@*") as server:
        with pytest.raises(openai.RateLimitError):
            ask(plain_client(server, retries=2))
        assert server.requests == 3
        assert refusal(open_sealed(server)) is Reason.HTTP_CLIENT_ERROR
        assert server.requests == 4


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("drip", Reason.TIMEOUT_DEADLINE), ("flood_of_continue", Reason.HTTP_HEAD_SIZE)],
)
def test_a_peer_that_always_says_something(fault, reason):
    with rehearsal(f"{fault}@*") as server:
        started = time.monotonic()
        assert refusal(open_sealed(server, 0.4)) is reason
        assert time.monotonic() - started < 1.5
        # Its timeout of 0.4 s bounds each read, so it is still at it after twice that.
        assert not fails_within(0.9, lambda: ask(plain_client(server, seconds=0.4)))


def test_a_peer_that_never_shakes_hands(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent, rehearsal() as server:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        factory = ClientFactory(_seam=Seam(str(tmp_path / "s"), server.seam.ca_pem_path))
        client = factory.open(KEY, time.monotonic() + 0.3)
        started = time.monotonic()
        assert refusal(client) is Reason.TIMEOUT_DEADLINE
        assert time.monotonic() - started < 1.5
        assert client.requests_sent == 0


def test_a_step_may_not_take_all_the_time_there_is(monkeypatch):
    monkeypatch.setattr(network, "READ_S", 0.1)
    with rehearsal("stall@*") as server:
        started = time.monotonic()
        assert refusal(open_sealed(server)) is Reason.TIMEOUT_STEP
        assert time.monotonic() - started < 1.5


def test_the_client_timeout_ends_before_a_late_deadline(monkeypatch):
    monkeypatch.setattr(exchange, "CLIENT_TIMEOUT_S", 0.3)
    with rehearsal("drip@*") as server:
        started = time.monotonic()
        assert refusal(open_sealed(server, 60)) is Reason.TIMEOUT_DEADLINE
        assert time.monotonic() - started < 1.5


def test_a_deadline_that_has_passed_sends_nothing():
    with rehearsal() as server:
        client = open_sealed(server, -0.1)
        assert refusal(client) is Reason.TIMEOUT_DEADLINE
        assert (client.requests_sent, server.calls) == (0, 0)


def test_the_first_attempt_loads_nothing_that_warming_did_not():
    with rehearsal() as server:
        code = "warmed = set(sys.modules)\nask()\nprint(set(sys.modules) - warmed)"
        assert run_against(server, SEALED + code) == "set()\n"


# Size

MEASURE = """
import resource
from pathlib import Path
def peak_kib():
    # ru_maxrss would begin with what the parent had when it forked.
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
before = peak_kib()
try:
    ask()
    word = "answered"
except MemoryError:
    word = "out of memory"
except Exception as error:
    word = str(error)
grown = peak_kib() - before
print(word, grown // 1024)
"""


@pytest.mark.parametrize(
    ("fault", "reason"), [("giant_body", "http.body_size"), ("gzip_bomb", "http.content_encoding")]
)
def test_a_body_without_end_costs_no_memory(fault, reason):
    with rehearsal(f"{fault}@*") as server:
        *word, grown = run_against(server, SEALED + MEASURE).split()
        assert word == [reason]
        assert int(grown) < 8
        *_, grown = run_against(server, PLAIN + MEASURE).split()
        assert int(grown) > 100


# The answer


def test_a_stream_cut_short():
    with rehearsal("truncated_at_end_of_stream@*") as server:
        assert CONTENT.encode() not in ask_raw(plain_client(server))
        assert refusal(open_sealed(server)) is Reason.NET_RESET


def test_html():
    with rehearsal("html_200@*") as server:
        assert ask(plain_client(server)) == "<html><body>sign in</body></html>"
        assert refusal(open_sealed(server)) is Reason.HTTP_CONTENT_TYPE


@pytest.mark.parametrize(
    "fault", ["two_choices", "usage_missing", "usage_excessive_total", "null_content", "tool_call"]
)
def test_the_sdk_judges_nothing_so_the_raw_answer_is_handed_on(fault):
    with rehearsal(f"{fault}@*") as server:
        assert isinstance(ask(plain_client(server)), openai.types.chat.ChatCompletion)
        body = open_sealed(server).complete(REQUEST)
        assert len(body) == len(ask_raw(plain_client(server)))


# One request


def test_a_second_call_on_one_client():
    with rehearsal() as server:
        with plain_client(server) as client:
            ask_again(client)
            ask_again(client)
        assert server.requests == 2
        sealed = open_sealed(server)
        sealed.complete(REQUEST)
        assert refusal(sealed) is Reason.NET_SECOND_REQUEST
        assert (sealed.requests_sent, server.requests) == (1, 3)


def test_a_race_on_one_client_sends_one_request():
    with rehearsal() as server:
        sealed = open_sealed(server)
        barrier = threading.Barrier(8)
        ends = []

        def call() -> None:
            barrier.wait()
            try:
                sealed.complete(REQUEST)
                ends.append("answered")
            except Rejected as rejected:
                ends.append(rejected.reason.value)

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ends) == ["answered"] + ["net.second_request"] * 7
        assert server.requests == 1


def test_many_threads_share_one_factory():
    with rehearsal() as server:
        factory = ClientFactory(_seam=server.seam)
        answers = []

        def call() -> None:
            answers.append(factory.open(KEY, time.monotonic() + 3).complete(REQUEST))

        threads = [threading.Thread(target=call) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == server.requests == 16


def test_no_connection_stays_open(monkeypatch):
    connect = route._try_connect
    connections = []

    def recorded(*arguments):
        connections.append(connect(*arguments))
        return connections[-1]

    monkeypatch.setattr(route, "_try_connect", recorded)
    with rehearsal("http_500@2", "giant_body@3", "stall@4", "untrusted_ca@5") as server:
        open_sealed(server, 0.3).complete(REQUEST)
        for _ in range(4):
            refusal(open_sealed(server, 0.3))
    assert [connection.fileno() for connection in connections if connection] == [-1] * 5


# Content


def test_errors_carry_the_prompt_and_the_key():
    with rehearsal("http_401@*") as server:
        with pytest.raises(openai.AuthenticationError) as plain:
            ask(plain_client(server))
        assert PROMPT in str(plain.value)
        assert KEY in str(plain.value)
        with pytest.raises(Rejected) as sealed:
            open_sealed(server).complete(REQUEST)
        error = sealed.value
        assert (error.__cause__, error.__context__, error.args) == (None, None, ("http.client_error",))
        frame = error.__traceback__
        assert frame is not None
        frame = frame.tb_next
        while frame is not None:
            assert PROMPT not in repr(frame.tb_frame.f_locals)
            assert KEY not in repr(frame.tb_frame.f_locals)
            frame = frame.tb_next


LOGGING = """
import logging, logging.config
class Capture(logging.Handler):
    def emit(self, record):
        if record.name.split(".")[0] in ("openai", "httpx", "httpcore"):
            print(record.name, record.getMessage())
def configure():
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False,
        "handlers": {"all": {"()": Capture}}, "root": {"level": 1, "handlers": ["all"]},
        "loggers": {name: {"level": 1} for name in ("openai", "httpx", "httpcore", "openai._base_client")}})
configure()
try:
    ask()
except Exception:
    pass
configure()
ask()
"""


def test_logs_at_debug():
    with rehearsal("http_401@1", "http_401@3") as server:
        plain = run_against(server, PLAIN + LOGGING)
        assert "req_rehearsal" in plain
        assert "https://api.openai.com/v1/chat/completions" in plain
        assert ON_3 or PROMPT in plain
        assert run_against(server, SEALED + LOGGING) == ""
        assert server.requests == 4

"""The rehearsal server as a fixture: private, countable, and gone when it is closed."""

import json
import socket
import ssl
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from harness.rehearsal.completion import Answer, Usage
from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.server import RehearsalServer

URL = "https://api.openai.com/v1/chat/completions"


def client_of(server: RehearsalServer) -> httpx.Client:
    context = ssl.create_default_context(cafile=server.seam.ca_pem_path)
    return httpx.Client(transport=httpx.HTTPTransport(uds=server.seam.socket_path, verify=context), timeout=5)


def test_one_connection_may_carry_many_calls():
    with RehearsalServer(lambda body: body, record=True) as server, client_of(server) as client:
        answers = [client.post(URL, content=f"question {number}").json() for number in range(3)]
        assert [answer["choices"][0]["message"]["content"] for answer in answers] == [f"question {n}" for n in range(3)]
        assert [request.body for request in server.recorded] == [b"question 0", b"question 1", b"question 2"]
        assert (server.calls, server.requests) == (3, 3)
        assert len({answer["id"] for answer in answers}) == 3


def test_the_completion_is_whole_and_within_the_budget():
    with RehearsalServer(lambda _: b"x" * 5_000) as server, client_of(server) as client:
        answer = client.post(URL, content="q" * 50_000).json()
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["prompt_tokens"] <= 600
    assert usage["completion_tokens"] <= 160
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] <= 760


def test_usage_can_be_counted_by_the_caller_or_given():
    count = lambda body, content: Usage(len(body), len(content))  # noqa: E731
    answers: Iterator[bytes | Answer] = iter([b"four", Answer("five!", finish_reason="length", usage=Usage(1, 2))])
    with RehearsalServer(lambda _: next(answers), estimate=count) as server, client_of(server) as client:
        counted, given = client.post(URL, content="abc").json(), client.post(URL, content="abc").json()
    assert (counted["usage"]["prompt_tokens"], counted["usage"]["completion_tokens"]) == (3, 4)
    assert (given["usage"]["total_tokens"], given["choices"][0]["finish_reason"]) == (3, "length")


def test_nothing_is_kept_unless_asked_and_nothing_is_public():
    with RehearsalServer(lambda _: b"{}") as server, client_of(server) as client:
        client.post(URL, content="canary")
        assert server.recorded == []
        directory = Path(server.seam.socket_path).parent
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert sorted(entry.name for entry in directory.iterdir()) == ["ca.pem", "s"]
        assert "PRIVATE" not in (directory / "ca.pem").read_text()
    assert not directory.exists()


def test_a_deep_temporary_directory_is_no_obstacle(monkeypatch, tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with RehearsalServer(lambda _: b"{}") as server, client_of(server) as client:
        assert client.post(URL).status_code == 200
    assert list(deep.iterdir()) == []


@pytest.mark.parametrize("fault", ["stall", "drip", "giant_body", "flood_of_continue"])
def test_it_stops_at_once_whatever_it_is_doing(fault):
    failed = threading.Event()

    def call(server: RehearsalServer) -> None:
        with client_of(server) as client, client.stream("POST", URL, content="x") as response:
            response.read()

    def run(server: RehearsalServer) -> None:
        try:
            call(server)
        except httpx.HTTPError:
            failed.set()

    before = threading.active_count()
    with RehearsalServer(lambda _: b"{}", FaultPlan.parse([f"{fault}@*"])) as server:
        waiting = threading.Thread(target=run, args=(server,))
        waiting.start()
        while server.requests == 0:
            time.sleep(0.005)
        started = time.monotonic()
    assert time.monotonic() - started < 1
    waiting.join(5)
    assert failed.is_set()
    assert threading.active_count() == before


def test_a_client_that_leaves_or_talks_nonsense_hurts_no_one():
    with RehearsalServer(lambda _: b"{}") as server:
        with socket.socket(socket.AF_UNIX) as nonsense:
            nonsense.connect(server.seam.socket_path)
            nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
            try:
                assert b"HTTP" not in nonsense.recv(100)
            except ConnectionResetError:
                pass
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(server.seam.socket_path)
        with client_of(server) as client:
            assert json.loads(client.post(URL).content)["object"] == "chat.completion"
        assert server.requests == 1

"""Connections end: those that never ask, those that ask for ever, those that never read."""

import contextlib
import socket
import threading
import time

import pytest
import uvicorn

from harness.service import protocol
from harness.service.protocol import BoundedProtocol

EXCHANGE_S = 0.4
BODY = b"x" * 64_000_000
OK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def app(scope, receive, send):
    body = BODY if scope["path"] == "/giant" else b"ok"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setattr(protocol, "EXCHANGE_SECONDS", EXCHANGE_S)
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 3)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, http=BoundedProtocol, ws="none", lifespan="off", log_config=None, log_level="critical")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def _answer(peer: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"\r\n\r\nok"):
        piece = peer.recv(4_096)
        assert piece, answer
        answer += piece
    return answer


def _is_cut(peer: socket.socket) -> bool:
    peer.settimeout(5)
    try:
        while peer.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("sent", [b"", b"GET / HT", OK[:-2]])
def test_a_head_that_does_not_come_to_its_end_is_cut(sent, address):
    with socket.create_connection(address) as peer:
        peer.sendall(sent)
        started = time.monotonic()
        assert _is_cut(peer)
        assert EXCHANGE_S / 2 < time.monotonic() - started < 4


def test_a_peer_that_does_not_read_is_cut(address):
    with socket.create_connection(address) as peer:
        peer.sendall(OK.replace(b"/ ", b"/giant "))
        time.sleep(EXCHANGE_S * 2)
        read = 0
        with contextlib.suppress(ConnectionResetError):
            while piece := peer.recv(1 << 20):
                read += len(piece)
        assert read < len(BODY)


def test_a_peer_that_reads_late_may_ask_again(address):
    with socket.create_connection(address) as peer:
        peer.sendall(OK.replace(b"/ ", b"/giant "))
        read = 0
        while read < len(BODY):
            read += len(peer.recv(1 << 20))
        time.sleep(EXCHANGE_S * 1.5)
        peer.sendall(OK)
        assert _answer(peer).startswith(b"HTTP/1.1 200")


def test_between_two_requests_a_connection_may_rest(address):
    with socket.create_connection(address) as peer:
        for _ in range(3):
            peer.sendall(OK)
            assert _answer(peer).startswith(b"HTTP/1.1 200")
            time.sleep(EXCHANGE_S * 1.5)


def test_one_connection_too_many_cuts_the_one_that_has_waited_longest(address):
    peers = [socket.create_connection(address)]
    time.sleep(0.05)
    peers += [socket.create_connection(address) for _ in range(2)]
    time.sleep(0.05)
    try:
        with socket.create_connection(address) as peer:
            peer.sendall(OK)
            assert _answer(peer).startswith(b"HTTP/1.1 200")
            started = time.monotonic()
            assert _is_cut(peers[0])
            assert time.monotonic() - started < EXCHANGE_S / 2
    finally:
        for held in peers:
            held.close()

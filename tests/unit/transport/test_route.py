"""Where connections go: the real address within the time for connecting, or the seam."""

import socket
import threading
import time

import pytest

from kexpr.codes import ProviderKind, Reason
from kexpr.errors import Rejected
from kexpr.transport import ClientFactory, Seam
from kexpr.transport.exchange import Exchange
from kexpr.transport.route import TcpDial, UnixDial

LIMIT_S = 0.3


def answers(*addresses: tuple[str, int]) -> list[tuple[object, ...]]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def refused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def reason_of_connecting(dial: TcpDial | UnixDial, seconds: float = LIMIT_S) -> tuple[Reason, float]:
    started = time.monotonic()
    with pytest.raises(Rejected) as refused:
        dial.connect(Exchange(started + seconds))
    return refused.value.reason, time.monotonic() - started


def test_the_kind_follows_from_the_transport():
    assert ClientFactory().provider_kind is ProviderKind.LIVE
    assert ClientFactory(_seam=Seam("/nowhere", "/nowhere.pem")).provider_kind is ProviderKind.REHEARSAL


def test_it_connects_to_what_the_name_resolves_to(monkeypatch, listener):
    asked = []

    def resolve(*arguments, **options):
        asked.append(arguments)
        return answers(listener.getsockname())

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with TcpDial().connect(Exchange(time.monotonic() + 5)) as connection:
        assert connection.getpeername() == listener.getsockname()
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert asked == [(b"api.openai.com", 443)]


def test_a_dead_first_address_leaves_time_for_a_living_one(monkeypatch, listener):
    # A full backlog: connecting to it neither fails nor succeeds.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(silent.getsockname())
        found = answers(silent.getsockname(), listener.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with TcpDial().connect(Exchange(time.monotonic() + LIMIT_S)) as connection:
            assert connection.getpeername() == listener.getsockname()
        for filler in fillers:
            filler.close()


def test_refused_addresses_are_one_code(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers(("127.0.0.1", refused_port())))
    assert reason_of_connecting(TcpDial())[0] is Reason.NET_CONNECT


def test_an_unknown_name_is_the_same_code(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "secret: Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert reason_of_connecting(TcpDial())[0] is Reason.NET_CONNECT


def test_a_hung_name_server_costs_the_time_left_and_one_thread(monkeypatch):
    release = threading.Event()
    started = []

    def hang(*_, **__):
        started.append(threading.current_thread())
        release.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(TimeoutError):
        # The standard way to connect waits for the name whatever its timeout says.
        _wait_for(lambda: socket.create_connection(("api.openai.com", 443), timeout=0.05), 0.3)
    before = len(started)
    dial = TcpDial()
    for _ in range(3):
        reason, seconds = reason_of_connecting(dial)
        assert reason is Reason.TIMEOUT_DEADLINE
        assert LIMIT_S <= seconds < LIMIT_S + 1.0
    assert len(started) - before == 1
    release.set()
    for thread in started:
        thread.join(5)


def _wait_for(call, seconds):
    done = threading.Event()

    def run():
        try:
            call()
        except OSError:
            pass
        done.set()

    threading.Thread(target=run, daemon=True).start()
    if not done.wait(seconds):
        raise TimeoutError


def test_a_socket_that_is_not_there_is_the_same_code(tmp_path):
    assert reason_of_connecting(UnixDial(str(tmp_path / "none")))[0] is Reason.NET_CONNECT

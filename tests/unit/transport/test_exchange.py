"""The limits of one request."""

import threading
import time

import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport.exchange import CLIENT_TIMEOUT_S, HEAD_BYTES, Exchange


def test_only_the_first_of_many_threads_gets_it():
    exchange = Exchange(time.monotonic() + 5)
    barrier = threading.Barrier(16)
    winners = []

    def race():
        barrier.wait()
        if exchange.take():
            winners.append(1)

    threads = [threading.Thread(target=race) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert winners == [1]


def test_the_first_reason_stays():
    exchange = Exchange(time.monotonic() + 5)
    exchange.failed(Reason.NET_TLS)
    exchange.failed(Reason.HTTP_PROTOCOL)
    assert exchange.reason is Reason.NET_TLS


def test_a_step_ends_with_the_deadline_and_says_which_of_the_two_it_was():
    exchange = Exchange(time.monotonic() + 0.02)
    end = exchange.end_of_step(10)
    assert exchange.left(end) <= 0.02
    time.sleep(0.03)
    with pytest.raises(Rejected, match=Reason.TIMEOUT_DEADLINE.value):
        exchange.left(end)
    with pytest.raises(Rejected, match=Reason.TIMEOUT_DEADLINE.value):
        exchange.end_of_step(10)

    exchange = Exchange(time.monotonic() + 10)
    with pytest.raises(Rejected, match=Reason.TIMEOUT_STEP.value):
        exchange.left(exchange.end_of_step(0))


def test_taking_it_starts_the_client_timeout():
    exchange = Exchange(time.monotonic() + 1_000)
    assert exchange.take()
    assert exchange.left(exchange.end_of_step(100)) <= CLIENT_TIMEOUT_S


def test_a_head_has_an_end_and_so_has_everything_received():
    exchange = Exchange(time.monotonic() + 5)
    exchange.plaintext_bytes = HEAD_BYTES - 1
    exchange.check_head()
    exchange.plaintext_bytes = HEAD_BYTES
    with pytest.raises(Rejected, match=Reason.HTTP_HEAD_SIZE.value):
        exchange.check_head()

    exchange = Exchange(time.monotonic() + 5)
    exchange.count_received(262_144)
    with pytest.raises(Rejected, match=Reason.HTTP_HEAD_SIZE.value):
        exchange.count_received(1)
    exchange.head_done = True
    with pytest.raises(Rejected, match=Reason.HTTP_BODY_SIZE.value):
        exchange.count_received(1)

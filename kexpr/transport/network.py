"""The network under the connection pool: one connection, TLS in memory, every step clamped and counted.

Timeouts of a socket bound one read, not a peer that drips; a TLS read may loop inside OpenSSL for as long as records
that carry no data arrive. Here every `recv` is ours: its time is what is left of the step and of the deadline, and its
bytes count. Imported lazily (needs httpcore).
"""

import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import httpcore

from kexpr.codes import Reason
from kexpr.transport.exchange import CONNECT_S, READ_S, WRITE_S, Exchange
from kexpr.transport.route import Dial
from kexpr.transport.tls import HOST

__all__ = ["SealedBackend"]

_RECEIVE_BYTES: Final = 16_384

_T = TypeVar("_T")


class SealedBackend(httpcore.NetworkBackend):
    """Connects once, wherever the pool wants to go, to where the route leads."""

    def __init__(self, exchange: Exchange, dial: Dial, context: ssl.SSLContext) -> None:
        self._exchange = exchange
        self._dial = dial
        self._context = context
        self._socket: socket.socket | None = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        if self._socket is not None:
            raise self._exchange.failed(Reason.NET_SECOND_REQUEST)
        self._socket = self._dial.connect(self._exchange)
        return _BareStream(self._socket, self._exchange, self._context)

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        raise self._exchange.failed(Reason.NET_NOT_PINNED)

    def sleep(self, seconds: float) -> None:
        raise self._exchange.failed(Reason.NET_SECOND_REQUEST)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


class _Stream(httpcore.NetworkStream):
    """What the pool may ask of a stream that must not be used as it is: nothing leaves in the clear."""

    def __init__(self, connection: socket.socket, exchange: Exchange) -> None:
        self._socket = connection
        self._exchange = exchange

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        raise self._exchange.failed(Reason.NET_TLS)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        raise self._exchange.failed(Reason.NET_TLS)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        raise self._exchange.failed(Reason.NET_TLS)

    def close(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> Any:
        return None


class _BareStream(_Stream):
    """A connection before TLS: it can only start it, with the sealed context and the pinned name."""

    def __init__(self, connection: socket.socket, exchange: Exchange, context: ssl.SSLContext) -> None:
        super().__init__(connection, exchange)
        self._context = context

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _TlsStream(self._socket, self._exchange, self._context)


class _TlsStream(_Stream):
    def __init__(self, connection: socket.socket, exchange: Exchange, context: ssl.SSLContext) -> None:
        super().__init__(connection, exchange)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        self._drive(self._tls.do_handshake, exchange.end_of_step(CONNECT_S))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Plaintext, or nothing after a proper end; an end without TLS's own goodbye is a reset."""
        self._exchange.check_head()
        count = min(max_bytes, _RECEIVE_BYTES)
        data = self._drive(lambda: self._tls.read(count), self._exchange.end_of_step(READ_S))
        if not data and not self._exchange.head_done:
            raise self._exchange.failed(Reason.NET_RESET)
        self._exchange.plaintext_bytes += len(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        end = self._exchange.end_of_step(WRITE_S)
        self._exchange.sent = True
        while buffer:
            written = self._drive(lambda pending=buffer: self._tls.write(pending), end)  # type: ignore[misc]
            buffer = buffer[written:]

    def _drive(self, operation: Callable[[], _T], end: float) -> _T:
        while True:
            try:
                result = operation()
            except ssl.SSLWantReadError:
                self._flush(end)
                self._fill(end)
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                raise self._exchange.failed(Reason.NET_RESET) from None
            except ssl.SSLError:
                raise self._exchange.failed(Reason.NET_TLS) from None
            else:
                self._flush(end)
                return result

    def _fill(self, end: float) -> None:
        data = self._step(lambda: self._socket.recv(_RECEIVE_BYTES), end)
        self._exchange.count_received(len(data))
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def _flush(self, end: float) -> None:
        pending = self._outgoing.read()
        while pending:
            sent = self._step(lambda data=pending: self._socket.send(data), end)  # type: ignore[misc]
            pending = pending[sent:]

    def _step(self, operation: Callable[[], _T], end: float) -> _T:
        try:
            self._socket.settimeout(self._exchange.left(end))
            return operation()
        except TimeoutError:
            raise self._exchange.timed_out(end) from None
        except OSError:
            raise self._exchange.failed(Reason.NET_RESET) from None

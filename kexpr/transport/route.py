"""Where a connection goes: to the provider over TCP, or through the private seam to a rehearsal's Unix socket."""

import socket
import threading
from dataclasses import dataclass
from typing import Final, Protocol

from kexpr.codes import ProviderKind, Reason
from kexpr.transport.exchange import CONNECT_S, Exchange
from kexpr.transport.tls import HOST

__all__ = ["Dial", "Route", "Seam", "TcpDial", "UnixDial", "route_through"]

_ADDRESSES: Final = 4
"""Addresses tried at most; they share the time for connecting."""

_Address = tuple[int, object]


@dataclass(frozen=True, slots=True)
class Seam:
    """Private: another socket and another certificate authority, for rehearsals and tests only.

    The path of a Unix socket and of a PEM file. Host name, verification and every limit stay as they are.
    """

    socket_path: str
    ca_pem_path: str


class Dial(Protocol):
    def connect(self, exchange: Exchange) -> socket.socket:
        """A connected socket, or the exchange fails (`net.connect`, `timeout.*`)."""
        ...


class _Lookup:
    """One `getaddrinfo`, in a thread of its own since nothing can interrupt it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.addresses: tuple[_Address, ...] = ()
        self.thread = threading.Thread(target=self._run, name="kexpr-lookup", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            # Bytes: text would go through the IDNA codec.
            found = socket.getaddrinfo(HOST.encode(), 443, type=socket.SOCK_STREAM)
            self.addresses = tuple((family, address) for family, _, _, _, address in found[:_ADDRESSES])
        except (OSError, UnicodeError):
            pass
        finally:
            self.done.set()


class TcpDial:
    """The provider's real address. A hung name server costs one thread a process, however many attempts wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lookup: _Lookup | None = None

    def connect(self, exchange: Exchange) -> socket.socket:
        end = exchange.end_of_step(CONNECT_S)
        lookup = self._running_lookup()
        lookup.done.wait(exchange.left(end))
        exchange.left(end)
        addresses = lookup.addresses
        for position, (family, address) in enumerate(addresses):
            # A dead first address must not eat the time of a living second one.
            share = exchange.left(end) / (len(addresses) - position)
            connected = _try_connect(family, address, share)
            if connected is not None:
                return connected
        exchange.left(end)
        raise exchange.failed(Reason.NET_CONNECT)

    def _running_lookup(self) -> _Lookup:
        with self._lock:
            # Not alive: finished, or left behind by a fork.
            if self._lookup is None or not self._lookup.thread.is_alive():
                self._lookup = _Lookup()
            return self._lookup


class UnixDial:
    """A rehearsal's socket."""

    def __init__(self, path: str) -> None:
        self._path = path

    def connect(self, exchange: Exchange) -> socket.socket:
        end = exchange.end_of_step(CONNECT_S)
        connected = _try_connect(socket.AF_UNIX, self._path, exchange.left(end))
        if connected is None:
            exchange.left(end)
            raise exchange.failed(Reason.NET_CONNECT)
        return connected


def _try_connect(family: int, address: object, timeout_s: float) -> socket.socket | None:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        if family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect(address)  # type: ignore[arg-type]  # as getaddrinfo gave it
    except OSError:
        connection.close()
        return None
    return connection


@dataclass(frozen=True, slots=True)
class Route:
    """`cafile` None means certifi's roots."""

    dial: Dial
    cafile: str | None

    @property
    def kind(self) -> ProviderKind:
        """Live only over real TCP with public roots; there is no flag to set."""
        is_live = type(self.dial) is TcpDial and self.cafile is None
        return ProviderKind.LIVE if is_live else ProviderKind.REHEARSAL


def route_through(seam: Seam | None) -> Route:
    return Route(TcpDial(), None) if seam is None else Route(UnixDial(seam.socket_path), seam.ca_pem_path)

"""HTTP/1.1 whose connections end: an idle, slow or greedy peer costs one socket, for a bounded time."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["EXCHANGE_SECONDS", "MAX_CONNECTIONS", "BoundedProtocol"]

EXCHANGE_SECONDS: Final = 15.0
"""From the first byte awaited to the last byte sent; between two requests uvicorn's keep-alive timeout holds."""

MAX_CONNECTIONS: Final = 200
"""Well below the usual limit of 1,024 descriptors. One more, and the one that has waited longest is cut."""


class BoundedProtocol(H11Protocol):
    """uvicorn bounds neither the time of a request's head nor that of a response which its peer does not read."""

    _expiry: asyncio.TimerHandle | None = None
    _draining = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MAX_CONNECTIONS:
            self._oldest().cut()
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        if self._expiry is None or self._draining:
            self._begin()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Complete is what was handed over: the time goes on while the peer has yet to read it."""
        self._end()
        if self.transport.get_write_buffer_size():
            self._begin()
            self._draining = True
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def cut(self) -> None:
        self._end()
        self.connections.discard(self)
        self.transport.abort()

    def _oldest(self) -> "BoundedProtocol":
        oldest: Any = min(self.connections, key=lambda held: getattr(held, "since", 0.0))
        assert isinstance(oldest, BoundedProtocol)
        return oldest

    def _begin(self) -> None:
        self._end()
        self.since = self.loop.time()
        self._expiry = self.loop.call_later(EXCHANGE_SECONDS, self._expire)

    def _expire(self) -> None:
        if self._draining and not self.transport.get_write_buffer_size():
            self._end()
        else:
            self.cut()

    def _end(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._draining = False

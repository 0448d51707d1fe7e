"""What stands before every page: the Host allow-list, the methods, and the headers that no response goes without.

A page on some other site can make a browser on this host ask `127.0.0.1` under a name of its own (DNS rebinding); the
Host header tells. Faults of our own become an empty 500: a traceback could hold content.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

__all__ = ["LOOPBACK_NAMES", "Shield", "host_of"]

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_HOST: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]{1,5})?")
_METHODS: Final = frozenset({"GET", "HEAD"})
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_NO_CONTENT_POLICY: Final = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


def host_of(header: str) -> str | None:
    """The name in a Host header, without port, brackets and case; None when it is none."""
    found = _HOST.fullmatch(header)
    return None if found is None else (found[1] or found[2]).lower()


class Shield:
    """ASGI middleware. `allowed` are host names in lower case; a port does not count."""

    def __init__(self, app: App, allowed: frozenset[str]) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = _Response(send)
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or host_of(hosts[0]) not in self._allowed:
            await response.plain(400, b"host not allowed\n")
        elif scope["method"] not in _METHODS:
            await response.plain(405, b"method not allowed\n", (b"allow", b"GET, HEAD"))
        else:
            await self._guarded(scope, receive, response)

    async def _guarded(self, scope: Scope, receive: Receive, response: "_Response") -> None:
        failed = False
        try:
            await self._app(scope, receive, response.send)
        except Exception:  # noqa: BLE001 - whatever it says stays here
            failed = True
        if failed and not response.started:
            await response.plain(500, b"internal error\n")


class _Response:
    """One response on its way out, with our headers."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = [*message["headers"], *_HEADERS]
            if not any(name == b"content-security-policy" for name, _ in headers):
                headers.append(_NO_CONTENT_POLICY)
            message = {**message, "headers": headers}
        await self._send(message)

    async def plain(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        """A closing response: what else the peer may still send is not read."""
        length = (b"content-length", str(len(body)).encode())
        fixed = [(b"content-type", b"text/plain; charset=utf-8"), length, (b"connection", b"close"), *headers]
        await self.send({"type": "http.response.start", "status": status, "headers": fixed})
        await self.send({"type": "http.response.body", "body": body})

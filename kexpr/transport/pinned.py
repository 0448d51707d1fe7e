"""The transport the SDK is given: it sends one sealed body to one URL and lets only a small JSON answer through.

Imported lazily (needs httpx and httpcore).
"""

import json
import ssl
from typing import Final

import httpcore
import httpx

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport.exchange import ANSWER_BYTES, POOL_S, Exchange
from kexpr.transport.network import SealedBackend
from kexpr.transport.route import Dial
from kexpr.transport.tls import HOST, build_untrusting_context

__all__ = ["PinnedTransport"]

_PATH: Final = b"/v1/chat/completions"
_URL: Final = httpcore.URL(scheme=b"https", host=HOST.encode(), port=443, target=_PATH)
_STATUS_REASONS: Final = {
    3: Reason.HTTP_REDIRECT,
    4: Reason.HTTP_CLIENT_ERROR,
    5: Reason.HTTP_SERVER_ERROR,
}
_JSON_TYPES: Final = frozenset({b"application/json", b"application/json;charset=utf-8"})

_POOL_CONTEXT: Final = build_untrusting_context()


class PinnedTransport(httpx.BaseTransport):
    """One request. The method, URL and headers sent are constants of this file; the body is the exchange's."""

    def __init__(self, exchange: Exchange, dial: Dial, context: ssl.SSLContext, api_key: str) -> None:
        self._exchange = exchange
        self._backend = SealedBackend(exchange, dial, context)
        self._api_key = api_key
        self._used = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._check(request)
        try:
            body = self._answer()
        except Rejected:
            raise
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
            raise self._exchange.failed(Reason.HTTP_PROTOCOL) from None
        except Exception:  # noqa: BLE001 - whatever it is may carry content
            raise self._exchange.failed(Reason.PROVIDER_CLIENT) from None
        finally:
            self._backend.close()
        return httpx.Response(200, headers={"Content-Type": "application/json"}, content=body, request=request)

    def _check(self, request: httpx.Request) -> None:
        """Before any I/O: the pin, and that the SDK asks for exactly what was sealed."""
        if self._used:
            raise self._exchange.failed(Reason.NET_SECOND_REQUEST)
        self._used = True
        url = request.url
        target = (request.method, url.scheme, url.raw_host, url.port or 443, url.raw_path)
        if target != ("POST", "https", HOST.encode(), 443, _PATH) or url.userinfo:
            raise self._exchange.failed(Reason.NET_NOT_PINNED)
        try:
            is_sealed = json.loads(request.read()) == json.loads(self._exchange.body)
        except ValueError:
            is_sealed = False
        if not is_sealed:
            raise self._exchange.failed(Reason.PROVIDER_CLIENT)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"Host", HOST.encode()),
            (b"Accept", b"application/json"),
            (b"Accept-Encoding", b"identity"),
            (b"Connection", b"close"),
            (b"Content-Type", b"application/json"),
            (b"Content-Length", str(len(self._exchange.body)).encode()),
            (b"User-Agent", b"kexpr"),
            (b"Authorization", b"Bearer " + self._api_key.encode("ascii")),
        ]

    def _answer(self) -> bytes:
        request = httpcore.Request(
            "POST", _URL, headers=self._headers(), content=self._exchange.body, extensions={"timeout": {"pool": POOL_S}}
        )
        with httpcore.ConnectionPool(
            ssl_context=_POOL_CONTEXT,
            max_connections=1,
            max_keepalive_connections=0,
            retries=0,
            network_backend=self._backend,
        ) as pool:
            response = pool.handle_request(request)
            try:
                self._exchange.head_done = True
                self._judge_head(response)
                return self._read_body(response)
            finally:
                response.close()

    def _judge_head(self, response: httpcore.Response) -> None:
        if response.status != 200:
            raise self._exchange.failed(_STATUS_REASONS.get(response.status // 100, Reason.HTTP_UNEXPECTED_STATUS))
        values: dict[bytes, list[bytes]] = {}
        for name, value in response.headers:
            values.setdefault(name.lower(), []).append(b"".join(value.lower().split()))
        if any(value not in (b"", b"identity") for value in values.get(b"content-encoding", [])):
            raise self._exchange.failed(Reason.HTTP_CONTENT_ENCODING)
        types = values.get(b"content-type", [])
        if len(types) != 1 or types[0].replace(b'"', b"") not in _JSON_TYPES:
            raise self._exchange.failed(Reason.HTTP_CONTENT_TYPE)
        if any(value.isdigit() and int(value) > ANSWER_BYTES for value in values.get(b"content-length", [])):
            raise self._exchange.failed(Reason.HTTP_BODY_SIZE)

    def _read_body(self, response: httpcore.Response) -> bytes:
        body = bytearray()
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > ANSWER_BYTES:
                raise self._exchange.failed(Reason.HTTP_BODY_SIZE)
        self._exchange.check_deadline()
        return bytes(body)

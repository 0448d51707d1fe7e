"""Clients that can send once, and the factory that warms what they share."""

import os
import ssl
import threading

from kexpr.codes import ProviderKind, Reason
from kexpr.errors import Rejected
from kexpr.transport.environment import check_environment, is_api_key
from kexpr.transport.exchange import Exchange
from kexpr.transport.quiet import silence
from kexpr.transport.request import CompletionRequest
from kexpr.transport.route import Route, Seam, route_through
from kexpr.transport.tls import HOST, build_context

__all__ = ["ClientFactory", "SealedClient"]


class SealedClient:
    """One request and no more. Nothing to close: `complete` leaves no connection behind."""

    __slots__ = ("_api_key", "_context", "_exchange", "_route")

    def __init__(self, api_key: str, deadline: float, route: Route, context: ssl.SSLContext) -> None:
        self._api_key = api_key
        self._route = route
        self._context = context
        self._exchange = Exchange(deadline)

    @property
    def provider_kind(self) -> ProviderKind:
        return self._route.kind

    @property
    def requests_sent(self) -> int:
        """0 or 1; 1 from just before the first byte of the request is handed to the connection."""
        return int(self._exchange.sent)

    def complete(self, request: CompletionRequest) -> bytes:
        """The raw body of a 200 `application/json` answer, at most 64 KiB.

        Raises `Rejected` for everything else: `http.*`, `net.*`, `timeout.*`, `provider.client`,
        `budget.request_bytes` (nothing was sent), and `net.second_request` when called again, whatever became of the
        first call.
        """
        if not self._exchange.take():
            raise Rejected(Reason.NET_SECOND_REQUEST)
        result = self._complete(request)
        if isinstance(result, Reason):
            raise Rejected(result)
        return result

    def _complete(self, request: CompletionRequest) -> bytes | Reason:
        """Every third-party exception ends here: it may carry the prompt, the key or the answer."""
        from kexpr.transport.pinned import PinnedTransport
        from kexpr.transport.sdk import build_sdk_client, create_completion

        try:
            self._exchange.body = request.body()
            transport = PinnedTransport(self._exchange, self._route.dial, self._context, self._api_key)
            return create_completion(build_sdk_client(self._api_key, transport), request)
        except Rejected as rejected:
            return self._exchange.reason or rejected.reason
        except Exception:  # noqa: BLE001
            return self._exchange.reason or Reason.PROVIDER_CLIENT
        finally:
            self._exchange.body = b""
            self._api_key = ""


class ClientFactory:
    """Opens sealed clients to the provider. `_seam` is for rehearsals and tests; nothing but code can set it."""

    def __init__(self, *, _seam: Seam | None = None) -> None:
        self._route = route_through(_seam)
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    @property
    def provider_kind(self) -> ProviderKind:
        return self._route.kind

    def warm(self) -> None:
        """Import the SDK, silence it and build the TLS context (0.3 to 0.5 s once); idempotent, from any thread.

        Raises `Rejected`: `provider.environment` when the process environment is not clean (the import and the context
        would obey it), `provider.client` when the SDK or the roots cannot be loaded.
        """
        self._warmed()

    def open(self, api_key: str, deadline: float) -> SealedClient:
        """A client for one request until `deadline` (`time.monotonic()` seconds). No I/O.

        Raises `Rejected`: as `warm`, with the environment as it is now; `provider.client` also for a key that cannot
        stand in a header.
        """
        context = self._warmed()
        if not is_api_key(api_key):
            raise Rejected(Reason.PROVIDER_CLIENT)
        return SealedClient(api_key, deadline, self._route, context)

    def _warmed(self) -> ssl.SSLContext:
        check_environment(os.environ)
        with self._lock:
            result = self._context or self._build()
            if isinstance(result, Reason):
                raise Rejected(result)
            self._context = result
            silence()
            return result

    def _build(self) -> ssl.SSLContext | Reason:
        try:
            from kexpr.transport import pinned  # noqa: F401 - loads the HTTP stack
            from kexpr.transport.sdk import load_everything

            silence()
            load_everything()
            context = build_context(self._route.cafile)
            # The first name given to TLS loads a codec.
            context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=HOST)
        except Rejected as rejected:
            return rejected.reason
        except Exception:  # noqa: BLE001 - whatever a package does while it loads
            return Reason.PROVIDER_CLIENT
        return context

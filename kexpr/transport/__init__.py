"""The sealed transport: one attempt, one TLS request, one code (contract, section 6).

Theory of operation. `ClientFactory.open` gives a client that can send once. The official SDK builds the request and
receives the answer, but it stands between two layers that do not trust it, or the peer, or the host's environment:

    SealedClient.complete      computes the exact body, turns every failure into one `Reason`
      openai SDK               retries, logging, redirects and platform probing switched off
        PinnedTransport        checks what the SDK made, sends the sealed body with a fixed set of headers to one URL,
                               judges status, headers and size before the SDK sees anything
          httpcore pool        parses HTTP/1.1
            SealedBackend      one connection; TLS in memory; every socket step clamped to the deadline, bytes counted

The SDK therefore only ever sees a small 200 `application/json` answer. An `Exchange` carries the limits of one request
through the layers and remembers the first failure, since third-party code wraps exceptions on their way up.

`Seam` is for the rehearsal and for tests: no configuration and no environment reaches it.
"""

from kexpr.transport.client import ClientFactory, SealedClient
from kexpr.transport.environment import REFUSED_NAMES, check_environment, read_api_key
from kexpr.transport.exchange import ANSWER_BYTES, REQUEST_BYTES
from kexpr.transport.request import CompletionRequest
from kexpr.transport.route import Seam

__all__ = [
    "ANSWER_BYTES",
    "REFUSED_NAMES",
    "REQUEST_BYTES",
    "ClientFactory",
    "CompletionRequest",
    "SealedClient",
    "Seam",
    "check_environment",
    "read_api_key",
]

"""TLS contexts: `ssl.create_default_context(cafile=…)` without its one door, the key log."""

import ssl
import sys
from typing import Final

from kexpr.codes import Reason
from kexpr.errors import Rejected

__all__ = ["HOST", "build_context", "build_untrusting_context"]

HOST: Final = "api.openai.com"


def build_context(cafile: str | None) -> ssl.SSLContext:
    """A client context that trusts `cafile` (PEM), or certifi's roots, and nothing else.

    `create_default_context` is not called: it obeys `SSLKEYLOGFILE`. Costs 15 to 25 ms, hence built once and shared.
    Raises `Rejected(PROVIDER_ENVIRONMENT)` where something put its own class in place of `ssl.SSLContext` (packages do,
    to trust the system's roots as well).
    """
    import certifi

    if ssl.SSLContext.__module__ != "ssl":
        raise Rejected(Reason.PROVIDER_ENVIRONMENT)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_mode = ssl.CERT_REQUIRED
    context.check_hostname = True
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if sys.version_info >= (3, 13):
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cafile=cafile or certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def build_untrusting_context() -> ssl.SSLContext:
    """What the connection pool is given. It trusts no one and is never used: `SealedBackend` brings the real one.

    The pool changes the context it is given on every connection, which must not happen to one that threads share.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

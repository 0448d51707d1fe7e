"""A throwaway certificate authority: keys live in memory, the one file is the root's public certificate."""

import ssl
from enum import StrEnum
from pathlib import Path

__all__ = ["Authority", "Certificate"]

_HOST = "api.openai.com"


class Certificate(StrEnum):
    """What the server shows: what a client of ours must accept, and two it must not."""

    TRUSTED = "trusted"
    WRONG_NAME = "wrong_name"
    UNTRUSTED = "untrusted"


class Authority:
    """Issues the server's certificates when they are first needed."""

    def __init__(self) -> None:
        # Costs tens of milliseconds to import: only a rehearsal pays for it.
        import trustme

        self._new_authority = trustme.CA
        self._trusted = trustme.CA()
        self._contexts: dict[Certificate, ssl.SSLContext] = {}

    def write_root(self, path: Path) -> None:
        """The PEM file a client has to trust."""
        self._trusted.cert_pem.write_to_path(str(path))

    def server_context(self, certificate: Certificate) -> ssl.SSLContext:
        context = self._contexts.get(certificate)
        if context is None:
            context = self._contexts[certificate] = self._build(certificate)
        return context

    def _build(self, certificate: Certificate) -> ssl.SSLContext:
        issuer = self._new_authority() if certificate is Certificate.UNTRUSTED else self._trusted
        name = "api.example.com" if certificate is Certificate.WRONG_NAME else _HOST
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        issuer.issue_cert(name).configure_cert(context)
        return context

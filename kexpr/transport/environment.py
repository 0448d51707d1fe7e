"""What the process environment may not contain, and the one credential it may (contract, section 6)."""

from collections.abc import Iterable, Mapping
from typing import Final

from kexpr.codes import Reason
from kexpr.errors import Rejected

__all__ = ["REFUSED_NAMES", "check_environment", "read_api_key"]

REFUSED_NAMES: Final = frozenset(
    {
        # Read by the SDK even when the argument is given as None; an empty base URL is used as it is.
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "OPENAI_WEBHOOK_SECRET",
        "OPENAI_BASE_URL",
        "OPENAI_ADMIN_KEY",
        # Older spellings, read by SDKs that share the process.
        "OPENAI_API_BASE",
        "OPENAI_ORGANIZATION",
        "OPENAI_PROJECT",
        # Replaces even Authorization and Host in the 3.x line.
        "OPENAI_CUSTOM_HEADERS",
        # Turns on logging of prompts at import.
        "OPENAI_LOG",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        # TLS secrets to disk; foreign OpenSSL configuration and code.
        "SSLKEYLOGFILE",
        "OPENSSL_CONF",
        "OPENSSL_MODULES",
        "OPENSSL_ENGINES",
    }
)
"""In upper case; every spelling is refused, also with an empty value."""

_API_KEY_CHARACTERS: Final = 512
"""Well above any key in use; a header has to stay small."""


def check_environment(environ: Iterable[str]) -> None:
    """Raise `Rejected(PROVIDER_ENVIRONMENT)` when any refused name exists in any spelling (a mapping yields names)."""
    if any(name.upper() in REFUSED_NAMES for name in environ):
        raise Rejected(Reason.PROVIDER_ENVIRONMENT)


def read_api_key(environ: Mapping[str, str]) -> str | None:
    """`OPENAI_API_KEY`, or None unless it is 1 to 512 visible ASCII characters (nothing else can stand in a header)."""
    key = environ.get("OPENAI_API_KEY", "")
    return key if is_api_key(key) else None


def is_api_key(key: str) -> bool:
    return 0 < len(key) <= _API_KEY_CHARACTERS and all("!" <= character <= "~" for character in key)

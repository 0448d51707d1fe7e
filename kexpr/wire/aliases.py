"""Opaque names: what a provider sees in place of every local id (contract, section 3).

An alias is its prefix and the first characters of the lower-case base32 of
`HMAC-SHA256(key, b"<letter>\\0" + nonce + ordinal)`. The nonce is 16 random bytes an attempt; the ordinal is a 4-byte
big-endian counter from 0, one for each letter. The artifact key, under the same key, hashes bytes that start with a
4-byte length, so its input is never an alias's.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kexpr.codes import Reason, SlotKind
from kexpr.errors import Rejected

__all__ = [
    "ALIAS_COUNTS",
    "ARTIFACT_KEY_CHARACTERS",
    "NONCE_BYTES",
    "AliasCounts",
    "alias",
    "artifact_key",
    "distinct_aliases",
]

NONCE_BYTES: Final = 16
ARTIFACT_KEY_CHARACTERS: Final = 20

_MOST_NONCES: Final = 8
"""A collision is one in millions; a source that collides eight times over is broken."""

_AFFIXES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"k": ("k_", ""), "l": ("l_", ""), "s": ("s_", ""), "a": ("a_", ""), "p": ("⟦p_", "⟧")}
)


@dataclass(frozen=True, slots=True)
class AliasCounts:
    """How many aliases a slot shows, whatever ids it has."""

    semantic: int
    actions: int


ALIAS_COUNTS: Final[Mapping[SlotKind, AliasCounts]] = MappingProxyType(
    {kind: AliasCounts(semantic=1, actions=1) for kind in SlotKind}
)
"""Constant for each kind of slot, so that they say nothing about it; one of each, since an answer pays for the echo."""


def _base32(digest: bytes, characters: int) -> str:
    return base64.b32encode(digest).decode("ascii").lower()[:characters]


def alias(key: bytes, letter: str, nonce: bytes, ordinal: int, characters: int) -> str:
    """One alias, affixes included: `l_…`, `s_…`, `a_…`, `k_…` or `⟦p_…⟧`."""
    message = letter.encode("ascii") + b"\0" + nonce + ordinal.to_bytes(4, "big")
    before, after = _AFFIXES[letter]
    return before + _base32(hmac.digest(key, message, hashlib.sha256), characters) + after


def artifact_key(key: bytes, identity: Iterable[str]) -> str:
    """`k_` and 20 characters: the same for the same identity fields (UTF-8, each behind its 4-byte length)."""
    fields = (field.encode() for field in identity)
    message = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return "k_" + _base32(hmac.digest(key, message, hashlib.sha256), ARTIFACT_KEY_CHARACTERS)


def distinct_aliases(
    key: bytes, counts: Mapping[str, int], characters: int, nonce: Callable[[], bytes]
) -> Mapping[str, tuple[str, ...]]:
    """`counts[letter]` aliases for each letter, all different behind their prefixes; a collision takes a new nonce.

    Raises `Rejected(internal)` when `nonce` gives no usable nonce.
    """
    for _ in range(_MOST_NONCES):
        value = nonce()
        if len(value) != NONCE_BYTES:
            break
        drawn = {
            letter: tuple(alias(key, letter, value, ordinal, characters) for ordinal in range(count))
            for letter, count in counts.items()
        }
        bodies = [name.strip("⟦⟧")[2:] for names in drawn.values() for name in names]
        if len(set(bodies)) == len(bodies):
            return drawn
    raise Rejected(Reason.INTERNAL)

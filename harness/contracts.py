"""What each contract has of its own, by the wire that a feature block selects; all else is the same for both."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from kexpr.codes import ANCHOR_SURFACE_OF, Surface, WireVersion
from kexpr.config import ANCHOR_PROVIDER, PROVIDER, WIRE_OF_SCHEMA
from kexpr.wire.anchor_grammar import ANCHOR_GRAMMAR, ANCHOR_TOKEN_LIMITS
from kexpr.wire.completion import TokenLimits
from kexpr.wire.contract import TOKEN_LIMITS
from kexpr.wire.instructions import instructions_digest

__all__ = ["TERMS", "Terms"]


@dataclass(frozen=True, slots=True)
class Terms:
    """`flags` are the configuration's names of the surfaces. `always` are keys of a block in every mode, `active` those
    of one that is not disabled. `guarded`: the open-prose guard judges the answers."""

    schema_version: int | str
    provider: Mapping[str, object]
    flags: Mapping[Surface, StrEnum]
    always: Mapping[str, object]
    active: Mapping[str, object]
    limits: TokenLimits
    instructions_digest: str
    guarded: bool


def _open_prose(schema_version: int, wire: WireVersion) -> Terms:
    return Terms(
        schema_version=schema_version,
        provider=PROVIDER,
        flags={surface: surface for surface in Surface},
        always={},
        active={"provider": dict(PROVIDER)},
        limits=TOKEN_LIMITS,
        instructions_digest=instructions_digest(wire),
        guarded=True,
    )


def _anchor_grammar() -> Terms:
    wire = WireVersion.ANCHOR_GRAMMAR
    pinned = f"{wire.value}\n{ANCHOR_GRAMMAR.instructions}"
    return Terms(
        schema_version=wire.value,
        provider=ANCHOR_PROVIDER,
        flags=ANCHOR_SURFACE_OF,
        always={"timeout_seconds": 3, "provider": dict(ANCHOR_PROVIDER)},
        active={},
        limits=ANCHOR_TOKEN_LIMITS,
        instructions_digest=hashlib.sha256(pinned.encode()).hexdigest(),
        guarded=False,
    )


TERMS: Final[Mapping[WireVersion, Terms]] = MappingProxyType(
    {
        **{wire: _open_prose(schema_version, wire) for schema_version, wire in WIRE_OF_SCHEMA.items()},
        WireVersion.ANCHOR_GRAMMAR: _anchor_grammar(),
    }
)

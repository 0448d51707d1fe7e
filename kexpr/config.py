"""The feature block: `Disabled | Invalid | Active`, exactly (contract, section 1).

`from_extra` never raises on bad content. Every literal is compared byte for byte and by exact type, so that `True` is
not `1`, a subclass of `str` is not a `str`, and nothing is normalised.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kexpr.codes import Invalid, Mode, Surface, WireVersion

__all__ = [
    "FEATURE_KEY",
    "PROVIDER",
    "WIRE_OF_SCHEMA",
    "Active",
    "Config",
    "Disabled",
    "InvalidConfig",
    "from_extra",
    "parse_block",
]

FEATURE_KEY: Final = "korean_expression_postprocessor"

PROVIDER: Final[Mapping[str, object]] = {
    "id": "openai-direct",
    "transport": "chat_completions",
    "endpoint": "https://api.openai.com/v1",
    "model": "gpt-4.1-mini",
    "max_output_tokens": 160,
    "timeout_seconds": 3,
}
WIRE_OF_SCHEMA: Final = {1: WireVersion.KEXP_1, 2: WireVersion.KEXP_2}


@dataclass(frozen=True, slots=True)
class Disabled:
    """Absent, or a valid disabled block: no client, no row."""


@dataclass(frozen=True, slots=True)
class InvalidConfig:
    """Canonical only; `reason` is emitted once at start-up."""

    reason: Invalid


@dataclass(frozen=True, slots=True)
class Active:
    """A valid shadow or enabled block."""

    mode: Mode
    surfaces: frozenset[Surface]
    wire: WireVersion


Config = Disabled | InvalidConfig | Active


class _Refused(Exception):
    def __init__(self, reason: Invalid) -> None:
        self.reason = reason


def from_extra(extra: object) -> Config:
    """Parse `platforms.telegram.extra`. Anything but a mapping that holds the key exactly is handled, never raised."""
    if extra is None:
        return Disabled()
    if type(extra) is not dict:
        return InvalidConfig(Invalid.NOT_A_MAPPING)
    present = [value for key, value in extra.items() if type(key) is str and key == FEATURE_KEY]
    return parse_block(present[0]) if present else Disabled()


def parse_block(block: object) -> Config:
    """Parse the value under the key. The dispatch on `schema_version` is the seam between the contracts."""
    try:
        mapping = _mapping(block)
        version = _required(mapping, "schema_version")
        for literal, parse in _PARSERS:
            if type(version) is type(literal) and version == literal:
                return parse(mapping)
        if type(version) not in (int, str):
            raise _Refused(Invalid.WRONG_TYPE)
        raise _Refused(Invalid.UNSUPPORTED_SCHEMA_VERSION)
    except _Refused as refused:
        return InvalidConfig(refused.reason)


def _parse_open_prose(block: Mapping[str, object]) -> Config:
    mode = _required(block, "mode")
    if type(mode) is not str:
        raise _Refused(Invalid.WRONG_TYPE)
    if mode not in tuple(Mode):
        raise _Refused(Invalid.MODE_INVALID)
    if mode == Mode.DISABLED and "provider" in block:
        raise _Refused(Invalid.PROVIDER_FORBIDDEN)
    keys = ("schema_version", "mode", "surfaces") if mode == Mode.DISABLED else _ACTIVE_KEYS
    _exact_keys(block, keys)
    surfaces = _surfaces(block["surfaces"])
    if mode == Mode.DISABLED:
        if surfaces:
            raise _Refused(Invalid.SURFACE_ENABLED_WHILE_DISABLED)
        return Disabled()
    _exact_literals(_mapping(block["provider"]), PROVIDER)
    if not surfaces:
        raise _Refused(Invalid.NO_SURFACE_ENABLED)
    version = block["schema_version"]
    assert type(version) is int
    return Active(Mode(mode), surfaces, WIRE_OF_SCHEMA[version])


_ACTIVE_KEYS: Final = ("schema_version", "mode", "surfaces", "provider")

_PARSERS: Final[tuple[tuple[object, Callable[[Mapping[str, object]], Config]], ...]] = (
    (1, _parse_open_prose),
    (2, _parse_open_prose),
)


def _mapping(value: object) -> Mapping[str, object]:
    if type(value) is not dict:
        raise _Refused(Invalid.NOT_A_MAPPING)
    if any(type(key) is not str for key in value):
        raise _Refused(Invalid.NON_STRING_KEY)
    return value


def _required(mapping: Mapping[str, object], key: str) -> object:
    if key not in mapping:
        raise _Refused(Invalid.MISSING_KEY)
    return mapping[key]


def _exact_keys(mapping: Mapping[str, object], keys: tuple[str, ...]) -> None:
    for key in keys:
        _required(mapping, key)
    if len(mapping) != len(keys):
        raise _Refused(Invalid.UNKNOWN_KEY)


def _surfaces(value: object) -> frozenset[Surface]:
    mapping = _mapping(value)
    _exact_keys(mapping, tuple(Surface))
    if any(type(flag) is not bool for flag in mapping.values()):
        raise _Refused(Invalid.WRONG_TYPE)
    return frozenset(surface for surface in Surface if mapping[surface])


def _exact_literals(mapping: Mapping[str, object], literals: Mapping[str, object]) -> None:
    _exact_keys(mapping, tuple(literals))
    for key, literal in literals.items():
        if type(mapping[key]) is not type(literal):
            raise _Refused(Invalid.WRONG_TYPE)
        if mapping[key] != literal:
            raise _Refused(Invalid.WRONG_LITERAL)

"""The feature block: `Disabled | Invalid | Active`, exactly (contract, section 1).

`from_extra` never raises on bad content. Every literal is compared byte for byte and by exact type, so that `True` is
not `1`, a subclass of `str` is not a `str`, and nothing is normalised.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kexpr.codes import ANCHOR_SURFACE_OF, AnchorSurface, Invalid, Mode, Surface, WireVersion

__all__ = [
    "ANCHOR_PROVIDER",
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
ANCHOR_PROVIDER: Final[Mapping[str, object]] = {
    "provider_id": "openai-direct",
    "transport": "chat_completions",
    "endpoint": "https://api.openai.com/v1",
    "model": "gpt-4.1-mini",
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
    mode = _mode(block)
    if mode is Mode.DISABLED and "provider" in block:
        raise _Refused(Invalid.PROVIDER_FORBIDDEN)
    keys = ("schema_version", "mode", "surfaces") if mode is Mode.DISABLED else _ACTIVE_KEYS
    _exact_keys(block, keys)
    surfaces = frozenset(Surface(flag) for flag in _flags_on(block["surfaces"], tuple(Surface)))
    if mode is not Mode.DISABLED:
        _exact_literals(_mapping(block["provider"]), PROVIDER)
    version = block["schema_version"]
    assert type(version) is int
    return _config(mode, surfaces, WIRE_OF_SCHEMA[version])


def _parse_anchor_grammar(block: Mapping[str, object]) -> Config:
    """All five keys in every mode, the disabled one included."""
    mode = _mode(block)
    _exact_keys(block, _ANCHOR_KEYS)
    flags = _flags_on(block["surfaces"], tuple(AnchorSurface))
    _exact_literal(block["timeout_seconds"], 3)
    _exact_literals(_mapping(block["provider"]), ANCHOR_PROVIDER)
    surfaces = frozenset(surface for surface, flag in ANCHOR_SURFACE_OF.items() if flag in flags)
    return _config(mode, surfaces, WireVersion.ANCHOR_GRAMMAR)


def _mode(block: Mapping[str, object]) -> Mode:
    mode = _required(block, "mode")
    if type(mode) is not str:
        raise _Refused(Invalid.WRONG_TYPE)
    if mode not in tuple(Mode):
        raise _Refused(Invalid.MODE_INVALID)
    return Mode(mode)


def _config(mode: Mode, surfaces: frozenset[Surface], wire: WireVersion) -> Config:
    if mode is Mode.DISABLED:
        if surfaces:
            raise _Refused(Invalid.SURFACE_ENABLED_WHILE_DISABLED)
        return Disabled()
    if not surfaces:
        raise _Refused(Invalid.NO_SURFACE_ENABLED)
    return Active(mode, surfaces, wire)


_ACTIVE_KEYS: Final = ("schema_version", "mode", "surfaces", "provider")

_ANCHOR_KEYS: Final = ("schema_version", "mode", "surfaces", "timeout_seconds", "provider")

_PARSERS: Final[tuple[tuple[object, Callable[[Mapping[str, object]], Config]], ...]] = (
    (1, _parse_open_prose),
    (2, _parse_open_prose),
    (WireVersion.ANCHOR_GRAMMAR.value, _parse_anchor_grammar),
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


def _flags_on(value: object, names: tuple[str, ...]) -> frozenset[str]:
    mapping = _mapping(value)
    _exact_keys(mapping, names)
    if any(type(flag) is not bool for flag in mapping.values()):
        raise _Refused(Invalid.WRONG_TYPE)
    return frozenset(name for name in names if mapping[name])


def _exact_literals(mapping: Mapping[str, object], literals: Mapping[str, object]) -> None:
    _exact_keys(mapping, tuple(literals))
    for key, literal in literals.items():
        _exact_literal(mapping[key], literal)


def _exact_literal(value: object, literal: object) -> None:
    if type(value) is not type(literal):
        raise _Refused(Invalid.WRONG_TYPE)
    if value != literal:
        raise _Refused(Invalid.WRONG_LITERAL)

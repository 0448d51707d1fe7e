"""The feature block of the anchor-grammar contract: five keys in every mode, exactly."""

import copy
from typing import Any

import pytest

from kexpr.codes import Invalid, Mode, Surface, WireVersion
from kexpr.config import FEATURE_KEY, Active, Disabled, InvalidConfig, from_extra, parse_block

PROVIDER = {
    "provider_id": "openai-direct",
    "transport": "chat_completions",
    "endpoint": "https://api.openai.com/v1",
    "model": "gpt-4.1-mini",
}


def block(mode: str = "shadow", **surfaces: bool) -> dict[str, Any]:
    flags = {"daily": False, "weekly": False, "adaptive_operator": False} | (surfaces or {"daily": True})
    return {
        "schema_version": "korean-expression-v3",
        "mode": mode,
        "surfaces": flags,
        "timeout_seconds": 3,
        "provider": dict(PROVIDER),
    }


class Text(str):
    """Equal to a str and not one."""


@pytest.mark.parametrize("mode", ["shadow", "enabled"])
def test_active(mode: str) -> None:
    assert from_extra({FEATURE_KEY: block(mode, adaptive_operator=True)}) == Active(
        Mode(mode),
        frozenset({Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE}),
        WireVersion.ANCHOR_GRAMMAR,
    )
    assert parse_block(block(mode, daily=True, weekly=True)) == Active(
        Mode(mode), frozenset({Surface.DAILY, Surface.WEEKLY}), WireVersion.ANCHOR_GRAMMAR
    )


def test_a_disabled_block_has_all_keys_too() -> None:
    disabled = block("disabled", daily=False)
    assert parse_block(disabled) == Disabled()
    del disabled["provider"]
    assert parse_block(disabled) == InvalidConfig(Invalid.MISSING_KEY)


def changed(path: tuple[str, ...], value: object, mode: str = "shadow") -> dict[str, Any]:
    target = root = copy.deepcopy(block(mode))
    for key in path[:-1]:
        target = target[key]
    if value is KeyError:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return root


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("schema_version",), "korean-expression-v4", Invalid.UNSUPPORTED_SCHEMA_VERSION),
        (("schema_version",), "Korean-expression-v3", Invalid.UNSUPPORTED_SCHEMA_VERSION),
        (("schema_version",), Text("korean-expression-v3"), Invalid.WRONG_TYPE),
        (("schema_version",), 3, Invalid.UNSUPPORTED_SCHEMA_VERSION),
        (("schema_version",), 2, Invalid.UNKNOWN_KEY),
        (("mode",), "on", Invalid.MODE_INVALID),
        (("mode",), True, Invalid.WRONG_TYPE),
        (("mode",), KeyError, Invalid.MISSING_KEY),
        (("timeout_seconds",), 3.0, Invalid.WRONG_TYPE),
        (("timeout_seconds",), 4, Invalid.WRONG_LITERAL),
        (("timeout_seconds",), True, Invalid.WRONG_TYPE),
        (("timeout_seconds",), KeyError, Invalid.MISSING_KEY),
        (("provider",), KeyError, Invalid.MISSING_KEY),
        (("provider", "timeout_seconds"), 3, Invalid.UNKNOWN_KEY),
        (("provider", "id"), "openai-direct", Invalid.UNKNOWN_KEY),
        (("provider", "provider_id"), KeyError, Invalid.MISSING_KEY),
        (("provider", "model"), "gpt-4.1", Invalid.WRONG_LITERAL),
        (("provider", "endpoint"), "https://api.openai.com/v1/", Invalid.WRONG_LITERAL),
        (("provider", "transport"), None, Invalid.WRONG_TYPE),
        (("surfaces", "adaptive_dualcoachtest"), True, Invalid.UNKNOWN_KEY),
        (("surfaces", "adaptive_operator"), KeyError, Invalid.MISSING_KEY),
        (("surfaces", "weekly"), 1, Invalid.WRONG_TYPE),
        (("surfaces", "daily"), False, Invalid.NO_SURFACE_ENABLED),
        (("extra",), 1, Invalid.UNKNOWN_KEY),
    ],
)
def test_anything_else_is_invalid(path: tuple[str, ...], value: object, reason: Invalid) -> None:
    assert parse_block(changed(path, value)) == InvalidConfig(reason)


def test_a_disabled_block_has_no_surface_on() -> None:
    assert parse_block(block("disabled", daily=True)) == InvalidConfig(Invalid.SURFACE_ENABLED_WHILE_DISABLED)

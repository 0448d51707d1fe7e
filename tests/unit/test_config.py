"""The feature block: exact, closed, never raising."""

import copy

import pytest

from kexpr.codes import Invalid, Mode, Surface, WireVersion
from kexpr.config import FEATURE_KEY, Active, Disabled, InvalidConfig, from_extra, parse_block

SURFACES_OFF = {"daily": False, "weekly": False, "adaptive_dualcoachtest": False, "adaptive_physique": False}
PROVIDER = {
    "id": "openai-direct",
    "transport": "chat_completions",
    "endpoint": "https://api.openai.com/v1",
    "model": "gpt-4.1-mini",
    "max_output_tokens": 160,
    "timeout_seconds": 3,
}


def active_block(version: int = 2, mode: str = "shadow", **surfaces: bool) -> dict[str, object]:
    return {
        "schema_version": version,
        "mode": mode,
        "surfaces": {**SURFACES_OFF, **(surfaces or {"daily": True})},
        "provider": dict(PROVIDER),
    }


def disabled_block() -> dict[str, object]:
    return {"schema_version": 1, "mode": "disabled", "surfaces": dict(SURFACES_OFF)}


class Text(str):
    """Equal to a str and not one."""


@pytest.mark.parametrize("extra", [None, {}, {"other": 1}, {1: 2}, {Text(FEATURE_KEY): 3}])
def test_absent_is_disabled(extra):
    assert from_extra(extra) == Disabled()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", ["shadow", "enabled"])
def test_active(version, mode):
    block = active_block(version, mode, daily=True, adaptive_physique=True)
    assert from_extra({FEATURE_KEY: block}) == Active(
        Mode(mode),
        frozenset({Surface.DAILY, Surface.ADAPTIVE_PHYSIQUE}),
        WireVersion.KEXP_1 if version == 1 else WireVersion.KEXP_2,
    )


def test_valid_disabled():
    assert parse_block(disabled_block()) == Disabled()


def change(block, path, value):
    block = copy.deepcopy(block)
    *parents, last = path
    target = block
    for key in parents:
        target = target[key]
    if value is KeyError:
        del target[last]
    else:
        target[last] = value
    return block


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (None, Invalid.NOT_A_MAPPING),
        ([], Invalid.NOT_A_MAPPING),
        ("disabled", Invalid.NOT_A_MAPPING),
        ({1: 2}, Invalid.NON_STRING_KEY),
        ({}, Invalid.MISSING_KEY),
        ({"schema_version": True}, Invalid.WRONG_TYPE),
        ({"schema_version": 1.0}, Invalid.WRONG_TYPE),
        ({"schema_version": 3}, Invalid.UNSUPPORTED_SCHEMA_VERSION),
        ({"schema_version": "1"}, Invalid.UNSUPPORTED_SCHEMA_VERSION),
        (change(active_block(), ["mode"], KeyError), Invalid.MISSING_KEY),
        (change(active_block(), ["mode"], "Shadow"), Invalid.MODE_INVALID),
        (change(active_block(), ["mode"], Text("shadow")), Invalid.WRONG_TYPE),
        (change(active_block(), ["mode"], None), Invalid.WRONG_TYPE),
        (change(active_block(), ["extra"], 1), Invalid.UNKNOWN_KEY),
        (change(active_block(), ["surfaces"], []), Invalid.NOT_A_MAPPING),
        (change(active_block(), ["surfaces", "daily"], 1), Invalid.WRONG_TYPE),
        (change(active_block(), ["surfaces", "daily"], KeyError), Invalid.MISSING_KEY),
        (change(active_block(), ["surfaces", "adaptive_operator"], True), Invalid.UNKNOWN_KEY),
        (change(active_block(), ["surfaces", "daily"], False), Invalid.NO_SURFACE_ENABLED),
        (change(active_block(), ["provider"], KeyError), Invalid.MISSING_KEY),
        (change(active_block(), ["provider"], None), Invalid.NOT_A_MAPPING),
        (change(active_block(), ["provider", "timeout_seconds"], True), Invalid.WRONG_TYPE),
        (change(active_block(), ["provider", "timeout_seconds"], 4), Invalid.WRONG_LITERAL),
        (change(active_block(), ["provider", "endpoint"], "https://api.openai.com/v1/"), Invalid.WRONG_LITERAL),
        (change(active_block(), ["provider", "model"], "GPT-4.1-mini"), Invalid.WRONG_LITERAL),
        (change(active_block(), ["provider", "api_key"], "x"), Invalid.UNKNOWN_KEY),
        (change(active_block(), ["provider", "id"], KeyError), Invalid.MISSING_KEY),
        (change(disabled_block(), ["provider"], PROVIDER), Invalid.PROVIDER_FORBIDDEN),
        (change(disabled_block(), ["surfaces", "weekly"], True), Invalid.SURFACE_ENABLED_WHILE_DISABLED),
        (change(disabled_block(), ["surfaces", "weekly"], None), Invalid.WRONG_TYPE),
    ],
)
def test_invalid(block, reason):
    assert parse_block(block) == InvalidConfig(reason)


def test_every_reason_is_reached():
    """The table above names each closed reason at least once."""
    mark = next(m for m in test_invalid.pytestmark if m.name == "parametrize")
    assert {reason for _, reason in mark.args[1]} == set(Invalid)

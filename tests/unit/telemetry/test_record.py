"""The allow-list: exact keys, closed values, constants only."""

from dataclasses import replace

import pytest

from kexpr.codes import NOT_ATTEMPTED, Invalid, Mode, Outcome, Surface, WireVersion
from kexpr.telemetry import (
    EVENT_CONFIG_INVALID,
    EVENT_OUTCOME,
    LATENCY_BUCKETS,
    ConfigInvalid,
    OutcomeRecord,
    latency_bucket,
)
from kexpr.telemetry.record import ALLOWED, event_of, is_reachable, permitted
from tests.unit.telemetry.records import REJECTED


def test_the_log_form_has_exactly_the_six_keys():
    assert event_of(REJECTED) == {
        "event": "kexpr.outcome",
        "contract_version": "kexp-wire-2",
        "surface": "daily",
        "mode": "shadow",
        "outcome": "canonical_validation_rejected",
        "latency_bucket": "le_1000ms",
    }


def test_an_invalid_configuration_is_one_static_code():
    assert event_of(ConfigInvalid(Invalid.UNKNOWN_KEY)) == {"event": "kexpr.config_invalid", "reason": "unknown_key"}


@pytest.mark.parametrize(
    ("duration_ms", "bucket"),
    [
        (0, "le_50ms"),
        (50, "le_50ms"),
        (51, "le_100ms"),
        (4_000, "le_4000ms"),
        (4_001, "gt_4000ms"),
        (10**9, "gt_4000ms"),
    ],
)
def test_durations_fall_into_closed_buckets(duration_ms, bucket):
    assert latency_bucket(Outcome.SELECTED, duration_ms) == bucket
    assert bucket in LATENCY_BUCKETS


@pytest.mark.parametrize("outcome", sorted(NOT_ATTEMPTED))
def test_nothing_attempted_has_no_latency(outcome):
    assert latency_bucket(outcome, 17) == "none"


@pytest.mark.parametrize(
    "change",
    [
        {"contract_version": "kexp-wire-2 and a name"},
        {"surface": "민수님"},
        {"mode": Mode.DISABLED},
        {"outcome": "something else"},
    ],
)
def test_a_record_outside_the_closed_sets_has_no_log_form(change):
    assert event_of(replace(REJECTED, **change)) is None


def test_every_allowed_set_is_the_set_of_the_codes():
    keys = ALLOWED[EVENT_OUTCOME]
    assert set(keys["surface"]) == {surface.value for surface in Surface}
    assert set(keys["outcome"]) == {outcome.value for outcome in Outcome}
    assert set(keys["contract_version"]) == {version.value for version in WireVersion}
    assert set(keys["mode"]) == {"shadow", "enabled"}
    assert set(ALLOWED[EVENT_CONFIG_INVALID]["reason"]) == {reason.value for reason in Invalid}


class _Talkative(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "a secret"

    __str__ = __repr__


def test_values_are_our_constants_and_not_the_callers_objects():
    fields = permitted({"event": _Talkative(EVENT_CONFIG_INVALID), "reason": _Talkative("unknown_key")})
    assert fields is not None
    assert [type(value) for value in fields.values()] == [str, str]
    assert "secret" not in repr(fields)


@pytest.mark.parametrize("value", [None, 3, ["unknown_key"], "unknown", b"unknown_key"])
def test_a_value_that_is_not_allowed_refuses_the_event(value):
    assert permitted({"event": EVENT_CONFIG_INVALID, "reason": value}) is None


def test_keys_that_are_not_allowed_are_left_out():
    assert permitted({"event": EVENT_CONFIG_INVALID, "reason": "unknown_key", "text": "secret"}) == {
        "event": EVENT_CONFIG_INVALID,
        "reason": "unknown_key",
    }


@pytest.mark.parametrize("event", ["kexpr.other", "", None, 1, ["kexpr.outcome"]])
def test_other_events_are_refused(event):
    assert permitted({"event": event, "reason": "unknown_key"}) is None


def test_the_attempt_id_is_in_no_repr():
    assert "attempt-one" not in repr(REJECTED)


def test_selected_belongs_to_enabled_and_shadow_selected_to_shadow():
    reachable = {(mode, outcome) for mode in Mode for outcome in Outcome if is_reachable(mode, outcome)}
    assert (Mode.SHADOW, Outcome.SELECTED) not in reachable
    assert (Mode.ENABLED, Outcome.SHADOW_SELECTED) not in reachable
    assert {(Mode.ENABLED, Outcome.SELECTED), (Mode.SHADOW, Outcome.SHADOW_SELECTED)} <= reachable
    assert all((mode, Outcome.OVERLOADED) in reachable for mode in Mode)


def test_a_record_is_frozen():
    with pytest.raises(AttributeError):
        REJECTED.duration_ms = 3  # type: ignore[misc]
    assert isinstance(REJECTED, OutcomeRecord)

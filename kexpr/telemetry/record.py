"""What a sink may be given, and the one table of what may be written from it."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kexpr.codes import NOT_ATTEMPTED, Invalid, Mode, Outcome, Reason, Surface, WireVersion

__all__ = [
    "ALLOWED",
    "ATTEMPT_MODES",
    "CONTRACT_VERSIONS",
    "EVENT_CONFIG_INVALID",
    "EVENT_OUTCOME",
    "LATENCY_BOUNDS_MS",
    "LATENCY_BUCKETS",
    "ConfigInvalid",
    "OutcomeRecord",
    "SinkFailure",
    "SinkName",
    "TelemetryRecord",
    "event_of",
    "is_reachable",
    "latency_bucket",
    "permitted",
]

EVENT_OUTCOME: Final = "kexpr.outcome"
EVENT_CONFIG_INVALID: Final = "kexpr.config_invalid"

CONTRACT_VERSIONS: Final = tuple(WireVersion)
ATTEMPT_MODES: Final = (Mode.SHADOW, Mode.ENABLED)

LATENCY_BOUNDS_MS: Final = (50, 100, 250, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000)
"""Upper bounds, inclusive, up to the claim's four seconds; the Prometheus histogram has the same ones."""

_NO_LATENCY: Final = "none"
_TIMED_BUCKETS: Final = (*(f"le_{bound}ms" for bound in LATENCY_BOUNDS_MS), f"gt_{LATENCY_BOUNDS_MS[-1]}ms")
LATENCY_BUCKETS: Final = (_NO_LATENCY, *_TIMED_BUCKETS)


class SinkName(StrEnum):
    """Sinks by name, for the one static metric about them. A host's own sink is `custom`."""

    STRUCTLOG = "structlog"
    PROMETHEUS = "prometheus"
    AUDIT = "audit"
    CUSTOM = "custom"


class SinkFailure(StrEnum):
    """`raised`: the sink did not take a record. `dropped`: its queue was full or closed."""

    RAISED = "raised"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """How one presentation ended. `profile` and `at_utc_s` (whole seconds) are stamped by `Telemetry`.

    `attempt_id` is the authority's own and empty where there was no claim; only the audit mirror uses it, through an
    HMAC.
    """

    surface: Surface
    mode: Mode
    contract_version: str
    outcome: Outcome
    reason: Reason | None
    duration_ms: int
    attempt_id: str = field(default="", repr=False)
    profile: str = ""
    at_utc_s: int = 0


@dataclass(frozen=True, slots=True)
class ConfigInvalid:
    """The one static code of an invalid feature block, emitted at start-up (contract, section 1)."""

    reason: Invalid


TelemetryRecord = OutcomeRecord | ConfigInvalid


def latency_bucket(outcome: Outcome, duration_ms: int) -> str:
    """The closed bucket of a duration; `none` where nothing was attempted."""
    if outcome in NOT_ATTEMPTED:
        return _NO_LATENCY
    return _TIMED_BUCKETS[bisect_left(LATENCY_BOUNDS_MS, duration_ms)]


_ONLY_MODE_OF: Final = {Outcome.SELECTED: Mode.ENABLED, Outcome.SHADOW_SELECTED: Mode.SHADOW}


def is_reachable(mode: Mode, outcome: Outcome) -> bool:
    """False for the label sets that no attempt can have: a shadow claim never ends `selected`, nor the other way."""
    return _ONLY_MODE_OF.get(outcome, mode) is mode


def _constants(codes: Iterable[str]) -> dict[str, str]:
    plain = [str(code) for code in codes]
    return dict(zip(plain, plain, strict=True))


ALLOWED: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    EVENT_OUTCOME: {
        "contract_version": _constants(CONTRACT_VERSIONS),
        "surface": _constants(Surface),
        "mode": _constants(ATTEMPT_MODES),
        "outcome": _constants(Outcome),
        "latency_bucket": _constants(LATENCY_BUCKETS),
    },
    EVENT_CONFIG_INVALID: {"reason": _constants(Invalid)},
}
"""Event -> key -> value -> the constant to write for it. What is not in here is not written."""

_EVENTS: Final = _constants(ALLOWED)


def permitted(fields: Mapping[str, object]) -> dict[str, str] | None:
    """The event with exactly its allowed keys, or None when the event or one of its values is not allowed.

    Every value returned is a constant of `ALLOWED`, never the caller's object, whose `repr` could say more.
    """
    event = fields.get("event")
    if not isinstance(event, str) or event not in ALLOWED:
        return None
    result = {"event": _EVENTS[event]}
    for key, constants in ALLOWED[event].items():
        value = fields.get(key)
        constant = constants.get(value) if isinstance(value, str) else None
        if constant is None:
            return None
        result[key] = constant
    return result


def event_of(record: TelemetryRecord) -> dict[str, str] | None:
    """The log form of a record, already through the allow-list."""
    if isinstance(record, ConfigInvalid):
        return permitted({"event": EVENT_CONFIG_INVALID, "reason": record.reason})
    return permitted(
        {
            "event": EVENT_OUTCOME,
            "contract_version": record.contract_version,
            "surface": record.surface,
            "mode": record.mode,
            "outcome": record.outcome,
            "latency_bucket": latency_bucket(record.outcome, record.duration_ms),
        }
    )

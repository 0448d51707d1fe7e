"""Records and sinks shared by the telemetry tests."""

import threading
from dataclasses import replace

from kexpr.clock import Instant
from kexpr.codes import Mode, Outcome, Reason, Surface, WireVersion
from kexpr.telemetry import OutcomeRecord, TelemetryRecord

AT_UTC_S = 1_790_000_000
"""2026-09-21T13:33:20Z."""

REJECTED = OutcomeRecord(
    surface=Surface.DAILY,
    mode=Mode.SHADOW,
    contract_version=WireVersion.KEXP_2.value,
    outcome=Outcome.CANONICAL_VALIDATION_REJECTED,
    reason=Reason.GUARD_NUMERAL,
    duration_ms=812,
    attempt_id="attempt-one",
)
STAMPED = replace(REJECTED, profile="physique-coach", at_utc_s=AT_UTC_S)


class FixedClock:
    def now(self) -> Instant:
        return Instant(AT_UTC_S * 1000 + 789, 1, None)

    def monotonic(self) -> float:
        return 0.0


class ListSink:
    def __init__(self) -> None:
        self.records: list[TelemetryRecord] = []

    def emit(self, record: TelemetryRecord) -> None:
        self.records.append(record)


class RaisingSink:
    def emit(self, record: TelemetryRecord) -> None:
        raise RuntimeError("sink says secret")


class BlockingSink:
    """Hangs in its first record until released."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()

    def emit(self, record: TelemetryRecord) -> None:
        self.entered.set()
        assert self.release.wait(10)

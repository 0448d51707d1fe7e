"""Outcome telemetry: one frozen record an attempt, fanned out to sinks that can neither block nor break it.

Only codes, a profile label and a duration leave the process (contract, section 7).
"""

from kexpr.telemetry.audit import AuditMirror
from kexpr.telemetry.fanout import Sink, SinkHealth, Telemetry
from kexpr.telemetry.prometheus import PrometheusSink
from kexpr.telemetry.record import (
    EVENT_CONFIG_INVALID,
    EVENT_OUTCOME,
    LATENCY_BUCKETS,
    ConfigInvalid,
    OutcomeRecord,
    SinkFailure,
    SinkName,
    TelemetryRecord,
    latency_bucket,
)
from kexpr.telemetry.structlog_sink import StructlogSink, structlog_processor

__all__ = [
    "EVENT_CONFIG_INVALID",
    "EVENT_OUTCOME",
    "LATENCY_BUCKETS",
    "AuditMirror",
    "ConfigInvalid",
    "OutcomeRecord",
    "PrometheusSink",
    "Sink",
    "SinkFailure",
    "SinkHealth",
    "SinkName",
    "StructlogSink",
    "Telemetry",
    "TelemetryRecord",
    "latency_bucket",
    "structlog_processor",
]

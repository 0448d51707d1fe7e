"""Structured logs. The allow-list stands before the logger call: no processor or capture sees more than constants."""

from collections.abc import Mapping, MutableMapping
from typing import Any, Final, Protocol

from kexpr.errors import TelemetryRefused
from kexpr.telemetry.record import SinkName, TelemetryRecord, event_of, permitted

__all__ = ["LOGGER_NAME", "Logger", "StructlogSink", "structlog_processor"]

LOGGER_NAME: Final = "kexpr"

_EVENT_PREFIX: Final = "kexpr."


class Logger(Protocol):
    """The part of a structlog logger that is used."""

    def info(self, event: str, /, **fields: str) -> object: ...


class StructlogSink:
    """Logs one event a record at INFO, with exactly the allowed keys. `logger` defaults to structlog's for `kexpr`."""

    name: Final = SinkName.STRUCTLOG

    def __init__(self, logger: Logger | None = None) -> None:
        self._logger = logger

    def emit(self, record: TelemetryRecord) -> None:
        fields = event_of(record)
        if fields is None:
            raise TelemetryRefused
        event = fields.pop("event")
        self._structlog_logger().info(event, **fields)

    def _structlog_logger(self) -> Logger:
        if self._logger is None:
            import structlog

            self._logger = structlog.get_logger(LOGGER_NAME)
        return self._logger


def structlog_processor(logger: object, method_name: str, event_dict: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """A processor a host may add: events of ours are cut to their allowed keys or dropped; others pass untouched.

    Put it behind `merge_contextvars`, which brings the host's keys in, and before processors whose keys should stay.
    """
    import structlog

    event = event_dict.get("event")
    if not isinstance(event, str) or not event.startswith(_EVENT_PREFIX):
        return event_dict
    kept = permitted(event_dict)
    if kept is None:
        raise structlog.DropEvent
    return kept

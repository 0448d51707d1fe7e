"""Logs hold one event a record with exactly the allowed keys, in every way structlog can be captured."""

import io
import json
import logging

import pytest
import structlog
from structlog.testing import capture_logs

from kexpr.codes import Invalid
from kexpr.errors import TelemetryRefused
from kexpr.telemetry import ConfigInvalid, StructlogSink, structlog_processor
from tests.unit.telemetry.records import STAMPED

EXPECTED = {
    "event": "kexpr.outcome",
    "contract_version": "kexp-wire-2",
    "surface": "daily",
    "mode": "shadow",
    "outcome": "canonical_validation_rejected",
    "latency_bucket": "le_1000ms",
}


@pytest.fixture(autouse=True)
def _fresh_structlog():
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def test_capture_logs_sees_the_exact_event():
    with capture_logs() as logs:
        StructlogSink().emit(STAMPED)
        StructlogSink().emit(ConfigInvalid(Invalid.MODE_INVALID))
    assert logs == [
        {**EXPECTED, "log_level": "info"},
        {"event": "kexpr.config_invalid", "reason": "mode_invalid", "log_level": "info"},
    ]


def test_a_record_outside_the_closed_sets_is_not_logged():
    from dataclasses import replace

    with capture_logs() as logs, pytest.raises(TelemetryRefused):
        StructlogSink().emit(replace(STAMPED, surface="a name"))  # type: ignore[arg-type]
    assert logs == []


def _configured(out: io.StringIO, *processors) -> None:
    structlog.configure(
        processors=[*processors, structlog.processors.JSONRenderer(sort_keys=True)],
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )


def test_the_processor_cuts_what_a_host_merges_in():
    out = io.StringIO()
    _configured(out, structlog.contextvars.merge_contextvars, structlog_processor)
    structlog.contextvars.bind_contextvars(customer="secret-customer")
    StructlogSink().emit(STAMPED)
    structlog.get_logger("host").info("host event", customer="known")
    ours, theirs = map(json.loads, out.getvalue().splitlines())
    assert ours == EXPECTED
    assert theirs == {"event": "host event", "customer": "known"}


def test_without_the_processor_the_host_would_have_merged_it():
    out = io.StringIO()
    _configured(out, structlog.contextvars.merge_contextvars)
    structlog.contextvars.bind_contextvars(customer="secret-customer")
    StructlogSink().emit(STAMPED)
    assert "secret-customer" in out.getvalue()


@pytest.mark.parametrize(
    "fields",
    [
        {"event": "kexpr.other"},
        {"event": "kexpr.outcome", "surface": "daily"},
        {**EXPECTED, "outcome": "free text"},
        {**EXPECTED, "latency_bucket": 3},
    ],
)
def test_the_processor_drops_events_of_ours_that_are_not_allowed(fields):
    with pytest.raises(structlog.DropEvent):
        structlog_processor(None, "info", dict(fields))


def test_a_broken_handler_prints_only_constants(capsys):
    """`logging.Handler.handleError` prints the raw message to stderr: all of it must be constants."""

    class _Broken(logging.Handler):
        def emit(self, record):
            try:
                raise OSError
            except OSError:
                self.handleError(record)

    handler = _Broken()
    logger = logging.getLogger("kexpr-broken-handler")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    structlog.configure(
        processors=[structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=lambda *_: logger,
    )
    try:
        StructlogSink().emit(STAMPED)
    finally:
        logger.removeHandler(handler)
    printed = capsys.readouterr().err
    assert "kexpr.outcome" in printed
    assert STAMPED.attempt_id not in printed
    assert STAMPED.profile not in printed


def test_a_logger_may_be_given():
    calls = []

    class _Logger:
        def info(self, event: str, /, **fields: str) -> None:
            calls.append((event, fields))

    StructlogSink(_Logger()).emit(STAMPED)
    assert calls == [("kexpr.outcome", {key: value for key, value in EXPECTED.items() if key != "event"})]

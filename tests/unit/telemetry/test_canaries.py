"""The canary search finds what a careless layer would carry, and the sinks carry none of it."""

import base64
import io
import json
import logging
import urllib.parse

import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from kexpr.codes import Reason
from kexpr.telemetry import AuditMirror, OutcomeRecord, PrometheusSink, StructlogSink, Telemetry
from kexpr.testing.canaries import Canaries, Leak, chain_text
from tests.unit.telemetry.records import REJECTED

SPELLINGS = [
    lambda text: text,
    lambda text: f"prefix {text.upper()} suffix",
    lambda text: text.encode(),
    lambda text: text.encode("utf-16-le"),
    lambda text: base64.b64encode(text.encode()),
    lambda text: base64.b64encode(b"x" + text.encode() + b"yz"),
    lambda text: base64.urlsafe_b64encode(b"xx" + text.encode()),
    lambda text: text.encode().hex().upper(),
    lambda text: json.dumps({"text": text}),
    lambda text: json.dumps({"text": text}, ensure_ascii=False),
    ascii,
    lambda text: repr(text.encode()),
    urllib.parse.quote,
    lambda text: text[::-1],
]


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize("plant", [Canaries.plant, Canaries.plant_korean])
def test_every_spelling_is_found(plant, spell):
    canaries = Canaries()
    text = plant(canaries, "expansion")
    assert canaries.leaks({"clean": "nothing here", "log": spell(text)})
    with pytest.raises(AssertionError) as failure:
        canaries.assert_absent({"log": spell(text)})
    assert "expansion in log" in str(failure.value)
    assert text not in str(failure.value)


def test_bytes_are_found():
    canaries = Canaries()
    key = canaries.plant_bytes("identity key")
    for blob in (key, b"at 1" + key, repr(key), key.hex(), base64.b64encode(b"." + key), base64.b32encode(key)):
        assert canaries.leaks({"log": blob})[0].planted == "identity key"


def test_clean_outputs_pass():
    canaries = Canaries()
    canaries.plant("name")
    canaries.plant_korean("text")
    canaries.assert_absent({"log": "오늘 기록을 확인했습니다", "blob": bytes(range(256))})
    assert canaries.leaks({"log": ""}) == ()


def test_a_search_for_nothing_fails():
    with pytest.raises(AssertionError):
        Canaries().assert_absent({"log": "text"})
    canaries = Canaries()
    canaries.plant("name")
    with pytest.raises(AssertionError):
        canaries.assert_absent({})


def test_short_texts_are_no_canaries():
    with pytest.raises(ValueError):
        Canaries().adopt("name", "short")
    with pytest.raises(ValueError):
        Canaries().adopt_bytes("name", b"short")


def test_canaries_are_in_no_repr():
    canaries = Canaries()
    text = canaries.plant("name")
    assert text not in repr(canaries._needles)
    assert canaries.leaks({"log": text})[0] == Leak("name", "log", "plain")


def test_hidden_contexts_and_notes_of_an_exception_are_read():
    def failing():
        try:
            raise ValueError("hidden-context")
        except ValueError:
            error = RuntimeError("outer")
            error.add_note("a-note")
            error.body = "an-attribute"  # type: ignore[attr-defined]
            raise error from None

    with pytest.raises(RuntimeError) as caught:
        failing()
    text = chain_text(ExceptionGroup("group", [caught.value]))
    assert all(part in text for part in ("outer", "hidden-context", "a-note", "an-attribute", "group"))


def test_no_sink_carries_an_attempt_id_or_a_value_outside_the_sets(tmp_path, capfd, caplog):
    """Everything the library's sinks put out, at DEBUG, for good records and for records full of canaries."""
    canaries = Canaries()
    caplog.set_level(logging.DEBUG)
    out = io.StringIO()
    structlog.configure(
        processors=[structlog.stdlib.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(out),
    )
    registry = CollectorRegistry()
    telemetry = Telemetry(
        [StructlogSink(), PrometheusSink(registry), AuditMirror(tmp_path / "korean-expression-v1")], "physique-coach"
    )
    fields = {name: getattr(REJECTED, name) for name in REJECTED.__dataclass_fields__}
    good = OutcomeRecord(**{**fields, "attempt_id": canaries.plant("attempt id")})
    telemetry.emit(good)
    for name in ("surface", "mode", "contract_version", "outcome", "reason"):
        for plant in (canaries.plant, canaries.plant_korean):
            telemetry.emit(OutcomeRecord(**{**fields, name: plant(name)}))
    assert telemetry.close(5)
    structlog.reset_defaults()
    printed, errors = capfd.readouterr()
    audit = b"".join(path.read_bytes() for path in (tmp_path / "korean-expression-v1").iterdir())
    assert b"canonical_validation_rejected" in audit
    assert "kexpr.outcome" in out.getvalue()
    canaries.assert_absent(
        {
            "structlog": out.getvalue(),
            "metrics": generate_latest(registry),
            "audit": audit,
            "stdlib log": caplog.text,
            "stdout": printed,
            "stderr": errors,
            "repr of the record": repr(good),
        }
    )
    assert (
        registry.get_sample_value("kexpr_rejections_total", {"surface": "daily", "reason": Reason.GUARD_NUMERAL.value})
        == 1
    )

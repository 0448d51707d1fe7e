"""Emission neither blocks nor breaks an attempt, whatever the sinks do."""

import logging
import os
import threading
import time
from typing import Any

import pytest

from kexpr.codes import Invalid
from kexpr.telemetry import ConfigInvalid, OutcomeRecord, SinkFailure, SinkHealth, SinkName, Telemetry
from tests.unit.telemetry.records import AT_UTC_S, REJECTED, STAMPED, BlockingSink, FixedClock, ListSink, RaisingSink


def test_every_sink_gets_the_record_stamped_with_profile_and_whole_seconds():
    first, second = ListSink(), ListSink()
    telemetry = Telemetry([first, second], "physique-coach", clock=FixedClock())
    telemetry.emit(REJECTED)
    assert telemetry.close()
    assert first.records == second.records == [STAMPED]
    assert isinstance(first.records[0], OutcomeRecord)
    assert first.records[0].at_utc_s == AT_UTC_S


def test_records_keep_their_order():
    sink = ListSink()
    telemetry = Telemetry([sink])
    for duration_ms in range(200):
        telemetry.emit(OutcomeRecord(**{**_fields(REJECTED), "duration_ms": duration_ms}))
    assert telemetry.flush(5)
    assert [record.duration_ms for record in sink.records if isinstance(record, OutcomeRecord)] == list(range(200))
    telemetry.close()


def _fields(record: OutcomeRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_a_raising_sink_is_counted_and_says_nothing(capfd, caplog):
    caplog.set_level(logging.DEBUG)
    good = ListSink()
    telemetry = Telemetry([RaisingSink(), good])
    for _ in range(3):
        telemetry.emit(REJECTED)
    assert telemetry.close()
    assert len(good.records) == 3
    assert telemetry.health.counts()[SinkName.CUSTOM, SinkFailure.RAISED] == 3
    out, err = capfd.readouterr()
    assert (out, err, caplog.text) == ("", "", "")


def test_a_hanging_sink_blocks_neither_the_attempt_nor_the_other_sinks():
    stuck, good = BlockingSink(), ListSink()
    telemetry = Telemetry([stuck, good], queue_limit=5)
    telemetry.emit(REJECTED)
    assert stuck.entered.wait(5)
    started = time.monotonic()
    for _ in range(5 + 7):
        telemetry.emit(REJECTED)
        assert _soon(lambda: not telemetry._lanes[1]._queue)
    assert time.monotonic() - started < 5
    assert not telemetry.flush(0.05)
    assert _soon(lambda: len(good.records) == 13)
    assert telemetry.health.counts()[SinkName.CUSTOM, SinkFailure.DROPPED] == 7
    stuck.release.set()
    assert telemetry.close(5)


def _soon(condition, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def test_after_close_records_count_as_dropped():
    sink = ListSink()
    telemetry = Telemetry([sink])
    telemetry.close()
    telemetry.emit(REJECTED)
    assert sink.records == []
    assert telemetry.health.counts()[SinkName.CUSTOM, SinkFailure.DROPPED] == 1


def test_what_was_queued_before_close_still_arrives():
    stuck = BlockingSink()
    telemetry = Telemetry([stuck])
    telemetry.emit(REJECTED)
    assert not telemetry.close(0.01)
    stuck.release.set()
    assert telemetry.flush(5)


def test_a_thread_that_cannot_start_costs_a_count(monkeypatch):
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    telemetry = Telemetry([ListSink()])
    telemetry.emit(REJECTED)
    assert telemetry.health.counts()[SinkName.CUSTOM, SinkFailure.DROPPED] == 1
    assert telemetry.flush(0)


def test_a_clock_that_fails_costs_a_count():
    class _Broken(FixedClock):
        def now(self):
            raise OSError("clock says secret")

    sink = ListSink()
    telemetry = Telemetry([sink], clock=_Broken())
    telemetry.emit(REJECTED)
    telemetry.close()
    assert sink.records == []
    assert telemetry.health.counts()[SinkName.CUSTOM, SinkFailure.DROPPED] == 1


def test_an_invalid_configuration_is_said_once():
    sink = ListSink()
    telemetry = Telemetry([sink])
    telemetry.config_invalid(Invalid.UNKNOWN_KEY)
    telemetry.config_invalid(Invalid.UNKNOWN_KEY)
    telemetry.close()
    assert sink.records == [ConfigInvalid(Invalid.UNKNOWN_KEY)]


def test_without_sinks_no_thread_starts(monkeypatch):
    started: list[threading.Thread] = []

    def start(self: threading.Thread) -> None:
        started.append(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    telemetry = Telemetry()
    telemetry.emit(REJECTED)
    assert telemetry.close()
    assert started == []


@pytest.mark.parametrize("profile", ["", "ab", "Physique", "민수", "a b c", "x" * 33, "abc\n"])
def test_a_profile_label_is_not_content(profile):
    with pytest.raises(ValueError, match="profile label"):
        Telemetry(profile=profile)


def test_sinks_are_bound_before_the_first_record():
    class _Bound(ListSink):
        def bind(self, profile: str, health: SinkHealth) -> None:
            self.bound = (profile, health, list(self.records))

    sink = _Bound()
    telemetry = Telemetry([sink], "dualcoachtest")
    assert sink.bound == ("dualcoachtest", telemetry.health, [])


def test_a_forked_child_starts_over(tmp_path):
    """The parent's lane hangs and holds its lock at the fork: the child still emits, and only its own records."""
    stuck, file = BlockingSink(), tmp_path / "child"

    class _File:
        def emit(self, record) -> None:
            with file.open("a") as out:
                out.write(f"{os.getpid()}\n")

    telemetry = Telemetry([stuck, _File()])
    telemetry.emit(REJECTED)
    assert stuck.entered.wait(5)
    assert telemetry._lanes[1].flush(time.monotonic() + 5)
    with telemetry._lanes[1]._changed:
        child = os.fork()
        if child == 0:
            telemetry.emit(REJECTED)
            os._exit(0 if telemetry._lanes[1].flush(time.monotonic() + 5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert file.read_text().split() == [str(os.getpid()), str(child)]
    stuck.release.set()
    assert telemetry.close(5)


def test_emitting_is_cheap():
    """A few microseconds a record; the bound is generous, since the machine is shared."""
    telemetry = Telemetry([ListSink(), ListSink(), ListSink()], queue_limit=10_000)
    started = time.perf_counter()
    for _ in range(2_000):
        telemetry.emit(REJECTED)
    assert (time.perf_counter() - started) / 2_000 < 0.001
    telemetry.close(5)

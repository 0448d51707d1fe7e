"""Fan-out of records to sinks. `emit` only appends to bounded queues in memory.

Each sink has a lane of its own: a bounded queue and one daemon thread, started with the first record. A sink that hangs
fills only its own queue; a sink that raises costs one count. Nothing a sink does is logged or raised.
"""

import os
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol, runtime_checkable

from kexpr.clock import Clock, SystemClock
from kexpr.codes import Invalid
from kexpr.telemetry.record import ConfigInvalid, OutcomeRecord, SinkFailure, SinkName, TelemetryRecord

__all__ = ["QUEUE_LIMIT", "BoundSink", "Sink", "SinkHealth", "Telemetry"]

QUEUE_LIMIT: Final = 1_024
"""Records a lane holds; an attempt takes seconds and workers are few, so this is minutes of a hung sink."""

_PROFILE: Final = re.compile(r"[a-z0-9][a-z0-9_-]{2,31}", re.ASCII)


class Sink(Protocol):
    """Where records go. Called from one thread; whatever it raises is counted and forgotten."""

    def emit(self, record: TelemetryRecord) -> None: ...


@runtime_checkable
class BoundSink(Protocol):
    """A sink that wants to know, before the first record, for whom it works and how all sinks fare."""

    def bind(self, profile: str, health: "SinkHealth") -> None: ...


class SinkHealth:
    """Failures by sink and kind, every pair born at 0."""

    def __init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        self._lock = threading.Lock()
        self._counts = {(sink, failure): 0 for sink in SinkName for failure in SinkFailure}

    def count(self, sink: SinkName, failure: SinkFailure) -> None:
        with self._lock:
            self._counts[sink, failure] += 1

    def counts(self) -> dict[tuple[SinkName, SinkFailure], int]:
        with self._lock:
            return dict(self._counts)


class _Lane:
    """One sink, its queue and its thread."""

    def __init__(self, sink: Sink, health: SinkHealth, limit: int) -> None:
        self.name = _name_of(sink)
        self._sink = sink
        self._health = health
        self._limit = limit
        self.start_over()

    def start_over(self) -> None:
        """Fresh and empty. A forked child calls it: the thread and the queued records are its parent's."""
        self._changed = threading.Condition()
        self._queue: deque[TelemetryRecord] = deque()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False

    def offer(self, record: TelemetryRecord) -> None:
        with self._changed:
            if self._closed or len(self._queue) >= self._limit or not self._ensure_thread():
                self.drop()
                return
            self._queue.append(record)
            self._changed.notify_all()

    def drop(self) -> None:
        self._health.count(self.name, SinkFailure.DROPPED)

    def flush(self, deadline_s: float) -> bool:
        """Wait until every record was handed over; False at the deadline (monotonic seconds)."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._queue and not self._busy, max(0.0, deadline_s - time.monotonic())
            )

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _ensure_thread(self) -> bool:
        if self._thread is not None and self._thread.is_alive():
            return True
        self._thread = threading.Thread(target=self._run, name=f"kexpr-telemetry-{self.name}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None
        return self._thread is not None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return
                record = self._queue.popleft()
                self._busy = True
            try:
                self._sink.emit(record)
            except Exception:  # noqa: BLE001 - whatever a sink raises must not reach an attempt, a log or a report
                self._health.count(self.name, SinkFailure.RAISED)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()


class Telemetry:
    """The sinks of one gateway and the profile label of everything it emits.

    `profile` matches `[a-z0-9][a-z0-9_-]{2,31}`; anything else is a `ValueError`. Thread-safe and fork-safe.
    Records still queued when the process ends are lost: `close` first.
    """

    def __init__(
        self,
        sinks: Iterable[Sink] = (),
        profile: str = "default",
        *,
        clock: Clock | None = None,
        queue_limit: int = QUEUE_LIMIT,
    ) -> None:
        if not _PROFILE.fullmatch(profile):
            raise ValueError("a profile label matches [a-z0-9][a-z0-9_-]{2,31}")
        self.profile = profile
        self.health = SinkHealth()
        self._clock = clock or SystemClock()
        self._config_invalid_said = False
        self._lanes = tuple(_Lane(sink, self.health, queue_limit) for sink in self._bound(sinks))
        _live.add(self)

    def _bound(self, sinks: Iterable[Sink]) -> Iterable[Sink]:
        for sink in sinks:
            if isinstance(sink, BoundSink):
                sink.bind(self.profile, self.health)
            yield sink

    def emit(self, record: OutcomeRecord) -> None:
        """Queue one outcome for every sink. Never blocks, never raises."""
        try:
            stamped = replace(record, profile=self.profile, at_utc_s=self._clock.now().utc_ms // 1000)
        except Exception:  # noqa: BLE001 - a host's clock must not break an attempt
            for lane in self._lanes:
                lane.drop()
            return
        self._offer(stamped)

    def config_invalid(self, reason: Invalid) -> None:
        """Say once that the feature block is invalid and why, by its static code."""
        if not self._config_invalid_said:
            self._config_invalid_said = True
            self._offer(ConfigInvalid(reason))

    def flush(self, timeout_s: float = 1.0) -> bool:
        """Wait until every sink has taken what was emitted so far; False when one has not in time."""
        deadline_s = time.monotonic() + timeout_s
        return all(lane.flush(deadline_s) for lane in self._lanes)

    def close(self, timeout_s: float = 1.0) -> bool:
        """Flush, then take nothing more: later records count as dropped."""
        flushed = self.flush(timeout_s)
        for lane in self._lanes:
            lane.close()
        return flushed

    def _offer(self, record: TelemetryRecord) -> None:
        for lane in self._lanes:
            lane.offer(record)

    def start_over(self) -> None:
        """In a forked child: no lock, thread, count or record of the parent's."""
        self.health.start_over()
        for lane in self._lanes:
            lane.start_over()


def _name_of(sink: Sink) -> SinkName:
    name = getattr(sink, "name", None)
    return name if isinstance(name, SinkName) else SinkName.CUSTOM


_live: Final["weakref.WeakSet[Telemetry]"] = weakref.WeakSet()


def _start_over_in_child() -> None:
    for telemetry in list(_live):
        telemetry.start_over()


os.register_at_fork(after_in_child=_start_over_in_child)

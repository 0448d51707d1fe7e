"""Inside one process: one attempt against its fsyncs, a disabled call, the judgement of eight slots."""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from harness.manifests import synthetic
from harness.rehearsal.completion import Answer, Usage, build_completion, encode
from harness.rehearsal.prose import PLACE, answer, prose_bank
from harness.world import _Session
from kexpr.attempt import Cancellation
from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.codes import Mode, ProviderKind, Surface, WireVersion
from kexpr.config import Active, Config, Disabled
from kexpr.coordinator import Coordinator
from kexpr.manifest import Frozen, Manifest
from kexpr.paths.adaptive import AdaptivePath, Card
from kexpr.paths.daily import DailyMessage, DailyPath
from kexpr.paths.publication import Preparation
from kexpr.state import State
from kexpr.surfaces import presentation_segments_v1
from kexpr.telemetry import Telemetry
from kexpr.transport import CompletionRequest
from kexpr.wire.contract import OPEN_PROSE

__all__ = ["attempt_over_fsyncs", "disabled_us", "judge_eight_slots_us"]

ROUNDS = 60


class _Instant:
    """A provider that answers at once, in place of the sealed clients. `spent_s`: what making answers up took."""

    provider_kind = ProviderKind.REHEARSAL
    requests_sent = 1
    spent_s = 0.0

    def warm(self) -> None:
        """Nothing to warm."""

    def open(self, _key: str, _deadline: float) -> "_Instant":
        return self

    def complete(self, request: CompletionRequest) -> bytes:
        started = time.perf_counter()
        body = _completion(json.loads(request.content))
        _Instant.spent_s += time.perf_counter() - started
        return body


def _completion(request: dict[str, object]) -> bytes:
    return _completed(answer(request))


def _completed(wire_answer: dict[str, Any]) -> bytes:
    content = json.dumps(wire_answer, ensure_ascii=False)
    return encode(build_completion(Answer(content), Usage(500, 100), 1))


def _coordinator(config: Config, state: State) -> Coordinator:
    return Coordinator(
        config,
        identity_key=lambda: state.identity_key,
        telemetry=Telemetry([], profile="physique-coach"),
        clients=_Instant(),  # type: ignore[arg-type]
        environ={"OPENAI_API_KEY": "bench"},
    )


def attempt_over_fsyncs(folder: Path) -> dict[str, tuple[float, float, int, float]]:
    """Per path: (median ms of an attempt, median ms of its fsyncs alone, how many, median ratio)."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch, State(Path(scratch) / "state") as state:
        coordinator = _coordinator(Active(Mode.ENABLED, frozenset(Surface), WireVersion.KEXP_2), state)
        daily = DailyPath(coordinator, state.daily(lambda _: True), state.locks)
        adaptive = AdaptivePath(coordinator, state.adaptive(threading.Lock, _Session()), state.locks)
        paths: dict[str, Callable[[int], Callable[[], None]]] = {
            "daily": lambda n: _first_save(daily, n),
            "adaptive": lambda n: _card(adaptive, n),
        }
        return {name: _against_fsyncs(Path(scratch), call) for name, call in paths.items()}


def _first_save(path: DailyPath, number: int) -> Callable[[], None]:
    shown = synthetic(Surface.DAILY, number, identity=f"event-{number}")
    return partial(_run, path.preparation(DailyMessage(f"event-{number}", shown, shown.canonical_payload)))


def _card(path: AdaptivePath, number: int) -> Callable[[], None]:
    surface = Surface.ADAPTIVE_PHYSIQUE
    shown = synthetic(surface, number)
    origin = CardPresentationOrigin(OriginKind.CALLBACK, f"session-{number}", "", "")
    binding = _Session().current_binding_digest(origin)
    return partial(_run, path.preparation(Card(origin, surface, shown, shown.canonical_payload, binding)))


def _run(preparation: Preparation) -> None:
    held = preparation(Cancellation())
    held.close()
    assert held.publication.outcome == "selected"


def _against_fsyncs(folder: Path, made: Callable[[int], Callable[[], None]]) -> tuple[float, float, int, float]:
    counted, sizes = _count_fsyncs(made)
    attempts, alone = [], []
    for number in range(1, ROUNDS + 1):
        call, before = made(number), _Instant.spent_s
        attempts.append(_timed(call) - (_Instant.spent_s - before))
        alone.append(_timed(lambda: _write_and_fsync(folder / "floor", sizes, counted)))
    ratio = median(one / other for one, other in zip(attempts, alone, strict=True))
    return median(attempts) * 1000, median(alone) * 1000, counted, ratio


def _count_fsyncs(made: Callable[[int], Callable[[], None]]) -> tuple[int, int]:
    """(fsyncs of one attempt, bytes of a row)."""
    made(100_000)()
    with patch.object(os, "fsync", wraps=os.fsync) as counting:
        made(100_001)()
    return counting.call_count, 700


def _write_and_fsync(path: Path, size: int, times: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        for _ in range(times):
            os.write(descriptor, b"x" * size)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _timed(call: Callable[[], None]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def disabled_us(folder: Path) -> float:
    """Median microseconds of `present` without the feature."""
    from kexpr.authority.daily import DailyArtifact
    from kexpr.coordinator import Job

    with tempfile.TemporaryDirectory(dir=folder) as scratch, State(Path(scratch) / "state") as state:
        coordinator = _coordinator(Disabled(), state)
        artifact = DailyArtifact(state.daily(lambda _: True), "event")
        job = Job(object(), "", artifact, ())
        samples = []
        for _ in range(200):
            started = time.perf_counter()
            for _ in range(100):
                coordinator.present(job)
            samples.append((time.perf_counter() - started) / 100)
    return median(samples) * 1_000_000


def judge_eight_slots_us() -> float:
    """Median microseconds from completion bytes to a judged candidate: one answer, on wire 1 since it takes eight."""
    contract = OPEN_PROSE[WireVersion.KEXP_1]
    slot = presentation_segments_v1(synthetic(Surface.ADAPTIVE_PHYSIQUE, 0)).slots[0]
    manifest = Manifest(Surface.ADAPTIVE_PHYSIQUE, (Frozen("머리"), *[slot] * 8))
    prose = [text for text in prose_bank()[slot.kind] if PLACE in text]
    samples = []
    for number in range(300):
        issued = contract.issue(manifest, b"k" * 32, ("bench",))
        texts = [prose[(number * 8 + index) % len(prose)] for index in range(8)]
        body = _completed(_answer_1(json.loads(issued.content), texts))
        started = time.perf_counter()
        contract.read(issued, body)
        samples.append(time.perf_counter() - started)
    return median(samples) * 1_000_000


def _answer_1(request: dict[str, Any], texts: list[str]) -> dict[str, object]:
    echoed = ("slot", "semantic", "actions", "placeholders")
    slots = [
        {**{name: slot[name] for name in echoed}, "generated_ko": text.replace(PLACE, slot["placeholders"][0])}
        for slot, text in zip(request["slots"], texts, strict=True)
    ]
    return {**{name: request[name] for name in ("schema_version", "surface", "artifact_key")}, "slots": slots}

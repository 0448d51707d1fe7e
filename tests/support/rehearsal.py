"""A coordinator on the rehearsal provider, as most tests above the transport need one."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.codes import Mode, Surface, WireVersion
from kexpr.config import Active
from kexpr.coordinator import Coordinator
from kexpr.telemetry import Telemetry
from kexpr.telemetry.record import OutcomeRecord, TelemetryRecord
from kexpr.transport import ClientFactory

ENVIRON: Mapping[str, str] = {"OPENAI_API_KEY": "sk-rehearsal-0123456789"}
KEY = b"k" * 32


class Collected:
    """A sink that keeps what it was given."""

    def __init__(self) -> None:
        self.records: list[TelemetryRecord] = []

    def emit(self, record: TelemetryRecord) -> None:
        self.records.append(record)


@dataclass
class Stage:
    server: RehearsalServer
    coordinator: Coordinator
    telemetry: Telemetry
    sink: Collected

    @property
    def records(self) -> list[OutcomeRecord]:
        assert self.telemetry.flush(5)
        return [record for record in self.sink.records if isinstance(record, OutcomeRecord)]


@contextmanager
def stage(
    mode: Mode = Mode.ENABLED,
    *,
    faults: Iterable[str] = (),
    environ: Mapping[str, str] = ENVIRON,
    surfaces: Iterable[Surface] = tuple(Surface),
    workers: int = 4,
    wire: WireVersion = WireVersion.KEXP_2,
) -> Iterator[Stage]:
    with RehearsalServer(answer_bytes, FaultPlan.parse(faults), record=True) as server:
        sink = Collected()
        telemetry = Telemetry([sink], profile="physique-coach")
        coordinator = Coordinator(
            Active(mode, frozenset(surfaces), wire),
            identity_key=lambda: KEY,
            telemetry=telemetry,
            clients=ClientFactory(_seam=server.seam),
            environ=environ,
            workers=workers,
        )
        try:
            yield Stage(server, coordinator, telemetry, sink)
        finally:
            telemetry.close()

"""Fourteen days in seconds: audits, proof and observation of a rehearsal on a simulated calendar.

Everything but the calendar and the provider is real: the same evidence, paths, claims and requests. The calendar ends
today, so that the evidence of a simulation reads like any other.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from harness import preflight
from harness.audit import record_config_audit
from harness.evidence.ledger import EvidenceLedger
from harness.evidence.rows import Slot
from harness.observation.run import utc_day
from harness.observation.session import Options, observe_on
from harness.policy import POLICY
from harness.profiles import Profile
from harness.proof import session as proof
from harness.readiness.assess import assess
from harness.readiness.model import Phase, Readiness
from harness.readiness.phases import block_text
from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.server import RehearsalServer
from harness.stage import rehearsal_clients
from kexpr.clock import Clock, Instant, SystemClock
from kexpr.codes import WireVersion
from kexpr.config import Active
from kexpr.transport import ClientFactory

__all__ = ["DAYS_MAX", "SimulatedCalendar", "simulate"]

DAYS_MAX = 366
_HOUR = time(9, tzinfo=UTC)


class SimulatedCalendar:
    """The machine's clocks with the UTC day moved; durations and deadlines stay real."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._offset_ms = 0

    def now(self) -> Instant:
        now = self._clock.now()
        return Instant(now.utc_ms + self._offset_ms, now.boottime_ms, now.boot_id)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def go_to(self, day: date) -> None:
        """It becomes nine o'clock of that UTC day."""
        wanted_ms = round(datetime.combine(day, _HOUR).timestamp() * 1000)
        self._offset_ms = wanted_ms - self._clock.now().utc_ms


@dataclass(frozen=True, slots=True)
class _Setting:
    evidence: EvidenceLedger
    clients: ClientFactory
    server: RehearsalServer
    configs: Mapping[Profile, Active]
    calendar: SimulatedCalendar


def simulate(
    out: Path,
    days: int,
    wire: WireVersion,
    faults: FaultPlan,
    *,
    warn: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
) -> Readiness:
    """Audit, prove and observe `days` days that end today, in `out`; the readiness of the last day.

    A fault can be planned for a day by its number from 1 and a surface: `timeout@day9:weekly`. `progress` hears of each
    day. Raises as `prove` does.
    """
    configs = preflight.admit(wire, live=False, warn=warn)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    calendar = SimulatedCalendar()
    last = utc_day(calendar)
    calendar.go_to(last - timedelta(days=days - 1))
    with (
        closing(EvidenceLedger.open(out / proof.EVIDENCE, calendar)) as evidence,
        rehearsal_clients(faults) as (clients, server),
    ):
        setting = _Setting(evidence, clients, server, configs, calendar)
        _audit(evidence, wire)
        server.label = "proof"
        options = proof.Options(out, wire, live=False, faults=faults)
        proof.prove_on(evidence, clients, configs, options, calendar, lambda _call, _outcome: None)
        for number in range(1, days + 1):
            calendar.go_to(last - timedelta(days=days - number))
            _day(setting, Options(out, wire, live=False, calls_per_day=1), number)
            progress(number)
        return assess(evidence.summary(), POLICY, last.isoformat())


def _day(setting: _Setting, options: Options, number: int) -> None:
    def label(slot: Slot) -> None:
        setting.server.label = f"day{number}:{slot.pair.surface}:{slot.pair.profile}"

    observe_on(setting.evidence, setting.clients, setting.configs, options, setting.calendar, starting=label)


def _audit(evidence: EvidenceLedger, wire: WireVersion) -> None:
    """Strict audits of the files that phase P1 would have."""
    with tempfile.TemporaryDirectory() as directory:
        for profile in Profile:
            path = Path(directory) / f"{profile}.yaml"
            path.write_text(block_text(profile, Phase.P1, wire), "utf-8")
            record_config_audit(evidence, profile, path, wire)

"""An observation from the outside: preflight, evidence, provider, what is due today."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import preflight
from harness.candidate import current_pin
from harness.evidence.ledger import EvidenceLedger
from harness.evidence.rows import Slot
from harness.observation.run import DueResult, run_due
from harness.profiles import Profile
from harness.proof.session import EVIDENCE
from harness.rehearsal.faults import FaultPlan
from harness.stage import Stage, rehearsal_clients
from harness.watch import ContentWatch, record_canaries
from kexpr.clock import Clock, SystemClock
from kexpr.codes import WireVersion
from kexpr.config import Active
from kexpr.transport import ClientFactory

__all__ = ["Options", "observe", "observe_on"]


@dataclass(frozen=True, slots=True)
class Options:
    """`state` holds the evidence; `live` spends real calls; `calls_per_day` is for each pair."""

    state: Path
    wire: WireVersion
    live: bool
    calls_per_day: int


def observe(options: Options, warn: Callable[[str], None], stopping: Callable[[], bool] = lambda: False) -> DueResult:
    """Make today's calls that were not made yet. Raises as `prove` does."""
    configs = preflight.admit(options.wire, live=options.live, warn=warn)
    options.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    clock = SystemClock()
    with closing(EvidenceLedger.open(options.state / EVIDENCE, clock)) as evidence, _provider(options) as clients:
        return observe_on(evidence, clients, configs, options, clock, stopping=stopping)


def observe_on(
    evidence: EvidenceLedger,
    clients: ClientFactory,
    configs: Mapping[Profile, Active],
    options: Options,
    clock: Clock,
    *,
    starting: Callable[[Slot], None] = lambda _: None,
    stopping: Callable[[], bool] = lambda: False,
) -> DueResult:
    """The run proper, on a state directory of its own that goes away with it."""
    with ContentWatch() as watch, tempfile.TemporaryDirectory(prefix="state-", dir=options.state) as scratch:
        with closing(Stage(configs, clients, Path(scratch), clock, watch)) as stage:
            result = run_due(
                evidence,
                current_pin(options.wire),
                provider=clients.provider_kind,
                clock=clock,
                calls_per_day=options.calls_per_day,
                checks=preflight.checked(options.wire),
                open_world=stage.open,
                starting=starting,
                stopping=stopping,
            )
        record_canaries(evidence, watch, options.state / EVIDENCE, stage.metrics())
        return result


@contextmanager
def _provider(options: Options) -> Iterator[ClientFactory]:
    if options.live:
        clients = ClientFactory()
        clients.warm()
        yield clients
        return
    with rehearsal_clients(FaultPlan.parse(())) as (clients, _):
        yield clients

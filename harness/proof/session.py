"""A whole proof from the outside: preflight, evidence, provider, 48 calls, result files."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from harness import preflight
from harness.candidate import current_pin
from harness.evidence.ledger import EvidenceLedger
from harness.evidence.rows import Slot
from harness.profiles import Profile
from harness.proof.result import ProofResult, read_result
from harness.proof.run import Intents, run_proof
from harness.proof.world import ProofWorld
from harness.rehearsal.faults import FaultPlan
from kexpr.clock import Clock, SystemClock
from kexpr.codes import Outcome, WireVersion
from kexpr.config import Active
from kexpr.coordinator import Coordinator
from kexpr.paths.publication import Publication
from kexpr.telemetry import PrometheusSink, Telemetry
from kexpr.transport import ClientFactory

__all__ = ["EVIDENCE", "Options", "Progress", "prove"]

EVIDENCE: Final = "evidence"
REHEARSAL_ENVIRON: Final[Mapping[str, str]] = {"OPENAI_API_KEY": "rehearsal"}
"""A rehearsal reads no environment: its key is no secret, and what the host has set cannot reach it."""

Progress = Callable[[int, Outcome], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What a proof may be told. `live` spends real calls; `faults` are for the rehearsal provider."""

    out: Path
    wire: WireVersion
    live: bool
    faults: FaultPlan


class _Worlds:
    """One world a profile, as in the field: two gateways, two configurations, two state directories."""

    def __init__(self, worlds: Mapping[Profile, ProofWorld]) -> None:
        self._worlds = worlds

    def prepare(self, slot: Slot, identity: str) -> Publication:
        return self._worlds[slot.pair.profile].prepare(slot, identity)


def prove(options: Options, progress: Progress, warn: Callable[[str], None]) -> ProofResult:
    """Run the proof in `options.out` as far as it goes, and write `proof.json`, `proof.md` and `metrics.prom` there.

    Raises `preflight.Failed`, `CallNotMade`, `EvidenceRefused` and `LedgerFailed`.
    """
    configs = preflight.check_config(options.wire)
    for warning in preflight.check_budget(options.wire):
        warn(warning)
    preflight.check_guard()
    if not options.live and preflight.forget_refused_names():
        warn("the environment sets a name that a live call would refuse; a rehearsal goes on without it")
    elif not preflight.environment_is_clean():
        raise preflight.Failed("the environment sets a name that a live call refuses: credential_environment_rejected")
    options.out.mkdir(mode=0o700, parents=True, exist_ok=True)
    clock = SystemClock()
    evidence = EvidenceLedger.open(options.out / EVIDENCE, clock)
    try:
        with _clients(options) as clients, tempfile.TemporaryDirectory(prefix="state-", dir=options.out) as scratch:
            clients.warm()
            with closing(_Stage(configs, clients, Path(scratch), clock, options)) as stage:
                run_proof(
                    evidence,
                    current_pin(options.wire),
                    provider=clients.provider_kind,
                    clock=clock,
                    open_world=stage.open,
                    progress=progress,
                )
            result = read_result(evidence.view(), options.wire)
            _write(options.out, result, stage.metrics())
            return result
    finally:
        evidence.close()


class _Stage:
    """Builds the worlds once the run has begun."""

    def __init__(
        self, configs: Mapping[Profile, Active], clients: ClientFactory, scratch: Path, clock: Clock, options: Options
    ) -> None:
        from prometheus_client import CollectorRegistry

        self._configs = configs
        self._clients = clients
        self._scratch = scratch
        self._clock = clock
        self._environ = os.environ if options.live else REHEARSAL_ENVIRON
        self._registry = CollectorRegistry()
        self._sink = PrometheusSink(self._registry)
        self._opened = ExitStack()

    def open(self, intents: Intents) -> _Worlds:
        return _Worlds({profile: self._world(profile, intents) for profile in self._configs})

    def metrics(self) -> bytes:
        """The run's outcome metrics in the Prometheus text format, once it is closed."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def close(self) -> None:
        """Close what was opened, and wait for the metrics to arrive."""
        self._opened.close()

    def _world(self, profile: Profile, intents: Intents) -> ProofWorld:
        directory = self._scratch / profile
        directory.mkdir(mode=0o700)
        telemetry = self._opened.enter_context(closing(Telemetry([self._sink], profile=profile)))

        def open_coordinator(identity_key: Callable[[], bytes]) -> Coordinator:
            return Coordinator(
                self._configs[profile],
                identity_key=identity_key,
                telemetry=telemetry,
                clients=self._clients,
                clock=self._clock,
                environ=self._environ,
                observe=intents.observe,
            )

        return self._opened.enter_context(closing(ProofWorld(directory, open_coordinator, self._clock)))


@contextmanager
def _clients(options: Options) -> Iterator[ClientFactory]:
    if options.live:
        yield ClientFactory()
        return
    from harness.rehearsal.prose import answer_bytes
    from harness.rehearsal.server import RehearsalServer

    with RehearsalServer(answer_bytes, options.faults) as server:
        yield ClientFactory(_seam=server.seam)


def _write(out: Path, result: ProofResult, metrics: bytes) -> None:
    indented = orjson.dumps(
        result.to_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    )
    contents = {"proof.json": indented, "proof.md": result.to_markdown().encode(), "metrics.prom": metrics}
    for name, content in contents.items():
        replacement = out / f".{name}"
        replacement.write_bytes(content)
        replacement.replace(out / name)

"""What a shadow run plays on: the clients of its provider, and one world a profile, as in the field."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.calls import Intents
from harness.evidence.rows import Slot
from harness.profiles import Profile
from harness.rehearsal.faults import FaultPlan
from harness.watch import ContentWatch
from harness.world import ShadowWorld
from kexpr.clock import Clock
from kexpr.codes import ProviderKind
from kexpr.config import Active
from kexpr.coordinator import Coordinator
from kexpr.paths.publication import Publication
from kexpr.telemetry import PrometheusSink, Telemetry
from kexpr.transport import ClientFactory

if TYPE_CHECKING:
    from harness.rehearsal.server import RehearsalServer

__all__ = ["REHEARSAL_ENVIRON", "Stage", "Worlds", "rehearsal_clients"]

REHEARSAL_ENVIRON: Final[Mapping[str, str]] = {"OPENAI_API_KEY": "rehearsal"}
"""A rehearsal reads no environment: its key is no secret, and what the host has set cannot reach it."""


class Worlds:
    """One world a profile, as in the field: two gateways, two configurations, two state directories."""

    def __init__(self, worlds: Mapping[Profile, ShadowWorld]) -> None:
        self._worlds = worlds

    def prepare(self, slot: Slot, identity: str) -> Publication:
        return self._worlds[slot.pair.profile].prepare(slot, identity)


class Stage:
    """Builds the worlds once the run has begun."""

    def __init__(
        self,
        configs: Mapping[Profile, Active],
        clients: ClientFactory,
        scratch: Path,
        clock: Clock,
        watch: ContentWatch,
    ) -> None:
        from prometheus_client import CollectorRegistry

        self._configs = configs
        self._clients = clients
        self._scratch = scratch
        self._clock = clock
        self._watch = watch
        self._environ = os.environ if clients.provider_kind is ProviderKind.LIVE else REHEARSAL_ENVIRON
        self._registry = CollectorRegistry()
        self._sink = PrometheusSink(self._registry)
        self._opened = ExitStack()

    def open(self, intents: Intents) -> Worlds:
        return Worlds({profile: self._world(profile, intents) for profile in self._configs})

    def metrics(self) -> bytes:
        """The run's outcome metrics in the Prometheus text format, once it is closed."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def close(self) -> None:
        """Close what was opened, and wait for the metrics to arrive."""
        self._opened.close()

    def _world(self, profile: Profile, intents: Intents) -> ShadowWorld:
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

        world = ShadowWorld(directory, open_coordinator, self._clock, self._watch, self._configs[profile].wire)
        return self._opened.enter_context(closing(world))


@contextmanager
def rehearsal_clients(faults: FaultPlan) -> Iterator[tuple[ClientFactory, "RehearsalServer"]]:
    """A gateway's sealed clients, warmed, before an embedded provider that misbehaves as planned."""
    from harness.rehearsal.prose import answer_bytes
    from harness.rehearsal.server import RehearsalServer

    with RehearsalServer(answer_bytes, faults) as server:
        clients = ClientFactory(_seam=server.seam)
        clients.warm()
        yield clients, server

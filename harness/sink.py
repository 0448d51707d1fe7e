"""Evidence of a gateway's own traffic on a test profile in shadow, in full rows (harness, "14-day observation").

`EvidenceSink.observe` is for `Coordinator(observe=…)`. The intent is durable after the claim and before the request, so
that a claim that is refused, to a second tap, spends no slot. Whatever happens to the evidence, the customer sees the
same: a call whose intent could not be written goes on and is counted in `missed`; one whose outcome could not be
written stays an orphan, which counts against readiness. A wait for other writers is a fraction of a second.

The sink never begins a candidate: it writes for the open one, and only if that is of the code that runs here. It holds
the run lock while a call is under way; calls that meet another run, an observation or a second gateway, are missed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeVar

from harness.candidate import Pin
from harness.evidence.ledger import EvidenceLedger, RunSpec
from harness.evidence.rows import RunKind, Slot, Traffic
from harness.observation.run import utc_day
from harness.profiles import PAIRS, PATHS, Pair, PathKind, Profile
from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.adaptive import CardPresentationOrigin
from kexpr.clock import Clock, SystemClock
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.errors import ClaimRefused, KexprError
from kexpr.transport import ClientFactory

__all__ = ["WAIT_SECONDS", "EvidenceSink"]

WAIT_SECONDS: Final = 0.2
"""For other writers of the evidence, of the three seconds that an attempt has."""

T = TypeVar("T")

_LOST: Final = Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_LEDGER)
"""What the coordinator makes of an authority that cannot be used."""


class EvidenceSink:
    """Thread-safe; one a gateway and profile. After `open` nothing of it raises into an attempt."""

    def __init__(self, evidence: EvidenceLedger, profile: Profile, pin: Pin, clients: ClientFactory, clock: Clock):
        """Use `open`."""
        self._evidence = evidence
        self._profile = profile
        self._pin_digest = pin.digest
        self._clients = clients
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way = 0
        self._missed = 0

    @classmethod
    def open(
        cls, directory: Path, *, profile: Profile, pin: Pin, clients: ClientFactory, clock: Clock | None = None
    ) -> Self:
        """`directory` is the harness's `evidence`; `pin` is `harness.candidate.current_pin` for the wire in use;
        `clients` are the coordinator's, whose transport names the provider.

        Verifies the whole chain once, for seconds where it is long. Raises `LedgerFailed`.
        """
        clock = clock or SystemClock()
        evidence = EvidenceLedger.open(directory, clock, wait_seconds=WAIT_SECONDS)
        return cls(evidence, profile, pin, clients, clock)

    @property
    def missed(self) -> int:
        """Calls in shadow that left no intent or no outcome."""
        with self._lock:
            return self._missed

    def observe(self, authority: ArtifactAuthority) -> ArtifactAuthority:
        """The same authority, seen from claim to end."""
        return _Watched(authority, self)

    def close(self) -> None:
        """Once the gateway has ended its attempts: a call under way becomes an orphan."""
        self._evidence.close()

    def begin(self, authority: ArtifactAuthority) -> "_Call | None":
        """Make an intent durable; None when there can be none."""
        started = self._clock.monotonic()
        pair, path = Pair(self._profile, authority.surface), _path_of(authority)
        if pair not in PAIRS or path is None:
            self._miss()
            return None
        with self._lock:
            slot = self._guarded(lambda: self._intend(pair, path))
            return _Call(slot, started) if slot else None

    def end(self, call: "_Call", final: Finalized, requests: int) -> None:
        """Write how a call ended; the last one under way ends the run."""
        duration_ms = max(0, round((self._clock.monotonic() - call.started) * 1000))

        def write() -> None:
            self._evidence.outcome(call.slot, final.outcome, final.reason, duration_ms=duration_ms, requests=requests)

        with self._lock:
            self._guarded(write)
            self._under_way -= 1
            if not self._under_way:
                self._guarded(self._evidence.finish_run)

    def _intend(self, pair: Pair, path: PathKind) -> Slot:
        if not self._under_way:
            surfaces = tuple(pair for pair in PAIRS if pair.profile is self._profile)
            provider = self._clients.provider_kind
            spec = RunSpec(RunKind.OBSERVATION, provider, Mode.SHADOW, surfaces, Traffic.ORGANIC)
            self._evidence.begin_run(spec, self._pin_digest)
        try:
            slot = self._evidence.intent_organic(pair, path, utc_day(self._clock).isoformat())
        except KexprError:
            if not self._under_way:
                self._guarded(self._evidence.finish_run)
            raise
        self._under_way += 1
        return slot

    def _guarded(self, step: Callable[[], T]) -> T | None:
        """None instead of an error, which counts."""
        try:
            return step()
        except KexprError:
            self._missed += 1
            return None

    def _miss(self) -> None:
        with self._lock:
            self._missed += 1


@dataclass(frozen=True, slots=True)
class _Call:
    """`started` is a monotonic second."""

    slot: Slot
    started: float


class _Watched:
    """An artifact's authority whose shadow claim is written down before its request, and whose end after it."""

    def __init__(self, authority: ArtifactAuthority, sink: EvidenceSink) -> None:
        self._authority = authority
        self._sink = sink
        self._call: _Call | None = None

    @property
    def surface(self) -> Surface:
        return self._authority.surface

    def is_fresh(self) -> bool:
        return self._authority.is_fresh()

    def claim(self, mode: Mode) -> Ticket:
        try:
            ticket = self._authority.claim(mode)
        except ClaimRefused:
            raise
        except KexprError:
            self._begin(mode)
            self._end(_LOST, requests=0)
            raise
        self._begin(mode)
        return ticket

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        final = _LOST
        try:
            final = self._authority.finalize(ticket, ruling, cancellation)
        finally:
            self._end(final, ruling.requests)
        return final

    def _begin(self, mode: Mode) -> None:
        """Enabled traffic is no evidence of an observation."""
        self._call = self._sink.begin(self._authority) if mode is Mode.SHADOW else None

    def _end(self, final: Finalized, requests: int) -> None:
        if self._call is not None:
            self._sink.end(self._call, final, requests)


def _path_of(authority: ArtifactAuthority) -> PathKind | None:
    """The producer of a card is on its artifact; None for a host's own artifact that does not say."""
    paths = PATHS[authority.surface]
    if len(paths) == 1:
        return paths[0]
    origin = getattr(authority, "origin", None)
    return PathKind(origin.kind.value) if isinstance(origin, CardPresentationOrigin) else None

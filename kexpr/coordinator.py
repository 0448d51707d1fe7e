"""One attempt: admission, durable claim, one request, judgement, final outcome.

Theory of operation. A path binds an artifact to its authority and calls `present` with it, in a thread. Refusals of
admission cost nothing and leave no trace. After the claim is durable there is exactly one way on: the ruling of one
exchange goes to the authority's `finalize`, which decides under its own lock whether it still counts. The coordinator
never edits or sends; it hands back what is durable, and only the path publishes.

`present` runs in the calling thread, since every step of the exchange is clamped to the deadline. `run` is for asyncio
hosts: cancelling the awaiting task sets a flag that `finalize` reads, so the thread that goes on cannot publish. What
has to be done after a delivery goes through `complete`, in threads that no waiting call can take up.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from kexpr.attempt import ArtifactAuthority, Cancellation, Candidate, Finalized, Ruling
from kexpr.authority.steps import holds
from kexpr.clock import CLAIM_LEASE_MS, Clock, SystemClock
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, outcome_of
from kexpr.config import Active, Config, InvalidConfig, from_extra
from kexpr.errors import AuthorityFailed, ClaimRefused, KexprError, Rejected, UnknownPresentation
from kexpr.failpoints import reach
from kexpr.manifest import Manifest
from kexpr.telemetry import OutcomeRecord, Telemetry
from kexpr.transport import ClientFactory, CompletionRequest, check_environment, read_api_key
from kexpr.wire.contract import Contract
from kexpr.wire.contracts import CONTRACTS

if TYPE_CHECKING:
    from kexpr.state import State

__all__ = ["Coordinator", "Job", "Presented"]

CLIENT_TIMEOUT_S: Final = 3.0
"""The client's own timeout inside the claim's four seconds (contract, section 5)."""

DEFAULT_WORKERS: Final = 4

_WAITING_THREADS: Final = 28
"""For calls that wait, each holding a thread: a tap waits until its message's lock is free."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Job:
    """One artifact: its typed presentation, the host's canonical payload, its authority and its identity fields."""

    presentation: object = field(repr=False)
    canonical_payload: str = field(repr=False)
    authority: ArtifactAuthority = field(repr=False)
    identity: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Presented:
    """How it ended. `outcome` is None where the feature does not apply (disabled, flag off, not fresh).

    `claimed` says that a claim append was tried: the direct canonical edge is closed. `broken` says that the authority
    could not be used: nothing may be published that is not canonical, and whether that may be is the path's rule.
    `body` is present exactly when `outcome` is `selected`. `requests` is 0 or 1; `duration_ms` counts from the claim.
    """

    outcome: Outcome | None
    reason: Reason | None = None
    claimed: bool = False
    broken: bool = False
    body: str | None = field(default=None, repr=False)
    requests: int = 0
    duration_ms: int = 0


_REFUSAL_OF: Final = {Reason.PROVIDER_ENVIRONMENT: Outcome.CREDENTIAL_ENVIRONMENT_REJECTED}
"""A client that cannot be built for another reason closes admission: nothing is claimed for it."""

_NOT_APPLICABLE: Final = Presented(None)


def _unobserved(authority: ArtifactAuthority) -> ArtifactAuthority:
    return authority


def _nowhere_else(_identity: tuple[str, ...]) -> bool:
    return True


class _Gate:
    """Admission in memory: closed once, never opened again; knows what is running."""

    def __init__(self, workers: int) -> None:
        self._changed = threading.Condition()
        self._running: set[Cancellation] = set()
        self._workers = workers
        self._open = True

    def enter(self, cancellation: Cancellation) -> Outcome | None:
        """Take a worker's place, or say why not."""
        with self._changed:
            if not self._open:
                return Outcome.ADMISSION_CLOSED
            if len(self._running) >= self._workers:
                return Outcome.OVERLOADED
            self._running.add(cancellation)
            return None

    def leave(self, cancellation: Cancellation) -> None:
        with self._changed:
            self._running.discard(cancellation)
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._open = False

    def cancel_and_join(self, timeout_s: float) -> bool:
        """Cancel what runs and wait for it; True when nothing runs any more."""
        with self._changed:
            for cancellation in self._running:
                cancellation.set()
            return self._changed.wait_for(lambda: not self._running, timeout_s)


class Coordinator:
    """One per gateway process. Thread-safe. Builds no client and writes no row unless the configuration is active.

    `environ` is read at every attempt, since hosts reload their environment at run time.
    """

    def __init__(
        self,
        config: Config,
        *,
        identity_key: Callable[[], bytes],
        telemetry: Telemetry,
        clients: ClientFactory | None = None,
        clock: Clock | None = None,
        environ: Mapping[str, str] = os.environ,
        workers: int = DEFAULT_WORKERS,
        observe: Callable[[ArtifactAuthority], ArtifactAuthority] = _unobserved,
        fresh_elsewhere: Callable[[tuple[str, ...]], bool] = _nowhere_else,
    ) -> None:
        """`observe` may wrap the authority of an attempt that admission has passed, to see its claim and its end.

        `fresh_elsewhere(identity)`: whether the stores of the other contract say nothing of the artifact, asked before
        a claim; for a gateway whose configuration has changed its contract (contract, section 5, step 1). What it
        raises is a no.
        """
        if isinstance(config, InvalidConfig):
            telemetry.config_invalid(config.reason)
        self._active = config if isinstance(config, Active) else None
        self._contract: Contract | None = CONTRACTS[config.wire] if isinstance(config, Active) else None
        self._identity_key = identity_key
        self._telemetry = telemetry
        self._clients = clients or ClientFactory()
        self._clock = clock or SystemClock()
        self._environ = environ
        self._observe = observe
        self._fresh_elsewhere = fresh_elsewhere
        self._gate = _Gate(workers)
        self._threads = ThreadPoolExecutor(max_workers=workers + _WAITING_THREADS, thread_name_prefix="kexpr")
        self._steps = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="kexpr-step")

    @classmethod
    def from_extra(cls, extra: object, state: "State", telemetry: Telemetry) -> Self:
        """The coordinator of a gateway, from `platforms.telegram.extra`. Never raises on what it finds there."""
        return cls(from_extra(extra), identity_key=lambda: state.identity_key, telemetry=telemetry)

    @property
    def mode(self) -> Mode:
        return self._active.mode if self._active else Mode.DISABLED

    @property
    def provider_kind(self) -> ProviderKind:
        return self._clients.provider_kind

    def warm(self) -> None:
        """Import the SDK, build the TLS context and load the guard now, so that none eats a deadline. Idempotent.

        Raises `Rejected` (`provider.environment`, `provider.client`); an attempt would be refused for the same reason.
        """
        if self._active:
            self._clients.warm()
            self._contract_in_use().warm()

    def close_admission(self) -> None:
        """From now on every new attempt is `admission_closed`: canonical at once, no call."""
        self._gate.close()

    def join(self, timeout_s: float = CLAIM_LEASE_MS / 1000) -> bool:
        """Cancel the attempts that run and wait for them, at most `timeout_s`; True when none is left."""
        return self._gate.cancel_and_join(timeout_s)

    def present(self, job: Job, cancellation: Cancellation | None = None) -> Presented:
        """Run at most one attempt for the artifact, in this thread."""
        active = self._active
        if active is None or job.authority.surface not in active.surfaces:
            return _NOT_APPLICABLE
        flag = cancellation or Cancellation()
        refusal = self._gate.enter(flag)
        if refusal is not None:
            return self._not_attempted(job, refusal)
        try:
            return self._present_admitted(job, flag)
        finally:
            self._gate.leave(flag)

    async def run(
        self, call: Callable[[Cancellation], _Result], discard: Callable[[_Result], None] | None = None
    ) -> _Result:
        """Run `call` in a thread of ours and return what it returns.

        Cancelling the awaiting task sets the flag that `call` was given and does not wait: a call that has not begun
        never does, and the result of one that has goes to `discard`, in a thread of ours.
        """
        flag = Cancellation()
        handover: _Handover[_Result] = _Handover(
            lambda result: self._steps.submit(discard, result) if discard else None
        )
        try:
            return await asyncio.wrap_future(self._threads.submit(lambda: handover.offer(call(flag))))
        except asyncio.CancelledError:
            flag.set()
            handover.abandon()
            raise

    async def complete(self, call: Callable[[], _Result]) -> _Result:
        """Run a short `call` in a thread of ours to its end; a cancellation of the awaiting task is raised after it.

        It must not wait for what a call of `run` holds.
        """
        future = asyncio.wrap_future(self._steps.submit(call))
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancelled = error
        result = future.result()
        if cancelled is not None:
            raise cancelled
        return result

    async def present_async(self, job: Job) -> Presented:
        """`present` for asyncio hosts: the event loop never waits on a lock, a disk or the network."""
        return await self.run(lambda flag: self.present(job, flag))

    def _present_admitted(self, job: Job, flag: Cancellation) -> Presented:
        try:
            manifest = self._contract_in_use().manifest(job.presentation)
        except UnknownPresentation:
            return self._not_attempted(job, Outcome.UNKNOWN_PRESENTATION)
        if manifest.surface is not job.authority.surface or manifest.canonical_body != job.canonical_payload:
            return self._not_attempted(job, Outcome.UNKNOWN_PRESENTATION)
        started = self._clock.monotonic()
        try:
            fresh = job.authority.is_fresh()
        except AuthorityFailed:
            return self._broken(job, started, claimed=False)
        if not fresh or not holds(lambda: self._fresh_elsewhere(job.identity)):
            return _NOT_APPLICABLE
        refusal = self._environment_refusal()
        if refusal is not None:
            return self._not_attempted(job, refusal)
        identity_key = self._identity_key()
        if flag.is_set():
            return _NOT_APPLICABLE
        return self._attempt(replace(job, authority=self._observe(job.authority)), manifest, identity_key, flag)

    def _environment_refusal(self) -> Outcome | None:
        if read_api_key(self._environ) is None and not self._contract_in_use().claims_without_credential:
            return Outcome.CREDENTIAL_UNAVAILABLE
        try:
            check_environment(self._environ)
            self._clients.warm()
        except Rejected as rejected:
            return _REFUSAL_OF.get(rejected.reason, Outcome.ADMISSION_CLOSED)
        return None

    def _attempt(self, job: Job, manifest: Manifest, identity_key: bytes, flag: Cancellation) -> Presented:
        assert self._active is not None
        started = self._clock.monotonic()
        try:
            ticket = job.authority.claim(self._active.mode)
        except ClaimRefused:
            return _NOT_APPLICABLE
        except KexprError:
            return self._broken(job, started, claimed=True)
        reach("coordinator.claimed")
        exchange = _Exchange(self._clients, self._contract_in_use(), self._environ)
        ruling = exchange.rule(job, manifest, identity_key, ticket.mode, started)
        reach("coordinator.ruled")
        try:
            final = job.authority.finalize(ticket, ruling, flag)
        except KexprError:
            return self._broken(job, started, claimed=True, attempt_id=ticket.attempt_id, requests=exchange.requests)
        reach("coordinator.finalized")
        duration_ms = self._emit(job, final.outcome, final.reason, started, ticket.attempt_id)
        return Presented(
            final.outcome,
            final.reason,
            claimed=True,
            body=_publishable(final),
            requests=exchange.requests,
            duration_ms=duration_ms,
        )

    def _broken(self, job: Job, started: float, *, claimed: bool, attempt_id: str = "", requests: int = 0) -> Presented:
        outcome, reason = Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_LEDGER
        duration_ms = self._emit(job, outcome, reason, started, attempt_id)
        return Presented(outcome, reason, claimed=claimed, broken=True, requests=requests, duration_ms=duration_ms)

    def _contract_in_use(self) -> Contract:
        assert self._contract is not None
        return self._contract

    def _not_attempted(self, job: Job, outcome: Outcome) -> Presented:
        self._emit(job, outcome, None, self._clock.monotonic(), "")
        return Presented(outcome)

    def _emit(self, job: Job, outcome: Outcome, reason: Reason | None, started: float, attempt_id: str) -> int:
        duration_ms = max(0, round((self._clock.monotonic() - started) * 1000))
        self._telemetry.emit(
            OutcomeRecord(
                surface=job.authority.surface,
                mode=self.mode,
                contract_version=self._contract_in_use().version,
                outcome=outcome,
                reason=reason,
                duration_ms=duration_ms,
                attempt_id=attempt_id,
            )
        )
        return duration_ms


class _Exchange:
    """One request under one durable claim, judged. It never raises: what goes wrong becomes a ruling."""

    def __init__(self, clients: ClientFactory, contract: Contract, environ: Mapping[str, str]) -> None:
        self._clients = clients
        self._contract = contract
        self._environ = environ
        self.requests = 0

    def rule(self, job: Job, manifest: Manifest, identity_key: bytes, mode: Mode, started: float) -> Ruling:
        """`started` is the monotonic second at which the claim began; the lease runs from no earlier."""
        reason: Reason
        if self._contract.claims_without_credential and read_api_key(self._environ) is None:
            return Ruling(Outcome.CREDENTIAL_UNAVAILABLE)
        try:
            candidate = self._ask(job, manifest, identity_key, started)
        except Rejected as rejected:
            reason = rejected.reason
        except Exception:  # noqa: BLE001 - the one funnel: any fault of ours is canonical, and says nothing
            reason = Reason.INTERNAL
        else:
            won = Outcome.SELECTED if mode is Mode.ENABLED else Outcome.SHADOW_SELECTED
            return Ruling(won, candidate=candidate, requests=self.requests)
        return Ruling(outcome_of(reason), reason, requests=self.requests)

    def _ask(self, job: Job, manifest: Manifest, identity_key: bytes, started: float) -> Candidate:
        issued = self._contract.issue(manifest, identity_key, job.identity)
        request = CompletionRequest(
            instructions=self._contract.instructions,
            content=issued.content,
            parameters=self._contract.request_parameters,
        )
        check_environment(self._environ)
        api_key = read_api_key(self._environ)
        if api_key is None:
            raise Rejected(Reason.PROVIDER_ENVIRONMENT)
        client = self._clients.open(api_key, started + CLIENT_TIMEOUT_S)
        try:
            answer = client.complete(request)
        finally:
            self.requests = client.requests_sent
        reach("coordinator.answered")
        return self._contract.read(issued, answer)


class _Handover(Generic[_Result]):
    """Gives a thread's result to the waiting task or, once that has gone, to `discard`: exactly one of them."""

    def __init__(self, discard: Callable[[_Result], object]) -> None:
        self._discard = discard
        self._lock = threading.Lock()
        self._abandoned = False
        self._results: list[_Result] = []

    def offer(self, result: _Result) -> _Result:
        with self._lock:
            self._results.append(result)
            self._drop_if_abandoned()
        return result

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            self._drop_if_abandoned()

    def _drop_if_abandoned(self) -> None:
        if self._abandoned and self._results:
            self._discard(self._results.pop())


def _publishable(final: Finalized) -> str | None:
    return final.body if final.outcome is Outcome.SELECTED else None

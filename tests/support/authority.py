"""One artifact's authority in memory, with the real decision order: for tests of what drives authorities."""

import secrets
import threading

from kexpr.attempt import Cancellation, Finalized, Ruling, Ticket
from kexpr.clock import Clock, SystemClock, is_expired, lease_from
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, StoreFault


class MemoryArtifact:
    def __init__(self, surface: Surface, clock: Clock | None = None) -> None:
        self.surface = surface
        self.clock = clock or SystemClock()
        self.lock = threading.Lock()
        self.ticket: Ticket | None = None
        self.final: Finalized | None = None
        self.fail_claim = False
        self.fail_finalize = False

    def is_fresh(self) -> bool:
        return self.ticket is None

    def claim(self, mode: Mode) -> Ticket:
        with self.lock:
            if self.fail_claim:
                raise AuthorityFailed(StoreFault.INPUT_OUTPUT)
            if self.ticket is not None:
                raise ClaimRefused
            self.ticket = Ticket(secrets.token_hex(16), mode, lease_from(self.clock.now()))
            return self.ticket

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        with self.lock:
            if self.fail_finalize:
                raise AuthorityFailed(StoreFault.INPUT_OUTPUT)
            if self.final is None:
                self.final = self._decide(ticket, ruling, cancellation)
            return self.final

    def _decide(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        if is_expired(ticket.lease, self.clock.now()):
            return Finalized(Outcome.CANONICAL_CLAIM_EXPIRED, Reason.CLAIM_EXPIRED)
        if cancellation.is_set():
            return Finalized(Outcome.CANONICAL_TIMEOUT, Reason.CANCELLED)
        body = ruling.candidate.body() if ruling.candidate and ruling.outcome is Outcome.SELECTED else None
        return Finalized(ruling.outcome, ruling.reason, body)

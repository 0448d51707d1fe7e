"""The outcome journal: `absent -> attempt_started -> finalized` (authorities, "Outcome journal").

Theory of operation. The body is never in a row. `finalize` takes the artifact's lock, checks the deadline for the last
time, hands the body to the host (its durable writer, or the daily edit) and only then appends the terminal row; the
lock is held over all three. Whoever ends an expired claim needs the same lock, so that an owner who is late and an
observer who is early cannot both publish. The lock order is: artifact, ledger; the ledger's is not held over the host.

A claim that expired under an owner who died in between is looked up in the host's durable writer: a body that is there
under the attempt's id was written before the deadline, and is recovered as it is.
"""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol, Self

from kexpr.attempt import Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.finalise import EXPIRED, Asked, Claim, Decision, Found, decide
from kexpr.authority.journal_records import (
    COMMIT_FAILED,
    FINALIZED_OF,
    JOURNAL_FINALS,
    PUBLICATION_FAILED,
    RECORD_VERSION,
    JournalRecord,
    artifact_key,
    journal_outcome,
    next_state,
)
from kexpr.authority.leases import Leases, SidecarLeases
from kexpr.authority.records import deadline_of, from_record, to_record
from kexpr.authority.recovery import Absent, Durable, InFlight, Recovered
from kexpr.authority.steps import LedgerOpener, append, ask, new_attempt_id, require_attempting
from kexpr.authority.transitions import JOURNAL, JournalState
from kexpr.clock import Clock, lease_from
from kexpr.codes import ANCHOR_SURFACE_OF, AnchorSurface, JournalOutcome, Mode, Outcome, Surface
from kexpr.errors import ClaimRefused
from kexpr.failpoints import reach
from kexpr.file_system import REAL, FileSystem
from kexpr.ledger.journal import JOURNAL_NAME, JournalLedger
from kexpr.ledger.protocol import Row, Transaction
from kexpr.paths.locks import FilePublicationLocks, PublicationLocks
from kexpr.private_files import PrivateDirectory, genesis_digest, identity_key

__all__ = [
    "DIRECTORY",
    "Delivery",
    "DurableWriter",
    "EditDelivery",
    "JournalArtifact",
    "OutcomeJournal",
    "WriterDelivery",
]

DIRECTORY: Final = Path("data/korean-expression-v1")
"""Under the host's root."""


class DurableWriter(Protocol):
    """The host's own durable store of one artifact's selected body, bound to the artifact by the host.

    Both calls are made under the artifact's lock, must be bounded, and must not call back into the journal.
    """

    def write(self, attempt_id: str, body: str) -> None:
        """Make `body` durable as that attempt's before returning; raises when it is not known to be."""
        ...

    def read(self, attempt_id: str) -> str | None:
        """The exact durable body of that attempt, or None."""
        ...


class Delivery(Protocol):
    """What stands between a selected body and its terminal row."""

    @property
    def failure(self) -> Finalized: ...

    def deliver(self, attempt_id: str, body: str) -> None:
        """Raises when the body is not known to be delivered."""
        ...

    def durable_body(self, attempt_id: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class WriterDelivery:
    """Weekly and adaptive: the selected body is durable in the host's store first."""

    writer: DurableWriter = field(repr=False)

    @property
    def failure(self) -> Finalized:
        return COMMIT_FAILED

    def deliver(self, attempt_id: str, body: str) -> None:
        self.writer.write(attempt_id, body)

    def durable_body(self, attempt_id: str) -> str | None:
        return self.writer.read(attempt_id)


@dataclass(frozen=True, slots=True)
class EditDelivery:
    """Daily: the first successful edit comes first, and nothing is kept. `edit` must be bounded."""

    edit: Callable[[str], None] = field(repr=False)

    @property
    def failure(self) -> Finalized:
        return PUBLICATION_FAILED

    def deliver(self, attempt_id: str, body: str) -> None:
        self.edit(body)

    def durable_body(self, attempt_id: str) -> str | None:
        """An owner that died in its edit leaves it unknown; a canonical edit over it is allowed."""
        return None


class OutcomeJournal:
    """Thread-safe, and safe between processes of one host.

    Every method raises `AuthorityFailed` when the journal or the host's writer cannot be used; nothing is published
    then that is not canonical, and no call is made.
    """

    def __init__(
        self, open_ledger: LedgerOpener, leases: Leases, locks: PublicationLocks, *, identity_key: bytes
    ) -> None:
        """Use `open`, or give it a ledger, leases and locks that are to be closed with it."""
        self._key = identity_key
        self._records: dict[str, JournalRecord] = {}
        self._leases = leases
        self._locks = locks
        self._ledger = open_ledger(projection=self._fold)

    @classmethod
    def open(cls, root: Path, *, clock: Clock, files: FileSystem = REAL, locks: PublicationLocks | None = None) -> Self:
        """Open or create the journal in `root / "data/korean-expression-v1"`, and verify all of it.

        Raises `LedgerFailed` for a bad key, path, link, permission, chain or sequence: canonical, zero calls.
        """
        directory = Path(os.path.abspath(root)) / DIRECTORY  # noqa: PTH100 - resolve() would follow the last link
        with ExitStack() as on_error:
            private = PrivateDirectory.open(directory, files=files)
            leases = on_error.enter_context(closing(SidecarLeases(private)))
            key = identity_key(
                private, ledger_is_empty=not (private.exists(JOURNAL_NAME) and private.size(JOURNAL_NAME))
            )
            held = on_error.enter_context(closing(locks or FilePublicationLocks(directory)))
            opener = partial(JournalLedger.open, directory, clock=clock, files=files, genesis=genesis_digest(key))
            journal = cls(opener, leases, held, identity_key=key)
            on_error.pop_all()
        return journal

    @property
    def identity_key(self) -> bytes:
        return self._key

    def artifact_key(self, surface: AnchorSurface, *fields: str) -> str:
        """The opaque name of an artifact; see `journal_records.artifact_key`."""
        return artifact_key(self._key, surface, *fields)

    def artifact(self, surface: Surface, identity: tuple[str, ...], delivery: Delivery) -> "JournalArtifact":
        """What the coordinator drives. `identity`: the fields of contract section 8 after the surface."""
        key = self.artifact_key(ANCHOR_SURFACE_OF[surface], *identity)
        return JournalArtifact(self, key, surface, delivery)

    def hold(self, key: str) -> AbstractContextManager[None]:
        """The artifact's lock, for a canonical text of an artifact without a row: no claim is made meanwhile.

        Nothing but `state` may be called under it. Raises `LedgerFailed`.
        """
        return self._locks.hold("journal", key)

    def among_threads(self, key: str) -> AbstractContextManager[None]:
        """The artifact's lock among the threads of this process, for each of its deliveries; never fails.

        No other lock but the ledger's may be taken under it.
        """
        return self._locks.among_threads("journal", key)

    def claim(self, artifact: "JournalArtifact", mode: Mode) -> Ticket:
        """Make `attempt_started` durable. Raises `ClaimRefused` where there is a row."""
        require_attempting(mode)
        key, surface = artifact.key, ANCHOR_SURFACE_OF[artifact.surface]
        with self.hold(key), self._ledger.transaction() as transaction:
            if key in self._records or not artifact.may_claim():
                raise ClaimRefused
            state = next_state(JournalState.ABSENT, JournalOutcome.ATTEMPT_STARTED)
            lease = lease_from(transaction.now)
            attempt_id = new_attempt_id()
            record = JournalRecord(
                RECORD_VERSION,
                key,
                surface.value,
                mode.value,
                attempt_id,
                state.value,
                JournalOutcome.ATTEMPT_STARTED.value,
                transaction.now.utc_text(),
                deadline_of(lease),
                None,
            )
            self._leases.put(attempt_id, lease)
            reach("journal.leased")
            append(transaction, "journal.claim", to_record(record))
            return Ticket(attempt_id, mode, lease)

    def finalize(self, artifact: "JournalArtifact", ticket: Ticket, asked: Asked) -> Finalized:
        """See `ArtifactAuthority.finalize`. A selected body is delivered in here, between the check and the row."""
        with self.hold(artifact.key):
            with self._ledger.transaction() as transaction:
                decision = self._decide(transaction, artifact, asked)
                if decision.finalized.outcome is not Outcome.SELECTED and decision.is_new:
                    self._end(transaction, artifact.key, decision.finalized)
            if not decision.is_new or decision.finalized.outcome is not Outcome.SELECTED:
                return decision.finalized
            reach("journal.checked")
            finalized = _delivered(artifact.delivery, ticket.attempt_id, decision.finalized)
            reach("journal.delivered")
            with self._ledger.transaction() as transaction:
                self._end(transaction, artifact.key, finalized)
            return finalized

    def recover(self, artifact: "JournalArtifact") -> Recovered:
        """What is there, after ending an expired claim: what a path asks first, also after a restart."""
        found = self.state(artifact.key)
        if not isinstance(found, Absent) and found != InFlight(0):
            return self._with_body(artifact, found)
        if isinstance(found, Absent):
            return found
        with self.hold(artifact.key):
            self._end_expired(artifact.key, artifact.delivery)
            found = self.state(artifact.key)
        return self._with_body(artifact, found)

    def state(self, key: str) -> Recovered:
        """What is there, without a body; appends nothing, so that an expired claim still is `InFlight(0)`."""
        with self._ledger.transaction() as transaction:
            record = self._records.get(key)
            if record is None:
                return Absent()
            if record.state == JournalState.ATTEMPT_STARTED:
                return InFlight(self._remaining_ms(transaction, record))
            return Durable(FINALIZED_OF[JournalOutcome(record.outcome)].outcome, None, record.state)

    def outstanding(self) -> tuple[str, ...]:
        """Opaque attempt ids of claims without an outcome."""
        with self._ledger.transaction():
            return tuple(record.attempt_id for record in self._started())

    def outcomes(self) -> Counter[JournalOutcome]:
        """How many attempts stand at each outcome."""
        with self._ledger.transaction():
            return Counter(JournalOutcome(record.outcome) for record in self._records.values())

    def expire_outstanding(self, delivery_of: Callable[[AnchorSurface, str], Delivery]) -> int:
        """End every expired claim; how many were ended. `delivery_of(surface, artifact_key)` is asked for each."""
        with self._ledger.transaction():
            started = self._started()
        ended = 0
        for record in started:
            delivery = ask(delivery_of, AnchorSurface(record.surface), record.artifact_key)
            with self.hold(record.artifact_key):
                ended += self._end_expired(record.artifact_key, delivery)
        return ended

    def close(self) -> None:
        self._ledger.close()
        self._leases.close()
        self._locks.close()

    def _decide(self, transaction: Transaction, artifact: "JournalArtifact", asked: Asked) -> Decision:
        record = self._records.get(artifact.key)
        if record is None:
            return decide(Found(JOURNAL.name, JournalState.ABSENT, None, None, transaction.now), asked)
        final = None
        if record.state == JournalState.FINALIZED:
            final = FINALIZED_OF[JournalOutcome(record.outcome)]
        lease = None if final else self._leases.get(record.attempt_id)
        claim = Claim(record.attempt_id, Mode(record.mode), lease, artifact.surface, finals=JOURNAL_FINALS)
        return decide(Found(JOURNAL.name, record.state, claim, final, transaction.now), asked)

    def _end_expired(self, key: str, delivery: Delivery) -> bool:
        """Under the artifact's lock: end its claim if that has expired, with the durable body where there is one."""
        with self._ledger.transaction() as transaction:
            record = self._records[key]
            if record.state != JournalState.ATTEMPT_STARTED or self._remaining_ms(transaction, record):
                return False
        body = ask(delivery.durable_body, record.attempt_id) if record.mode == Mode.ENABLED else None
        finalized = EXPIRED if body is None else FINALIZED_OF[JournalOutcome.SELECTED]
        with self._ledger.transaction() as transaction:
            self._end(transaction, key, finalized)
        return True

    def _with_body(self, artifact: "JournalArtifact", found: Recovered) -> Recovered:
        """A selected outcome with the host's durable body; the journal has none of its own."""
        if not isinstance(found, Durable) or found.outcome is not Outcome.SELECTED:
            return found
        return replace(found, body=ask(artifact.delivery.durable_body, self._records[artifact.key].attempt_id))

    def _remaining_ms(self, transaction: Transaction, record: JournalRecord) -> int:
        lease = self._leases.get(record.attempt_id)
        return lease.remaining_ms(transaction.now) if lease else 0

    def _started(self) -> tuple[JournalRecord, ...]:
        return tuple(record for record in self._records.values() if record.state == JournalState.ATTEMPT_STARTED)

    def _end(self, transaction: Transaction, key: str, finalized: Finalized) -> None:
        record = self._records[key]
        outcome = journal_outcome(finalized)
        state = next_state(JournalState(record.state), outcome)
        now = transaction.now.utc_text()
        ended = replace(record, state=state.value, outcome=outcome.value, finalized_at_utc=now)
        append(transaction, "journal.finalize", to_record(ended))

    def _fold(self, row: Row) -> None:
        """One verified row; raises `IllegalHistory` or `IllegalTransition` for one that is not written here."""
        record = from_record(JournalRecord, row.record)
        record.require_legal_after(self._records.get(record.artifact_key))
        self._records[record.artifact_key] = record


def _always() -> bool:
    return True


def _delivered(delivery: Delivery, attempt_id: str, finalized: Finalized) -> Finalized:
    """Hand the body to the host; what it raises may carry content, and makes the attempt canonical."""
    assert finalized.body is not None
    try:
        delivery.deliver(attempt_id, finalized.body)
    except Exception:  # noqa: BLE001 - the host's exception may carry content
        return delivery.failure
    return finalized


@dataclass(frozen=True, slots=True)
class JournalArtifact:
    """One artifact, bound; an `ArtifactAuthority`."""

    journal: OutcomeJournal
    key: str = field(repr=False)
    surface: Surface
    delivery: Delivery = field(repr=False)
    may_claim: Callable[[], bool] = field(default=_always, repr=False)
    """Asked under the artifact's lock; False is a refusal without a row."""

    def is_fresh(self) -> bool:
        return isinstance(self.journal.state(self.key), Absent)

    def claim(self, mode: Mode) -> Ticket:
        return self.journal.claim(self, mode)

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        return self.journal.finalize(self, ticket, Asked(ticket.attempt_id, ruling, cancellation.is_set()))

    def recover(self) -> Recovered:
        return self.journal.recover(self)

"""One gateway process over the outcome journal alone, as of a host that keeps no state of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from kexpr.authority.journal import DIRECTORY, Delivery, EditDelivery, OutcomeJournal, WriterDelivery
from kexpr.clock import Clock
from kexpr.codes import ANCHOR_SURFACE_OF, AnchorSurface
from kexpr.errors import KexprError
from kexpr.paths.journal import JournalMessage, JournalPath
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import Preparation
from kexpr.testing.simulation.disk import ProcessFiles
from kexpr.testing.simulation.gateway import Gateway, Settings, Subject, coordinator_of
from kexpr.testing.simulation.host import Host, Tap
from kexpr.testing.simulation.invariants import RULES, Kind
from kexpr.testing.simulation.provider import Clients

__all__ = ["JOURNAL_HOME", "LEASE_PREFIX", "JournalGateway", "is_alive"]

_ROOT: Final = Path("/journal")
JOURNAL_HOME: Final = _ROOT / DIRECTORY
LEASE_PREFIX: Final = "lease-"


@dataclass(frozen=True, slots=True)
class _Writer:
    """The host's `DurableWriter` of one message."""

    host: Host
    message: str = field(repr=False)

    def write(self, attempt_id: str, body: str) -> None:
        self.host.write(self.message, attempt_id, body)

    def read(self, attempt_id: str) -> str | None:
        return self.host.written[self.message].get(attempt_id)


class JournalGateway(Gateway):
    """Opens the journal; raises `LedgerFailed` where that does. `keys` has the artifact keys of the subjects."""

    def __init__(
        self,
        settings: Settings,
        subjects: Sequence[Subject],
        *,
        files: ProcessFiles,
        clock: Clock,
        host: Host,
        clients: Clients,
        locks: PublicationLocks,
    ) -> None:
        self.settings = settings
        self._host = host
        self.journal = OutcomeJournal.open(_ROOT, clock=clock, files=files, locks=locks)
        self.coordinator = coordinator_of(settings, lambda: self.journal.identity_key, clients, clock)
        self._path = JournalPath(self.coordinator, self.journal)
        self.keys: Mapping[Subject, str] = {subject: self._key_of(subject) for subject in subjects}

    def sweep(self) -> None:
        deliveries = {key: self._delivery(subject) for subject, key in self.keys.items()}

        def delivery_of(_surface: AnchorSurface, key: str) -> Delivery:
            return deliveries[key]

        try:
            self.journal.expire_outstanding(delivery_of)
        except KexprError:
            return

    def is_stopped(self, subject: Subject) -> bool:
        """The journal has no hard stop."""
        return False

    def _preparation(self, subject: Subject, tap: Tap) -> Preparation:
        presentation = subject.presentation
        surface = RULES[subject.message.kind].surface
        message = JournalMessage(surface, _identity(subject), presentation, presentation.canonical_payload)
        if subject.message.kind is Kind.JOURNAL_DAILY and not tap.is_first_save:
            return self._path.replay_preparation(message)
        return self._path.preparation(message, self._delivery(subject))

    def _delivery(self, subject: Subject) -> Delivery:
        if subject.message.kind is Kind.JOURNAL_DAILY:
            return EditDelivery(self._host.deliver)
        return WriterDelivery(_Writer(self._host, subject.message.key))

    def _key_of(self, subject: Subject) -> str:
        surface = ANCHOR_SURFACE_OF[RULES[subject.message.kind].surface]
        return self.journal.artifact_key(surface, *_identity(subject))


def _identity(subject: Subject) -> tuple[str, ...]:
    return (subject.identity,)


def is_alive(sidecar: bytes | None, boot_id: str, boottime_ms: int) -> bool:
    """Whether a lease is alive for certain: of this boot, and before its deadline."""
    lease: dict[str, Any] = orjson.loads(sidecar) if sidecar else {"boot_id": None}
    return bool(lease["boot_id"] == boot_id and boottime_ms < lease["boottime_deadline_ms"])

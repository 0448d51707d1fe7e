"""The journal's record, its artifact key, and its outcomes in the words of the shared attempt."""

import hmac
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kexpr.attempt import Finalized
from kexpr.authority.finalise import EXPIRED
from kexpr.authority.records import require
from kexpr.authority.transitions import JOURNAL, JournalEvent, JournalState
from kexpr.codes import FINAL_OUTCOMES, AnchorSurface, JournalOutcome, Mode, Outcome, Reason

__all__ = [
    "COMMIT_FAILED",
    "FINALIZED_OF",
    "JOURNAL_FINALS",
    "PUBLICATION_FAILED",
    "RECORD_VERSION",
    "JournalRecord",
    "artifact_key",
    "journal_outcome",
    "next_state",
]

RECORD_VERSION: Final = 1

_KEY_DOMAIN: Final = b"korean-expression-artifact-v1\0"
_HEX_256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEX_128: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_UTC: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", re.ASCII)
_ATTEMPTING: Final = (Mode.SHADOW, Mode.ENABLED)
_MODE_OF_WINNER: Final = {JournalOutcome.SELECTED: Mode.ENABLED, JournalOutcome.SHADOW_SELECTED: Mode.SHADOW}

COMMIT_FAILED: Final = Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_WRITER)
PUBLICATION_FAILED: Final = Finalized(Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_PUBLICATION)

FINALIZED_OF: Final[Mapping[JournalOutcome, Finalized]] = MappingProxyType(
    {
        JournalOutcome.SELECTED: Finalized(Outcome.SELECTED),
        JournalOutcome.SHADOW_SELECTED: Finalized(Outcome.SHADOW_SELECTED),
        JournalOutcome.CREDENTIAL_UNAVAILABLE: Finalized(Outcome.CREDENTIAL_UNAVAILABLE),
        JournalOutcome.PROVIDER_ERROR: Finalized(Outcome.CANONICAL_PROVIDER_ERROR),
        JournalOutcome.TIMEOUT: Finalized(Outcome.CANONICAL_TIMEOUT),
        JournalOutcome.INVALID_RESPONSE: Finalized(Outcome.CANONICAL_INVALID),
        JournalOutcome.VALIDATION_REJECTED: Finalized(Outcome.CANONICAL_VALIDATION_REJECTED),
        JournalOutcome.COMMIT_FAILED: COMMIT_FAILED,
        JournalOutcome.PUBLICATION_FAILED: PUBLICATION_FAILED,
        JournalOutcome.CLAIM_EXPIRED_CANONICAL: EXPIRED,
    }
)
"""What a final row says. Two outcomes of the journal are one of the attempt; there the reason tells them apart."""

_OUTCOME_OF: Final = {
    final.outcome: code for code, final in FINALIZED_OF.items() if code is not JournalOutcome.PUBLICATION_FAILED
}

JOURNAL_FINALS: Final = FINAL_OUTCOMES | {Outcome.CREDENTIAL_UNAVAILABLE}
"""Here the credential is checked after the claim (contract, section 8)."""


def journal_outcome(finalized: Finalized) -> JournalOutcome:
    """The row's outcome of an attempt that ends like this."""
    if finalized.reason is Reason.COMMIT_PUBLICATION:
        return JournalOutcome.PUBLICATION_FAILED
    return _OUTCOME_OF[finalized.outcome]


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """The authority's part of a row. Times are for people; expiry is the lease sidecar's."""

    schema_version: int
    artifact_key: str = field(repr=False)
    surface: str
    mode: str
    attempt_id: str = field(repr=False)
    state: str
    outcome: str
    started_at_utc: str
    deadline_at_utc: str
    finalized_at_utc: str | None

    def require_legal_after(self, before: "JournalRecord | None") -> None:
        """Raises `IllegalHistory` or `IllegalTransition` unless the authority could have written this row next."""
        require(self.schema_version == RECORD_VERSION and self.surface in tuple(AnchorSurface))
        require(self.mode in _ATTEMPTING and self.outcome in tuple(JournalOutcome))
        require(_HEX_256.fullmatch(self.artifact_key) is not None and _HEX_128.fullmatch(self.attempt_id) is not None)
        times = (self.started_at_utc, self.deadline_at_utc, self.finalized_at_utc or self.started_at_utc)
        require(all(_UTC.fullmatch(time) for time in times))
        outcome = JournalOutcome(self.outcome)
        state = JournalState(before.state) if before else JournalState.ABSENT
        require(self.state == next_state(state, outcome))
        require((self.finalized_at_utc is None) is (outcome is JournalOutcome.ATTEMPT_STARTED))
        require(_MODE_OF_WINNER.get(outcome, self.mode) == self.mode)
        require(before is None or self._claim == before._claim)

    @property
    def _claim(self) -> tuple[str, ...]:
        return self.surface, self.mode, self.attempt_id, self.started_at_utc, self.deadline_at_utc


_EVENT_OF: Final = {
    JournalOutcome.ATTEMPT_STARTED: JournalEvent.CLAIM,
    JournalOutcome.CLAIM_EXPIRED_CANONICAL: JournalEvent.EXPIRE,
}


def next_state(state: JournalState, outcome: JournalOutcome) -> JournalState:
    """The state after a row with `outcome`; raises `IllegalTransition`.

    A recovered body ends in the same row as a selected one: which of the two it was is not recorded.
    """
    return JOURNAL.step(state, _EVENT_OF.get(outcome, JournalEvent.FINALIZE))


def artifact_key(identity_key: bytes, surface: AnchorSurface, *fields: str) -> str:
    """HMAC-SHA256 in hex over the domain and the length-prefixed UTF-8 NFC fields, the surface first (section 8).

    A length is 4 bytes, big-endian. Raises `UnicodeEncodeError` for a lone surrogate, which names no artifact.
    """
    mac = hmac.new(identity_key, _KEY_DOMAIN, "sha256")
    for text in (surface.value, *fields):
        data = unicodedata.normalize("NFC", text).encode()
        mac.update(len(data).to_bytes(4, "big") + data)
    return mac.hexdigest()

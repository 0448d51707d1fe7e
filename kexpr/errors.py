"""The exceptions of the library. None of them carries content: a code, or nothing.

KexprError
├── Rejected              an attempt ends canonical; `.reason` says why
├── IllegalTransition     an authority was asked for a step its table does not have; nothing was written
├── ClaimRefused          the artifact is not fresh (claimed or final already); nothing was written
├── UnknownPresentation   not a presentation the surfaces know: no attempt, canonical text
├── TelemetryRefused      a sink does not take a record; counted, never seen by an attempt
└── AuthorityFailed       an authority cannot be used; `.code` says why; edit and send nothing that is not canonical
    ├── LedgerFailed      the ledger under it: corrupt, torn, poisoned, not private, locked out
    └── HardStop          weekly: no rerender, no send, no retry, until an operator has looked
"""

from enum import StrEnum

from kexpr.codes import Reason

__all__ = [
    "AuthorityFailed",
    "ClaimRefused",
    "HardStop",
    "IllegalTransition",
    "KexprError",
    "LedgerFailed",
    "Rejected",
    "StoreFault",
    "UnknownPresentation",
]


class StoreFault(StrEnum):
    """Why an authority or its ledger cannot be used."""

    NOT_PRIVATE = "not_private"
    NOT_REGULAR = "not_regular"
    NETWORK_FILE_SYSTEM = "network_file_system"
    USED_AFTER_FORK = "used_after_fork"
    POISONED = "poisoned"
    CLOSED = "closed"
    TORN_TAIL = "torn_tail"
    CHAIN_BROKEN = "chain_broken"
    ROW_INVALID = "row_invalid"
    HEAD_MISMATCH = "head_mismatch"
    KEY_MISSING = "key_missing"
    KEY_MISMATCH = "key_mismatch"
    INPUT_OUTPUT = "input_output"
    LOCK_ORDER = "lock_order"
    LOCKED_OUT = "locked_out"
    UNKNOWN_EVENT = "unknown_event"
    PIN_CHANGED = "pin_changed"
    TOMBSTONE_AHEAD = "tombstone_ahead"
    TOMBSTONE_MISSING = "tombstone_missing"
    NOT_READY = "not_ready"
    HOST_PORT = "host_port"
    ILLEGAL_HISTORY = "illegal_history"
    NOT_INSTALLED = "not_installed"
    NOT_DURABLE = "not_durable"
    UNREACHABLE = "unreachable"
    COMMIT_UNKNOWN = "commit_unknown"
    FAILED_OVER = "failed_over"


class KexprError(Exception):
    """Base of every error the library raises on purpose."""


class Rejected(KexprError):
    """An answer, exchange or composition that must not be used."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class IllegalTransition(KexprError):
    """A step that the authority's transition table does not have."""

    def __init__(self, authority: str, state: str, event: str) -> None:
        super().__init__(f"{authority}: {event} is not a step from {state}")
        self.state = state
        self.event = event


class ClaimRefused(KexprError):
    """The artifact already has presentation state: no attempt."""

    def __init__(self) -> None:
        super().__init__("claim_refused")


class UnknownPresentation(KexprError):
    """A type, schema version, code or shape that the surfaces do not know: no attempt (contract, section 2)."""

    def __init__(self) -> None:
        super().__init__("unknown_presentation")


class AuthorityFailed(KexprError):
    """An authority that cannot be used now."""

    def __init__(self, code: StoreFault) -> None:
        super().__init__(code.value)
        self.code = code


class LedgerFailed(AuthorityFailed):
    """The ledger under an authority cannot be used."""


class HardStop(AuthorityFailed):
    """Nothing more may be rendered, sent or retried for this task."""


class TelemetryRefused(KexprError):
    """A record outside the closed sets, or a place that is not private: the sink writes nothing."""

    def __init__(self) -> None:
        super().__init__("telemetry_refused")

"""Every closed set of codes that may leave the process.

Outcome and reason codes, and a duration, are the only things about an attempt that leave (contract, sections 5 and 7).
Nothing here carries content: a code is a constant of this file.
"""

from enum import StrEnum
from typing import Final

__all__ = [
    "ANCHOR_SURFACE_OF",
    "FINAL_OUTCOMES",
    "NOT_ATTEMPTED",
    "OUTCOME_OF_FAMILY",
    "AnchorSurface",
    "Invalid",
    "JournalOutcome",
    "Mode",
    "Outcome",
    "ProviderKind",
    "Reason",
    "SlotKind",
    "Surface",
    "WireVersion",
    "outcome_of",
]


class Mode(StrEnum):
    """`mode` of the feature block (contract, section 1)."""

    DISABLED = "disabled"
    SHADOW = "shadow"
    ENABLED = "enabled"


class Surface(StrEnum):
    """The four surfaces by their configuration flag; `wire` is the name a provider sees (contract, section 2)."""

    DAILY = "daily"
    WEEKLY = "weekly"
    ADAPTIVE_DUALCOACHTEST = "adaptive_dualcoachtest"
    ADAPTIVE_PHYSIQUE = "adaptive_physique"

    @property
    def wire(self) -> str:
        return _WIRE_NAME[self]


_WIRE_NAME: Final = {
    Surface.DAILY: "daily.v1",
    Surface.WEEKLY: "weekly.v1",
    Surface.ADAPTIVE_DUALCOACHTEST: "adaptive.dualcoachtest.card.v1",
    Surface.ADAPTIVE_PHYSIQUE: "adaptive.physique.card.v1",
}


class AnchorSurface(StrEnum):
    """The three surfaces of the anchor-grammar contract, in its configuration, on its wire and in its journal."""

    DAILY = "daily"
    WEEKLY = "weekly"
    ADAPTIVE_OPERATOR = "adaptive_operator"


ANCHOR_SURFACE_OF: Final = {
    Surface.DAILY: AnchorSurface.DAILY,
    Surface.WEEKLY: AnchorSurface.WEEKLY,
    Surface.ADAPTIVE_DUALCOACHTEST: AnchorSurface.ADAPTIVE_OPERATOR,
    Surface.ADAPTIVE_PHYSIQUE: AnchorSurface.ADAPTIVE_OPERATOR,
}


class SlotKind(StrEnum):
    """What a slot is for; caps, alias counts and the words allowed in it depend on this alone."""

    DAILY_STATUS = "daily.status"
    WEEKLY_INTERPRETATION = "weekly.interpretation"
    WEEKLY_RATIONALE = "weekly.rationale"
    DUAL_JUDGMENT = "dual.judgment"
    DUAL_REASON = "dual.reason"
    PHYSIQUE_NOTICE = "physique.notice"


class WireVersion(StrEnum):
    """The wires: `schema_version` 1 and 2 of the feature block select the first two (contract, section 3), the third is
    also its own schema version and the wire of the anchor grammar (section 8).
    """

    KEXP_1 = "kexp-wire-1"
    KEXP_2 = "kexp-wire-2"
    ANCHOR_GRAMMAR = "korean-expression-v3"


class ProviderKind(StrEnum):
    """Derived from the transport actually built, never from a flag (contract, section 6)."""

    LIVE = "live"
    REHEARSAL = "rehearsal"


class Invalid(StrEnum):
    """Why a feature block is invalid (contract, section 1)."""

    NOT_A_MAPPING = "not_a_mapping"
    NON_STRING_KEY = "non_string_key"
    MISSING_KEY = "missing_key"
    UNKNOWN_KEY = "unknown_key"
    WRONG_TYPE = "wrong_type"
    WRONG_LITERAL = "wrong_literal"
    UNSUPPORTED_SCHEMA_VERSION = "unsupported_schema_version"
    MODE_INVALID = "mode_invalid"
    PROVIDER_FORBIDDEN = "provider_forbidden"
    NO_SURFACE_ENABLED = "no_surface_enabled"
    SURFACE_ENABLED_WHILE_DISABLED = "surface_enabled_while_disabled"


class Outcome(StrEnum):
    """How one presentation ended: a final outcome is a durable row, a not-attempted one costs nothing (section 5)."""

    SELECTED = "selected"
    SHADOW_SELECTED = "shadow_selected"
    CANONICAL_PROVIDER_ERROR = "canonical_provider_error"
    CANONICAL_TIMEOUT = "canonical_timeout"
    CANONICAL_INVALID = "canonical_invalid"
    CANONICAL_VALIDATION_REJECTED = "canonical_validation_rejected"
    CANONICAL_CLAIM_EXPIRED = "canonical_claim_expired"
    CANONICAL_COMMIT_ERROR = "canonical_commit_error"

    ADMISSION_CLOSED = "admission_closed"
    OVERLOADED = "overloaded"
    CREDENTIAL_UNAVAILABLE = "credential_unavailable"
    CREDENTIAL_ENVIRONMENT_REJECTED = "credential_environment_rejected"
    UNKNOWN_PRESENTATION = "unknown_presentation"


NOT_ATTEMPTED: Final = frozenset(
    {
        Outcome.ADMISSION_CLOSED,
        Outcome.OVERLOADED,
        Outcome.CREDENTIAL_UNAVAILABLE,
        Outcome.CREDENTIAL_ENVIRONMENT_REJECTED,
        Outcome.UNKNOWN_PRESENTATION,
    }
)
FINAL_OUTCOMES: Final = frozenset(Outcome) - NOT_ATTEMPTED


class JournalOutcome(StrEnum):
    """The outcomes of the anchor-grammar contract (contract, section 8); all but the first are final."""

    ATTEMPT_STARTED = "attempt_started"
    SELECTED = "selected"
    SHADOW_SELECTED = "shadow_selected"
    CREDENTIAL_UNAVAILABLE = "credential_unavailable"
    PROVIDER_ERROR = "provider_error"
    TIMEOUT = "timeout"
    INVALID_RESPONSE = "invalid_response"
    VALIDATION_REJECTED = "validation_rejected"
    COMMIT_FAILED = "commit_failed"
    PUBLICATION_FAILED = "publication_failed"
    CLAIM_EXPIRED_CANONICAL = "claim_expired_canonical"


class Reason(StrEnum):
    """Why an attempt was not selected. The part before the first dot is its family and decides the outcome."""

    # The guard (guard-policy: one code a category).
    GUARD_MEDICAL = "guard.medical"
    GUARD_SAFETY = "guard.safety"
    GUARD_EVIDENTIAL = "guard.evidential"
    GUARD_QUALITY = "guard.quality"
    GUARD_DECISION = "guard.decision"
    GUARD_WORKFLOW = "guard.workflow"
    GUARD_NEGATION = "guard.negation"
    GUARD_NUMERAL = "guard.numeral"
    GUARD_DATE = "guard.date"
    GUARD_IDENTITY = "guard.identity"
    GUARD_META = "guard.meta"
    GUARD_VOCABULARY = "guard.vocabulary"  # a word that is no discourse and has no category of its own

    # The form of one slot's text.
    FORM_EMPTY = "form.empty"
    FORM_TOO_LONG = "form.too_long"
    FORM_NOT_NFC = "form.not_nfc"
    FORM_CHARACTER = "form.character"
    FORM_JAMO = "form.jamo"
    FORM_HANJA = "form.hanja"
    FORM_SPACING = "form.spacing"
    FORM_PUNCTUATION = "form.punctuation"
    FORM_RESPELLING = "form.respelling"
    FORM_PLACEHOLDER_MISSING = "form.placeholder_missing"
    FORM_PLACEHOLDER_REPEATED = "form.placeholder_repeated"
    FORM_PLACEHOLDER_ORDER = "form.placeholder_order"
    FORM_PLACEHOLDER_UNKNOWN = "form.placeholder_unknown"
    FORM_PLACEHOLDER_GLUED = "form.placeholder_glued"
    FORM_PLACEHOLDER_DETACHED = "form.placeholder_detached"
    FORM_PLACEHOLDER_UNCLOSED = "form.placeholder_unclosed"
    FORM_PARTICLE = "form.particle"
    FORM_NOOP = "form.noop"
    FORM_GRAMMAR = "form.grammar"  # something between the anchors that the closed grammar does not have

    # The composed message.
    COMPOSE_FROZEN_CHANGED = "compose.frozen_changed"
    COMPOSE_EXPANSION = "compose.expansion"
    COMPOSE_NUMERIC_TOKEN = "compose.numeric_token"
    COMPOSE_EXPANDED_CAP = "compose.expanded_cap"
    COMPOSE_UTF16_BOUND = "compose.utf16_bound"

    # Strict JSON of the completion envelope and of the answer in it.
    JSON_SIZE = "json.size"
    JSON_BOM = "json.bom"
    JSON_ENCODING = "json.encoding"
    JSON_SYNTAX = "json.syntax"
    JSON_DEPTH = "json.depth"
    JSON_DUPLICATE_KEY = "json.duplicate_key"
    JSON_NUMBER = "json.number"
    JSON_SURROGATE = "json.surrogate"

    # The answer against the issued wire.
    RESPONSE_KEYS = "response.keys"
    RESPONSE_TYPE = "response.type"
    RESPONSE_VERSION = "response.version"
    RESPONSE_SURFACE = "response.surface"
    RESPONSE_ARTIFACT_KEY = "response.artifact_key"
    RESPONSE_SLOTS = "response.slots"
    RESPONSE_ALIAS = "response.alias"

    # The chat completion around the answer.
    COMPLETION_MALFORMED = "completion.malformed"
    COMPLETION_CHOICES = "completion.choices"
    COMPLETION_FINISH_REASON = "completion.finish_reason"
    COMPLETION_REFUSAL = "completion.refusal"
    COMPLETION_TOOL_CALL = "completion.tool_call"
    COMPLETION_NO_CONTENT = "completion.no_content"

    # Request and token budget.
    BUDGET_REQUEST_BYTES = "budget.request_bytes"
    BUDGET_USAGE_MISSING = "budget.usage_missing"
    BUDGET_PROMPT_TOKENS = "budget.prompt_tokens"
    BUDGET_COMPLETION_TOKENS = "budget.completion_tokens"
    BUDGET_TOTAL_TOKENS = "budget.total_tokens"

    # HTTP and the network below it.
    HTTP_REDIRECT = "http.redirect"
    HTTP_CLIENT_ERROR = "http.client_error"
    HTTP_SERVER_ERROR = "http.server_error"
    HTTP_UNEXPECTED_STATUS = "http.unexpected_status"
    HTTP_CONTENT_TYPE = "http.content_type"
    HTTP_CONTENT_ENCODING = "http.content_encoding"
    HTTP_HEAD_SIZE = "http.head_size"
    HTTP_BODY_SIZE = "http.body_size"
    HTTP_PROTOCOL = "http.protocol"
    NET_CONNECT = "net.connect"
    NET_TLS = "net.tls"
    NET_RESET = "net.reset"
    NET_NOT_PINNED = "net.not_pinned"
    NET_SECOND_REQUEST = "net.second_request"
    PROVIDER_CLIENT = "provider.client"
    PROVIDER_ENVIRONMENT = "provider.environment"

    # Time.
    TIMEOUT_DEADLINE = "timeout.deadline"
    TIMEOUT_STEP = "timeout.step"
    CANCELLED = "cancelled"

    # The authority.
    CLAIM_EXPIRED = "claim.expired"
    COMMIT_PIN_CHANGED = "commit.pin_changed"
    COMMIT_CANDIDATE_INVALID = "commit.candidate_invalid"
    COMMIT_LEDGER = "commit.ledger"
    COMMIT_BYTES_CHANGED = "commit.bytes_changed"
    COMMIT_WRITER = "commit.writer"  # the host's durable writer (anchor grammar)
    COMMIT_PUBLICATION = "commit.publication"  # the edit that its outcome waits for (anchor grammar, daily)

    # One funnel for a fault of our own: never content, never a traceback.
    INTERNAL = "internal"


OUTCOME_OF_FAMILY: Final = {
    "guard": Outcome.CANONICAL_VALIDATION_REJECTED,
    "form": Outcome.CANONICAL_VALIDATION_REJECTED,
    "compose": Outcome.CANONICAL_VALIDATION_REJECTED,
    "json": Outcome.CANONICAL_INVALID,
    "response": Outcome.CANONICAL_INVALID,
    "completion": Outcome.CANONICAL_INVALID,
    "budget": Outcome.CANONICAL_INVALID,
    "http": Outcome.CANONICAL_PROVIDER_ERROR,
    "net": Outcome.CANONICAL_PROVIDER_ERROR,
    "provider": Outcome.CANONICAL_PROVIDER_ERROR,
    "timeout": Outcome.CANONICAL_TIMEOUT,
    "cancelled": Outcome.CANONICAL_TIMEOUT,
    "claim": Outcome.CANONICAL_CLAIM_EXPIRED,
    "commit": Outcome.CANONICAL_COMMIT_ERROR,
    "internal": Outcome.CANONICAL_INVALID,
}


def outcome_of(reason: Reason) -> Outcome:
    """The one final outcome a reason belongs to."""
    return OUTCOME_OF_FAMILY[reason.partition(".")[0]]

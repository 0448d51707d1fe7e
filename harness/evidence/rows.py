"""The rows of the evidence ledger: closed codes, integers, dates and digests, and nothing else.

Each row type is a frozen record. Every field name has one decoder, whatever the row, so that a value is checked alike
when it is written and when it is read again. `decode(encode(row)) == row`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeVar

from harness.candidate import UNKNOWN_COMMIT, Candidate, Pin
from harness.profiles import PAIRS, PATHS, Pair, PathKind, Profile, pair_of
from kexpr.codes import NOT_ATTEMPTED, Mode, Outcome, ProviderKind, Reason, Surface, WireVersion, outcome_of
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Record

__all__ = [
    "APPROVER_PATTERN",
    "EVIDENCE_SCHEMA_VERSION",
    "ORGANIC_ORDINALS",
    "ApprovalRow",
    "AuditRow",
    "Check",
    "CheckRow",
    "EndReason",
    "EndRow",
    "EvidenceRow",
    "IntentRow",
    "MirrorRow",
    "MirrorTally",
    "OutcomeRow",
    "PinRow",
    "RunKind",
    "RunRow",
    "Slot",
    "Traffic",
    "decode",
    "encode",
]

EVIDENCE_SCHEMA_VERSION: Final = 1
APPROVER_PATTERN: Final = "[a-z0-9][a-z0-9_-]{2,31}"
"""An opaque name of a person, never the person's own."""

ORGANIC_ORDINALS: Final = 500_000_000
"""No synthetic manifest has so high an ordinal."""

_NO_DATE: Final = "-"


class RunKind(StrEnum):
    PROOF = "proof"
    OBSERVATION = "observation"


class Traffic(StrEnum):
    """`organic`: a gateway's own messages of a test profile, written by `harness.sink`."""

    SYNTHETIC = "synthetic"
    ORGANIC = "organic"


class Check(StrEnum):
    """What preflight checks, and writes down, once a run."""

    BUDGET = "budget"
    GUARD = "guard"
    CANARIES = "canaries"


class EndReason(StrEnum):
    """Why a candidate ended."""

    CALL_FAILED = "call_failed"
    CALL_ORPHANED = "call_orphaned"
    CALL_EXTRA = "call_extra"
    WINDOW_ELAPSED = "window_elapsed"
    PIN_CHANGED = "pin_changed"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Slot:
    """One call that may be made once: its key is unique in the evidence and durable before any request.

    `date` is the UTC day (`YYYY-MM-DD`) of an observation and `-` in a proof; `ordinal` names the synthetic manifest,
    and from `ORGANIC_ORDINALS` on it counts the organic calls of a day.
    """

    kind: RunKind
    pair: Pair
    path: PathKind
    ordinal: int
    date: str = _NO_DATE

    def key(self, candidate_id: str) -> str:
        return f"{candidate_id}/{self.kind}/{self.pair}/{self.date}/{self.ordinal}"


_REMEMBERED: Final = 64
"""Values that are the same in many rows in a row."""


@lru_cache(_REMEMBERED)
def _slot_stem(
    candidate: str, kind: RunKind, profile: Profile, surface: Surface, path: PathKind, date: str
) -> str | None:
    """What stands before the ordinal in the slots of such calls; None where there can be no such call."""
    pair = Pair(profile, surface)
    dated = date != _NO_DATE
    if pair not in PAIRS or path not in PATHS[surface] or dated != (kind is RunKind.OBSERVATION):
        return None
    return Slot(kind, pair, path, 0, date).key(candidate).removesuffix("0")


@dataclass(frozen=True, slots=True)
class PinRow:
    """First row of each candidate: what counts as passing is fixed before the first call."""

    candidate: str
    restart: int
    pin_digest: str
    pin: Pin

    @classmethod
    def of(cls, candidate: Candidate, pin: Pin) -> "PinRow":
        return cls(candidate.id, candidate.restart, candidate.pin_digest, pin)

    def is_consistent(self) -> bool:
        return self.pin_digest == self.pin.digest and self.candidate == Candidate(self.pin_digest, self.restart).id


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run starts, or goes on after a crash between two calls (`resumed`). `surfaces` are its pairs, in order."""

    candidate: str
    run: int
    resumed: bool
    run_kind: RunKind
    provider: ProviderKind
    traffic: Traffic
    mode: Mode
    surfaces: tuple[Pair, ...]

    def is_consistent(self) -> bool:
        ordered = tuple(pair for pair in PAIRS if pair in self.surfaces)
        return bool(self.surfaces) and self.surfaces == ordered and self.mode is not Mode.DISABLED


@dataclass(frozen=True, slots=True)
class IntentRow:
    """A call is about to be made. It is never made again, whatever becomes of it."""

    candidate: str
    run: int
    slot: str
    run_kind: RunKind
    profile: Profile
    surface: Surface
    path: PathKind
    ordinal: int
    date: str
    provider: ProviderKind
    traffic: Traffic
    mode: Mode

    @classmethod
    def of(cls, run: RunRow, slot: Slot) -> "IntentRow":
        return cls(
            candidate=run.candidate,
            run=run.run,
            slot=slot.key(run.candidate),
            run_kind=slot.kind,
            profile=slot.pair.profile,
            surface=slot.pair.surface,
            path=slot.path,
            ordinal=slot.ordinal,
            date=slot.date,
            provider=run.provider,
            traffic=run.traffic,
            mode=run.mode,
        )

    @property
    def pair(self) -> Pair:
        return pair_of(self.profile, self.surface)

    @property
    def call(self) -> Slot:
        return Slot(self.run_kind, self.pair, self.path, self.ordinal, self.date)

    def is_consistent(self) -> bool:
        stem = _slot_stem(self.candidate, self.run_kind, self.profile, self.surface, self.path, self.date)
        return stem is not None and self.slot == f"{stem}{self.ordinal}"


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """How the call of an intent ended, how long it took and whether a request was sent (0 or 1)."""

    candidate: str
    run: int
    slot: str
    outcome: Outcome
    reason: Reason | None
    duration_ms: int
    requests: int

    def is_consistent(self) -> bool:
        refused = self.outcome in NOT_ATTEMPTED
        return self.requests <= (0 if refused else 1) and (
            self.reason is None or outcome_of(self.reason) is self.outcome
        )


@dataclass(frozen=True, slots=True)
class EndRow:
    """The candidate takes no further call."""

    candidate: str
    end_reason: EndReason

    def is_consistent(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check of preflight, before the calls that it lets through."""

    candidate: str
    check: Check
    passed: bool

    def is_consistent(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A strict audit of a profile's configuration file. It outlives candidates: it is about the gateway."""

    profile: Profile
    config_digest: str
    ready: bool

    def is_consistent(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """A person approved a phase for one pair, having read the report of `report_digest`."""

    candidate: str
    profile: Profile
    surface: Surface
    phase: str
    report_digest: str
    config_digest: str
    approver: str

    @property
    def pair(self) -> Pair:
        return Pair(self.profile, self.surface)

    def is_consistent(self) -> bool:
        return self.pair in PAIRS


@dataclass(frozen=True, slots=True)
class MirrorTally:
    """Rows of an audit mirror for one surface and UTC day, and those of them that count against readiness."""

    surface: Surface
    date: str
    rows: int
    failures: int


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """What was new in a profile's audit mirror of one `month` (`YYYY-MM`) since the row before.

    `lines` were read of the file until now, and `mirror_digest` is of exactly those lines, so that an ingest done twice
    counts once and a rewritten mirror shows.
    """

    profile: Profile
    month: str
    lines: int
    mirror_digest: str
    tallies: tuple[MirrorTally, ...]

    def is_consistent(self) -> bool:
        return all(
            Pair(self.profile, tally.surface) in PAIRS
            and tally.date.startswith(self.month)
            and tally.failures <= tally.rows
            for tally in self.tallies
        )


EvidenceRow = PinRow | RunRow | IntentRow | OutcomeRow | EndRow | CheckRow | AuditRow | ApprovalRow | MirrorRow

_TYPES: Final[Mapping[str, type[EvidenceRow]]] = MappingProxyType(
    {
        "pin": PinRow,
        "run": RunRow,
        "intent": IntentRow,
        "outcome": OutcomeRow,
        "end": EndRow,
        "check": CheckRow,
        "audit": AuditRow,
        "approval": ApprovalRow,
        "mirror": MirrorRow,
    }
)
_NAMES: Final = {cls: name for name, cls in _TYPES.items()}

Decoder = Callable[[Any], Any]
T = TypeVar("T")


class _Malformed(Exception):
    """A value outside its closed set."""


def _code(codes: type[StrEnum]) -> Decoder:
    """Raises `KeyError` or `TypeError` for anything else; a million rows are decoded, and this costs no frame."""
    return {str(code): code for code in codes}.__getitem__


def _text(pattern: str) -> Decoder:
    matches = re.compile(pattern, re.ASCII).fullmatch

    def decoder(value: Any) -> str:
        if type(value) is not str or not matches(value):
            raise _Malformed
        return value

    return decoder


def _integer(minimum: int, maximum: int) -> Decoder:
    def decoder(value: Any) -> int:
        if type(value) is not int or not minimum <= value <= maximum:
            raise _Malformed
        return value

    return decoder


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _Malformed
    return value


def _schema_version(value: Any) -> int | str:
    """1 and 2 of open prose, or the name of the anchor grammar."""
    if type(value) not in (int, str) or value not in (1, 2, WireVersion.ANCHOR_GRAMMAR.value):
        raise _Malformed
    version: int | str = value
    return version


def _optional(decoder: Decoder) -> Decoder:
    return lambda value: None if value is None else decoder(value)


_PAIR_OF: Final = {str(pair): pair for pair in PAIRS}


def _pairs(value: Any) -> tuple[Pair, ...]:
    if type(value) is not list or any(type(item) is not str or item not in _PAIR_OF for item in value):
        raise _Malformed
    return tuple(_PAIR_OF[item] for item in value)


def _tallies(value: Any) -> tuple[MirrorTally, ...]:
    if type(value) is not list:
        raise _Malformed
    return tuple(_record_of(MirrorTally, item) for item in value)


def _record_of(cls: type[T], value: Any) -> T:
    names, decoders = _FIELDS[cls]
    if type(value) is not dict or value.keys() != names:
        raise _Malformed
    return cls(*[decoder(value[name]) for name, decoder in decoders])


_COUNT_MAX: Final = 10**9
_DIGEST: Final = _text("[0-9a-f]{64}")
_CANDIDATE: Final = "[0-9a-f]{16}-(?:0|[1-9][0-9]{0,5})"
_DATE: Final = (
    r"-|20(?:[0-9]{2}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[02468][048]|[13579][26])-02-29)"
)
"""None, or a day that there is, since readiness counts days; until 2099 every fourth year has a February 29."""

_DECODERS: Final[Mapping[str, Decoder]] = {
    "approver": _text(APPROVER_PATTERN),
    "candidate": _text(_CANDIDATE),
    "check": _code(Check),
    "commit": _text(f"[0-9a-f]{{40}}|{UNKNOWN_COMMIT}"),
    "config_digest": _DIGEST,
    "config_schema_version": _schema_version,
    "date": _text(_DATE),
    "dirty": _boolean,
    "duration_ms": _integer(0, _COUNT_MAX),
    "end_reason": _code(EndReason),
    "failures": _integer(0, _COUNT_MAX),
    "generator_digest": _DIGEST,
    "generator_seed": _integer(0, 2**63 - 1),
    "generator_version": _text("[a-z0-9][a-z0-9.-]{0,31}"),
    "instructions_digest": _DIGEST,
    "lexicon_digest": _DIGEST,
    "lines": _integer(0, _COUNT_MAX),
    "mirror_digest": _DIGEST,
    "mode": _code(Mode),
    "model": _text("[a-z0-9][a-z0-9.-]{0,31}"),
    "month": _text("20[0-9]{2}-(?:0[1-9]|1[0-2])"),
    "ordinal": _integer(0, _COUNT_MAX),
    "outcome": _code(Outcome),
    "package_version": _text("[0-9][0-9a-z.+-]{0,31}"),
    "passed": _boolean,
    "path": _code(PathKind),
    "phase": _text("P[0-5]"),
    "pin": lambda value: _record_of(Pin, value),
    "pin_digest": _DIGEST,
    "policy_digest": _DIGEST,
    "profile": _code(Profile),
    "provider": _code(ProviderKind),
    "provider_digest": _DIGEST,
    "ready": _boolean,
    "reason": _optional(_code(Reason)),
    "report_digest": _DIGEST,
    "requests": _integer(0, 1),
    "restart": _integer(0, 999_999),
    "resumed": _boolean,
    "rows": _integer(0, _COUNT_MAX),
    "run": _integer(1, _COUNT_MAX),
    "run_kind": _code(RunKind),
    "slot": _text(_CANDIDATE + "/[a-z]+/[a-z-]+/[a-z_]+/(?:" + _DATE + ")/(?:0|[1-9][0-9]*)"),
    "surface": _code(Surface),
    "surfaces": _pairs,
    "tallies": _tallies,
    "traffic": _code(Traffic),
    "wire_version": _code(WireVersion),
}

_FIELDS: Final[Mapping[type[Any], tuple[frozenset[str], tuple[tuple[str, Decoder], ...]]]] = {
    cls: (
        frozenset(item.name for item in fields(cls)),
        tuple((item.name, _DECODERS[item.name]) for item in fields(cls)),
    )
    for cls in (*_TYPES.values(), Pin, MirrorTally)
}
"""The names of a record, and what decodes each of its fields in order."""


_HEADING: Final = frozenset({"type", "schema_version"})
_SLOT: Final = _DECODERS["slot"]
_COUNT: Final = _integer(0, _COUNT_MAX)

# Nearly all rows are calls, and in these fields nearly all are like one before.
_INTENT_RECURRING: Final = tuple(item.name for item in fields(IntentRow) if item.name not in ("slot", "ordinal"))
_OUTCOME_RECURRING: Final = tuple(item.name for item in fields(OutcomeRow) if item.name not in ("slot", "duration_ms"))
_recurring_of_intent: Final = itemgetter(*_INTENT_RECURRING)
_recurring_of_outcome: Final = itemgetter(*_OUTCOME_RECURRING)
_INTENT_KEYS: Final = len(_HEADING) + len(fields(IntentRow))
_OUTCOME_KEYS: Final = len(_HEADING) + len(fields(OutcomeRow))


def encode(row: EvidenceRow) -> Record:
    """The record of a row, checked as a reader will check it; raises `LedgerFailed(ILLEGAL_HISTORY)`."""
    record = {"type": _NAMES[type(row)], "schema_version": EVIDENCE_SCHEMA_VERSION, **_plain_fields(row)}
    if decode(record) != row:
        raise LedgerFailed(StoreFault.ILLEGAL_HISTORY)
    return record


def decode(record: Record) -> EvidenceRow:
    """The row of a record; raises `LedgerFailed(ILLEGAL_HISTORY)` unless every key, type and code is exactly right."""
    row: EvidenceRow | None
    try:
        row = _row_of(record)
    except (_Malformed, KeyError, TypeError):
        row = None
    if row is None or not row.is_consistent():
        raise LedgerFailed(StoreFault.ILLEGAL_HISTORY)
    return row


def _row_of(record: Record) -> EvidenceRow:
    name, version = record["type"], record["schema_version"]
    if type(name) is not str or type(version) is not int or version != EVIDENCE_SCHEMA_VERSION:
        raise _Malformed
    cls = _TYPES[name]
    if cls is IntentRow:
        return _intent_of(record)
    if cls is OutcomeRow:
        return _outcome_of(record)
    return _record_of(cls, {key: value for key, value in record.items() if key not in _HEADING})


def _intent_of(record: Record) -> IntentRow:
    if len(record) != _INTENT_KEYS:
        raise _Malformed
    candidate, run, kind, profile, surface, path, date, provider, traffic, mode = _recurring(
        _INTENT_RECURRING, *_recurring_of_intent(record)
    )
    slot, ordinal = _SLOT(record["slot"]), _COUNT(record["ordinal"])
    return IntentRow(candidate, run, slot, kind, profile, surface, path, ordinal, date, provider, traffic, mode)


def _outcome_of(record: Record) -> OutcomeRow:
    if len(record) != _OUTCOME_KEYS:
        raise _Malformed
    candidate, run, outcome, reason, requests = _recurring(_OUTCOME_RECURRING, *_recurring_of_outcome(record))
    slot, duration_ms = _SLOT(record["slot"]), _COUNT(record["duration_ms"])
    return OutcomeRow(candidate, run, slot, outcome, reason, duration_ms, requests)


@lru_cache(_REMEMBERED, typed=True)
def _recurring(names: tuple[str, ...], *values: Any) -> tuple[Any, ...]:
    """`values` of the fields `names`, decoded. Typed, since True and 1.0 are not 1 here, though they are equal."""
    return tuple([_DECODERS[name](value) for name, value in zip(names, values, strict=True)])


def _plain_fields(row: Any) -> dict[str, object]:
    return {item.name: _plain(getattr(row, item.name)) for item in fields(row)}


def _plain(value: object) -> object:
    if isinstance(value, Pin | MirrorTally):
        return _plain_fields(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [str(item) if isinstance(item, Pair) else _plain(item) for item in value]
    return value

"""One line of the ledger, and the chain that lines form. Pure: no I/O, no clock.

A line is canonical JSON (sorted keys, no spaces, UTF-8) of exactly seven keys:

    {"kind":"row","lease":…,"mode":…,"previous":hex,"record":{…},"sequence":n,"utc":"…"}

`previous` is the SHA-256 of the raw line before it, without LF; of the first line, the genesis digest. Every line
counts in `sequence`. The first line of a segment, and no other, has kind `segment`; projections never see it.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import orjson

from kexpr.clock import Lease
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import GENESIS_DIGEST, Head, Record, Row

__all__ = [
    "KIND_ROW",
    "KIND_SEGMENT",
    "MAX_LINE_BYTES",
    "Chain",
    "Envelope",
    "Malformed",
    "encode",
    "is_row_after_hole",
    "row_of",
]

KIND_ROW: Final = "row"
KIND_SEGMENT: Final = "segment"
MAX_LINE_BYTES: Final = 256 * 1024
"""Far above the largest record (two 4,096-unit bodies), and what bounds memory when garbage is read."""

_HEADER_VERSION: Final = 1
_KEYS: Final = ("kind", "lease", "mode", "previous", "record", "sequence", "utc")
_LEASE_KEYS: Final = ("boot_id", "boottime_deadline_ms", "utc_deadline_ms")
_MODES: Final[Mapping[object, Mode | None]] = {None: None} | {mode.value: mode for mode in Mode}
_MODE_NAMES: Final = tuple(_MODES)
_KINDS: Final = (KIND_ROW, KIND_SEGMENT)

Envelope = dict[str, Any]


class Malformed(Exception):
    """The line is not a whole canonical envelope: torn when it is the last one, corruption elsewhere."""


def encode(
    kind: str, record: Record, *, sequence: int, previous: str, utc: str, lease: Lease | None, mode: Mode | None
) -> bytes:
    """The raw line without LF. Raises `LedgerFailed(ROW_INVALID)` unless `record` comes back equal from it.

    That refuses what JSON would change in silence: tuples, dates, NaN, lone surrogates, integers over 64 bits.
    """
    envelope = {
        "kind": kind,
        "lease": None if lease is None else {key: getattr(lease, key) for key in _LEASE_KEYS},
        "mode": mode,
        "previous": previous,
        "record": dict(record),
        "sequence": sequence,
        "utc": utc,
    }
    try:
        line = orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS)
        if len(line) < MAX_LINE_BYTES and decode(line)["record"] == record:
            return line
    except (TypeError, Malformed):
        pass
    raise LedgerFailed(StoreFault.ROW_INVALID)


def decode(line: bytes) -> Envelope:
    """The envelope of a raw line; raises `Malformed` unless its form is exact.

    Writing it again and comparing refuses duplicate keys, spaces, other orders and other spellings in one step.
    """
    try:
        envelope = orjson.loads(line)
        canonical = orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS) == line
    except (ValueError, TypeError):
        canonical = False
    if not canonical or type(envelope) is not dict or tuple(envelope) != _KEYS:
        raise Malformed
    kind, lease, mode, previous, record, sequence, utc = envelope.values()
    if (
        kind not in _KINDS
        or mode not in _MODE_NAMES
        or type(previous) is not str
        or type(record) is not dict
        or type(sequence) is not int
        or type(utc) is not str
        or (lease is not None and not _is_lease(lease))
    ):
        raise Malformed
    return envelope


def _is_lease(value: object) -> bool:
    if type(value) is not dict or tuple(value) != _LEASE_KEYS:
        return False
    boot_id, boottime_ms, utc_ms = value.values()
    return type(boottime_ms) is int and type(utc_ms) is int and (boot_id is None or type(boot_id) is str)


def is_row_after_hole(line: bytes) -> bool:
    """Whether `line` is a whole row behind zeros: the disk lost the row before it, which was written and built upon.

    A torn row has lost its own beginning; behind zeros it is no envelope.
    """
    row = line.lstrip(b"\0")
    if row == line:
        return False
    try:
        decode(row)
    except Malformed:
        return False
    return True


def row_of(envelope: Envelope) -> Row:
    lease = envelope["lease"]
    return Row(
        envelope["sequence"],
        envelope["record"],
        None if lease is None else Lease(**lease),
        _MODES[envelope["mode"]],
        envelope["utc"],
    )


class Chain:
    """How far the lines have been verified, and what the next one must be.

    `genesis` None takes any first `previous` (maintenance without the key). `expected` must be passed on the way.
    """

    def __init__(self, genesis: str | None = GENESIS_DIGEST, expected: Head | None = None) -> None:
        self.sequence = 0
        self.digest = genesis or ""
        self._genesis = genesis
        self.line_bytes = 0
        """Length of the last line without LF; 0 before the first."""
        self._segment_lines = 0
        self._month: str | None = None
        """Set while the header of that segment is due."""
        self._expected = expected
        self._expected_sequence = expected.sequence if expected else 0

    @property
    def head(self) -> Head:
        return Head(self.sequence, self.digest)

    def is_head(self, line: bytes) -> bool:
        """Whether `line` is the last verified one."""
        return self._digest_of(line) == self.digest

    def begin(self, month: str) -> None:
        """The next line must be the header of segment `month`."""
        self._month = month

    def header(self) -> Record:
        """The record of the header that is due: line count and head digest of the segment before (0 and genesis)."""
        return {
            "month": self._month,
            "previous_count": self._segment_lines,
            "previous_head": self.digest,
            "schema_version": _HEADER_VERSION,
        }

    def advance(self, line: bytes) -> Envelope:
        """Verify the next line and step over it.

        Raises `Malformed`, or `LedgerFailed`: `CHAIN_BROKEN`, `KEY_MISMATCH` (another genesis), `HEAD_MISMATCH`.
        """
        envelope = self._decode(line)
        if self.sequence == 0:
            self._start(envelope)
        due = self._month is not None
        if (
            envelope["sequence"] != self.sequence + 1
            or envelope["previous"] != self.digest
            or (envelope["kind"] == KIND_SEGMENT) is not due
            or (due and envelope["record"] != self.header())
        ):
            raise LedgerFailed(StoreFault.CHAIN_BROKEN)
        if due:
            self._month = None
            self._segment_lines = 0
        self.sequence += 1
        self.digest = self._digest_of(line)
        self.line_bytes = len(line)
        self._segment_lines += 1
        if self.sequence == self._expected_sequence and self.head != self._expected:
            raise LedgerFailed(StoreFault.HEAD_MISMATCH)
        return envelope

    def require_expected(self) -> None:
        """Raises `HEAD_MISMATCH` when the chain ends before the expected head (it was cut) or starts from another."""
        if self._expected is None:
            return
        starts_elsewhere = self._expected.sequence == 0 and self._genesis not in (None, self._expected.digest)
        if self.sequence < self._expected.sequence or starts_elsewhere:
            raise LedgerFailed(StoreFault.HEAD_MISMATCH)

    def _decode(self, line: bytes) -> Envelope:
        return decode(line)

    def _digest_of(self, line: bytes) -> str:
        return sha256(line).hexdigest()

    def _start(self, envelope: Envelope) -> None:
        if self._genesis is None:
            self._genesis = self.digest = envelope["previous"]
        elif envelope["sequence"] == 1 and envelope["previous"] != self._genesis:
            raise LedgerFailed(StoreFault.KEY_MISMATCH)

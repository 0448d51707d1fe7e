"""The journal's file: one exact record a line, in a chain of its own (authorities, "Outcome journal").

It is a `JsonlLedger` whose lines have no envelope and whose one segment, `journal.jsonl`, has no header. A line is
canonical JSON of the thirteen keys below and nothing else. `row_digest` is the SHA-256 of the canonical JSON of the
other twelve, `previous_row_digest` that of the row before; the first row's is bound to the identity key.
"""

import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import orjson

from kexpr.clock import Instant, Lease
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.failpoints import reach
from kexpr.ledger.jsonl import WRITER, JsonlLedger, poisoning
from kexpr.ledger.protocol import Head, Record, Row
from kexpr.ledger.rows import KIND_ROW, MAX_LINE_BYTES, Chain, Envelope, Malformed, row_of
from kexpr.ledger.segments import Segments
from kexpr.private_files import PrivateDirectory

__all__ = ["CHAIN_KEYS", "JOURNAL_NAME", "RECORD_KEYS", "JournalChain", "JournalLedger", "JournalSegments"]

JOURNAL_NAME: Final = "journal.jsonl"

RECORD_KEYS: Final = (
    "artifact_key",
    "attempt_id",
    "deadline_at_utc",
    "finalized_at_utc",
    "mode",
    "outcome",
    "schema_version",
    "started_at_utc",
    "state",
    "surface",
)
"""What the authority writes."""

CHAIN_KEYS: Final = ("previous_row_digest", "row_digest", "sequence")
"""What the chain adds."""

_KEYS: Final = tuple(sorted(RECORD_KEYS + CHAIN_KEYS))


def _canonical(fields: Mapping[str, object]) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)


def _row_digest(fields: Mapping[str, object]) -> str:
    return sha256(_canonical({key: fields[key] for key in fields if key != "row_digest"})).hexdigest()


def _decoded(line: bytes) -> dict[str, Any]:
    """The thirteen fields of a raw line; raises `Malformed` unless its form and its digest are exact."""
    try:
        fields = orjson.loads(line)
        canonical = _canonical(fields) == line
    except (ValueError, TypeError):
        canonical = False
    if not canonical or type(fields) is not dict or tuple(fields) != _KEYS:
        raise Malformed
    if type(fields["sequence"]) is not int or type(fields["previous_row_digest"]) is not str:
        raise Malformed
    if fields["row_digest"] != _row_digest(fields):
        raise Malformed
    return fields


class JournalChain(Chain):
    """The chain over `row_digest`. Its envelopes are those of rows, with the authority's ten keys as the record."""

    def begin(self, month: str) -> None:
        """No header is due in a journal."""

    def _decode(self, line: bytes) -> Envelope:
        fields = _decoded(line)
        return {
            "kind": KIND_ROW,
            "lease": None,
            "mode": None,
            "previous": fields["previous_row_digest"],
            "record": {key: fields[key] for key in RECORD_KEYS},
            "sequence": fields["sequence"],
            "utc": "",
        }

    def _digest_of(self, line: bytes) -> str:
        """Of no line that is not whole, so that a changed last line is not the head."""
        try:
            return str(_decoded(line)["row_digest"])
        except Malformed:
            return ""


class JournalSegments(Segments):
    """One file for ever."""

    def _present(self) -> list[str]:
        return [JOURNAL_NAME] if self._directory.exists(JOURNAL_NAME) else []

    def create(self, month: str) -> None:
        """Make the file, durably."""
        self._enter(JOURNAL_NAME, os.O_CREAT | os.O_EXCL)
        self._files.fsync(self.fd)
        self._directory.sync()


class JournalLedger(JsonlLedger):
    """A `Ledger` in the exact format. Leases are kept elsewhere: `append` takes neither one nor a mode."""

    @classmethod
    def _segments_in(cls, private: PrivateDirectory, genesis: str, expected: Head | None) -> Segments:
        return JournalSegments(private, JournalChain(genesis, expected), WRITER)

    def append(self, now: Instant, record: Record, lease: Lease | None, mode: Mode | None) -> Row:
        """For the transaction that holds the lock. Raises `LedgerFailed(ROW_INVALID)` for what is no such record."""
        self._require_usable()
        if lease is not None or mode is not None or tuple(sorted(record)) != RECORD_KEYS:
            raise LedgerFailed(StoreFault.ROW_INVALID)
        line = self._line_of(record)
        self._require_segment(now.utc_text())
        return self._put_row(line)

    def _line_of(self, record: Record) -> bytes:
        chain = self._segments.chain
        fields = dict(record) | {"sequence": chain.sequence + 1, "previous_row_digest": chain.digest}
        try:
            line = _canonical(fields | {"row_digest": _row_digest(fields)})
            decoded = _decoded(line)
            exact = len(line) < MAX_LINE_BYTES and all(decoded[key] == record[key] for key in RECORD_KEYS)
        except (TypeError, Malformed):
            exact = False
        if not exact:
            raise LedgerFailed(StoreFault.ROW_INVALID)
        return line

    @poisoning
    def _require_segment(self, utc: str) -> None:
        if not self._segments.names:
            self._segments.create(utc)
            reach("journal.created")

    @poisoning
    def _put_row(self, line: bytes) -> Row:
        row = row_of(self._put(line, "journal"))
        self._project(row)
        return row

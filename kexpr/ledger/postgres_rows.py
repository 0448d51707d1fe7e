"""Rows in PostgreSQL: the tables, the raw lines of one ledger, and reading on from where verification stands.

A row holds the very line that `JsonlLedger` would write. There are no segments, so that the first line is a decision.
Beside the line stands the digest of what it claims, if it does, under a unique index: the last word on "once", should
the lock ever fail. It is derived from the line, and checked against it when it is read.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.postgres_session import Session
from kexpr.ledger.protocol import Record, Row
from kexpr.ledger.rows import Chain, Malformed, row_of

__all__ = ["SCHEMA", "ClaimOf", "advance", "insert"]

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS kexpr_home (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    system_identifier text NOT NULL,
    timeline integer NOT NULL,
    acknowledged_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS kexpr_row (
    ledger text NOT NULL,
    sequence bigint NOT NULL,
    line bytea NOT NULL,
    claim bytea,
    PRIMARY KEY (ledger, sequence)
);
CREATE UNIQUE INDEX IF NOT EXISTS kexpr_row_claim ON kexpr_row (ledger, claim) WHERE claim IS NOT NULL;
CREATE TABLE IF NOT EXISTS kexpr_tombstone (
    task text NOT NULL,
    mark text NOT NULL,
    PRIMARY KEY (task, mark)
);
"""

_READ: Final = "SELECT sequence, line, claim FROM kexpr_row WHERE ledger = %s AND sequence >= %s ORDER BY 1 LIMIT %s"
_INSERT: Final = "INSERT INTO kexpr_row (ledger, sequence, line, claim) VALUES (%s, %s, %s, %s)"

_PAGE_ROWS: Final = 1_000
"""Bounds memory: a page is 256 MB at the very most, and about 1 MB of ordinary rows."""

ClaimOf = Callable[[Record], str | None]
"""What a record claims, by an identity that no other record of the ledger may claim; None for one that claims nothing.
"""


def insert(session: Session, ledger: str, sequence: int, line: bytes, claim: str | None) -> None:
    """Within a transaction that has read up to `sequence` under the lock. Raises `LedgerFailed`."""
    session.rows(_INSERT, (ledger, sequence, line, _digest(claim)))


def advance(session: Session, ledger: str, chain: Chain, take: Callable[[Row], None], claim_of: ClaimOf | None) -> None:
    """Verify on to the last committed row, giving each to `take`, within a transaction.

    Each page begins with the row that was verified last, which must still be there. Rows become visible in their
    order, since their writers hold the lock until they have committed. Without `claim_of`, claims are not compared.

    Raises `LedgerFailed`: `HEAD_MISMATCH`, `CHAIN_BROKEN`, `KEY_MISMATCH`, and what `take` and the session raise.
    """
    while True:
        first = max(1, chain.sequence)
        page = session.rows(_READ, (ledger, first, _PAGE_ROWS))
        fresh = page
        if chain.sequence:
            if not page or page[0][0] != first or not chain.is_head(page[0][1]):
                raise LedgerFailed(StoreFault.HEAD_MISMATCH)
            fresh = page[1:]
        for sequence, line, claim in fresh:
            take(_verified(chain, sequence, line, claim, claim_of))
        if len(page) < _PAGE_ROWS:
            return


def _verified(chain: Chain, sequence: int, line: bytes, claim: bytes | None, claim_of: ClaimOf | None) -> Row:
    try:
        row = row_of(chain.advance(line))
    except Malformed:
        row = None
    if row is None or row.sequence != sequence or (claim_of and _digest(claim_of(row.record)) != claim):
        raise LedgerFailed(StoreFault.CHAIN_BROKEN)
    return row


def _digest(claim: str | None) -> bytes | None:
    return None if claim is None else sha256(claim.encode("utf-8", "surrogatepass")).digest()

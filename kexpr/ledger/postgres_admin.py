"""What an operator does to the database of the ledgers: install, look, and acknowledge a failover (multi-host.md).

None of these needs the authorities, the key or a projection.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.postgres_rows import SCHEMA, advance
from kexpr.ledger.postgres_session import Session, lock_key
from kexpr.ledger.protocol import Head
from kexpr.ledger.rows import Chain

__all__ = ["acknowledge_failover", "are_empty", "head", "install"]

_KEY: Final = lock_key("kexpr.home")
_ANY_ROW: Final = "SELECT 1 FROM kexpr_row WHERE ledger = ANY(%s) LIMIT 1"
_ACKNOWLEDGE: Final = "INSERT INTO kexpr_home (system_identifier, timeline) VALUES (%s, %s)"


def install(conninfo: str) -> None:
    """Create the tables in the first schema of the search path, and take this server as the acknowledged one.

    Again is the same; it acknowledges no failover. Raises `LedgerFailed`, `NOT_DURABLE` among others.
    """
    session = Session(conninfo)
    try:
        session.run(f"SELECT pg_advisory_xact_lock({_KEY}); {SCHEMA}")
        here, home = session.begin_on_any(_KEY)
        if home is None:
            session.rows(_ACKNOWLEDGE, (here.system_identifier, here.timeline))
        session.commit()
    finally:
        session.close()


def head(conninfo: str, name: str, *, genesis: str | None = None, expected: Head | None = None) -> Head:
    """Verify every row of a ledger, on whatever server this is; the high-water mark to keep elsewhere.

    With `genesis` (`private_files.genesis_digest`) the key too, with `expected` that head. Raises `LedgerFailed`.
    """
    session = Session(conninfo)
    try:
        session.begin_on_any(_KEY)
        return _verified(session, name, Chain(genesis, expected))
    finally:
        session.close()


def are_empty(conninfo: str, names: Sequence[str]) -> bool:
    """Whether none of the ledgers has a row, on the acknowledged server. Raises `LedgerFailed`."""
    session = Session(conninfo)
    try:
        session.begin()
        return not session.rows(_ANY_ROW, (list(names),))
    finally:
        session.close()


def acknowledge_failover(conninfo: str, *, expected: Mapping[str, Head]) -> bool:
    """Take this server as the one to go on with, though it may lack rows that the one before had acknowledged.

    `expected` names the last head known of each ledger; every chain must contain its own (`HEAD_MISMATCH`), which shows
    that nothing up to there was lost. An empty mapping takes the loss into account, whatever it is. False when this
    server is the acknowledged one already. Raises `LedgerFailed`.
    """
    session = Session(conninfo)
    try:
        here, home = session.begin_on_any(_KEY)
        if home is None:
            raise LedgerFailed(StoreFault.NOT_INSTALLED)
        for name, known in expected.items():
            _verified(session, name, Chain(None, known))
        if here == home:
            return False
        session.rows(_ACKNOWLEDGE, (here.system_identifier, here.timeline))
        session.commit()
        return True
    finally:
        session.close()


def _verified(session: Session, name: str, chain: Chain) -> Head:
    advance(session, name, chain, lambda row: None, None)
    chain.require_expected()
    return chain.head

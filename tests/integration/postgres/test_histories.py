"""Seeded histories of claims by several handles whose connections the server ends at random."""

import random
from uuid import uuid4

import pytest

from kexpr.errors import LedgerFailed
from kexpr.ledger.postgres import PostgresLedger
from kexpr.ledger.protocol import Record, Row
from tests.support.postgres import Cluster

_TERMINATE = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name = 'kexpr' AND state IS NOT NULL
"""


def _claim_of(record: Record) -> str | None:
    return str(record["claims"])


@pytest.mark.parametrize("seed", range(2))
def test_a_claim_that_was_acknowledged_is_there_once(seed: int, postgres: Cluster) -> None:
    draw, name = random.Random(seed), uuid4().hex
    acknowledged: list[str] = []
    faults = 0

    def opened() -> tuple[PostgresLedger, list[Row]]:
        rows: list[Row] = []
        return PostgresLedger.open(postgres.conninfo, name, projection=rows.append, claim_of=_claim_of), rows

    handles = [opened() for _ in range(3)]
    for _ in range(60):
        index, identity, dies = draw.randrange(3), f"identity-{draw.randrange(25)}", draw.random() < 0.25
        ledger, rows = handles[index]
        try:
            with ledger.transaction() as transaction:
                is_new = all(row.record["claims"] != identity for row in rows)
                if is_new:
                    transaction.append({"claims": identity})
                if dies:
                    postgres.execute(_TERMINATE)
        except LedgerFailed:
            faults += 1
            ledger.close()
            handles[index] = opened()
        else:
            acknowledged += [identity] if is_new else []
    for ledger, _ in handles:
        ledger.close()
    last, rows = opened()
    last.close()
    claims = [str(row.record["claims"]) for row in rows]
    assert len(set(claims)) == len(claims)
    assert len(set(acknowledged)) == len(acknowledged)
    # A commit that was cut before the server had it left nothing, so what is there was acknowledged.
    assert sorted(claims) == sorted(acknowledged)
    assert faults

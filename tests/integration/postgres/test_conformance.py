"""`PostgresLedger` on a real server against the suite that every ledger passes."""

from functools import partial
from uuid import uuid4

import pytest

from kexpr.authority.steps import LedgerOpener
from kexpr.ledger.postgres import PostgresLedger
from tests.support.ledger_conformance import LedgerConformance
from tests.support.postgres import Cluster


class TestPostgresLedger(LedgerConformance):
    @pytest.fixture
    def open_ledger(self, postgres: Cluster) -> LedgerOpener:
        return partial(PostgresLedger.open, postgres.conninfo, uuid4().hex)

"""The ledgers without a server against the suite that every ledger passes."""

from functools import partial
from pathlib import Path

import pytest

from kexpr.authority.steps import LedgerOpener
from kexpr.clock import SystemClock
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.testing.memory_ledger import MemoryLedger, MemoryStore
from tests.support.ledger_conformance import LedgerConformance


class TestJsonlLedger(LedgerConformance):
    @pytest.fixture
    def open_ledger(self, tmp_path: Path) -> LedgerOpener:
        return partial(JsonlLedger.open, tmp_path / "ledger", clock=SystemClock())


class TestMemoryLedger(LedgerConformance):
    @pytest.fixture
    def open_ledger(self) -> LedgerOpener:
        return partial(MemoryLedger, MemoryStore(), SystemClock())

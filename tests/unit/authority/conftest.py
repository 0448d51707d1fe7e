"""Every test with a `world` runs on both ledgers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kexpr import failpoints
from tests.unit.authority.support import SetClock, Store, World


@pytest.fixture(params=["memory", "jsonl"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    store = Store(SetClock(), tmp_path / "ledger" if request.param == "jsonl" else None)
    yield World(store)
    store.close()


@pytest.fixture
def disk_world(tmp_path: Path) -> Iterator[World]:
    store = Store(SetClock(), tmp_path / "ledger")
    yield World(store)
    store.close()


@pytest.fixture
def memory_world() -> World:
    """For faults that only the memory ledger can have on order."""
    return World(Store(SetClock()))


@pytest.fixture
def reached() -> Iterator[list[str]]:
    """The failpoints passed, in order."""
    names: list[str] = []
    failpoints.install(names.append)
    yield names
    failpoints.install(None)

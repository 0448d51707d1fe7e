"""One server for the tests of this directory, and the processes that die on it."""

from collections.abc import Iterator

import pytest

from tests.integration.paths.conftest import lanes
from tests.support.postgres import Cluster, installed, running

__all__ = ["lanes", "postgres"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A running PostgreSQL with the tables of the ledgers, shared by all tests of a run."""
    with running() as cluster:
        yield installed(cluster)

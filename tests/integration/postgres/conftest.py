"""What tests of every kind may ask for."""

from collections.abc import Iterator

import pytest

from tests.support.postgres import Cluster, installed, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A running PostgreSQL with the tables of the ledgers, shared by all tests of a run."""
    with running() as cluster:
        yield installed(cluster)

"""`--seed N` replays one history instead of the fixed ones."""

from collections.abc import Iterator

import pytest

from kexpr import failpoints

BLOCKS = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="replay the simulated history of this seed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "block" in metafunc.fixturenames:
        metafunc.parametrize("block", range(BLOCKS) if metafunc.config.getoption("--seed", None) is None else [0])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a seed, only its history runs."""
    if config.getoption("--seed", None) is not None:
        items[:] = [item for item in items if item.name.startswith("test_any_history")]


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int | None:
    chosen: int | None = request.config.getoption("--seed", None)
    return chosen


@pytest.fixture(autouse=True)
def _no_failpoint_is_left() -> Iterator[None]:
    yield
    failpoints.install(None)

"""Each test is as a process of its own: it reads its checkout itself, as the processes do that it starts."""

import pytest

from harness import candidate


@pytest.fixture(autouse=True)
def _own_checkout() -> None:
    candidate._loaded_checkout.cache_clear()

"""System programs that integration tests use: skip without them, or fail where they are required."""

import os
import shutil

import pytest

__all__ = ["need"]


def need(*names: str) -> str:
    """Path of the first of `names` that is there. Without one the test skips; with REQUIRE_INTEGRATION=1 it fails."""
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    missing = f"{' or '.join(names)} is not installed"
    if os.environ.get("REQUIRE_INTEGRATION") == "1":
        pytest.fail(missing)
    pytest.skip(missing)

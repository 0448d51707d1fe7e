"""The suite for a host's durable writer, on one that keeps it all and on a broken one for each rule."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kexpr.testing.conformance import journal
from kexpr.testing.conformance.journal import WRITER_CHECKS, OpenWriter


@dataclass
class FileWriter:
    """A file an attempt."""

    directory: Path

    def write(self, attempt_id: str, body: str) -> None:
        (self.directory / attempt_id).write_text(body, newline="")

    def read(self, attempt_id: str) -> str | None:
        file = self.directory / attempt_id
        return file.read_text() if file.exists() else None


class Eager(FileWriter):
    def read(self, attempt_id: str) -> str | None:
        return super().read(attempt_id) or ""


class Forgetful(FileWriter):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "own")
        self.bodies: dict[str, str] = {}

    def write(self, attempt_id: str, body: str) -> None:
        self.bodies[attempt_id] = body

    def read(self, attempt_id: str) -> str | None:
        return self.bodies.get(attempt_id)


class Stripping(FileWriter):
    def write(self, attempt_id: str, body: str) -> None:
        super().write(attempt_id, body.strip())


class Careless(FileWriter):
    """One file for all attempts."""

    def write(self, attempt_id: str, body: str) -> None:
        super().write("body", body)

    def read(self, attempt_id: str) -> str | None:
        return super().read("body")


BROKEN: dict[Callable[[OpenWriter], None], type[FileWriter]] = {
    journal.nothing_is_read_before_a_write: Eager,
    journal.a_body_is_durable_when_the_write_returns: Forgetful,
    journal.the_exact_body_is_read: Stripping,
    journal.a_body_is_its_attempts_alone: Careless,
}


@pytest.mark.parametrize("check", WRITER_CHECKS.values(), ids=WRITER_CHECKS)
def test_a_writer_that_keeps_the_rules(check: Callable[[OpenWriter], None], tmp_path: Path) -> None:
    check(lambda: FileWriter(tmp_path))


@pytest.mark.parametrize("check", WRITER_CHECKS.values(), ids=WRITER_CHECKS)
def test_a_broken_writer_is_caught(check: Callable[[OpenWriter], None], tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check(lambda: BROKEN[check](tmp_path))

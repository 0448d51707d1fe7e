"""What a command says when it cannot go on is one line, whatever the files are called."""

import os
from pathlib import Path

import pytest

from harness.cli import main
from kexpr.exits import Exit


@pytest.mark.parametrize("name", [b"a\nb", b"a\rb", b"\x1b[31m", b"\x9b31m", b"\xff\xfe", "\u2028\u202e".encode()])
def test_a_name_cannot_begin_a_line_or_command_the_terminal(
    name: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / os.fsdecode(name)
    commands = [
        ["ingest", "--state", str(tmp_path / "state"), "--profile", "physique-coach", str(path)],
        ["verify-report", "--state", str(tmp_path / "state"), str(path)],
        ["observe", "status", "--state", str(path)],
    ]
    for command in commands:
        assert main(command) == Exit.INVALID
        captured = capfd.readouterr()
        assert not captured.out
        assert captured.err.endswith("\n")
        assert captured.err[:-1].isprintable()
        assert "?" in captured.err

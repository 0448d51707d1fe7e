"""The data files of the lexicon, read once."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final

__all__ = ["DATA_FILES", "data_lines", "data_text", "sections"]

_HEADING: Final = re.compile(r"\[([a-z.]+)\]")
DATA_FILES: Final = ("context.txt", "denied.txt", "discourse.txt", "hanja.txt", "ngrams.txt")


@cache
def data_text(name: str) -> str:
    """The text of one of `DATA_FILES`."""
    return (resources.files("kexpr.guard") / "data" / name).read_text("utf-8")


def data_lines(name: str) -> list[str]:
    """The lines that are neither empty nor comments."""
    return [line for line in data_text(name).splitlines() if line and not line.startswith("#")]


def sections(name: str) -> Iterator[tuple[str, list[str]]]:
    """(section, its lines), in file order; a section starts at a line `[name]`."""
    title, lines = "", list[str]()
    for line in data_lines(name):
        heading = _HEADING.fullmatch(line)
        if heading:
            yield title, lines
            title, lines = heading[1], []
        else:
            lines.append(line)
    yield title, lines

"""How the word lists of the lexicon are laid out: sorted, no word twice, wrapped.

`python -m tests.support.lexicon_format` lays them out so; a test holds the files to it.
"""

import re
import textwrap
from pathlib import Path
from typing import Final

import kexpr.guard

__all__ = ["FILES", "formatted"]

_DATA: Final = Path(kexpr.guard.__file__).parent / "data"
FILES: Final = (_DATA / "denied.txt", _DATA / "discourse.txt")
_WIDTH: Final = 60
"""Code points; Hangul is twice as wide."""
_HEADING: Final = re.compile(r"(?m)^(?=\[[a-z.]+\]$)")


def formatted(text: str) -> str:
    """`text` with each section sorted; a phrase keeps its line, a comment its place above a heading."""
    head, *sections = _HEADING.split(text)
    return "\n\n".join([head.strip(), *(_section(section) for section in sections)]) + "\n"


def _section(section: str) -> str:
    heading, *lines = section.strip().splitlines()
    of_next = [line for line in lines if line.startswith("#")]
    body = [line for line in lines if line and not line.startswith("#")]
    if heading.endswith(".phrase]"):
        laid_out = sorted(set(body))
    else:
        laid_out = textwrap.wrap(" ".join(sorted(set(" ".join(body).split()))), _WIDTH)
    return "\n".join([heading, *laid_out, *(["", *of_next] if of_next else [])])


if __name__ == "__main__":
    for path in FILES:
        path.write_text(formatted(path.read_text("utf-8")), "utf-8")

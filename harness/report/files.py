"""The files of a report directory: written whole or not at all, read up to a limit."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness.report.catalogue import Language
from harness.report.document import Document
from harness.report.render import RENDERERS

__all__ = ["MAX_BYTES", "read_report", "rendered", "write_all"]

MAX_BYTES: Final = 8 * 1024 * 1024


def rendered(documents: Mapping[str, Document], language: Language) -> dict[str, bytes]:
    """File name -> bytes, of every document in every form."""
    return {
        stem + extension: render(document, language)
        for stem, document in documents.items()
        for extension, render in RENDERERS.items()
    }


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write the files into `directory`, which is made when it is not there. Raises `OSError`.

    Each is renamed over the one before, so that none is read half written; the name until then is this process's own.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        new = directory / f".{name}.{os.getpid()}.new"
        try:
            new.write_bytes(data)
            new.replace(directory / name)
        finally:
            new.unlink(missing_ok=True)


def read_report(path: Path) -> bytes | None:
    """The bytes of a file; None when it is larger than any report. Raises `OSError`."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return data if len(data) <= MAX_BYTES else None

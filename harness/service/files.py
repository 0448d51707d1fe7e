"""The written reports, as files: plain names, known kinds, nothing through a link, nothing outside."""

import os
import re
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["MAX_BYTES", "ReportFile", "ReportFiles"]

MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_DEPTH: Final = 4
_MAX_LISTED: Final = 1_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".md": "text/plain; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class ReportFile:
    media_type: str
    body: bytes


class ReportFiles:
    """Files below `root`, which may come and go."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> ReportFile | None:
        """The file at `path`, relative and with slashes; None for whatever is not one of ours.

        Each part is opened without following links, from the one before: nothing can lead outside meanwhile.
        """
        *parents, name = path.split("/")
        media_type = _TYPES.get(Path(name).suffix)
        if media_type is None or len(parents) > _MAX_DEPTH or not all(map(_NAME.fullmatch, [*parents, name])):
            return None
        try:
            with ExitStack() as opened:
                directory = self._open(opened, self._root, None)
                for parent in parents:
                    directory = self._open(opened, parent, directory)
                body = _read(name, directory)
        except OSError:
            return None
        return None if body is None else ReportFile(media_type, body)

    def names(self) -> tuple[str, ...]:
        """Reports directly in the root, sorted; those for people first."""
        try:
            with os.scandir(self._root) as entries:
                found = [
                    entry.name
                    for entry in entries
                    if _NAME.fullmatch(entry.name)
                    and Path(entry.name).suffix in _TYPES
                    and entry.is_file(follow_symlinks=False)
                ]
        except OSError:
            return ()
        return tuple(sorted(found, key=lambda name: (not name.endswith(".html"), name))[:_MAX_LISTED])

    @staticmethod
    def _open(opened: ExitStack, name: str | Path, directory: int | None) -> int:
        fd = os.open(name, _DIRECTORY, dir_fd=directory)
        opened.callback(os.close, fd)
        return fd


def _read(name: str, directory: int) -> bytes | None:
    fd = os.open(name, _FILE, dir_fd=directory)
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        return file.read(MAX_BYTES)

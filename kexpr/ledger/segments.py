"""The ledger's segment files: read on from where verification stands, and know when they are not what they were.

Append-only files allow a cheap split: sizes are taken under the lock (`snapshot`), and the bytes below them can be
verified (`advance`) with or without it.
"""

import os
import re
from collections.abc import Callable, Iterator
from typing import Final

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Row
from kexpr.ledger.rows import KIND_ROW, MAX_LINE_BYTES, Chain, Malformed, is_row_after_hole, row_of
from kexpr.private_files import PrivateDirectory

__all__ = ["Segments", "Snapshot", "TornTail", "month_of", "segment_name", "segment_names"]

_NAME: Final = re.compile(r"ledger-([0-9]{4}-(?:0[1-9]|1[0-2]))\.jsonl", re.ASCII)
_CHUNK_BYTES: Final = 1 << 20

Snapshot = list[tuple[str, int]]
"""Segment names in order from the current one on, each with its size in bytes."""


class TornTail(LedgerFailed):
    """The last line is invalid; it was never acknowledged. Bytes `offset` to the end of `name` are that tail."""

    def __init__(self, name: str, offset: int) -> None:
        super().__init__(StoreFault.TORN_TAIL)
        self.name = name
        self.offset = offset


def segment_name(month: str) -> str:
    return f"ledger-{month}.jsonl"


def month_of(name: str) -> str:
    return name[7:14]


def segment_names(directory: PrivateDirectory) -> list[str]:
    """In chain order, which is that of their months."""
    return sorted(name for name in directory.names() if _NAME.fullmatch(name))


class Segments:
    """The verified prefix of one directory's ledger. Not thread-safe: the lock above it is."""

    def __init__(self, directory: PrivateDirectory, chain: Chain, flags: int) -> None:
        """`flags` open the files: `O_RDONLY`, or `O_RDWR | O_APPEND` for a writer."""
        self.chain = chain
        self.names: list[str] = []
        self.fd = -1
        """The current segment, the last of `names`; -1 before the first."""
        self.size = 0
        """Its verified bytes."""
        self._directory = directory
        self._files = directory.files
        self._flags = flags
        self._is_writer = bool(flags & os.O_APPEND)

    def snapshot(self) -> Snapshot:
        """What is there now, under the lock. Raises `LedgerFailed` when what was verified has changed."""
        names = self._present()
        if names[: len(self.names)] != self.names:
            raise LedgerFailed(StoreFault.CHAIN_BROKEN)
        if self.names:
            self._require_unchanged(self.names[-1])
        sizes = ((name, self._directory.size(name)) for name in names[max(0, len(self.names) - 1) :])
        return list(sizes)

    def _present(self) -> list[str]:
        return segment_names(self._directory)

    def _require_unchanged(self, name: str) -> None:
        """The file is the one that was verified, is no shorter, and still ends there in the same line."""
        self._directory.check(self.fd)
        same = self._directory.holds(name, self.fd)
        if same and self.size:
            length = self.chain.line_bytes
            last = self._files.pread(self.fd, length + 1, self.size - length - 1)
            same = last[-1:] == b"\n" and self.chain.is_head(last[:-1])
        if not same:
            raise LedgerFailed(StoreFault.HEAD_MISMATCH)

    def advance(self, snapshot: Snapshot, take: Callable[[Row], None] | None) -> None:
        """Verify on to the end of `snapshot`, giving each row to `take`. Raises `LedgerFailed`, `TornTail`.

        A writer also syncs what it read: whoever wrote it may have died before its fsync, and nothing may be done on
        the strength of a row that a power cut would take back.
        """
        ends = [name for name, size in snapshot if size]
        known = len(self.names)
        for name, size in snapshot:
            if not self.names or name > self.names[-1]:
                self._enter(name, 0)
            if size > self.size:
                self._read_to(size, take, is_last=name == ends[-1])
                if self._is_writer:
                    self._files.fsync(self.fd)
        if self._is_writer and len(self.names) > known:
            self._directory.sync()

    def _read_to(self, end: int, take: Callable[[Row], None] | None, *, is_last: bool) -> None:
        chain = self.chain
        for line, terminated in self._lines(end):
            try:
                if not terminated:
                    raise Malformed
                envelope = chain.advance(line)
            except Malformed:
                envelope = None
            if envelope is None:
                if is_last and self.size + len(line) + terminated == end and not is_row_after_hole(line):
                    raise TornTail(self.names[-1], self.size)
                raise LedgerFailed(StoreFault.CHAIN_BROKEN)
            self.size += len(line) + 1
            if take is not None and envelope["kind"] == KIND_ROW:
                take(row_of(envelope))

    def _lines(self, end: int) -> Iterator[tuple[bytes, bool]]:
        """The lines from the verified size to `end`, and whether each has its LF."""
        offset = self.size
        rest = b""
        while offset < end:
            chunk = self._files.pread(self.fd, min(_CHUNK_BYTES, end - offset), offset)
            if not chunk:
                raise LedgerFailed(StoreFault.HEAD_MISMATCH)
            offset += len(chunk)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                yield line, True
            if len(rest) > MAX_LINE_BYTES:
                raise LedgerFailed(StoreFault.CHAIN_BROKEN)
        if rest:
            yield rest, False

    def create(self, month: str) -> None:
        """Make the file of a month after all others; its header is due. The caller fsyncs file and directory."""
        self._enter(segment_name(month), os.O_CREAT | os.O_EXCL)

    def _enter(self, name: str, flags: int) -> None:
        fd = self._directory.open_file(name, self._flags | flags)
        if self.fd >= 0:
            self._files.close(self.fd)
        self.fd = fd
        self.size = 0
        self.names.append(name)
        self.chain.begin(month_of(name))

    def close(self) -> None:
        if self.fd >= 0:
            self._files.close(self.fd)
            self.fd = -1

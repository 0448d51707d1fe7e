"""What the ledger's tests share: a clock to set, ledgers built without fsync, and reading back."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from kexpr.clock import Instant
from kexpr.file_system import REAL, FileSystem, RealFileSystem
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.protocol import GENESIS_DIGEST, Head, Record, Row
from kexpr.ledger.rows import KIND_ROW, KIND_SEGMENT, Chain, encode

JANUARY = 1_768_000_000_000
"""2026-01-09 in Unix milliseconds."""
MONTH_MS = 31 * 24 * 3600 * 1000


@dataclass
class SetClock:
    utc_ms: int = JANUARY
    boottime_ms: int = 1_000

    def now(self) -> Instant:
        return Instant(self.utc_ms, self.boottime_ms, "boot")

    def monotonic(self) -> float:
        return self.boottime_ms / 1000


class Opened:
    """A ledger with its projected rows, closed at the end of a `with`."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: SetClock | None = None,
        files: FileSystem = REAL,
        genesis: str = GENESIS_DIGEST,
        expected: Head | None = None,
        wait_seconds: float = 10.0,
    ) -> None:
        self.rows: list[Row] = []
        self.clock = clock or SetClock()
        self.ledger = JsonlLedger.open(
            directory,
            projection=self.rows.append,
            clock=self.clock,
            files=files,
            genesis=genesis,
            expected=expected,
            wait_seconds=wait_seconds,
        )

    def append(self, record: Record) -> Row:
        with self.ledger.transaction() as transaction:
            return transaction.append(record)

    @property
    def records(self) -> list[Record]:
        return [row.record for row in self.rows]

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.ledger.close()


class RecordingFileSystem(RealFileSystem):
    """Notes the calls that make things durable, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def write(self, fd: int, data: bytes, /) -> int:
        self.calls.append("write")
        return os.write(fd, data)

    def fsync(self, fd: int, /) -> None:
        kind = "directory" if Path(f"/proc/self/fd/{fd}").is_dir() else "file"
        self.calls.append(f"fsync {kind}")
        os.fsync(fd)


def build(directory: Path, rows: int, *, per_segment: int = 1 << 60) -> Head:
    """A valid ledger of `rows` rows in one or more monthly segments, written without fsync."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    chain = Chain()
    record = {"attempt_id": "0" * 32, "phase": "claimed", "schema_version": 1, "surface": "daily.v1", "task": ""}
    for index, start in enumerate(range(0, rows, per_segment)):
        month = f"{2000 + index // 12}-{index % 12 + 1:02d}"
        chain.begin(month)
        lines = [_line(chain, KIND_SEGMENT, chain.header())]
        for row in range(start, min(rows, start + per_segment)):
            record["task"] = hashlib.sha256(str(row).encode()).hexdigest()
            lines.append(_line(chain, KIND_ROW, record))
        path = directory / f"ledger-{month}.jsonl"
        path.touch(0o600)
        path.write_bytes(b"\n".join(lines) + b"\n")
    return chain.head


def _line(chain: Chain, kind: str, record: Record) -> bytes:
    line = encode(
        kind,
        record,
        sequence=chain.sequence + 1,
        previous=chain.digest,
        utc="2000-01-01T00:00:00.000Z",
        lease=None,
        mode=None,
    )
    chain.advance(line)
    return line


def segment_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("ledger-*.jsonl"))


def raw_lines(directory: Path) -> list[bytes]:
    return [line for path in segment_files(directory) for line in path.read_bytes().splitlines()]

"""The audit mirror: one best-effort JSON line an outcome. It is never an authority and never read by one.

Rows cannot be joined to a ledger: the attempt id is an HMAC under a key that lives only in this process's memory, and
times are whole seconds (contract, section 7). Nothing is followed, and a file that is not private is not written.
"""

import hashlib
import hmac
import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kexpr.errors import TelemetryRefused
from kexpr.file_system import REAL, FileSystem
from kexpr.private_files import PrivateDirectory, coded, write_all
from kexpr.telemetry.record import OutcomeRecord, SinkName, TelemetryRecord, event_of

__all__ = ["AUDIT_SCHEMA_VERSION", "AuditMirror"]

AUDIT_SCHEMA_VERSION: Final = 1


class AuditMirror:
    """Appends to `directory/audit-YYYY-MM.jsonl`. `directory` is the host's `data/korean-expression-v1`.

    The directory is created 0700 when absent; it and the file (0600, one link) must be this user's own.
    """

    name: Final = SinkName.AUDIT

    def __init__(self, directory: Path, *, files: FileSystem = REAL) -> None:
        self._path = directory
        self._files = files
        self._key = secrets.token_bytes(32)
        self._torn = False

    def emit(self, record: TelemetryRecord) -> None:
        """Append one row. Raises `LedgerFailed` where the place is not private or cannot be written, and
        `TelemetryRefused` for a record outside the closed sets; neither has content.
        """
        if not isinstance(record, OutcomeRecord):
            return
        moment = datetime.fromtimestamp(record.at_utc_s, UTC)
        self._append(f"audit-{moment:%Y-%m}.jsonl", self._line(record, moment))

    def _line(self, record: OutcomeRecord, moment: datetime) -> bytes:
        codes = event_of(record)
        if codes is None:
            raise TelemetryRefused
        row = {
            "schema_version": AUDIT_SCHEMA_VERSION,
            "occurred_at_utc": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
            "surface": codes["surface"],
            "mode": codes["mode"],
            "opaque_attempt_id": self._opaque(record.attempt_id),
            "outcome_code": codes["outcome"],
        }
        return json.dumps(row, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"

    def _opaque(self, attempt_id: str) -> str:
        """Empty where there was no attempt."""
        if not attempt_id:
            return ""
        return hmac.new(self._key, attempt_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]

    @coded
    def _append(self, name: str, line: bytes) -> None:
        """Opened anew for each row: a file that was moved, or is no longer private, is not written."""
        directory = PrivateDirectory.open(self._path, files=self._files)
        try:
            fd = directory.open_file(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                self._write(fd, line)
            finally:
                self._files.close(fd)
        finally:
            directory.close()

    def _write(self, fd: int, line: bytes) -> None:
        """One write, never fsynced. After a torn one the next row starts on a line of its own."""
        data = b"\n" + line if self._torn else line
        self._torn = True
        write_all(self._files, fd, data)
        self._torn = False

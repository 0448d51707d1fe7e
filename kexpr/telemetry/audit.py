"""The audit mirror: one best-effort JSON line an outcome. It is never an authority and never read by one.

Rows cannot be joined to a ledger: the attempt id is an HMAC under a key that lives only in this process's memory, and
times are whole seconds (contract, section 7). Nothing is followed, and a file that is not private is not written.
"""

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kexpr.errors import TelemetryRefused
from kexpr.telemetry.record import OutcomeRecord, SinkName, TelemetryRecord, event_of

__all__ = ["AUDIT_SCHEMA_VERSION", "AuditMirror"]

AUDIT_SCHEMA_VERSION: Final = 1

_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""`O_NONBLOCK` so that a FIFO in the file's place is an error and not a wait."""


class AuditMirror:
    """Appends to `directory/audit-YYYY-MM.jsonl`. `directory` is the host's `data/korean-expression-v1`.

    The directory is created 0700 when absent; it and the file (0600, one link) must be this user's own.
    """

    name: Final = SinkName.AUDIT

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = secrets.token_bytes(32)
        self._torn = False

    def emit(self, record: TelemetryRecord) -> None:
        """Append one row; raises `TelemetryRefused`, without content, when it cannot."""
        if not isinstance(record, OutcomeRecord):
            return
        moment = datetime.fromtimestamp(record.at_utc_s, UTC)
        line = self._line(record, moment)
        try:
            self._append(f"audit-{moment:%Y-%m}.jsonl", line)
            return
        except OSError:
            pass
        raise TelemetryRefused

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

    def _append(self, name: str, line: bytes) -> None:
        try:
            os.mkdir(self._directory, 0o700)  # noqa: PTH102 - the mode must hold whatever Path does with parents
        except FileExistsError:
            pass
        directory = os.open(self._directory, _DIRECTORY_FLAGS)
        try:
            _check(os.fstat(directory), stat.S_ISDIR, 0o700)
            file = os.open(name, _FILE_FLAGS, 0o600, dir_fd=directory)
            try:
                status = os.fstat(file)
                _check(status, stat.S_ISREG, 0o600)
                if status.st_nlink != 1:
                    raise TelemetryRefused
                self._write(file, line)
            finally:
                os.close(file)
        finally:
            os.close(directory)

    def _write(self, file: int, line: bytes) -> None:
        """One write. After a torn one the next row starts on a line of its own."""
        data = b"\n" + line if self._torn else line
        self._torn = True
        if os.write(file, data) != len(data):
            raise TelemetryRefused
        self._torn = False


def _check(status: os.stat_result, is_kind: Callable[[int], bool], mode: int) -> None:
    if not is_kind(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != mode:
        raise TelemetryRefused

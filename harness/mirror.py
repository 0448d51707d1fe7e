"""Ingest of a gateway's audit mirror: best effort, lossy and unchained, so that it can only count against readiness.

Each month's file is counted up to a line, once: the evidence keeps how far, and the digest of what was counted. A
mirror that was rewritten since is refused. A line that is no mirror row is skipped and told by number of such lines.
"""

import hashlib
import json
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from harness.evidence.ledger import EvidenceLedger
from harness.evidence.rows import MirrorRow, MirrorTally
from harness.profiles import PAIRS, Pair, Profile
from kexpr.codes import NOT_ATTEMPTED, Mode, Outcome, Surface
from kexpr.telemetry.audit import AUDIT_SCHEMA_VERSION

__all__ = ["Ingested", "MirrorInvalid", "ingest"]

_NAME: Final = re.compile(r"audit-(20\d\d-(?:0[1-9]|1[0-2]))\.jsonl", re.ASCII)
_BYTES_MAX: Final = 256 * 1024 * 1024
_GOOD: Final = frozenset({Outcome.SELECTED, Outcome.SHADOW_SELECTED, *NOT_ATTEMPTED})
_MODES: Final = frozenset(map(str, Mode))
_OPAQUE: Final = re.compile("[0-9a-f]{32}|", re.ASCII)
_KEYS: Final = frozenset({"schema_version", "occurred_at_utc", "surface", "mode", "opaque_attempt_id", "outcome_code"})


class MirrorInvalid(Exception):
    """A file that cannot be counted; the message is a code."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """Of one file: rows counted now, those of them that count against readiness, and lines that are no rows."""

    rows: int
    failures: int
    skipped: int


def ingest(evidence: EvidenceLedger, profile: Profile, path: Path) -> Ingested:
    """Count what is new in `path` (`audit-YYYY-MM.jsonl`) for a profile; a line not ended yet is left for next time.

    Raises `MirrorInvalid`, and what the evidence raises.
    """
    name = _NAME.fullmatch(path.name)
    if name is None:
        raise MirrorInvalid("name_not_of_a_mirror")
    month = name[1]
    lines = _read(path).split(b"\n")[:-1]
    before = evidence.mirrored(profile, month)
    counted = before.lines if before else 0
    if before is not None and (len(lines) < counted or _digest(lines[:counted]) != before.mirror_digest):
        raise MirrorInvalid("mirror_rewritten")
    new = lines[counted:]
    if not new:
        return Ingested(0, 0, 0)
    rows = [row for row in (_row(line, profile, month) for line in new) if row is not None]
    tallies = _tallies(rows)
    evidence.record_mirror(MirrorRow(profile, month, len(lines), _digest(lines), tallies))
    return Ingested(len(rows), sum(tally.failures for tally in tallies), len(new) - len(rows))


_Row = tuple[Surface, str, bool]
"""Surface, UTC day and whether it counts against readiness."""


def _tallies(rows: list[_Row]) -> tuple[MirrorTally, ...]:
    total = Counter((surface, day) for surface, day, _ in rows)
    failures = Counter((surface, day) for surface, day, failed in rows if failed)
    return tuple(MirrorTally(*key, total[key], failures[key]) for key in sorted(total))


def _row(line: bytes, profile: Profile, month: str) -> _Row | None:
    """None for what is not exactly a row of the audit mirror of this month and profile."""
    try:
        value = json.loads(line)
        if type(value) is not dict or value.keys() != _KEYS or value["schema_version"] != AUDIT_SCHEMA_VERSION:
            return None
        surface, outcome = Surface(value["surface"]), Outcome(value["outcome_code"])
        moment = datetime.strptime(value["occurred_at_utc"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        known = value["mode"] in _MODES and _OPAQUE.fullmatch(value["opaque_attempt_id"]) is not None
    except (ValueError, TypeError, RecursionError):
        return None
    if not known or f"{moment:%Y-%m}" != month or Pair(profile, surface) not in PAIRS:
        return None
    return surface, moment.date().isoformat(), outcome not in _GOOD


def _read(path: Path) -> bytes:
    """Bytes of a regular file; a symbolic link, a device or a giant is refused."""
    fault = ""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise MirrorInvalid("not_readable") from None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            fault = "not_regular"
        elif status.st_size > _BYTES_MAX:
            fault = "too_large"
        else:
            return file.read(_BYTES_MAX)
    raise MirrorInvalid(fault)


def _digest(lines: list[bytes]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line + b"\n")
    return digest.hexdigest()

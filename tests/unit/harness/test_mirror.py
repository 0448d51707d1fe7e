"""An audit mirror is counted once, strictly, and only against readiness."""

import json
import os
from pathlib import Path

import pytest

from harness.cli import main
from harness.evidence import EvidenceLedger
from harness.evidence.summary import MirrorCount
from harness.mirror import Ingested, MirrorInvalid, ingest
from harness.profiles import PAIRS, Profile
from kexpr.codes import Mode, Outcome, Surface, WireVersion
from kexpr.telemetry.audit import AuditMirror
from kexpr.telemetry.record import OutcomeRecord
from kexpr.testing.canaries import Canaries
from tests.unit.harness.evidence_samples import SteppingClock

PROFILE = Profile.PHYSIQUE_COACH
AT_UTC_S = 1_790_000_000  # 2026-09-21


@pytest.fixture
def evidence(tmp_path: Path):
    opened = EvidenceLedger.open(tmp_path / "evidence", SteppingClock())
    yield opened
    opened.close()


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "mirror" / "audit-2026-09.jsonl"


def emit(mirror: Path, *outcomes: Outcome, surface: Surface = Surface.DAILY, days: int = 0) -> None:
    """Through the real mirror, as a gateway writes it."""
    sink = AuditMirror(mirror.parent)
    for outcome in outcomes:
        at_utc_s = AT_UTC_S + 86_400 * days
        record = OutcomeRecord(surface, Mode.SHADOW, WireVersion.KEXP_2, outcome, None, 5, "attempt", "p", at_utc_s)
        sink.emit(record)


def test_failures_are_counted_by_surface_and_day(evidence: EvidenceLedger, mirror: Path) -> None:
    emit(mirror, Outcome.SHADOW_SELECTED, Outcome.CANONICAL_TIMEOUT, Outcome.OVERLOADED)
    emit(mirror, Outcome.CANONICAL_INVALID, surface=Surface.WEEKLY, days=1)
    assert ingest(evidence, PROFILE, mirror) == Ingested(4, 2, 0)
    pairs = evidence.summary().pairs
    assert pairs[PAIRS[0]].mirror == (MirrorCount("2026-09-21", 3, 1),)
    assert pairs[PAIRS[1]].mirror == (MirrorCount("2026-09-22", 1, 1),)


def test_what_was_counted_is_not_counted_again(evidence: EvidenceLedger, mirror: Path) -> None:
    emit(mirror, Outcome.CANONICAL_TIMEOUT)
    ingest(evidence, PROFILE, mirror)
    head = evidence.head()
    assert ingest(evidence, PROFILE, mirror) == Ingested(0, 0, 0)
    assert evidence.head() == head
    emit(mirror, Outcome.CANONICAL_TIMEOUT)
    with mirror.open("ab") as file:
        file.write(b'{"schema_version":1,')
    assert ingest(evidence, PROFILE, mirror) == Ingested(1, 1, 0)
    assert evidence.summary().pairs[PAIRS[0]].mirror == (MirrorCount("2026-09-21", 2, 2),)


def test_a_rewritten_mirror_is_refused(evidence: EvidenceLedger, mirror: Path) -> None:
    emit(mirror, Outcome.CANONICAL_TIMEOUT, Outcome.SHADOW_SELECTED)
    ingest(evidence, PROFILE, mirror)
    whole = mirror.read_bytes()
    for other in (whole.splitlines(keepends=True)[1], whole.replace(b"canonical_timeout", b"shadow_selected")):
        mirror.write_bytes(other)
        with pytest.raises(MirrorInvalid, match=r"^mirror_rewritten$"):
            ingest(evidence, PROFILE, mirror)


@pytest.mark.parametrize(
    "change",
    [
        {"outcome_code": "fine"},
        {"outcome_code": ["canonical_timeout"]},
        {"surface": "adaptive_dualcoachtest"},
        {"mode": "loud"},
        {"schema_version": 2},
        {"schema_version": "1"},
        {"opaque_attempt_id": "민수"},
        {"occurred_at_utc": "2026-08-31T00:00:00Z"},
        {"occurred_at_utc": 5},
        {"note": "x"},
    ],
    ids=str,
)
def test_a_line_that_is_no_row_is_skipped(evidence: EvidenceLedger, mirror: Path, change: dict[str, object]) -> None:
    emit(mirror, Outcome.CANONICAL_TIMEOUT)
    row = json.loads(mirror.read_bytes()) | change
    mirror.write_bytes(json.dumps(row).encode() + b"\n")
    assert ingest(evidence, PROFILE, mirror) == Ingested(0, 0, 1)


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"null"])
def test_garbage_is_skipped(evidence: EvidenceLedger, mirror: Path, line: bytes) -> None:
    mirror.parent.mkdir()
    mirror.write_bytes(line + b"\n")
    assert ingest(evidence, PROFILE, mirror) == Ingested(0, 0, 1)


def test_only_a_regular_file_of_that_name_is_read(evidence: EvidenceLedger, mirror: Path, tmp_path: Path) -> None:
    mirror.parent.mkdir()
    os.mkfifo(mirror)
    with pytest.raises(MirrorInvalid, match=r"^not_regular$"):
        ingest(evidence, PROFILE, mirror)
    mirror.unlink()
    mirror.symlink_to(tmp_path / "elsewhere")
    for path, code in ((mirror, "not_readable"), (mirror.with_name("audit-2026-13.jsonl"), "name_not_of_a_mirror")):
        with pytest.raises(MirrorInvalid, match=f"^{code}$"):
            ingest(evidence, PROFILE, path)


def test_the_command_says_counts_and_nothing_of_the_mirror(mirror: Path, tmp_path: Path, capsys) -> None:
    emit(mirror, Outcome.CANONICAL_TIMEOUT)
    canaries = Canaries()
    with mirror.open("ab") as file:
        file.write(f'{{"text":"{canaries.plant("a line")}"}}\n'.encode())
    command = ["ingest", "--state", str(tmp_path / "state"), "--profile", "physique-coach", str(mirror)]
    assert main(command) == 0
    assert main(["ingest", "--state", str(tmp_path / "state"), "--profile", "physique-coach", str(tmp_path)]) == 3
    said = capsys.readouterr()
    assert said.out == "1 rows · 1 count against readiness · 1 lines skipped\n"
    assert said.err.endswith("name_not_of_a_mirror\n")
    evidence = b"".join(path.read_bytes() for path in (tmp_path / "state" / "evidence").glob("*.jsonl"))
    canaries.assert_absent({"out": said.out, "err": said.err, "evidence": evidence})

"""The audit mirror: exact rows, unjoinable ids, and nothing written where it is not private."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from kexpr.codes import Invalid, Outcome
from kexpr.errors import LedgerFailed, StoreFault, TelemetryRefused
from kexpr.file_system import RealFileSystem
from kexpr.telemetry import AuditMirror, ConfigInvalid, PrometheusSink, Telemetry
from tests.unit.telemetry.records import AT_UTC_S, REJECTED, STAMPED, FixedClock

NAME = "audit-2026-09.jsonl"


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "korean-expression-v1"


def _rows(directory, name=NAME):
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]


def test_a_row_has_exactly_the_six_keys(directory):
    AuditMirror(directory).emit(STAMPED)
    (row,) = _rows(directory)
    opaque = row.pop("opaque_attempt_id")
    assert row == {
        "schema_version": 1,
        "occurred_at_utc": "2026-09-21T14:13:20Z",
        "surface": "daily",
        "mode": "shadow",
        "outcome_code": "canonical_validation_rejected",
    }
    assert len(opaque) == 32
    assert int(opaque, 16)


def test_directory_and_file_are_private_whatever_the_umask(directory):
    before = os.umask(0)
    try:
        AuditMirror(directory).emit(STAMPED)
    finally:
        os.umask(before)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / NAME).stat().st_mode) == 0o600


def test_ids_join_to_nothing(directory):
    """One mirror: equal ids are equal. Another mirror, or another process: the same id reads differently."""
    first, second = AuditMirror(directory), AuditMirror(directory)
    for mirror in (first, first, second):
        mirror.emit(STAMPED)
    one, again, other = (row["opaque_attempt_id"] for row in _rows(directory))
    assert one == again != other
    assert "attempt-one" not in (directory / NAME).read_text()


def test_without_an_attempt_there_is_no_id(directory):
    AuditMirror(directory).emit(replace(STAMPED, outcome=Outcome.OVERLOADED, reason=None, attempt_id=""))
    assert _rows(directory)[0]["opaque_attempt_id"] == ""


def test_months_have_files_of_their_own(directory):
    mirror = AuditMirror(directory)
    mirror.emit(STAMPED)
    mirror.emit(replace(STAMPED, at_utc_s=AT_UTC_S + 15 * 86_400))
    assert sorted(path.name for path in directory.iterdir()) == [NAME, "audit-2026-10.jsonl"]


def test_a_record_outside_the_closed_sets_is_no_row(directory):
    with pytest.raises(TelemetryRefused):
        AuditMirror(directory).emit(replace(STAMPED, contract_version="free text"))
    assert not directory.exists()


def test_an_invalid_configuration_is_no_row(directory):
    AuditMirror(directory).emit(ConfigInvalid(Invalid.UNKNOWN_KEY))
    assert not directory.exists()


def _symlinked_directory(directory, outside):
    outside.mkdir(mode=0o700)
    directory.symlink_to(outside)


def _symlinked_file(directory, outside):
    directory.mkdir(mode=0o700)
    outside.touch(0o600)
    (directory / NAME).symlink_to(outside)


def _dangling_symlink(directory, outside):
    directory.mkdir(mode=0o700)
    (directory / NAME).symlink_to(outside)


def _hard_link(directory, outside):
    directory.mkdir(mode=0o700)
    outside.touch(0o600)
    os.link(outside, directory / NAME)


def _readable_directory(directory, outside):
    directory.mkdir()
    directory.chmod(0o755)


def _readable_file(directory, outside):
    directory.mkdir(mode=0o700)
    (directory / NAME).touch()
    (directory / NAME).chmod(0o644)


def _fifo(directory, outside):
    directory.mkdir(mode=0o700)
    os.mkfifo(directory / NAME, 0o600)


def _directory_as_file(directory, outside):
    directory.mkdir(mode=0o700)
    (directory / NAME).mkdir()


def _file_as_directory(directory, outside):
    directory.touch()


def _unwritable_parent(directory, outside):
    directory.parent.rmdir()
    directory.parent.touch()


@pytest.mark.parametrize(
    "attack",
    [
        _symlinked_directory,
        _symlinked_file,
        _dangling_symlink,
        _hard_link,
        _readable_directory,
        _readable_file,
        _fifo,
        _directory_as_file,
        _file_as_directory,
        _unwritable_parent,
    ],
)
def test_nothing_is_written_where_it_is_not_private(tmp_path, attack):
    parent = tmp_path / "parent"
    parent.mkdir()
    directory, outside = parent / "korean-expression-v1", tmp_path / "outside"
    attack(directory, outside)
    with pytest.raises(LedgerFailed) as refused:
        AuditMirror(directory).emit(STAMPED)
    assert str(refused.value) in tuple(StoreFault)
    assert refused.value.__context__ is None
    assert not outside.is_file() or outside.read_bytes() == b""
    assert not outside.is_dir() or list(outside.iterdir()) == []


def test_another_owner_is_refused(directory, monkeypatch):
    AuditMirror(directory).emit(STAMPED)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(LedgerFailed):
        AuditMirror(directory).emit(STAMPED)
    assert len(_rows(directory)) == 1


class _TearsTheFirstRow(RealFileSystem):
    torn = False

    def write(self, fd: int, data: bytes, /) -> int:
        tear, self.torn = not self.torn, True
        return os.write(fd, data[:10] if tear else data)


def test_a_torn_row_costs_only_itself(directory):
    mirror = AuditMirror(directory, files=_TearsTheFirstRow())
    with pytest.raises(LedgerFailed):
        mirror.emit(STAMPED)
    mirror.emit(STAMPED)
    torn, whole = (directory / NAME).read_text().splitlines()
    assert len(torn) == 10
    assert json.loads(whole)["outcome_code"] == STAMPED.outcome


def test_a_failure_costs_one_static_metric(directory):
    _file_as_directory(directory, None)
    registry = CollectorRegistry()
    telemetry = Telemetry([AuditMirror(directory), PrometheusSink(registry)], "physique-coach", clock=FixedClock())
    telemetry.emit(REJECTED)
    assert telemetry.close(5)
    assert registry.get_sample_value("kexpr_sink_failures_total", {"sink": "audit", "failure": "raised"}) == 1


def test_no_descriptor_is_left_open(directory):
    mirror = AuditMirror(directory)
    mirror.emit(STAMPED)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        mirror.emit(STAMPED)
    (directory / NAME).chmod(0o644)
    with pytest.raises(LedgerFailed):
        mirror.emit(STAMPED)
    assert len(list(Path("/proc/self/fd").iterdir())) == before

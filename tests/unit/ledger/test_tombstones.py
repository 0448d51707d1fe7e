"""Marks that must not be lost: durable, idempotent, private, and never mistaken."""

import os
from pathlib import Path

import pytest

from kexpr import failpoints
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.tombstones import Mark, Tombstones
from tests.unit.ledger.support import RecordingFileSystem

TASK, OTHER = "a" * 64, "b" * 64


def test_marks_last_and_are_of_one_task(tmp_path: Path) -> None:
    tombstones = Tombstones.open(tmp_path / "marks")
    assert tombstones.marks(TASK) == frozenset()
    tombstones.mark(TASK, Mark.CLAIMED)
    assert tombstones.marks(TASK) == {Mark.CLAIMED}
    tombstones.mark(TASK, Mark.SENDING)
    tombstones.close()
    again = Tombstones.open(tmp_path / "marks")
    assert again.marks(TASK) == {Mark.CLAIMED, Mark.SENDING}
    assert again.marks(OTHER) == frozenset()
    again.close()


def test_each_mark_syncs_file_and_directory_also_the_second_time(tmp_path: Path) -> None:
    files = RecordingFileSystem()
    tombstones = Tombstones.open(tmp_path / "marks", files=files)
    for _ in range(2):
        files.calls.clear()
        tombstones.mark(TASK, Mark.CLAIMED)
        assert files.calls == ["fsync file", "fsync directory"]
    tombstones.close()


def test_failpoint_comes_after_the_mark_is_durable(tmp_path: Path) -> None:
    files = RecordingFileSystem()
    tombstones = Tombstones.open(tmp_path / "marks", files=files)
    files.calls.clear()
    failpoints.install(files.calls.append)
    try:
        tombstones.mark(TASK, Mark.SENDING)
    finally:
        failpoints.install(None)
    assert files.calls == ["fsync file", "fsync directory", "tombstone.sending"]
    tombstones.close()


@pytest.mark.parametrize("digest", ["", "a", "A" * 64, "../" + "a" * 61, "a" * 63 + "/", "a" * 64 + "\n", "é" * 64])
def test_only_a_digest_names_a_task(tmp_path: Path, digest: str) -> None:
    tombstones = Tombstones.open(tmp_path / "marks")
    for use in (lambda: tombstones.mark(digest, Mark.CLAIMED), lambda: tombstones.marks(digest)):
        with pytest.raises(LedgerFailed):
            use()
    assert list((tmp_path / "marks").iterdir()) == []
    tombstones.close()


def test_a_mark_that_cannot_be_made_durable_is_a_fault(tmp_path: Path) -> None:
    class NoSync(RecordingFileSystem):
        works = True

        def fsync(self, fd: int, /) -> None:
            if not self.works:
                raise OSError(5, "Input/output error")

    files = NoSync()
    tombstones = Tombstones.open(tmp_path / "marks", files=files)
    files.works = False
    with pytest.raises(LedgerFailed) as caught:
        tombstones.mark(TASK, Mark.CLAIMED)
    assert caught.value.code is StoreFault.INPUT_OUTPUT
    tombstones.close()


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: Path(path).symlink_to("/etc/hostname")])
def test_anything_else_under_the_name_is_a_fault(tmp_path: Path, make: object) -> None:
    tombstones = Tombstones.open(tmp_path / "marks")
    assert callable(make)
    make(str(tmp_path / "marks" / f"{TASK}.claimed"))
    for use in (lambda: tombstones.mark(TASK, Mark.CLAIMED), lambda: tombstones.marks(TASK)):
        with pytest.raises(LedgerFailed) as caught:
            use()
        assert caught.value.code is StoreFault.NOT_REGULAR
    tombstones.close()

"""The simulated disk keeps what an fsync acknowledged, and nothing else for sure."""

import errno
import fcntl
import itertools
import os
import random
import stat

import pytest

from kexpr.testing.simulation.disk import SHORT, Draw, ProcessFiles, surviving_tails
from tests.unit.testing.simulation.support import WRITER, Computer


def drawing(*numbers: int) -> Draw:
    """The numbers in turn, each within its bound, the last one for ever."""
    endless = itertools.chain(numbers, itertools.repeat(numbers[-1]))
    return lambda bound: min(next(endless), bound - 1)


def directory_of(files: ProcessFiles) -> int:
    files.mkdir("/d", 0o700)
    root = files.open("/", os.O_RDONLY | os.O_DIRECTORY)
    files.fsync(root)
    return files.open("/d", os.O_RDONLY | os.O_DIRECTORY)


def synced_file(files: ProcessFiles, content: bytes = b"kept\n") -> int:
    directory = directory_of(files)
    fd = files.open("f", WRITER, dir_fd=directory)
    files.write(fd, content)
    files.fsync(fd)
    files.fsync(directory)
    return fd


@pytest.mark.parametrize("seed", range(50))
def test_what_was_synced_survives_every_power_cut(seed: int) -> None:
    computer = Computer()
    files = computer.process()
    fd = synced_file(files)
    files.write(fd, b"a row that was not synced\n")
    computer.disk.power_cut(random.Random(seed).randrange)
    content = computer.content("/d/f")
    assert content is not None
    assert content.startswith(b"kept\n")


def test_an_unsynced_write_is_lost_torn_zero_filled_or_whole() -> None:
    seen: set[bytes] = set()
    for seed in range(400):
        computer = Computer()
        files = computer.process()
        fd = synced_file(files, b"")
        files.write(fd, b"row\n")
        computer.disk.power_cut(random.Random(seed).randrange)
        seen.add(computer.content("/d/f") or b"")
    assert seen == set(surviving_tails(b"row\n"))


def test_the_states_of_one_write() -> None:
    assert set(surviving_tails(b"ab")) == {b"", b"a", b"ab", b"a\0", b"\0b", b"\0\0"}
    assert sum(1 for _ in surviving_tails(b"x" * 100, every=10)) == 101 + 2 * 10 + 1


@pytest.mark.parametrize("survives", [0, 1])
def test_a_name_whose_directory_was_not_synced_may_revert(survives: int) -> None:
    computer = Computer()
    files = computer.process()
    directory = directory_of(files)
    fd = files.open("f", WRITER, dir_fd=directory)
    files.write(fd, b"row\n")
    files.fsync(fd)
    assert computer.disk.durable_content("/d") == {}
    computer.disk.power_cut(drawing(survives))
    assert (computer.content("/d/f") is not None) == bool(survives)


def test_a_directory_that_was_not_synced_takes_its_files_along() -> None:
    computer = Computer()
    files = computer.process()
    files.mkdir("/d", 0o700)
    directory = files.open("/d", os.O_RDONLY | os.O_DIRECTORY)
    fd = files.open("f", WRITER, dir_fd=directory)
    files.fsync(fd)
    files.fsync(directory)
    assert computer.disk.durable_content("/d") == {}
    computer.disk.power_cut(drawing(0))
    assert computer.content("/d") is None


def test_after_a_failed_fsync_the_cache_lies() -> None:
    """The bytes can be read, later fsyncs succeed, and the disk has a hole where they were."""
    computer = Computer()
    files = computer.process()
    fd = synced_file(files)
    files.write(fd, b"lost\n")
    computer.faults.arm("fsync", errno.EIO)
    with pytest.raises(OSError, match="simulated"):
        files.fsync(fd)
    assert computer.disk.is_lying()
    files.write(fd, b"later\n")
    files.fsync(fd)
    assert computer.content("/d/f") == b"kept\nlost\nlater\n"
    assert computer.disk.durable_content("/d") == {"f": b"kept\nlost\nlater\n"}, "what the library was told"
    computer.disk.power_cut(drawing(0))
    assert computer.content("/d/f") == b"kept\n\0\0\0\0\0later\n"
    assert not computer.disk.is_lying()


def test_a_failed_fsync_is_reported_once_to_each_descriptor_that_was_open() -> None:
    computer = Computer()
    first, second = computer.process(1), computer.process(2)
    fd = synced_file(first)
    directory = second.open("/d", os.O_RDONLY | os.O_DIRECTORY)
    other = second.open("f", WRITER, dir_fd=directory)
    first.write(fd, b"lost\n")
    computer.faults.arm("fsync", errno.EIO)
    with pytest.raises(OSError, match="simulated"):
        first.fsync(fd)
    with pytest.raises(OSError, match="once"):
        second.fsync(other)
    second.fsync(other)
    second.fsync(second.open("f", WRITER, dir_fd=directory))


def test_a_short_write_and_a_full_disk() -> None:
    computer = Computer()
    files = computer.process()
    fd = synced_file(files, b"")
    computer.faults.arm("write", SHORT, countdown=2)
    assert files.write(fd, b"whole\n") == 6
    assert files.write(fd, b"half of it\n") == 5
    computer.faults.arm("write", errno.ENOSPC)
    with pytest.raises(OSError, match="simulated") as caught:
        files.write(fd, b"none\n")
    assert caught.value.errno == errno.ENOSPC
    assert computer.content("/d/f") == b"whole\nhalf "


def test_a_cut_that_was_not_synced_may_revert() -> None:
    for survives, content in ((0, b"kept\n"), (2, b"ke")):
        computer = Computer()
        files = computer.process()
        fd = synced_file(files)
        files.ftruncate(fd, 2)
        assert computer.content("/d/f") == b"ke"
        computer.disk.power_cut(drawing(survives))
        assert computer.content("/d/f") == content


def test_files_look_private() -> None:
    computer = Computer()
    files = computer.process(slot=7)
    status = files.fstat(synced_file(files))
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_nlink, status.st_dev) == (0o600, os.geteuid(), 1, 7)
    assert stat.S_ISREG(status.st_mode)
    assert stat.S_ISDIR(files.stat("/d").st_mode)


def test_names_that_are_there_and_that_are_not() -> None:
    computer = Computer()
    files = computer.process()
    directory = directory_of(files)
    with pytest.raises(FileNotFoundError):
        files.open("f", os.O_RDONLY, dir_fd=directory)
    files.close(files.open("f", WRITER | os.O_EXCL, dir_fd=directory))
    with pytest.raises(FileExistsError):
        files.open("f", WRITER | os.O_EXCL, dir_fd=directory)
    with pytest.raises(FileExistsError):
        files.mkdir("/d", 0o700)
    with pytest.raises(NotADirectoryError):
        files.open("/d/f", os.O_RDONLY | os.O_DIRECTORY)
    assert files.listdir(directory) == ["f"]


def test_a_lock_is_held_by_one_description_until_it_or_its_process_ends() -> None:
    computer = Computer()
    first, second = computer.process(1), computer.process(2)
    fd = synced_file(first)
    other = second.open("/d/f", WRITER)
    for let_go in (lambda: first.flock(fd, fcntl.LOCK_UN), first.release):
        first.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(RuntimeError):
            second.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        let_go()
        second.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        second.flock(other, fcntl.LOCK_UN)
    with pytest.raises(OSError, match="closed"):
        first.pread(fd, 1, 0)


def test_a_backup_is_what_it_was() -> None:
    computer = Computer()
    files = computer.process()
    fd = synced_file(files)
    backup = computer.disk.copy_of("/d")
    before = files.fstat(fd).st_ino
    files.write(fd, b"more\n")
    files.fsync(fd)
    computer.disk.put_back("/d", backup)
    assert computer.content("/d/f") == b"kept\n"
    assert files.stat("/d/f").st_ino != before
    with pytest.raises(KeyError):
        computer.disk.copy_of("/absent")


def test_a_cut_whose_fsync_failed_is_made_by_the_next_one() -> None:
    """As a repair that failed, and was done again: what was cut off is not what the disk owes."""
    computer = Computer()
    files = computer.process()
    fd = synced_file(files)
    files.write(fd, b"torn")
    files.ftruncate(fd, 5)
    computer.faults.arm("fsync", errno.EIO)
    with pytest.raises(OSError, match="simulated"):
        files.fsync(fd)
    files.write(fd, b"later\n")
    files.fsync(fd)
    assert not computer.disk.is_lying()
    assert computer.disk.durable_content("/d") == {"f": b"kept\nlater\n"}

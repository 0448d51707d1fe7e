"""Private directories and files against what may have been planted there; the identity key."""

import fcntl
import functools
import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.file_system import FileStatus, RealFileSystem
from kexpr.private_files import KEY_NAME, PrivateDirectory, genesis_digest, identity_key
from tests.unit.ledger.support import RecordingFileSystem


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "private"


def code_of(use: Callable[[], object]) -> StoreFault:
    with pytest.raises(LedgerFailed) as caught:
        use()
    assert caught.value.__context__ is None
    return caught.value.code


def test_missing_parents_are_made_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        PrivateDirectory.open(tmp_path / "a" / "b" / "c").close()
    finally:
        os.umask(old)
    for name in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def test_each_made_directory_is_synced_in_its_parent(tmp_path: Path) -> None:
    files = RecordingFileSystem()
    PrivateDirectory.open(tmp_path / "a" / "b", files=files).close()
    assert files.calls == ["fsync directory"] * 3  # also the one that was there, in its parent


def test_a_directory_that_is_there_is_synced_in_its_parent(tmp_path: Path) -> None:
    """Whoever made it may have died before its fsync: a power cut would take it, and every row in it."""
    (tmp_path / "made").mkdir(mode=0o700)
    files = RecordingFileSystem()
    PrivateDirectory.open(tmp_path / "made", files=files).close()
    assert files.calls == ["fsync directory"]
    PrivateDirectory.open(tmp_path / "made", files=files, create=False).close()
    assert files.calls == ["fsync directory"]


def test_a_parent_that_may_not_be_read_holds_what_others_made(tmp_path: Path) -> None:
    class Unreadable(RecordingFileSystem):
        def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
            if path == str(tmp_path):
                raise PermissionError
            return super().open(path, flags, mode, dir_fd=dir_fd)

    (tmp_path / "made").mkdir(mode=0o700)
    files = Unreadable()
    PrivateDirectory.open(tmp_path / "made", files=files).close()
    assert files.calls == []


def test_without_create_nothing_is_made(place: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PrivateDirectory.open(place, create=False)
    assert not place.exists()


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o750, 0o755, 0o777, 0o600, 0o500])
def test_directory_of_another_mode(place: Path, mode: int) -> None:
    place.mkdir()
    place.chmod(mode)
    assert code_of(lambda: PrivateDirectory.open(place)) is StoreFault.NOT_PRIVATE


def test_directory_behind_a_link(tmp_path: Path, place: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    place.symlink_to(tmp_path / "real")
    assert code_of(lambda: PrivateDirectory.open(place)) is StoreFault.NOT_REGULAR


def test_file_in_place_of_the_directory(place: Path) -> None:
    place.touch(0o600)
    assert code_of(lambda: PrivateDirectory.open(place)) is StoreFault.NOT_REGULAR


class OthersFiles(RealFileSystem):
    """As if everything of one kind belonged to somebody else."""

    def __init__(self, is_kind: Callable[[int], bool]) -> None:
        self._is_kind = is_kind

    def fstat(self, fd: int, /) -> FileStatus:
        return self._owned(os.fstat(fd))

    def stat(self, path: str, *, dir_fd: int | None = None, follow_symlinks: bool = False) -> FileStatus:
        return self._owned(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks))

    def _owned(self, status: os.stat_result) -> FileStatus:
        fields = list(status)
        fields[stat.ST_UID] += self._is_kind(status.st_mode)
        return os.stat_result(fields)


def test_directory_of_another_user(place: Path) -> None:
    files = OthersFiles(stat.S_ISDIR)
    assert code_of(lambda: PrivateDirectory.open(place, files=files)) is StoreFault.NOT_PRIVATE


class Mounted(RealFileSystem):
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def mount_type(self, fd: int, /) -> str:
        return self._kind


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", ""])
def test_network_file_system(place: Path, kind: str) -> None:
    files = Mounted(kind)
    assert code_of(lambda: PrivateDirectory.open(place, files=files)) is StoreFault.NETWORK_FILE_SYSTEM


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def touch(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.touch()
        path.chmod(mode)

    return make


PLANTED: dict[str, tuple[Callable[[Path], object], StoreFault]] = {
    "link": (lambda path: path.symlink_to("/etc/hostname"), StoreFault.NOT_REGULAR),
    "dangling link": (lambda path: path.symlink_to("/nowhere/at/all"), StoreFault.NOT_REGULAR),
    "fifo": (lambda path: os.mkfifo(path, 0o600), StoreFault.NOT_REGULAR),
    "socket": (make_socket, StoreFault.NOT_REGULAR),
    "directory": (lambda path: path.mkdir(0o600), StoreFault.NOT_REGULAR),
    "group-readable": (touch(0o640), StoreFault.NOT_PRIVATE),
    "read-only": (touch(0o400), StoreFault.NOT_PRIVATE),
    "set-uid": (touch(0o4600), StoreFault.NOT_PRIVATE),
}


@pytest.mark.parametrize(("plant", "code"), PLANTED.values(), ids=PLANTED.keys())
def test_planted_file(place: Path, plant: Callable[[Path], object], code: StoreFault) -> None:
    directory = PrivateDirectory.open(place)
    plant(place / "x")
    assert code_of(lambda: directory.read("x")) is code
    assert code_of(lambda: directory.open_file("x", os.O_RDWR)) is code
    assert code_of(lambda: directory.exists("x")) is code
    with pytest.raises(FileExistsError):
        directory.create("x", b"data")
    directory.close()


def test_hard_link(tmp_path: Path, place: Path) -> None:
    directory = PrivateDirectory.open(place)
    directory.create("x", b"data")
    os.link(place / "x", tmp_path / "other")
    assert code_of(lambda: directory.read("x")) is StoreFault.NOT_PRIVATE
    directory.close()


def test_file_of_another_user(place: Path) -> None:
    directory = PrivateDirectory.open(place, files=OthersFiles(stat.S_ISREG))
    (place / "x").touch(0o600)
    assert code_of(lambda: directory.read("x")) is StoreFault.NOT_PRIVATE
    directory.close()


def test_create_read_exists(place: Path) -> None:
    old = os.umask(0)
    directory = PrivateDirectory.open(place)
    try:
        directory.create("x", b"data")
    finally:
        os.umask(old)
    assert directory.read("x") == b"data"
    assert directory.exists("x")
    assert not directory.exists("y")
    assert directory.names() == ["x"]
    assert stat.S_IMODE((place / "x").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        directory.create("x", b"other")
    with pytest.raises(FileNotFoundError):
        directory.read("y")
    assert directory.read("x") == b"data"
    assert code_of(lambda: directory.read("x", limit_bytes=3)) is StoreFault.NOT_REGULAR
    directory.close()


def test_use_of_a_closed_descriptor_is_a_code(place: Path) -> None:
    directory = PrivateDirectory.open(place)
    directory.close()
    assert code_of(directory.names) is StoreFault.INPUT_OUTPUT


# The key


def test_key_is_random_private_and_lasting(tmp_path: Path) -> None:
    one, two = (PrivateDirectory.open(tmp_path / name) for name in ("one", "two"))
    key = identity_key(one, ledger_is_empty=True)
    assert len(key) == 32
    assert key != identity_key(two, ledger_is_empty=True)
    assert stat.S_IMODE((tmp_path / "one" / KEY_NAME).stat().st_mode) == 0o600
    assert identity_key(one, ledger_is_empty=True) == key
    assert identity_key(one, ledger_is_empty=False) == key
    one.close()
    two.close()


def test_key_is_not_made_beside_a_journal(place: Path) -> None:
    directory = PrivateDirectory.open(place)
    assert code_of(lambda: identity_key(directory, ledger_is_empty=False)) is StoreFault.KEY_MISSING
    assert directory.names() == []
    directory.close()


def test_key_is_durable_before_it_is_used_also_when_another_process_made_it(place: Path) -> None:
    files = RecordingFileSystem()
    directory = PrivateDirectory.open(place, files=files)
    for made in (["write"], []):
        files.calls.clear()
        identity_key(directory, ledger_is_empty=True)
        assert files.calls == [*made, "fsync file", "fsync directory"]
    directory.close()


def test_key_in_the_making_is_waited_for(place: Path) -> None:
    directory = PrivateDirectory.open(place)
    keys: list[bytes] = []
    thread = threading.Thread(target=lambda: keys.append(identity_key(directory, ledger_is_empty=True)))
    path = place / KEY_NAME
    path.touch(0o600)
    with path.open("wb", buffering=0) as maker:
        fcntl.flock(maker, fcntl.LOCK_EX)
        maker.write(b"k" * 16)
        thread.start()
        time.sleep(0.05)
        maker.write(b"k" * 16)
    thread.join()
    assert keys == [b"k" * 32]
    directory.close()


@pytest.mark.parametrize("length", [0, 1, 31])
def test_key_that_a_crash_cut_short(place: Path, length: int) -> None:
    directory = PrivateDirectory.open(place)
    directory.create(KEY_NAME, b"k" * length)
    assert code_of(lambda: identity_key(directory, ledger_is_empty=False)) is StoreFault.KEY_MISMATCH
    key = identity_key(directory, ledger_is_empty=True)
    assert directory.read(KEY_NAME) == key
    assert len(key) == 32
    directory.close()


def test_key_of_another_length_is_nobody_s_to_replace(place: Path) -> None:
    directory = PrivateDirectory.open(place)
    directory.create(KEY_NAME, b"k" * 33)
    for empty in (True, False):
        assert code_of(functools.partial(identity_key, directory, ledger_is_empty=empty)) is StoreFault.KEY_MISMATCH
    assert directory.read(KEY_NAME) == b"k" * 33
    directory.close()


def test_key_behind_a_link(tmp_path: Path, place: Path) -> None:
    directory = PrivateDirectory.open(place)
    (tmp_path / "key").write_bytes(b"k" * 32)
    (place / KEY_NAME).symlink_to(tmp_path / "key")
    for empty in (True, False):
        assert code_of(functools.partial(identity_key, directory, ledger_is_empty=empty)) is StoreFault.NOT_REGULAR
    directory.close()


def test_genesis_digest_is_a_fixed_function_of_the_key() -> None:
    assert genesis_digest(b"\x00" * 32) == "c82152f660fa99842ccc551c504c72ac0d66460bfe53e6b1a4b7a2ea4cd4178a"
    assert genesis_digest(b"\x01" * 32) != genesis_digest(b"\x00" * 32)

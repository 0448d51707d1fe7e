"""Directories and files of one user: 0700 and 0600, own uid, regular, one link, never through a symbolic link.

Everything is opened relative to a directory descriptor, and checked on the open descriptor, so that nothing can be
swapped between check and use. Creation is durable: the file is fsynced, then its directory.
"""

import errno
import fcntl
import functools
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, Self, TypeVar

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.file_system import REAL, FileStatus, FileSystem, is_local

__all__ = [
    "KEY_BYTES",
    "KEY_NAME",
    "PrivateDirectory",
    "coded",
    "fault_of",
    "genesis_digest",
    "identity_key",
    "write_all",
]

P = ParamSpec("P")
T = TypeVar("T")

KEY_NAME: Final = "identity.key"
KEY_BYTES: Final = 32

_GENESIS_DOMAIN: Final = b"kexpr.ledger.genesis.v1"
_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""`O_NONBLOCK` so that a planted FIFO cannot hang the open; regular files do not know it."""

_FAULT_OF_ERRNO: Final = {
    errno.ELOOP: StoreFault.NOT_REGULAR,
    errno.ENOTDIR: StoreFault.NOT_REGULAR,
    errno.EISDIR: StoreFault.NOT_REGULAR,
    errno.ENXIO: StoreFault.NOT_REGULAR,
}


def fault_of(error: OSError) -> StoreFault:
    """The code of an operating-system error; its text, which may name a path, goes nowhere."""
    return _FAULT_OF_ERRNO.get(error.errno or 0, StoreFault.INPUT_OUTPUT)


def coding(*answers: type[OSError]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator that turns operating-system errors into codes, except for `answers`.

    The code is raised after the handler, so that no path travels along in `__context__`.
    """

    def decorate(call: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(call)
        def coded_call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return call(*args, **kwargs)
            except answers:
                raise
            except OSError as error:
                fault = fault_of(error)
            raise LedgerFailed(fault)

        return coded_call

    return decorate


coded: Final = coding(FileNotFoundError, FileExistsError)
"""For single steps: the file that is or is not there is an answer, not a fault."""


class PrivateDirectory:
    """One private directory, held open; safe to share between threads.

    All methods raise `LedgerFailed`. `FileNotFoundError` and `FileExistsError` pass through: they are answers.
    """

    def __init__(self, path: Path, fd: int, files: FileSystem) -> None:
        """Use `open`."""
        self.path = path
        self.fd = fd
        self.files = files

    @classmethod
    def open(cls, path: Path, *, files: FileSystem = REAL, create: bool = True) -> Self:
        """Open `path`, creating it (and missing parents) as 0700 where `create`.

        Raises `LedgerFailed`: `NOT_PRIVATE`, `NOT_REGULAR`, `NETWORK_FILE_SYSTEM` or `INPUT_OUTPUT`.
        """
        absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the last link
        return cls(absolute, _open_directory(absolute, files, create), files)

    @coded
    def open_file(self, name: str, flags: int) -> int:
        """Open and check a private regular file; the caller closes the descriptor."""
        fd = self.files.open(name, flags | _FILE_FLAGS, 0o600, dir_fd=self.fd)
        try:
            self.check(fd)
        except BaseException:
            self.files.close(fd)
            raise
        return fd

    @coded
    def check(self, fd: int) -> None:
        """Raises `LedgerFailed` unless the open file is private now."""
        _check_file(self.files.fstat(fd))

    @coded
    def create(self, name: str, data: bytes) -> None:
        """Create `name` with `data`, durably; raises `FileExistsError` when there is one already."""
        fd = self.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(self.files, fd, data)
            self.files.fsync(fd)
        finally:
            self.files.close(fd)
        self.sync()

    @coded
    def read(self, name: str, *, limit_bytes: int = 1 << 16) -> bytes:
        """The content of a private file; raises `FileNotFoundError`, and `NOT_REGULAR` over `limit_bytes`."""
        fd = self.open_file(name, os.O_RDONLY)
        try:
            content = self.files.pread(fd, limit_bytes + 1, 0)
        finally:
            self.files.close(fd)
        if len(content) > limit_bytes:
            raise LedgerFailed(StoreFault.NOT_REGULAR)
        return content

    @coded
    def size(self, name: str) -> int:
        """Bytes of a private file, by its name."""
        status = self.files.stat(name, dir_fd=self.fd)
        _check_file(status)
        return status.st_size

    def exists(self, name: str) -> bool:
        """Whether a private file of that name is there; anything else under the name is a fault."""
        try:
            self.size(name)
        except FileNotFoundError:
            return False
        return True

    @coded
    def names(self) -> list[str]:
        return self.files.listdir(self.fd)

    @coded
    def sync(self) -> None:
        """Make created names durable."""
        self.files.fsync(self.fd)

    @coded
    def holds(self, name: str, fd: int) -> bool:
        """Whether `name` still leads to the open `fd`."""
        try:
            there = self.files.stat(name, dir_fd=self.fd)
        except FileNotFoundError:
            return False
        return _identity(there) == _identity(self.files.fstat(fd))

    @coded
    def is_in_place(self) -> bool:
        """Whether the path of this directory still leads to this directory."""
        try:
            here = self.files.stat(str(self.path))
        except FileNotFoundError:
            return False
        return _identity(here) == _identity(self.files.fstat(self.fd))

    def close(self) -> None:
        self.files.close(self.fd)


def write_all(files: FileSystem, fd: int, data: bytes) -> None:
    """One write; a short one is an error, since what follows it would not be atomic."""
    if files.write(fd, data) != len(data):
        raise LedgerFailed(StoreFault.INPUT_OUTPUT)


@coded
def _open_directory(path: Path, files: FileSystem, create: bool) -> int:
    if create:
        _make_directory(path, files)
    fd = files.open(str(path), _DIRECTORY_FLAGS)
    try:
        _check_directory(files.fstat(fd))
        if not is_local(files.mount_type(fd)):
            raise LedgerFailed(StoreFault.NETWORK_FILE_SYSTEM)
    except BaseException:
        files.close(fd)
        raise
    return fd


def _make_directory(path: Path, files: FileSystem) -> None:
    """Create `path` and its missing parents as 0700, each durable in its parent.

    Also of one that is there: whoever made it may have died before its fsync, and what is written below it would go
    with it in a power cut. A parent that may not be read is not ours to have made it in.
    """
    try:
        files.stat(str(path))
    except FileNotFoundError:
        _make_directory(path.parent, files)
        try:
            files.mkdir(str(path), 0o700)
        except FileExistsError:
            pass
    try:
        parent = files.open(str(path.parent), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        files.fsync(parent)
    finally:
        files.close(parent)


def _check_directory(status: FileStatus) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise LedgerFailed(StoreFault.NOT_REGULAR)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o777 != 0o700:
        raise LedgerFailed(StoreFault.NOT_PRIVATE)


def _check_file(status: FileStatus) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise LedgerFailed(StoreFault.NOT_REGULAR)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != 0o600 or status.st_nlink != 1:
        raise LedgerFailed(StoreFault.NOT_PRIVATE)


def _identity(status: FileStatus) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def identity_key(directory: PrivateDirectory, *, ledger_is_empty: bool) -> bytes:
    """The directory's random 32-byte key, created only where no journal exists (authorities, "The rule above all").

    Raises `LedgerFailed`: `KEY_MISSING` when there is a journal but no key, `KEY_MISMATCH` when the file is not a key.
    A file that a crash left too short before there was a journal has bound nothing, and is made anew.
    """
    try:
        fd = directory.open_file(KEY_NAME, os.O_RDWR | (os.O_CREAT if ledger_is_empty else 0))
    except FileNotFoundError:
        fd = None
    if fd is None:
        raise LedgerFailed(StoreFault.KEY_MISSING)
    try:
        return _key_of(directory, fd, ledger_is_empty)
    finally:
        directory.files.close(fd)


@coded
def _key_of(directory: PrivateDirectory, fd: int, may_create: bool) -> bytes:
    files = directory.files
    files.flock(fd, fcntl.LOCK_EX)
    key = files.pread(fd, KEY_BYTES + 1, 0)
    if may_create and len(key) < KEY_BYTES:
        files.ftruncate(fd, 0)
        key = secrets.token_bytes(KEY_BYTES)
        write_all(files, fd, key)
    if len(key) != KEY_BYTES:
        raise LedgerFailed(StoreFault.KEY_MISMATCH)
    if may_create:
        files.fsync(fd)
        files.fsync(directory.fd)
    return key


def genesis_digest(key: bytes) -> str:
    """What binds a journal to its key: the `previous` of its first row. Says nothing about the key."""
    return hashlib.sha256(hmac.digest(key, _GENESIS_DOMAIN, "sha256")).hexdigest()

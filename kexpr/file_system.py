"""The few operating-system calls that durable state goes through, behind one small seam.

A simulated disk replaces `RealFileSystem` in tests; everything above it (private directories, the ledger, tombstones)
is written against `FileSystem` alone. Calls have the meaning and the errors (`OSError`) of their namesakes in `os`.
"""

import fcntl
import os
from pathlib import Path
from typing import Final, Protocol

__all__ = ["REAL", "FileStatus", "FileSystem", "RealFileSystem", "is_local", "mount_type_in"]


class FileStatus(Protocol):
    """The part of `os.stat_result` that is looked at."""

    @property
    def st_mode(self) -> int: ...
    @property
    def st_ino(self) -> int: ...
    @property
    def st_dev(self) -> int: ...
    @property
    def st_nlink(self) -> int: ...
    @property
    def st_uid(self) -> int: ...
    @property
    def st_size(self) -> int: ...


class FileSystem(Protocol):
    """Names are relative to `dir_fd` where one is given."""

    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int: ...
    def mkdir(self, path: str, mode: int, /) -> None: ...
    def stat(self, path: str, *, dir_fd: int | None = None, follow_symlinks: bool = False) -> FileStatus: ...
    def fstat(self, fd: int, /) -> FileStatus: ...
    def listdir(self, fd: int, /) -> list[str]: ...
    def pread(self, fd: int, length: int, offset: int, /) -> bytes: ...
    def write(self, fd: int, data: bytes, /) -> int: ...
    def fsync(self, fd: int, /) -> None: ...
    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def flock(self, fd: int, operation: int, /) -> None: ...
    def close(self, fd: int, /) -> None: ...

    def mount_type(self, fd: int, /) -> str:
        """The type of the file system that holds `fd`, as in `/proc/self/mountinfo`; empty where it is not known."""
        ...


class RealFileSystem:
    """The machine's own."""

    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        return os.open(path, flags, mode, dir_fd=dir_fd)

    def mkdir(self, path: str, mode: int, /) -> None:
        os.mkdir(path, mode)  # noqa: PTH102 - the seam mirrors os

    def stat(self, path: str, *, dir_fd: int | None = None, follow_symlinks: bool = False) -> FileStatus:
        return os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    def fstat(self, fd: int, /) -> FileStatus:
        return os.fstat(fd)

    def listdir(self, fd: int, /) -> list[str]:
        return os.listdir(fd)

    def pread(self, fd: int, length: int, offset: int, /) -> bytes:
        return os.pread(fd, length, offset)

    def write(self, fd: int, data: bytes, /) -> int:
        return os.write(fd, data)

    def fsync(self, fd: int, /) -> None:
        os.fsync(fd)

    def ftruncate(self, fd: int, length: int, /) -> None:
        os.ftruncate(fd, length)

    def flock(self, fd: int, operation: int, /) -> None:
        fcntl.flock(fd, operation)

    def close(self, fd: int, /) -> None:
        os.close(fd)

    def mount_type(self, fd: int, /) -> str:
        """By mount id, which unlike the device number is exact on btrfs and for bind mounts."""
        about = Path(f"/proc/self/fdinfo/{fd}").read_text("ascii")
        mount_id = next((line.split()[1] for line in about.splitlines() if line.startswith("mnt_id:")), "")
        return mount_type_in(Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape"), mount_id)


REAL: Final = RealFileSystem()

# fmt: off
_NETWORK_TYPES: Final = frozenset({
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs",
    "lustre", "ncp", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb2", "smb3",
    "smbfs", "vboxsf", "virtiofs", "vmhgfs",
})
# fmt: on
"""Where `flock` or `fsync` may not mean what they mean on a local disk: network, cluster and shared-folder types."""

_LOCAL_FUSE: Final = frozenset({"fuseblk", "fuse.fuse-overlayfs"})


def mount_type_in(mountinfo: str, mount_id: str) -> str:
    """The type of mount `mount_id` in the text of a `mountinfo` (proc(5)); empty when it is not listed."""
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        if mount.partition(" ")[0] == mount_id and source:
            return source.split(" ")[0]
    return ""


def is_local(mount_type: str) -> bool:
    """False for network types, for FUSE (sshfs, s3fs, rclone…) but two local kinds, and for what is not known."""
    if mount_type.startswith("fuse"):
        return mount_type in _LOCAL_FUSE
    return mount_type != "" and mount_type not in _NETWORK_TYPES

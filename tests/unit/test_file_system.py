"""Which mounts durable state may live on."""

import os
from pathlib import Path

import pytest

from kexpr.file_system import REAL, is_local, mount_type_in

MOUNTINFO = """\
21 27 0:20 / /sys rw,nosuid - sysfs sysfs rw
27 0 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 27 0:44 / /mnt/with\\040space rw,relatime shared:2 master:1 - nfs4 host:/export rw,vers=4.2
32 31 0:45 / /mnt/with\\040space/deep rw - fuse.sshfs me@host:/ rw
271 27 8:1 / /data rw - xfs /dev/sda1 rw
"""


@pytest.mark.parametrize(
    ("mount_id", "kind"),
    [("27", "ext4"), ("31", "nfs4"), ("32", "fuse.sshfs"), ("271", "xfs"), ("2", ""), ("99", ""), ("", "")],
)
def test_type_by_mount_id(mount_id: str, kind: str) -> None:
    assert mount_type_in(MOUNTINFO, mount_id) == kind


def test_real_mounts() -> None:
    for path, kind in (("/proc", "proc"), ("/dev/shm", "tmpfs")):
        if not Path(path).is_dir():
            pytest.skip(f"{path} is not there")
        fd = os.open(path, os.O_RDONLY)
        try:
            assert REAL.mount_type(fd) == kind
        finally:
            os.close(fd)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs", "fuse.fuse-overlayfs"])
def test_local(kind: str) -> None:
    assert is_local(kind)


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse.sshfs", "fuse.s3fs", "fuse", "ocfs2", ""]
)
def test_not_known_to_be_local(kind: str) -> None:
    assert not is_local(kind)

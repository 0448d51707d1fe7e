"""Lease sidecars: one private file an attempt, beside a journal whose exact rows have no place for a lease.

`lease-<attempt id>` holds the boot id and the deadlines. It is durable before the attempt's row. Missing, torn or
malformed means expired; what is not a private file is a fault (authorities, "Time").
"""

from typing import Final, Protocol

import orjson

from kexpr.clock import Lease
from kexpr.private_files import PrivateDirectory

__all__ = ["Leases", "SidecarLeases"]

_KEYS: Final = ("boot_id", "boottime_deadline_ms", "utc_deadline_ms")


class Leases(Protocol):
    """Both raise `LedgerFailed`."""

    def put(self, attempt_id: str, lease: Lease) -> None:
        """Make the lease of a new attempt durable."""
        ...

    def get(self, attempt_id: str) -> Lease | None: ...

    def close(self) -> None: ...


class SidecarLeases:
    """In the journal's own directory. A sidecar of an attempt that has ended means nothing and may be removed."""

    def __init__(self, directory: PrivateDirectory) -> None:
        self._directory = directory

    def put(self, attempt_id: str, lease: Lease) -> None:
        fields = {key: getattr(lease, key) for key in _KEYS}
        self._directory.create(_name(attempt_id), orjson.dumps(fields, option=orjson.OPT_SORT_KEYS))

    def get(self, attempt_id: str) -> Lease | None:
        try:
            content = self._directory.read(_name(attempt_id))
        except FileNotFoundError:
            return None
        return _lease_of(content)

    def close(self) -> None:
        self._directory.close()


def _name(attempt_id: str) -> str:
    return f"lease-{attempt_id}"


def _lease_of(content: bytes) -> Lease | None:
    try:
        fields = orjson.loads(content)
    except ValueError:
        return None
    if type(fields) is not dict or tuple(fields) != _KEYS:
        return None
    boot_id, boottime_ms, utc_ms = fields.values()
    if type(boottime_ms) is not int or type(utc_ms) is not int or type(boot_id) not in (str, type(None)):
        return None
    return Lease(utc_ms, boottime_ms, boot_id)

"""Exact records: a frozen dataclass is the schema, its field names and types are all a record may hold."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, get_args

from kexpr.clock import Instant, Lease
from kexpr.codes import FINAL_OUTCOMES, Outcome
from kexpr.ledger.protocol import Record

__all__ = ["IllegalHistory", "deadline_of", "digest_of", "final_outcome", "from_record", "require", "to_record"]

T = TypeVar("T")


class IllegalHistory(Exception):
    """A verified row that this authority could not have written. The ledger turns it into `ILLEGAL_HISTORY`."""


def require(condition: bool) -> None:
    """Refuse the row unless `condition` holds."""
    if not condition:
        raise IllegalHistory


def to_record(row: Any) -> dict[str, object]:
    """The record of a dataclass instance."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def from_record(schema: type[T], record: Record) -> T:
    """The record as `schema`; raises `IllegalHistory` unless keys and types are exact."""
    types = _types_of(schema)  # type: ignore[arg-type]  # a class is hashable
    require(record.keys() == types.keys())
    require(all(type(record[name]) in types[name] for name in types))
    values: dict[str, Any] = dict(record)
    return schema(**values)


@cache
def _types_of(schema: Any) -> Mapping[str, tuple[Any, ...]]:
    """The exact types of each field; `bool` is not `int` here."""
    return {field.name: get_args(field.type) or (field.type,) for field in fields(schema)}


def final_outcome(code: object) -> Outcome:
    """The final outcome that a row holds."""
    require(code in FINAL_OUTCOMES)
    return Outcome(str(code))


def digest_of(*fields_: str) -> str:
    """SHA-256 (hex) over length-prefixed UTF-8: of a text, or of an identity that must stay opaque."""
    digest = hashlib.sha256()
    for text in fields_:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.hexdigest()


def deadline_of(lease: Lease) -> str:
    """The deadline for people: RFC 3339 UTC."""
    return Instant(lease.utc_deadline_ms, lease.boottime_deadline_ms, lease.boot_id).utc_text()

"""The line format and the chain, without any I/O."""

import json
from collections.abc import Callable
from enum import StrEnum

import orjson
import pytest

from kexpr.clock import Lease
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import GENESIS_DIGEST, Head
from kexpr.ledger.rows import KIND_ROW, KIND_SEGMENT, MAX_LINE_BYTES, Chain, Malformed, decode, encode, row_of

UTC = "2026-01-09T00:00:00.000Z"


def line_of(record: dict[str, object], *, lease: Lease | None = None, mode: Mode | None = None) -> bytes:
    return encode(KIND_ROW, record, sequence=2, previous="ab", utc=UTC, lease=lease, mode=mode)


def test_line_is_canonical_json_of_the_envelope() -> None:
    line = line_of({"나": "텍스트", "a": [1, None, True]}, lease=Lease(5, 6, "boot"), mode=Mode.SHADOW)
    expected = {
        "kind": "row",
        "lease": {"boot_id": "boot", "boottime_deadline_ms": 6, "utc_deadline_ms": 5},
        "mode": "shadow",
        "previous": "ab",
        "record": {"a": [1, None, True], "나": "텍스트"},
        "sequence": 2,
        "utc": UTC,
    }
    assert line == json.dumps(expected, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def test_row_comes_back_with_lease_and_mode() -> None:
    lease = Lease(5, 6, None)
    row = row_of(decode(line_of({"a": 1}, lease=lease, mode=Mode.ENABLED)))
    assert (row.sequence, row.record, row.lease, row.mode, row.utc) == (2, {"a": 1}, lease, Mode.ENABLED, UTC)
    assert row_of(decode(line_of({}))).mode is None


def test_repr_of_a_row_has_no_record() -> None:
    assert "secret" not in repr(row_of(decode(line_of({"a": "secret"}))))


class Colour(StrEnum):
    RED = "red"


def test_string_enums_are_strings() -> None:
    assert decode(line_of({"a": Colour.RED}))["record"] == {"a": "red"}


@pytest.mark.parametrize(
    "value",
    [(1, 2), float("nan"), float("inf"), "\ud800", 1 << 64, b"x", {1: 2}, {1, 2}, object(), "x" * MAX_LINE_BYTES],
    ids=["tuple", "nan", "inf", "surrogate", "big", "bytes", "int-key", "set", "object", "long"],
)
def test_what_json_would_change_or_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(LedgerFailed) as caught:
        line_of({"a": value})
    assert caught.value.code is StoreFault.ROW_INVALID


def changed(**changes: object) -> bytes:
    envelope = orjson.loads(line_of({"a": 1}, lease=Lease(5, 6, "boot"), mode=Mode.SHADOW)) | changes
    return orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS)


def removed(key: str) -> bytes:
    envelope = orjson.loads(line_of({"a": 1}))
    del envelope[key]
    return orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS)


GOOD_LEASE = {"boot_id": "boot", "boottime_deadline_ms": 6, "utc_deadline_ms": 5}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\x00" * 300,
        b"\xff",
        line_of({"a": 1})[:-1],
        line_of({"a": 1}) + b" ",
        line_of({"a": 1}).replace(b'"a":1', b'"a":1.0e0'),
        line_of({"a": 1}).replace(b'"a":1', b'"a":0,"a":1'),
        line_of({"a": 1}).replace(b'"a"', b'"\\u0061"'),
        orjson.dumps(dict(reversed(orjson.loads(line_of({"a": 1})).items()))),
        changed(extra=1),
        changed(kind="other"),
        changed(kind=["row"]),
        changed(mode="Shadow"),
        changed(mode=[]),
        changed(mode={}),
        changed(record=[]),
        changed(record=None),
        changed(sequence="2"),
        changed(sequence=2.0),
        changed(sequence=True),
        changed(previous=None),
        changed(utc=1),
        changed(lease=1),
        changed(lease=[]),
        changed(lease={}),
        changed(lease=GOOD_LEASE | {"more": 1}),
        changed(lease=GOOD_LEASE | {"boot_id": 1}),
        changed(lease=GOOD_LEASE | {"boottime_deadline_ms": None}),
        changed(lease=GOOD_LEASE | {"utc_deadline_ms": True}),
        *map(removed, ("kind", "lease", "mode", "previous", "record", "sequence", "utc")),
    ],
)
def test_any_other_form_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        decode(line)


def test_the_changes_above_start_from_a_good_line() -> None:
    assert decode(changed(lease=GOOD_LEASE))["lease"] == GOOD_LEASE


def step(chain: Chain, kind: str = KIND_ROW, record: dict[str, object] | None = None, **changes: object) -> bytes:
    """The line that `chain` would accept next, with changes to its envelope."""
    envelope: dict[str, object] = {
        "kind": kind,
        "lease": None,
        "mode": None,
        "previous": chain.digest,
        "record": record if record is not None else {"a": chain.sequence},
        "sequence": chain.sequence + 1,
        "utc": UTC,
    }
    return orjson.dumps(envelope | changes, option=orjson.OPT_SORT_KEYS)


def started(rows: int = 2) -> Chain:
    chain = Chain()
    chain.begin("2026-01")
    chain.advance(step(chain, KIND_SEGMENT, dict(chain.header())))
    for _ in range(rows):
        chain.advance(step(chain))
    return chain


def test_header_carries_the_segment_before() -> None:
    chain = started(rows=2)
    before = chain.digest
    chain.begin("2026-02")
    assert chain.header() == {
        "month": "2026-02",
        "previous_count": 3,
        "previous_head": before,
        "schema_version": 1,
    }
    chain.advance(step(chain, KIND_SEGMENT, dict(chain.header())))
    assert chain.sequence == 4
    chain.begin("2026-03")
    assert chain.header()["previous_count"] == 1


def test_first_header_carries_zero_and_genesis() -> None:
    chain = Chain("ee" * 32)
    chain.begin("2026-01")
    assert (chain.header()["previous_count"], chain.header()["previous_head"]) == (0, "ee" * 32)


def _header_in_the_middle(chain: Chain) -> bytes:
    return step(chain, KIND_SEGMENT, dict(chain.header()))


def _row_for_a_header(chain: Chain) -> bytes:
    chain.begin("2026-02")
    return step(chain)


def _header_of_another_month(chain: Chain) -> bytes:
    chain.begin("2026-02")
    return step(chain, KIND_SEGMENT, dict(chain.header()) | {"month": "2026-03"})


def _header_with_another_count(chain: Chain) -> bytes:
    chain.begin("2026-02")
    return step(chain, KIND_SEGMENT, dict(chain.header()) | {"previous_count": 9})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda chain: step(chain, sequence=chain.sequence),
        lambda chain: step(chain, sequence=chain.sequence + 2),
        lambda chain: step(chain, previous=GENESIS_DIGEST),
        _header_in_the_middle,
        _row_for_a_header,
        _header_of_another_month,
        _header_with_another_count,
    ],
)
def test_a_line_that_does_not_follow_breaks_the_chain(wrong: Callable[[Chain], bytes]) -> None:
    chain = started()
    line = wrong(chain)
    head = chain.head
    with pytest.raises(LedgerFailed) as caught:
        chain.advance(line)
    assert caught.value.code is StoreFault.CHAIN_BROKEN
    assert chain.head == head


def test_another_genesis_is_another_key() -> None:
    line = step(Chain("aa" * 32), KIND_SEGMENT)
    chain = Chain("bb" * 32)
    chain.begin("2026-01")
    with pytest.raises(LedgerFailed) as caught:
        chain.advance(line)
    assert caught.value.code is StoreFault.KEY_MISMATCH


def _replay(lines: list[bytes], genesis: str | None, expected: Head | None) -> None:
    chain = Chain(genesis, expected)
    chain.begin("2026-01")
    for line in lines:
        chain.advance(line)
    chain.require_expected()


@pytest.mark.parametrize("genesis", [GENESIS_DIGEST, None])
def test_expected_head_must_be_passed(genesis: str | None) -> None:
    chain = Chain()
    chain.begin("2026-01")
    heads, lines = [chain.head], []
    for index in range(3):
        line = step(chain, KIND_SEGMENT, dict(chain.header())) if index == 0 else step(chain)
        chain.advance(line)
        lines.append(line)
        heads.append(chain.head)
    for expected in heads:
        _replay(lines, genesis, expected)
    wrong = [Head(head.sequence, "f" * 64) for head in heads] + [Head(4, heads[-1].digest)]
    for expected in wrong:
        with pytest.raises(LedgerFailed) as caught:
            _replay(lines, genesis, expected)
        assert caught.value.code is StoreFault.HEAD_MISMATCH

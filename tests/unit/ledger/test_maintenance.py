"""Torn tails and corruption: what is told apart, what `repair` moves, and what it refuses."""

import os
import stat
from pathlib import Path

import pytest

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.file_system import RealFileSystem
from kexpr.ledger.maintenance import Repair, Report, head, is_empty, repair, verify
from kexpr.ledger.protocol import GENESIS_DIGEST, Head
from kexpr.ledger.rows import KIND_ROW, MAX_LINE_BYTES, encode
from tests.unit.ledger.support import MONTH_MS, Opened, RecordingFileSystem, SetClock, build, raw_lines, segment_files

ROWS = [{"n": n} for n in range(1, 4)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger of three rows, one of them in the second month."""
    directory = tmp_path / "ledger"
    clock = SetClock()
    with Opened(directory, clock=clock) as opened:
        opened.append(ROWS[0])
        clock.utc_ms += MONTH_MS
        opened.append(ROWS[1])
        opened.append(ROWS[2])
    return directory


def write_tail(directory: Path, tail: bytes) -> None:
    with segment_files(directory)[-1].open("ab") as file:
        file.write(tail)


def codes_of(directory: Path) -> set[StoreFault]:
    """The code with which the ledger is refused, by the owner and by `verify`."""
    codes = set()
    for use in (Opened, verify):
        with pytest.raises(LedgerFailed) as caught:
            use(directory)
        codes.add(caught.value.code)
    return codes


GOOD_START = b'{"kind":"row","lease":null,"mode":null,"previous":"'
TAILS = {
    "half a line": GOOD_START,
    "half a line with LF": GOOD_START + b"\n",
    "zeros": b"\x00" * 4096,
    "zeros with LF": b"\x00" * 4096 + b"\n",
    "zeros, then the end of a line": b"\x00" * 4096 + b'"sequence":6,"utc":"2026-02-09T00:00:00.000Z"}\n',
    "one byte": b"{",
    "empty line": b"\n",
    "not UTF-8": b"\xff\xfe",
    "another JSON": b'{"a":1}\n',
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS.keys())
def test_torn_tail_is_refused_and_exactly_it_is_quarantined(place: Path, tail: bytes) -> None:
    whole = segment_files(place)[-1].read_bytes()
    before = head(place)
    write_tail(place, tail)
    assert codes_of(place) == {StoreFault.TORN_TAIL}

    done = repair(place)

    assert done == Repair("ledger-2026-02.jsonl.torn-1", len(tail), before)
    quarantine = place / str(done.quarantined)
    assert quarantine.read_bytes() == tail
    assert stat.S_IMODE(quarantine.stat().st_mode) == 0o600
    assert segment_files(place)[-1].read_bytes() == whole
    with Opened(place, clock=SetClock(), expected=before) as opened:
        assert opened.records == ROWS
        assert opened.append({"n": 4}).sequence == before.sequence + 1


def test_unterminated_row_is_torn(place: Path) -> None:
    segment = segment_files(place)[-1]
    os.truncate(segment, segment.stat().st_size - 1)
    assert codes_of(place) == {StoreFault.TORN_TAIL}
    assert repair(place).head.sequence == 4
    with Opened(place) as opened:
        assert opened.records == ROWS[:2]


def test_torn_header_leaves_an_empty_segment(place: Path) -> None:
    segment = segment_files(place)[-1]
    os.truncate(segment, 40)
    assert codes_of(place) == {StoreFault.TORN_TAIL}
    assert repair(place).size_bytes == 40
    assert segment.stat().st_size == 0
    with Opened(place) as opened:
        assert opened.records == ROWS[:1]
        assert opened.append({"n": 9}).sequence == 4


def test_the_owner_goes_on_over_an_empty_segment_after_the_torn_one(place: Path) -> None:
    write_tail(place, b"{")
    (place / "ledger-2026-03.jsonl").touch(0o600)
    assert codes_of(place) == {StoreFault.TORN_TAIL}


def test_nothing_torn_nothing_done(place: Path) -> None:
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert repair(place) == Repair(None, 0, head(place))
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_repair_again_after_a_crash_before_the_cut(place: Path) -> None:
    write_tail(place, b"{torn")

    class Crash(RealFileSystem):
        def ftruncate(self, fd: int, length: int, /) -> None:
            raise OSError(5, "crash")

    with pytest.raises(LedgerFailed) as caught:
        repair(place, files=Crash())
    assert caught.value.code is StoreFault.INPUT_OUTPUT
    assert codes_of(place) == {StoreFault.TORN_TAIL}
    assert repair(place).quarantined == "ledger-2026-02.jsonl.torn-2"
    with Opened(place) as opened:
        assert opened.records == ROWS


def test_repair_is_durable_before_it_cuts(place: Path) -> None:
    write_tail(place, b"{torn")
    steps: list[str] = []

    class Steps(RealFileSystem):
        def write(self, fd: int, data: bytes, /) -> int:
            steps.append("write")
            return os.write(fd, data)

        def fsync(self, fd: int, /) -> None:
            steps.append("fsync")
            os.fsync(fd)

        def ftruncate(self, fd: int, length: int, /) -> None:
            steps.append("cut")
            os.ftruncate(fd, length)

    repair(place, files=Steps())
    assert steps == ["write", "fsync", "fsync", "cut", "fsync"]


def test_owner_that_is_running_goes_on_after_repair(place: Path) -> None:
    with Opened(place) as opened:
        write_tail(place, b"{torn")
        repair(place)
        assert opened.append({"n": 4}).sequence == 6


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(bytes(content))


def _bad_row_in_the_first_segment(place: Path) -> None:
    flip(segment_files(place)[0], 3)


def _bad_row_before_the_last(place: Path) -> None:
    segment = segment_files(place)[-1]
    flip(segment, segment.read_bytes().index(b"\n") + 3)


def _changed_row_before_the_last(place: Path) -> None:
    segment = segment_files(place)[-1]
    segment.write_bytes(segment.read_bytes().replace(b'"n":2', b'"n":5'))


def _torn_end_of_the_first_segment(place: Path) -> None:
    segment = segment_files(place)[0]
    os.truncate(segment, segment.stat().st_size - 1)


def _row_repeated(place: Path) -> None:
    write_tail(place, raw_lines(place)[-1] + b"\n")


def _last_row_links_elsewhere(place: Path) -> None:
    segment = segment_files(place)[-1]
    last = raw_lines(place)[-1]
    start = last.index(b'"previous":"') + 12
    changed = last[:start] + b"f" * 64 + last[start + 64 :]
    segment.write_bytes(segment.read_bytes().replace(last, changed))


def _two_bad_lines(place: Path) -> None:
    write_tail(place, b"{\n{\n")


def _more_than_a_write_can_leave(place: Path) -> None:
    write_tail(place, b"\x00" * (MAX_LINE_BYTES + 1))


def _first_segment_gone(place: Path) -> None:
    segment_files(place)[0].unlink()


def _last_segments_swapped(place: Path) -> None:
    first, last = segment_files(place)
    last.rename(place / "ledger-2025-01.jsonl")
    assert segment_files(place)[1] == first


def _rows_cut_out(place: Path) -> None:
    segment = segment_files(place)[-1]
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(lines[0] + lines[2])


@pytest.mark.parametrize(
    "damage",
    [
        _bad_row_in_the_first_segment,
        _bad_row_before_the_last,
        _changed_row_before_the_last,
        _torn_end_of_the_first_segment,
        _row_repeated,
        _last_row_links_elsewhere,
        _two_bad_lines,
        _more_than_a_write_can_leave,
        _first_segment_gone,
        _last_segments_swapped,
        _rows_cut_out,
    ],
)
def test_corruption_is_told_from_a_torn_tail_and_never_repaired(place: Path, damage: object) -> None:
    assert callable(damage)
    damage(place)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert codes_of(place) <= {StoreFault.CHAIN_BROKEN, StoreFault.KEY_MISMATCH}
    with pytest.raises(LedgerFailed) as caught:
        repair(place)
    assert caught.value.code is StoreFault.CHAIN_BROKEN
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


# Looking


def test_verify_counts_rows_and_segments_and_head(tmp_path: Path) -> None:
    built = build(tmp_path / "ledger", 1_000, per_segment=300)
    assert verify(tmp_path / "ledger") == Report(built, 1_000, 4)
    assert head(tmp_path / "ledger") == built == Head(1_004, built.digest)


def test_verify_writes_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "ledger"
    build(directory, 3)
    files = RecordingFileSystem()
    verify(directory, files=files)
    assert files.calls == []
    assert [path.name for path in directory.iterdir()] == ["ledger-2000-01.jsonl"]


def test_verify_works_beside_an_owner_and_not_inside_its_transaction(place: Path) -> None:
    with Opened(place) as opened:
        assert verify(place).rows == 3
        with opened.ledger.transaction():
            with pytest.raises(LedgerFailed) as caught:
                verify(place)
            assert caught.value.code is StoreFault.LOCK_ORDER


def test_verify_against_a_kept_head_and_a_key(place: Path) -> None:
    kept = head(place)
    assert verify(place, expected=kept, genesis=GENESIS_DIGEST).rows == 3
    with pytest.raises(LedgerFailed) as caught:
        verify(place, expected=Head(kept.sequence + 1, kept.digest))
    assert caught.value.code is StoreFault.HEAD_MISMATCH
    with pytest.raises(LedgerFailed) as caught:
        head(place, genesis="aa" * 32)
    assert caught.value.code is StoreFault.KEY_MISMATCH


def test_head_of_a_ledger_bound_to_a_key_needs_no_key(tmp_path: Path) -> None:
    with Opened(tmp_path / "ledger", genesis="aa" * 32) as opened:
        opened.append({"n": 1})
        assert head(tmp_path / "ledger") == opened.ledger.head()


def test_what_is_not_there_is_a_code(tmp_path: Path) -> None:
    for use in (verify, head, repair):
        with pytest.raises(LedgerFailed) as caught:
            use(tmp_path / "none")
        assert caught.value.code is StoreFault.INPUT_OUTPUT
    assert not (tmp_path / "none").exists()


def test_is_empty_until_the_first_row(tmp_path: Path) -> None:
    directory = tmp_path / "ledger"
    assert is_empty(directory)
    with Opened(directory) as opened:
        assert is_empty(directory)
        opened.append({"n": 1})
    assert not is_empty(directory)


def test_fifty_thousand_rows_open_and_append(tmp_path: Path) -> None:
    built = build(tmp_path / "ledger", 50_000)
    with Opened(tmp_path / "ledger", expected=built) as opened:
        assert len(opened.rows) == 50_000
        assert opened.append({"n": 1}).sequence == built.sequence + 2


def test_a_whole_row_behind_zeros_is_corruption(place: Path) -> None:
    """The disk lost a row that others had read from the cache and built upon: theirs was acknowledged."""
    row = encode(KIND_ROW, {"n": 5}, sequence=7, previous="0" * 64, utc="2026-02-09", lease=None, mode=None)
    write_tail(place, b"\0" * 100 + row + b"\n")
    assert codes_of(place) == {StoreFault.CHAIN_BROKEN}
    with pytest.raises(LedgerFailed) as caught:
        repair(place)
    assert caught.value.code is StoreFault.CHAIN_BROKEN

"""Any records, any clocks, any cut and any flipped bit."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.file_system import RealFileSystem
from kexpr.ledger.maintenance import repair, verify
from tests.unit.ledger.support import JANUARY, MONTH_MS, Opened, SetClock, raw_lines, segment_files

SETTINGS = settings(max_examples=60, deadline=None)

scalars = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=20)
finite = scalars | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(finite, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3))
records = st.dictionaries(st.text(max_size=8), values, max_size=4)


class NoSync(RealFileSystem):
    """Nothing here is about durability, and the disk is shared."""

    def fsync(self, fd: int, /) -> None:
        pass


@contextmanager
def new_directory() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp())
    try:
        yield root / "ledger"
    finally:
        shutil.rmtree(root)


@SETTINGS
@given(st.lists(records, max_size=5))
def test_records_come_back_exactly(written: list[dict[str, object]]) -> None:
    with new_directory() as place:
        with Opened(place, files=NoSync()) as opened:
            for record in written:
                opened.append(record)
            rows, head = opened.rows, opened.ledger.head()
        assert [row.record for row in rows] == written
        with Opened(place, expected=head) as again:
            assert repr([row.record for row in again.rows]) == repr([row.record for row in rows])


@SETTINGS
@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 5)), min_size=1, max_size=8))
def test_months_move_forward_under_any_clock_and_any_writer(steps: list[tuple[bool, int]]) -> None:
    with new_directory() as place:
        clock = SetClock()
        with Opened(place, clock=clock, files=NoSync()) as one, Opened(place, clock=clock, files=NoSync()) as two:
            highest = 0
            for number, (first, months) in enumerate(steps):
                clock.utc_ms = JANUARY + months * MONTH_MS
                (one if first else two).append({"n": number})
                highest = months if number == 0 else max(highest, months)
                last = SetClock(JANUARY + highest * MONTH_MS).now().utc_text()[:7]
                assert segment_files(place)[-1].name == f"ledger-{last}.jsonl"
        with Opened(place) as again:
            assert [r["n"] for r in again.records] == list(range(len(steps)))


@contextmanager
def three_rows() -> Iterator[tuple[Path, Opened]]:
    with new_directory() as place, Opened(place, files=NoSync()) as opened:
        for n in range(3):
            opened.append({"n": n})
        yield place, opened


@SETTINGS
@given(st.data())
def test_any_cut_is_a_shorter_ledger_or_a_torn_tail_and_shows_against_the_head(data: st.DataObject) -> None:
    with three_rows() as (place, opened):
        lines = raw_lines(place)
        head = opened.ledger.head()
        segment = segment_files(place)[0]
        content = segment.read_bytes()
        kept = data.draw(st.integers(0, len(content) - 1))
        os.truncate(segment, kept)
        whole = content[:kept].count(b"\n")
        torn = content[:kept].rpartition(b"\n")[2]
        with pytest.raises(LedgerFailed):
            verify(place, expected=head)
        if torn:
            with pytest.raises(LedgerFailed) as caught:
                verify(place)
            assert caught.value.code is StoreFault.TORN_TAIL
        done = repair(place)
        assert done.size_bytes == len(torn)
        assert raw_lines(place) == lines[:whole]
        assert verify(place).rows == max(0, whole - 1)


@SETTINGS
@given(st.data())
def test_any_flipped_bit_is_refused_and_only_the_last_line_may_be_cut(data: st.DataObject) -> None:
    with three_rows() as (place, opened):
        head = opened.ledger.head()
        segment = segment_files(place)[0]
        content = bytearray(segment.read_bytes())
        where = data.draw(st.integers(0, len(content) - 1))
        content[where] ^= 1 << data.draw(st.integers(0, 7))
        segment.write_bytes(bytes(content))
        with pytest.raises(LedgerFailed):
            verify(place, expected=head)
        last_line = bytes(content).rstrip(b"\n").rfind(b"\n")
        if where < last_line:
            with pytest.raises(LedgerFailed) as caught:
                repair(place)
            assert caught.value.code in {StoreFault.CHAIN_BROKEN, StoreFault.KEY_MISMATCH}
            assert segment.read_bytes() == content

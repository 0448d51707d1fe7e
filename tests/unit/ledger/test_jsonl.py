"""The embedded ledger on a real directory: appends, deltas, months, what is refused and what poisons."""

import hashlib
import os
import stat
import threading
import time
from pathlib import Path

import orjson
import pytest

from kexpr import failpoints
from kexpr.clock import lease_from
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.file_system import FileStatus, RealFileSystem
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.maintenance import is_empty
from kexpr.ledger.protocol import GENESIS_DIGEST, Head, Ledger, Row
from kexpr.private_files import KEY_NAME, PrivateDirectory, genesis_digest, identity_key
from tests.unit.ledger.support import (
    JANUARY,
    MONTH_MS,
    Opened,
    RecordingFileSystem,
    SetClock,
    build,
    raw_lines,
    segment_files,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger"


def code_of(caught: pytest.ExceptionInfo[LedgerFailed]) -> StoreFault:
    return caught.value.code


def test_it_is_a_ledger(place: Path) -> None:
    with Opened(place) as opened:
        ledger: Ledger = opened.ledger
        assert ledger.head() == Head(0, GENESIS_DIGEST)


def test_rows_come_back_from_another_handle_as_they_were_projected(place: Path) -> None:
    with Opened(place) as first:
        with first.ledger.transaction() as transaction:
            lease = lease_from(transaction.now)
            row = transaction.append({"n": 1, "text": "가"}, lease=lease, mode=Mode.SHADOW)
            transaction.append({"n": 2})
        assert (row.sequence, row.lease, row.mode) == (2, lease, Mode.SHADOW)
        with Opened(place) as second:
            assert second.rows == first.rows
            assert second.rows[0] == row
            assert second.ledger.head() == first.ledger.head()


def test_chain_on_disk_is_the_digest_of_each_raw_line(place: Path) -> None:
    with Opened(place) as opened:
        for n in range(3):
            opened.append({"n": n})
        head = opened.ledger.head()
    previous = GENESIS_DIGEST
    for sequence, line in enumerate(raw_lines(place), 1):
        envelope = orjson.loads(line)
        assert (envelope["sequence"], envelope["previous"]) == (sequence, previous)
        previous = hashlib.sha256(line).hexdigest()
    assert head == Head(4, previous)


def test_everything_is_private(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    files = list(place.iterdir())
    assert {path.name for path in files} == {"lock", "ledger-2026-01.jsonl"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)


def test_opening_writes_nothing_but_the_lock(place: Path) -> None:
    with Opened(place):
        assert [path.name for path in place.iterdir()] == ["lock"]


def test_one_decision_is_one_write_then_one_fsync(place: Path) -> None:
    files = RecordingFileSystem()
    with Opened(place, files=files) as opened:
        files.calls.clear()
        opened.append({"n": 1})
        header, row = ["write", "fsync file", "fsync directory"], ["write", "fsync file"]
        assert files.calls == header + row
        files.calls.clear()
        opened.append({"n": 2})
        assert files.calls == row


def test_rows_of_others_are_durable_before_they_count(place: Path) -> None:
    """The other process may have died between its write and its fsync, or before it synced a new file's directory."""
    clock = SetClock()
    files = RecordingFileSystem()
    with Opened(place) as other:
        other.append({"n": 1})
    with Opened(place, clock=clock) as other, Opened(place, clock=clock, files=files) as opened:
        assert files.calls == ["fsync directory", "fsync file", "fsync directory"]  # the first is the parent's
        files.calls.clear()
        other.append({"n": 2})
        with opened.ledger.transaction():
            assert files.calls == ["fsync file"]
        files.calls.clear()
        with opened.ledger.transaction():
            assert files.calls == []
        clock.utc_ms += MONTH_MS
        other.append({"n": 3})
        with opened.ledger.transaction():
            assert files.calls == ["fsync file", "fsync directory"]


def test_failpoints_stand_around_the_write_and_the_fsync(place: Path) -> None:
    reached: list[str] = []
    with Opened(place) as opened:
        opened.append({"n": 1})
        failpoints.install(reached.append)
        try:
            opened.append({"n": 2})
        finally:
            failpoints.install(None)
    assert reached == ["ledger.before_write", "ledger.after_write", "ledger.after_fsync"]


def test_a_transaction_sees_what_others_appended(place: Path) -> None:
    with Opened(place) as one, Opened(place) as two:
        one.append({"n": 1})
        two.append({"n": 2})
        one.append({"n": 3})
        assert one.records == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert two.records == [{"n": 1}, {"n": 2}]
        with two.ledger.transaction():
            assert two.rows == one.rows


def test_now_is_read_after_the_lock(place: Path) -> None:
    clock = SetClock()
    seen: list[int] = []
    with Opened(place, clock=clock) as one, Opened(place, clock=clock) as two:

        def wait() -> None:
            with two.ledger.transaction() as transaction:
                seen.append(transaction.now.utc_ms)

        thread = threading.Thread(target=wait)
        with one.ledger.transaction():
            thread.start()
            time.sleep(0.02)
            clock.utc_ms += 5
        thread.join()
    assert seen == [JANUARY + 5]


def test_a_waiting_thread_does_not_use_what_was_closed_meanwhile(place: Path) -> None:
    codes: list[StoreFault] = []
    with Opened(place) as one, Opened(place) as two:

        def wait() -> None:
            with pytest.raises(LedgerFailed) as caught, two.ledger.transaction():
                pass
            codes.append(code_of(caught))

        thread = threading.Thread(target=wait)
        mutex = two.ledger._lock._mutex
        with one.ledger.transaction():
            thread.start()
            time.sleep(0.02)
            # As when `close` wins the mutex before the waiting thread does.
            two.ledger._unusable = StoreFault.CLOSED
            two.ledger._lock.close()
        thread.join()
        assert mutex is one.ledger._lock._mutex
    assert codes == [StoreFault.CLOSED]


def test_threads_over_one_handle_and_over_two(place: Path) -> None:
    with Opened(place) as one, Opened(place) as two:
        failures: list[BaseException] = []

        def work(opened: Opened, name: int) -> None:
            try:
                for n in range(25):
                    opened.append({"n": n, "worker": name})
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(o, n)) for n, o in enumerate((one, one, two, two))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
    with Opened(place) as again:
        assert [row.sequence for row in again.rows] == list(range(2, 102))
        for worker in range(4):
            assert [r["n"] for r in again.records if r["worker"] == worker] == list(range(25))


def test_a_second_transaction_of_one_thread_is_told_so(place: Path) -> None:
    with Opened(place) as one, Opened(place) as two:
        with one.ledger.transaction():
            for opened in (one, two):
                with pytest.raises(LedgerFailed) as caught, opened.ledger.transaction():
                    pass
                assert code_of(caught) is StoreFault.LOCK_ORDER
            with pytest.raises(LedgerFailed):
                one.ledger.close()
        one.append({"n": 1})


def test_waiting_for_a_thread_is_bounded(place: Path) -> None:
    with Opened(place) as one, Opened(place, wait_seconds=0.05) as two:
        codes: list[StoreFault] = []

        def wait() -> None:
            with pytest.raises(LedgerFailed) as caught, two.ledger.transaction():
                pass
            codes.append(code_of(caught))

        with one.ledger.transaction():
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join()
        assert codes == [StoreFault.LOCKED_OUT]
        two.append({"n": 1})  # being locked out poisons nothing


def test_a_transaction_ends(place: Path) -> None:
    with Opened(place) as opened:
        with opened.ledger.transaction() as transaction:
            pass
        with pytest.raises(LedgerFailed) as caught:
            transaction.append({"n": 1})
        assert code_of(caught) is StoreFault.CLOSED
        assert opened.append({"n": 1}).sequence == 2


def test_an_error_of_the_body_passes_and_poisons_nothing(place: Path) -> None:
    with Opened(place) as opened:
        with pytest.raises(KeyError), opened.ledger.transaction():
            raise KeyError
        assert opened.append({"n": 1}).sequence == 2


def test_closed_is_closed(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        opened.ledger.close()
        opened.ledger.close()
        for use in (opened.ledger.head, lambda: opened.append({"n": 2})):
            with pytest.raises(LedgerFailed) as caught:
                use()
            assert code_of(caught) is StoreFault.CLOSED


def test_no_descriptor_is_left(place: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for utc_ms in (JANUARY, JANUARY + MONTH_MS):
        with Opened(place, clock=SetClock(utc_ms)) as opened:
            opened.append({"n": 1})
    with segment_files(place)[-1].open("ab") as file:
        file.write(b"torn")
    with pytest.raises(LedgerFailed):
        Opened(place)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_record_that_is_not_json_is_refused_and_poisons_nothing(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        before = raw_lines(place)
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": (1, 2)})
        assert code_of(caught) is StoreFault.ROW_INVALID
        assert raw_lines(place) == before
        assert opened.append({"n": 2}).sequence == 3


# Months


def test_a_new_month_is_a_new_segment(place: Path) -> None:
    clock = SetClock()
    with Opened(place, clock=clock) as opened, Opened(place, clock=clock) as other:
        opened.append({"n": 1})
        before = opened.ledger.head()
        clock.utc_ms += MONTH_MS
        opened.append({"n": 2})
        other.append({"n": 3})
        head = opened.ledger.head()
    assert [path.name for path in segment_files(place)] == ["ledger-2026-01.jsonl", "ledger-2026-02.jsonl"]
    first = orjson.loads(segment_files(place)[1].read_bytes().splitlines()[0])
    assert first["kind"] == "segment"
    assert first["record"] == {
        "month": "2026-02",
        "previous_count": before.sequence,
        "previous_head": before.digest,
        "schema_version": 1,
    }
    with Opened(place, expected=head) as again:
        assert again.records == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_new_year(place: Path) -> None:
    clock = SetClock(1_767_225_599_999)  # 2025-12-31T23:59:59.999Z
    with Opened(place, clock=clock) as opened:
        opened.append({"n": 1})
        clock.utc_ms += 1
        opened.append({"n": 2})
    assert [path.name for path in segment_files(place)] == ["ledger-2025-12.jsonl", "ledger-2026-01.jsonl"]
    with Opened(place) as again:
        assert [row.utc for row in again.rows] == ["2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00.000Z"]


@pytest.mark.parametrize("reopen", [False, True])
def test_months_only_move_forward(place: Path, reopen: bool) -> None:
    clock = SetClock(JANUARY + 6 * MONTH_MS)
    with Opened(place, clock=clock) as opened:
        opened.append({"n": 1})
        clock.utc_ms = JANUARY
        if not reopen:
            opened.append({"n": 2})
    if reopen:
        with Opened(place, clock=clock) as opened:
            opened.append({"n": 2})
    assert [path.name for path in segment_files(place)] == ["ledger-2026-07.jsonl"]
    with Opened(place) as again:
        assert again.records == [{"n": 1}, {"n": 2}]
        assert again.rows[1].utc < again.rows[0].utc


@pytest.mark.parametrize("months_later", [0, 1, 13])
def test_a_segment_that_a_crash_left_empty_is_begun_or_passed_over(place: Path, months_later: int) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        (place / "ledger-2026-02.jsonl").touch(0o600)
        opened.clock.utc_ms += (1 + months_later) * MONTH_MS
        opened.append({"n": 2})
        head = opened.ledger.head()
    with Opened(place, expected=head) as again:
        assert again.records == [{"n": 1}, {"n": 2}]
        assert again.append({"n": 3}).sequence == head.sequence + 1


def test_many_segments(place: Path) -> None:
    head = build(place, 250, per_segment=9)
    assert len(segment_files(place)) == 28
    with Opened(place, expected=head) as opened:
        assert len(opened.rows) == 250
        assert opened.ledger.head() == head


# Faults


class FaultyFileSystem(RealFileSystem):
    """Fails one call of a kind, from the moment it is armed."""

    def __init__(self) -> None:
        self.armed: str | None = None
        self.calls: list[str] = []

    def write(self, fd: int, data: bytes, /) -> int:
        self.calls.append("write")
        if self.armed == "short write":
            return os.write(fd, data[:-7])
        if self.armed == "full disk":
            raise OSError(28, "No space left on device", "/secret/path")
        return os.write(fd, data)

    def fsync(self, fd: int, /) -> None:
        self.calls.append("fsync")
        if self.armed == "fsync":
            raise OSError(5, "Input/output error", "/secret/path")
        os.fsync(fd)

    def fstat(self, fd: int, /) -> FileStatus:
        if self.armed == "intruder" and self.calls[-1:] == ["fsync"]:
            with Path(f"/proc/self/fd/{fd}").open("ab") as file:
                file.write(b"x")
        return os.fstat(fd)


@pytest.mark.parametrize(
    ("fault", "code", "calls"),
    [
        ("short write", StoreFault.INPUT_OUTPUT, ["write"]),
        ("full disk", StoreFault.INPUT_OUTPUT, ["write"]),
        ("fsync", StoreFault.INPUT_OUTPUT, ["write", "fsync"]),
    ],
)
def test_a_failed_step_poisons_and_is_never_tried_again(
    place: Path, fault: str, code: StoreFault, calls: list[str]
) -> None:
    files = FaultyFileSystem()
    with Opened(place, files=files) as opened:
        opened.append({"n": 1})
        files.calls.clear()
        files.armed = fault
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is code
        assert caught.value.__context__ is None
        assert opened.records == [{"n": 1}]
        files.armed = None
        for use in (lambda: opened.append({"n": 3}), opened.ledger.head):
            with pytest.raises(LedgerFailed) as caught:
                use()
            assert code_of(caught) is StoreFault.POISONED
        assert files.calls == calls


def test_poisoned_within_a_transaction(place: Path) -> None:
    files = FaultyFileSystem()
    with Opened(place, files=files) as opened:
        opened.append({"n": 1})
        with opened.ledger.transaction() as transaction:
            files.armed = "fsync"
            with pytest.raises(LedgerFailed):
                transaction.append({"n": 2})
            files.armed = None
            with pytest.raises(LedgerFailed) as caught:
                transaction.append({"n": 2})
            assert code_of(caught) is StoreFault.POISONED


def test_a_short_write_shuts_others_out_too(place: Path) -> None:
    files = FaultyFileSystem()
    with Opened(place, files=files) as opened, Opened(place) as other:
        opened.append({"n": 1})
        files.armed = "short write"
        with pytest.raises(LedgerFailed):
            opened.append({"n": 2})
        with pytest.raises(LedgerFailed) as caught:
            other.append({"n": 3})
        assert code_of(caught) is StoreFault.TORN_TAIL
        with pytest.raises(LedgerFailed) as caught:
            Opened(place)
        assert code_of(caught) is StoreFault.TORN_TAIL


def test_a_write_past_the_lock_is_seen_before_the_row_is_acknowledged(place: Path) -> None:
    files = FaultyFileSystem()
    with Opened(place, files=files) as opened:
        opened.append({"n": 1})
        files.calls.clear()
        files.armed = "intruder"
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is StoreFault.CHAIN_BROKEN
        assert opened.records == [{"n": 1}]


def test_a_killed_step_poisons(place: Path) -> None:
    def interrupt(name: str) -> None:
        if name == "ledger.after_write":
            raise KeyboardInterrupt

    with Opened(place) as opened:
        failpoints.install(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                opened.append({"n": 1})
        finally:
            failpoints.install(None)
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is StoreFault.POISONED


class Canary(Exception):
    pass


def refuse_two(row: Row) -> None:
    if row.record["n"] == 2:
        raise Canary(f"content {row.record}")


def test_a_projection_that_refuses_ends_the_use_without_content(place: Path) -> None:
    ledger = JsonlLedger.open(place, projection=refuse_two, clock=SetClock())
    with ledger.transaction() as transaction:
        transaction.append({"n": 1})
        with pytest.raises(LedgerFailed) as caught:
            transaction.append({"n": 2})
    assert code_of(caught) is StoreFault.ILLEGAL_HISTORY
    assert caught.value.__context__ is None
    with pytest.raises(LedgerFailed) as caught, ledger.transaction():
        pass
    assert code_of(caught) is StoreFault.POISONED
    ledger.close()
    with pytest.raises(LedgerFailed) as caught:
        JsonlLedger.open(place, projection=refuse_two, clock=SetClock())
    assert code_of(caught) is StoreFault.ILLEGAL_HISTORY
    assert caught.value.__context__ is None


# What was verified has changed


def test_shrunk_file(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        size = segment_files(place)[0].stat().st_size
        opened.append({"n": 2})
        os.truncate(segment_files(place)[0], size)
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 3})
        assert code_of(caught) is StoreFault.HEAD_MISMATCH


def test_replaced_file(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        segment = segment_files(place)[0]
        copy = place / "copy"
        copy.touch(0o600)
        copy.write_bytes(segment.read_bytes())
        copy.replace(segment)
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) in {StoreFault.HEAD_MISMATCH, StoreFault.NOT_PRIVATE}


def test_file_moved_aside_and_copied_back(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        segment = segment_files(place)[0]
        aside = segment.rename(place / "aside")
        segment.touch(0o600)
        segment.write_bytes(aside.read_bytes())
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is StoreFault.HEAD_MISMATCH


def test_rewritten_in_place(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        segment = segment_files(place)[0]
        segment.write_bytes(segment.read_bytes().replace(b'"n":1', b'"n":7'))
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is StoreFault.HEAD_MISMATCH


def test_removed_segment(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        segment_files(place)[0].unlink()
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is StoreFault.CHAIN_BROKEN
        assert segment_files(place) == []


def test_segment_put_in_before_the_current_one(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        (place / "ledger-2025-01.jsonl").touch(0o600)
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is StoreFault.CHAIN_BROKEN


def test_directory_put_back_from_a_copy_while_in_use(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        place.rename(place.with_name("old"))
        with Opened(place) as other:
            other.append({"n": 1})
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 2})
        assert code_of(caught) is StoreFault.HEAD_MISMATCH


def test_lock_file_made_anew_while_in_use(place: Path) -> None:
    with Opened(place) as opened:
        (place / "lock").unlink()
        (place / "lock").touch(0o600)
        with pytest.raises(LedgerFailed) as caught:
            opened.append({"n": 1})
        assert code_of(caught) is StoreFault.HEAD_MISMATCH


def test_truncation_shows_against_an_exported_head(place: Path) -> None:
    with Opened(place) as opened:
        opened.append({"n": 1})
        kept = opened.ledger.head()
        size = segment_files(place)[0].stat().st_size
        opened.append({"n": 2})
        head = opened.ledger.head()
    with Opened(place, expected=kept):
        pass
    os.truncate(segment_files(place)[0], size)
    with Opened(place):
        pass  # nothing else can tell
    with pytest.raises(LedgerFailed) as caught:
        Opened(place, expected=head)
    assert code_of(caught) is StoreFault.HEAD_MISMATCH


def test_a_journal_of_another_key(place: Path) -> None:
    with Opened(place, genesis="aa" * 32) as opened:
        opened.append({"n": 1})
    with Opened(place, genesis="aa" * 32) as opened:
        assert opened.records == [{"n": 1}]
    with pytest.raises(LedgerFailed) as caught:
        Opened(place, genesis="bb" * 32)
    assert code_of(caught) is StoreFault.KEY_MISMATCH


def open_with_key(directory: Path) -> Opened:
    """What a host does at start-up."""
    private = PrivateDirectory.open(directory)
    try:
        key = identity_key(private, ledger_is_empty=is_empty(directory))
    finally:
        private.close()
    return Opened(directory, genesis=genesis_digest(key))


def test_journal_and_key_are_bound(place: Path) -> None:
    for n in range(2):
        with open_with_key(place) as opened:
            assert opened.records == [{"n": m} for m in range(n)]
            opened.append({"n": n})
    key = place / KEY_NAME
    kept = key.read_bytes()
    key.unlink()
    with pytest.raises(LedgerFailed) as caught:
        open_with_key(place)
    assert code_of(caught) is StoreFault.KEY_MISSING
    key.touch(0o600)
    key.write_bytes(bytes(32))
    with pytest.raises(LedgerFailed) as caught:
        open_with_key(place)
    assert code_of(caught) is StoreFault.KEY_MISMATCH
    key.write_bytes(kept)
    with open_with_key(place) as opened:
        assert len(opened.records) == 2

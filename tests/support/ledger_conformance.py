"""What every `Ledger` must do, as tests that run on each of them.

    class TestMyLedger(LedgerConformance):
        @pytest.fixture
        def open_ledger(self) -> LedgerOpener: ...

`open_ledger(projection=…)` opens another handle on the same, at first empty, rows, as another process would. Nothing
here says how sequences begin or how time passes, for that is each ledger's own.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise

import pytest

from kexpr.authority.steps import LedgerOpener
from kexpr.clock import lease_from
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Ledger, Record, Row

__all__ = ["LedgerConformance", "Opened"]

_CANARY = "record-canary-4407"
_AWKWARD: Record = {
    "": "",
    "control": "\u0000\n\r\t\u2028\u001b",
    "deep": [[{"a": [1, None, True, 0.5]}]],
    "korean": "가나다 각 👩‍👩‍👧",
    "large": -(2**63),
    "larger": 2**64 - 1,
    "sql": "'; DROP TABLE kexpr_row; -- %s {}",
}
_LARGE: Record = {"text": "가" * 60_000}
_TOO_LARGE: Record = {"text": "가" * 90_000}
_NOT_JSON: tuple[Record, ...] = ({"n": (1, 2)}, {"n": float("nan")}, {"n": 2**64}, {"n": "\ud800"}, {"n": b"n"})


class Opened:
    """A handle, and the rows that its projection was given."""

    def __init__(self, open_ledger: LedgerOpener) -> None:
        self.rows: list[Row] = []
        self.ledger: Ledger = open_ledger(projection=self.rows.append)

    def append(self, record: Record) -> Row:
        with self.ledger.transaction() as transaction:
            return transaction.append(record)

    @property
    def records(self) -> list[Record]:
        return [row.record for row in self.rows]


@contextmanager
def _opened(open_ledger: LedgerOpener, handles: int) -> Iterator[list[Opened]]:
    opened = [Opened(open_ledger) for _ in range(handles)]
    try:
        yield opened
    finally:
        for one in opened:
            one.ledger.close()


def _fault(use: Callable[[], object]) -> StoreFault:
    """The code by which `use` is refused; nothing else may come along with it."""
    with pytest.raises(LedgerFailed) as raised:
        use()
    failed = raised.value
    assert failed.__cause__ is None, "a cause may carry content"
    assert failed.__context__ is None or failed.__suppress_context__, "a context may carry content"
    assert _CANARY not in repr(failed)
    return failed.code


def _append_to(ledger: Ledger, record: Record) -> Row:
    with ledger.transaction() as transaction:
        return transaction.append(record)


def _in_threads(*calls: Callable[[], object]) -> None:
    """Run all at once; what one of them raises is raised here."""
    errors: list[BaseException] = []

    def kept(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=kept, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class LedgerConformance:
    """Subclass it as a test class, with a fixture `open_ledger`."""

    def test_a_new_ledger_is_empty(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):
            assert one.rows == []
            assert one.ledger.head().sequence == 0
            assert one.ledger.head() == two.ledger.head()

    def test_rows_come_back_as_they_were_appended(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 1) as (one,):
            with one.ledger.transaction() as transaction:
                lease = lease_from(transaction.now)
                claim = transaction.append({"n": 1}, lease=lease, mode=Mode.SHADOW)
                plain = transaction.append({"n": 2})
            assert (claim.record, claim.lease, claim.mode) == ({"n": 1}, lease, Mode.SHADOW)
            assert (plain.lease, plain.mode) == (None, None)
            assert claim.utc.endswith("Z")
            assert one.rows == [claim, plain]
            with _opened(open_ledger, 1) as (two,):
                assert two.rows == one.rows
                assert two.ledger.head() == one.ledger.head()

    def test_records_come_back_to_the_byte(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 1) as (one,):
            for record in ({}, _AWKWARD, _LARGE):
                assert one.append(record).record == record
        with _opened(open_ledger, 1) as (again,):
            assert again.records == [{}, _AWKWARD, _LARGE]

    def test_sequences_rise_and_the_head_follows(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):
            heads = [one.ledger.head()]
            for n in range(6):
                row = (one, two)[n % 2].append({"n": n})
                heads.append((one, two)[n % 2].ledger.head())
                assert heads[-1].sequence == row.sequence
            with one.ledger.transaction():
                pass
            assert one.ledger.head() == heads[-1]
        assert all(before.sequence < after.sequence for before, after in pairwise(heads))

    def test_a_record_that_json_would_change_is_refused_and_harms_nothing(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 1) as (one,):
            one.append({"n": 0})
            for record in (*_NOT_JSON, _TOO_LARGE):
                assert _fault(lambda record=record: one.append(record)) is StoreFault.ROW_INVALID  # type: ignore[misc]
            one.append({"n": 1})
            assert one.records == [{"n": 0}, {"n": 1}]

    def test_a_transaction_begins_with_what_others_appended(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):
            one.append({"n": 1})
            two.append({"n": 2})
            one.append({"n": 3})
            assert one.records == [{"n": 1}, {"n": 2}, {"n": 3}]
            assert two.records == [{"n": 1}, {"n": 2}]
            with two.ledger.transaction():
                assert two.rows == one.rows

    def test_a_row_is_projected_before_append_returns(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 1) as (one,), one.ledger.transaction() as transaction:
            row = transaction.append({"n": 1})
            assert one.rows == [row]

    def test_a_transaction_without_an_append_leaves_nothing(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):
            before = one.ledger.head()
            with one.ledger.transaction():
                pass
            with two.ledger.transaction():
                pass
            assert one.ledger.head() == two.ledger.head() == before

    def test_what_the_body_raises_passes_and_its_rows_stay(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):
            for n in (1, 2):
                with pytest.raises(KeyError, match=str(n)), one.ledger.transaction() as transaction:
                    if n == 2:
                        transaction.append({"n": n})
                    raise KeyError(n)
            two.append({"n": 3})
            assert two.records == [{"n": 2}, {"n": 3}]
            one.append({"n": 4})
            assert one.records == [{"n": 2}, {"n": 3}, {"n": 4}]

    def test_a_transaction_ends(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 1) as (one,):
            with one.ledger.transaction() as transaction:
                transaction.append({"n": 1})
            assert _fault(lambda: transaction.append({"n": 2})) is StoreFault.CLOSED
            assert one.append({"n": 3}).record == {"n": 3}
            assert one.records == [{"n": 1}, {"n": 3}]

    def test_a_thread_cannot_hold_the_lock_twice(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):
            with one.ledger.transaction():
                for opened in (one, two):
                    assert _fault(lambda opened=opened: opened.append({"n": 0})) is StoreFault.LOCK_ORDER  # type: ignore[misc]
            one.append({"n": 1})
            assert one.records == [{"n": 1}]

    def test_only_one_transaction_at_a_time_and_its_time_is_read_in_it(self, open_ledger: LedgerOpener) -> None:
        held, trace, times = threading.Event(), list[str](), dict[str, int]()
        with _opened(open_ledger, 2) as (one, two):

            def hold() -> None:
                with one.ledger.transaction() as transaction:
                    times["first"] = transaction.now.utc_ms
                    held.set()
                    time.sleep(0.1)
                    trace.append("first")

            def wait() -> None:
                held.wait()
                with two.ledger.transaction() as transaction:
                    trace.append("second")
                    times["second"] = transaction.now.utc_ms

            _in_threads(hold, wait)
        assert trace == ["first", "second"]
        assert times["second"] - times["first"] >= 90

    def test_threads_lose_nothing(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):

            def work(opened: Opened, worker: int) -> None:
                for n in range(15):
                    opened.append({"n": n, "worker": worker})

            calls = [(one, 0), (one, 1), (two, 2), (two, 3)]
            _in_threads(*(lambda opened=o, worker=w: work(opened, worker) for o, w in calls))
            for opened in (one, two):
                with opened.ledger.transaction():
                    pass
            assert one.rows == two.rows
        with _opened(open_ledger, 1) as (again,):
            assert again.rows == one.rows
            for worker in range(4):
                assert [r["n"] for r in again.records if r["worker"] == worker] == list(range(15))
            sequences = [row.sequence for row in again.rows]
            assert sequences == sorted(set(sequences))

    def test_of_racing_claims_one_wins(self, open_ledger: LedgerOpener) -> None:
        identities = [f"identity-{n}" for n in range(20)]
        won: list[str] = []
        with _opened(open_ledger, 3) as handles:

            def claim_all(opened: Opened) -> None:
                for identity in identities:
                    with opened.ledger.transaction() as transaction:
                        if identity not in (record["claims"] for record in opened.records):
                            transaction.append({"claims": identity})
                            won.append(identity)

            _in_threads(*(lambda opened=handle: claim_all(opened) for handle in handles))
        assert sorted(won) == sorted(identities)

    def test_a_projection_that_refuses_ends_the_use_of_the_handle(self, open_ledger: LedgerOpener) -> None:
        def refuse(row: Row) -> None:
            if row.record != {"n": 0}:
                raise ValueError(_CANARY)

        with _opened(open_ledger, 1) as (one,), closing(open_ledger(projection=refuse)) as refusing:
            one.append({"n": 0})
            assert _fault(lambda: _append_to(refusing, {"n": 1, "text": _CANARY})) is StoreFault.ILLEGAL_HISTORY
            for use in (refusing.head, lambda: _append_to(refusing, {"n": 0})):
                assert _fault(use) is StoreFault.POISONED
        with _opened(open_ledger, 1) as (two,), closing(open_ledger(projection=lambda row: None)) as refusing:
            assert two.records[0] == {"n": 0}
            two.append({"n": 2})
            assert _append_to(refusing, {"n": 3}).record == {"n": 3}
        assert _fault(lambda: open_ledger(projection=refuse)) is StoreFault.ILLEGAL_HISTORY

    def test_closed_is_closed(self, open_ledger: LedgerOpener) -> None:
        with _opened(open_ledger, 2) as (one, two):
            one.append({"n": 1})
            one.ledger.close()
            one.ledger.close()
            for use in (one.ledger.head, lambda: one.append({"n": 2})):
                assert _fault(use) is StoreFault.CLOSED
            two.append({"n": 2})
            assert two.records == [{"n": 1}, {"n": 2}]

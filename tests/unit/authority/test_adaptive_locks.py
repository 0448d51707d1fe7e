"""The adaptive authority: its two locks, and histories that no authority writes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kexpr.authority.recovery import Absent
from kexpr.codes import Mode
from kexpr.errors import AuthorityFailed, LedgerFailed, StoreFault
from kexpr.ledger.protocol import Record
from tests.unit.authority.adaptive_support import DUAL, NOT_CANCELLED, ORIGINS, bind, prose
from tests.unit.authority.support import BINDING, CANONICAL, World


class SessionLock:
    """The host's session lock, which notes whether the ledger's lock is held when it is taken."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_held = False
        self.taken = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        assert not self.is_held
        assert self.world.store.memory.owner is None
        self.is_held = True
        self.taken += 1
        yield
        self.is_held = False


def test_both_locks_are_held_for_every_question_and_released_for_the_call(memory_world: World) -> None:
    lock = SessionLock(memory_world)
    memory_world.session_lock = lock
    asked: list[bool] = []
    memory_world.session.on_ask = lambda: asked.append(
        lock.is_held and memory_world.store.memory.owner == threading.get_ident()
    )
    authority = memory_world.adaptive()
    ticket = bind(authority).claim(Mode.ENABLED)
    assert not lock.is_held
    assert memory_world.store.memory.owner is None
    bind(authority).finalize(ticket, prose(), NOT_CANCELLED)
    assert asked == [True, True]
    assert lock.taken == 2


@pytest.mark.parametrize("inside", ["session", "both"])
@pytest.mark.parametrize("call", ["session", "both", "state", "claim"])
def test_taking_the_session_lock_inside_either_lock_is_told(world: World, inside: str, call: str) -> None:
    authority = world.adaptive()
    calls: dict[str, Callable[[], object]] = {
        "session": lambda: authority.locks.session().__enter__(),
        "both": lambda: authority.locks.both().__enter__(),
        "state": lambda: authority.state(ORIGINS[0]),
        "claim": lambda: bind(authority).claim(Mode.ENABLED),
    }
    with getattr(authority.locks, inside)(), pytest.raises(AuthorityFailed) as failed:
        calls[call]()
    assert failed.value.code is StoreFault.LOCK_ORDER
    assert authority.state(ORIGINS[0]) == Absent()


def test_the_publication_lock_needs_the_session_lock(world: World) -> None:
    authority = world.adaptive()
    with pytest.raises(AuthorityFailed) as failed, authority.locks.publication():
        raise AssertionError
    assert failed.value.code is StoreFault.LOCK_ORDER
    with authority.locks.session(), authority.locks.publication() as transaction:
        assert transaction.now == world.clock.now()


def test_a_host_that_calls_back_from_inside_is_told(world: World) -> None:
    authority = world.adaptive()
    world.session.on_ask = lambda: authority.recover(ORIGINS[0])
    with pytest.raises(AuthorityFailed) as failed:
        bind(authority).claim(Mode.ENABLED)
    assert failed.value.code is StoreFault.LOCK_ORDER
    assert world.store.rows() == []


def test_a_session_lock_that_fails_says_nothing(world: World) -> None:
    @contextmanager
    def broken() -> Iterator[None]:
        raise OSError(BINDING)
        yield

    world.session_lock = broken
    with pytest.raises(AuthorityFailed) as failed:
        world.adaptive().state(ORIGINS[0])
    assert failed.value.code is StoreFault.HOST_PORT
    assert failed.value.__context__ is None


def history(world: World) -> tuple[Record, Record, Record]:
    authority = world.adaptive()
    bind(authority).finalize(bind(authority).claim(Mode.ENABLED), prose(), NOT_CANCELLED)
    authority.mark_publish_claimed(ORIGINS[0])
    claimed, pending, publishing = world.store.records()
    return claimed, pending, publishing


@pytest.mark.parametrize(
    "change",
    [
        {"surface": DUAL.wire},
        {"claim_id": "f" * 32},
        {"origin_kind": "typed_note"},
        {"binding_digest": "moved"},
        {"state": "published"},
        {"state": "presentation_claimed"},
        {"payload": CANONICAL},
        {"outcome": "canonical_timeout"},
        {"outcome": "shadow_selected"},
        {"outcome": "overloaded"},
        {"schema_version": 1},
        {"schema_version": 3},
        {"extra": 1},
    ],
)
def test_a_pending_row_that_changes_anything_else_is_refused(memory_world: World, change: dict[str, object]) -> None:
    claimed, pending, _ = history(memory_world)
    memory_world.store.memory.lines.clear()
    memory_world.store.put(claimed, mode=Mode.ENABLED)
    memory_world.adaptive().close()
    memory_world.store.put({**pending, **change})
    with pytest.raises(LedgerFailed) as failed:
        memory_world.adaptive()
    assert failed.value.code is StoreFault.ILLEGAL_HISTORY


def test_rows_out_of_order_are_refused(memory_world: World) -> None:
    claimed, pending, publishing = history(memory_world)
    histories: list[list[Record]] = [
        [pending],
        [publishing],
        [claimed, publishing],
        [claimed, claimed],
        [claimed, pending, pending],
        [claimed, pending, publishing, publishing],
        [{**claimed, "surface": "daily.v1"}],
        [{**claimed, "origin_kind": "menu"}],
        [{}],
    ]
    for rows in histories:
        memory_world.store.memory.lines.clear()
        for row in rows:
            memory_world.store.put(row, mode=Mode.ENABLED)
        with pytest.raises(LedgerFailed):
            memory_world.adaptive()

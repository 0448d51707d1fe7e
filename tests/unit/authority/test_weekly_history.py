"""Weekly rows that no authority writes: the ledger is refused."""

from collections.abc import Mapping

import pytest

from kexpr.authority.records import digest_of
from kexpr.codes import Mode
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.protocol import Record
from tests.unit.authority.support import (
    CANONICAL,
    World,
)
from tests.unit.authority.weekly_support import prepare


def history(world: World) -> tuple[Record, Record, Record]:
    authority = world.weekly()
    receipt = prepare(world, authority)
    authority.mark_customer_task_sending(receipt)
    claimed, prepared, sent = world.store.records()
    return claimed, prepared, sent


NAMES = (
    "destination",
    "template_digest",
    "destination_digest",
    "registry_digest",
    "config_digest",
    "canonical_body_digest",
    "presentation_surface",
    "presentation_attempt_id",
    "deadline",
    "body",
    "body_digest",
    "state",
)
PREPARED_CHANGES: list[Mapping[str, object]] = [
    *({name: "moved"} for name in NAMES),
    {"outcome": None},
    {"outcome": "overloaded"},
    {"outcome": "shadow_selected"},
    {"outcome": "canonical_timeout"},
    {"body": CANONICAL, "body_digest": digest_of(CANONICAL)},
    {"schema_version": 3},
    {"schema_version": 1},
    {"extra": 1},
]


@pytest.mark.parametrize("change", PREPARED_CHANGES, ids=",".join)
def test_a_prepared_row_that_changes_more_is_refused(memory_world: World, change: Mapping[str, object]) -> None:
    claimed, prepared, _ = history(memory_world)
    memory_world.store.memory.lines.clear()
    memory_world.store.put(claimed, mode=Mode.ENABLED)
    memory_world.weekly().close()
    memory_world.store.put({**prepared, **change})
    with pytest.raises(LedgerFailed) as failed:
        memory_world.weekly()
    assert failed.value.code is StoreFault.ILLEGAL_HISTORY


@pytest.mark.parametrize("mode", [Mode.SHADOW, None])
def test_a_selected_row_on_a_claim_that_was_not_enabled_is_refused(memory_world: World, mode: Mode | None) -> None:
    claimed, prepared, _ = history(memory_world)
    memory_world.store.memory.lines.clear()
    memory_world.store.put(claimed, mode=mode)
    memory_world.store.put(prepared)
    with pytest.raises(LedgerFailed):
        memory_world.weekly()


def test_rows_out_of_order_are_refused(memory_world: World) -> None:
    claimed, prepared, sent = history(memory_world)
    histories: list[list[Record]] = [
        [prepared],
        [sent],
        [claimed, sent],
        [claimed, claimed],
        [claimed, prepared, prepared],
        [{}],
    ]
    for rows in histories:
        memory_world.store.memory.lines.clear()
        for row in rows:
            memory_world.store.put(row, mode=Mode.ENABLED)
        with pytest.raises(LedgerFailed):
            memory_world.weekly()

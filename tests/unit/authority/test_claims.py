"""What a row claims: the first row of an artifact does, under its identity, and no other row does."""

import pytest

from kexpr.authority import claims
from kexpr.authority.transitions import AdaptiveState, DailyState, WeeklyState
from kexpr.ledger.postgres_rows import ClaimOf


def test_a_daily_event_begins_with_its_claim() -> None:
    begins = {phase for phase in DailyState if claims.daily({"phase": phase, "finalized_event_id": "event"})}
    assert begins == {DailyState.CLAIMED}
    assert claims.daily({"phase": "claimed", "finalized_event_id": "event"}) == "event"


@pytest.mark.parametrize(
    ("claim_of", "key", "states", "begins"),
    [
        (claims.weekly, "task_digest", WeeklyState, {(1, "prepared"), (2, "presentation_claimed")}),
        (claims.adaptive, "card_digest", AdaptiveState, {(1, "publish_pending"), (2, "presentation_claimed")}),
    ],
)
def test_a_task_or_card_begins_with_a_claim_or_directly(
    claim_of: ClaimOf, key: str, states: type[WeeklyState | AdaptiveState], begins: set[tuple[int, str]]
) -> None:
    """A second row of schema 2 is an outcome, one of schema 1 a step of the delivery; schema 1 has no claim."""
    rows = [(version, str(state)) for version in (1, 2) for state in states]
    digests = {row: claim_of({"schema_version": row[0], "state": row[1], key: f"{row}"}) for row in rows}
    found = {row for row, digest in digests.items() if digest is not None}
    assert {row for row in found if row != (1, "presentation_claimed")} == begins
    assert all(digests[row] == f"{row}" for row in found)


def test_a_journal_or_a_stop_claims_nothing() -> None:
    for claim_of in (claims.daily, claims.weekly, claims.adaptive):
        assert claim_of({}) is None
        assert claim_of({"state": "hard_stopped"}) is None

"""What every store has to hold, whatever its surface (contract, section 5; authorities)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from kexpr import failpoints
from kexpr.attempt import Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.recovery import Absent, Durable, InFlight, Recovered
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode, Outcome, Reason
from kexpr.errors import ClaimRefused, IllegalTransition
from kexpr.testing.conformance.kit import CANONICAL, LOST, SELECTED, Handle, Kit, Subject, candidate, refusing, wins

__all__ = ["ARTIFACT_CHECKS", "CLOCK_CHECKS", "ArtifactCheck", "refuses"]

ArtifactCheck = Callable[[Kit, Subject], None]

_DAY_MS: Final = 86_400_000
_POINTS_MAX: Final = 50
"""More steps than one claim or one ending has in any store."""


def refuses(error: type[Exception] | tuple[type[Exception], ...], call: Callable[[], object], what: str) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(what)


def claimed(handle: Handle, identity: str, mode: Mode = Mode.ENABLED) -> Ticket:
    return handle.artifact(identity).claim(mode)


def ended(handle: Handle, identity: str, ticket: Ticket, ruling: Ruling, *, cancelled: bool = False) -> Finalized:
    cancellation = Cancellation()
    if cancelled:
        cancellation.set()
    return handle.artifact(identity).finalize(ticket, ruling, cancellation)


def is_durable(found: Recovered, subject: Subject, outcome: Outcome, body: str) -> None:
    assert isinstance(found, Durable), "the outcome is not durable"
    assert found.outcome is outcome, "another outcome is durable"
    assert found.body == (body if subject.keeps_body else None), "another body is durable"


def an_artifact_is_claimed_once(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    assert handle.artifact("one").is_fresh(), "an unknown artifact is not fresh"
    ticket = claimed(handle, "one")
    assert handle.store.outstanding() == (ticket.attempt_id,), "a claim is outstanding"
    for other in (handle, subject.open(kit)):
        assert not other.artifact("one").is_fresh(), "a claimed artifact is fresh"
        refuses(ClaimRefused, lambda other=other: claimed(other, "one"), "an artifact was claimed twice")  # type: ignore[misc]


def claims_race_and_one_wins(kit: Kit, subject: Subject) -> None:
    handles = [subject.open(kit) for _ in range(4)]

    def attempt(place: tuple[Handle, str]) -> int:
        try:
            claimed(*place)
        except ClaimRefused:
            return 0
        return 1

    identities = [f"race-{number}" for number in range(25)]
    places = [(handle, identity) for identity in identities for handle in handles]
    with ThreadPoolExecutor(4) as pool:
        wins_of = list(pool.map(attempt, places))
    assert [sum(wins_of[n : n + 4]) for n in range(0, len(places), 4)] == [1] * len(identities), "not one winner"


def a_claim_is_durable_when_it_returns(kit: Kit, subject: Subject) -> None:
    claimed(subject.open(kit), "one")
    found = subject.open(kit).recover("one")
    assert isinstance(found, InFlight), "a claim was lost"
    assert 0 < found.remaining_ms <= CLAIM_LEASE_MS, "a lease is longer than it may be, or over"


def a_selected_outcome_is_durable(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    final = ended(handle, "one", claimed(handle, "one"), wins(subject.surface))
    assert (final.outcome, final.body) == (Outcome.SELECTED, SELECTED), "selected is not what was asked for"
    is_durable(subject.open(kit).recover("one"), subject, Outcome.SELECTED, SELECTED)


def shadow_keeps_the_canonical_text(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    final = ended(handle, "one", claimed(handle, "one", Mode.SHADOW), wins(subject.surface, Mode.SHADOW))
    assert (final.outcome, final.body) == (Outcome.SHADOW_SELECTED, None), "a shadow gave a body"
    is_durable(subject.open(kit).recover("one"), subject, Outcome.SHADOW_SELECTED, CANONICAL)


def a_shadow_claim_is_never_selected(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    ticket = claimed(handle, "one", Mode.SHADOW)
    forged = Ticket(ticket.attempt_id, Mode.ENABLED, ticket.lease)
    for asked in (ticket, forged):
        refuses(
            IllegalTransition,
            lambda asked=asked: ended(handle, "one", asked, wins(subject.surface)),  # type: ignore[misc]
            "a shadow claim was selected",
        )
    assert isinstance(subject.open(kit).recover("one"), InFlight), "a refused step changed something"


def a_disabled_feature_claims_nothing(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    refuses(ClaimRefused, lambda: claimed(handle, "one", Mode.DISABLED), "a disabled feature claimed")
    assert isinstance(handle.recover("one"), Absent), "a refused claim left something"


def a_late_worker_is_dropped(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    ticket = claimed(handle, "one")
    kit.pass_lease()
    final = ended(handle, "one", ticket, wins(subject.surface))
    assert (final.outcome, final.body) == (Outcome.CANONICAL_CLAIM_EXPIRED, None), "a late result was taken"
    is_durable(subject.open(kit).recover("one"), subject, Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL)


def an_expired_claim_ends_and_is_not_claimed_again(kit: Kit, subject: Subject) -> None:
    claimed(subject.open(kit), "one")
    kit.pass_lease()
    handle = subject.open(kit)
    refuses(ClaimRefused, lambda: claimed(handle, "one"), "an expired claim was claimed again")
    is_durable(handle.recover("one"), subject, Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL)
    refuses(ClaimRefused, lambda: claimed(handle, "one"), "an ended presentation was claimed again")


def a_live_claim_is_not_ended(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    ticket = claimed(handle, "one")
    other = subject.open(kit)
    assert isinstance(other.recover("one"), InFlight), "a live claim was ended by recovery"
    assert other.store.expire_outstanding() == 0, "a live claim was expired"
    assert ended(handle, "one", ticket, wins(subject.surface)).outcome is Outcome.SELECTED, "the owner lost its claim"


def outstanding_claims_are_expired_and_counted(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    for identity in ("one", "two", "three"):
        claimed(handle, identity)
    kit.pass_lease()
    other = subject.open(kit)
    assert other.store.expire_outstanding() == 3, "not every expired claim was ended"
    assert other.store.outstanding() == (), "a claim is left"
    assert other.store.outcomes() == {Outcome.CANONICAL_CLAIM_EXPIRED: 3}, "outcomes are counted otherwise"
    assert other.store.expire_outstanding() == 0, "a claim was ended twice"


def the_first_outcome_stays(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    ticket = claimed(handle, "lost")
    ended(handle, "lost", ticket, LOST)
    again = ended(handle, "lost", ticket, wins(subject.surface))
    assert (again.outcome, again.body) == (LOST.outcome, None), "an outcome was replaced"
    ticket = claimed(handle, "won")
    ended(handle, "won", ticket, wins(subject.surface))
    assert ended(handle, "won", ticket, LOST).outcome is Outcome.SELECTED, "an outcome was replaced"
    is_durable(subject.open(kit).recover("won"), subject, Outcome.SELECTED, SELECTED)


def two_candidates_are_one_commit(kit: Kit, subject: Subject) -> None:
    handle, other = subject.open(kit), subject.open(kit)
    ticket = claimed(handle, "one")
    unequal = Ruling(Outcome.SELECTED, candidate=candidate(subject.surface, "다시 살펴보니 "))
    for ruling in (wins(subject.surface), wins(subject.surface)):
        final = ended(other, "one", ticket, ruling)
        assert (final.outcome, final.body or SELECTED) == (Outcome.SELECTED, SELECTED), "an equal candidate conflicts"
    with suppress(IllegalTransition):
        final = ended(other, "one", ticket, unequal)
        assert (final.body or SELECTED) == SELECTED, "an unequal candidate was committed"
    is_durable(handle.recover("one"), subject, Outcome.SELECTED, SELECTED)
    assert handle.store.outcomes() == {Outcome.SELECTED: 1}, "a second candidate was committed"


def a_cancelled_attempt_is_canonical(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    final = ended(handle, "one", claimed(handle, "one"), wins(subject.surface), cancelled=True)
    assert (final.outcome, final.reason, final.body) == (Outcome.CANONICAL_TIMEOUT, Reason.CANCELLED, None), (
        "a cancelled attempt was not canonical"
    )


def a_ticket_of_another_attempt_is_refused(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    claimed(handle, "one")
    other = claimed(handle, "two")
    refuses(IllegalTransition, lambda: ended(handle, "one", other, wins(subject.surface)), "a foreign ticket was taken")
    refuses(IllegalTransition, lambda: ended(handle, "none", other, LOST), "an attempt ended that never began")
    assert isinstance(subject.open(kit).recover("one"), InFlight), "a refused step changed something"


def a_candidate_is_judged_again(kit: Kit, subject: Subject) -> None:
    handle = subject.open(kit)
    refused = {
        "refused": candidate(subject.surface, judge=refusing),
        "no-op": candidate(subject.surface, ""),
        **({"of another message": candidate(subject.surface, title="다른 제목")} if subject.keeps_body else {}),
    }
    for identity, asked in refused.items():
        final = ended(handle, identity, claimed(handle, identity), Ruling(Outcome.SELECTED, candidate=asked))
        assert (final.outcome, final.body) == (Outcome.CANONICAL_COMMIT_ERROR, None), f"{identity}: it was selected"
        is_durable(subject.open(kit).recover(identity), subject, Outcome.CANONICAL_COMMIT_ERROR, CANONICAL)


class _Crash(BaseException):
    """A process that ends at a step."""


def a_crash_at_any_step_leaves_one_request_at_most(kit: Kit, subject: Subject) -> None:
    """Steps are those at which the store calls `kexpr.failpoints.reach`; a store without any is cut between calls."""
    for step in range(_POINTS_MAX):
        identity = f"crash-{step}"
        requests = _until_crash(subject.open(kit), subject, identity, step)
        kit.pass_lease()
        after = subject.open(kit)
        found = after.recover(identity)
        assert not isinstance(found, InFlight), "an expired claim is still in flight"
        try:
            ticket = claimed(after, identity)
        except ClaimRefused:
            assert isinstance(found, Durable) or requests == 0, "nothing is durable and nothing can be claimed"
        else:
            requests += 1
            ended(after, identity, ticket, wins(subject.surface))
        assert requests <= 1, "an artifact had two requests"
        if isinstance(found, Durable) and found.outcome is Outcome.SELECTED and subject.keeps_body:
            assert found.body == SELECTED, "a selected outcome has another body"
    assert subject.open(kit).store.outstanding() == (), "a crash left a claim for good"


def _until_crash(handle: Handle, subject: Subject, identity: str, step: int) -> int:
    """Claim, request, finalise; the process ends at its `step`-th failpoint. How many requests it made."""
    reached = requests = 0

    def dies(_name: str) -> None:
        nonlocal reached
        reached += 1
        if reached > step:
            raise _Crash

    failpoints.install(dies)
    try:
        ticket = claimed(handle, identity)
        requests = 1
        ended(handle, identity, ticket, wins(subject.surface))
    except _Crash:
        pass
    finally:
        failpoints.install(None)
    return requests


def a_clock_that_jumps_ends_no_claim_and_revives_none(kit: Kit, subject: Subject) -> None:
    """Expiry is by boot id and `CLOCK_BOOTTIME` (authorities, "Time"); UTC is for people."""
    assert kit.clock is not None
    claimed(subject.open(kit), "one")
    for jump_ms in (_DAY_MS, -2 * _DAY_MS):
        kit.clock.jump_utc(jump_ms)
        assert isinstance(subject.open(kit).recover("one"), InFlight), "a jump of UTC ended a claim"
    kit.clock.pass_ms(CLAIM_LEASE_MS)
    kit.clock.jump_utc(-_DAY_MS)
    is_durable(subject.open(kit).recover("one"), subject, Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL)


def another_boot_ends_every_claim(kit: Kit, subject: Subject) -> None:
    assert kit.clock is not None
    claimed(subject.open(kit), "one")
    kit.clock.reboot()
    is_durable(subject.open(kit).recover("one"), subject, Outcome.CANONICAL_CLAIM_EXPIRED, CANONICAL)


ARTIFACT_CHECKS: Final[tuple[ArtifactCheck, ...]] = (
    an_artifact_is_claimed_once,
    claims_race_and_one_wins,
    a_claim_is_durable_when_it_returns,
    a_selected_outcome_is_durable,
    shadow_keeps_the_canonical_text,
    a_shadow_claim_is_never_selected,
    a_disabled_feature_claims_nothing,
    a_late_worker_is_dropped,
    an_expired_claim_ends_and_is_not_claimed_again,
    a_live_claim_is_not_ended,
    outstanding_claims_are_expired_and_counted,
    the_first_outcome_stays,
    two_candidates_are_one_commit,
    a_cancelled_attempt_is_canonical,
    a_ticket_of_another_attempt_is_refused,
    a_candidate_is_judged_again,
    a_crash_at_any_step_leaves_one_request_at_most,
)
CLOCK_CHECKS: Final[tuple[ArtifactCheck, ...]] = (
    a_clock_that_jumps_ends_no_claim_and_revives_none,
    another_boot_ends_every_claim,
)
"""For stores that read the kit's clock."""

"""The decision table: what ends an attempt, in which order, and what is refused."""

import itertools

import pytest

from kexpr.attempt import Finalized, Ruling
from kexpr.authority.finalise import Asked, Claim, Found, decide, may_end
from kexpr.clock import CLAIM_LEASE_MS, Instant, Lease
from kexpr.codes import FINAL_OUTCOMES, NOT_ATTEMPTED, Mode, Outcome, Reason, Surface
from kexpr.errors import IllegalTransition
from kexpr.manifest import Manifest, SlotText
from tests.unit.authority.support import CANONICAL, LOST, OTHER_CANONICAL, SELECTED, candidate, refusing, wins

NOW = Instant(1_000_000, 50_000, "boot")
LIVE = Lease(1_000_000 + CLAIM_LEASE_MS, 50_000 + CLAIM_LEASE_MS, "boot")
OVER = Lease(1_000_000, 50_000, "boot")
MINE = "a" * 32
SURFACE = Surface.WEEKLY

EXPIRED = (Outcome.CANONICAL_CLAIM_EXPIRED, Reason.CLAIM_EXPIRED)
CANCELLED = (Outcome.CANONICAL_TIMEOUT, Reason.CANCELLED)
PIN_CHANGED = (Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_PIN_CHANGED)
INVALID = (Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_CANDIDATE_INVALID)


def found(
    mode: Mode | None = Mode.ENABLED,
    lease: Lease | None = LIVE,
    final: Finalized | None = None,
    canonical_body: str | None = CANONICAL,
) -> Found:
    return Found("weekly", "presentation_claimed", Claim(MINE, mode, lease, SURFACE, canonical_body), final, NOW)


def end(found_: Found, ruling: Ruling, *, cancelled: bool = False, pins_hold: bool = True) -> Finalized:
    decision = decide(found_, Asked(MINE, ruling, cancelled, pins_hold))
    assert decision.is_new
    return decision.finalized


@pytest.mark.parametrize(("expired", "cancelled", "pins", "valid"), list(itertools.product([False, True], repeat=4)))
def test_the_first_obstacle_in_order_decides(expired: bool, cancelled: bool, pins: bool, valid: bool) -> None:
    winning = wins(SURFACE) if valid else Ruling(Outcome.SELECTED, candidate=candidate(SURFACE, judge=refusing))
    final = end(found(lease=OVER if expired else LIVE), winning, cancelled=cancelled, pins_hold=pins)
    obstacles = [(expired, EXPIRED), (cancelled, CANCELLED), (not pins, PIN_CHANGED), (not valid, INVALID)]
    expected = next((end for is_met, end in obstacles if is_met), (Outcome.SELECTED, None))
    assert (final.outcome, final.reason) == expected
    assert final.body == (SELECTED if final.outcome is Outcome.SELECTED else None)


@pytest.mark.parametrize(("cancelled", "pins"), list(itertools.product([False, True], repeat=2)))
def test_a_lost_ruling_keeps_its_own_code_unless_the_caller_left(cancelled: bool, pins: bool) -> None:
    final = end(found(), LOST, cancelled=cancelled, pins_hold=pins)
    assert (final.outcome, final.reason) == (CANCELLED if cancelled else (LOST.outcome, LOST.reason))
    assert final.body is None


@pytest.mark.parametrize("final", [Finalized(outcome) for outcome in sorted(FINAL_OUTCOMES)])
@pytest.mark.parametrize("attempt_id", [MINE, "b" * 32])
def test_what_is_final_stays_whoever_asks(final: Finalized, attempt_id: str) -> None:
    for lease, cancelled in itertools.product([LIVE, OVER], [False, True]):
        decision = decide(found(lease=lease, final=final), Asked(attempt_id, wins(SURFACE), cancelled))
        assert decision.finalized is final
        assert not decision.is_new


@pytest.mark.parametrize("lease", [LIVE, OVER, None])
@pytest.mark.parametrize("ruling", [LOST, wins(SURFACE)])
def test_only_the_owner_ends_a_claim(lease: Lease | None, ruling: Ruling) -> None:
    with pytest.raises(IllegalTransition):
        decide(found(lease=lease), Asked("b" * 32, ruling, cancelled=False))


@pytest.mark.parametrize("ruling", [LOST, wins(SURFACE)])
def test_no_claim_is_nothing_to_end(ruling: Ruling) -> None:
    with pytest.raises(IllegalTransition):
        decide(Found("weekly", "ready", None, None, NOW), Asked(MINE, ruling, cancelled=False))


@pytest.mark.parametrize("mode", [*Mode, None])
@pytest.mark.parametrize("outcome", Outcome)
def test_which_outcomes_a_claim_can_have(mode: Mode | None, outcome: Outcome) -> None:
    winner = Outcome.SELECTED if mode is Mode.ENABLED else Outcome.SHADOW_SELECTED
    legal = outcome in FINAL_OUTCOMES - {Outcome.SELECTED, Outcome.SHADOW_SELECTED} | {winner}
    assert may_end(found(mode).claim, outcome) is legal  # type: ignore[arg-type]
    ruling = Ruling(outcome, candidate=candidate(SURFACE))
    if legal:
        assert end(found(mode), ruling).outcome is outcome
    else:
        with pytest.raises(IllegalTransition):
            end(found(mode), ruling)


def test_not_attempted_is_never_an_end() -> None:
    for outcome in NOT_ATTEMPTED:
        with pytest.raises(IllegalTransition):
            end(found(), Ruling(outcome))


def test_a_missing_lease_is_expired() -> None:
    assert end(found(lease=None), wins(SURFACE)).outcome is Outcome.CANONICAL_CLAIM_EXPIRED


@pytest.mark.parametrize(
    ("lease", "is_alive"),
    [
        (Lease(0, NOW.boottime_ms + 1, "boot"), True),
        (Lease(NOW.utc_ms + 9_999, NOW.boottime_ms, "boot"), False),
        (Lease(NOW.utc_ms + 9_999, NOW.boottime_ms + 9_999, "another"), False),
        (Lease(NOW.utc_ms + 1, 0, None), True),
        (Lease(NOW.utc_ms, 9_999_999, None), False),
    ],
)
def test_whose_clock_ends_a_lease(lease: Lease, is_alive: bool) -> None:
    assert (end(found(lease=lease), LOST).outcome is LOST.outcome) is is_alive


def _faulty(_manifest: Manifest, _texts: tuple[SlotText, ...]) -> str:
    raise RuntimeError("content")


@pytest.mark.parametrize(
    "invalid",
    [
        None,
        candidate(SURFACE, judge=refusing),
        candidate(SURFACE, judge=_faulty),
        candidate(SURFACE, judge=lambda _manifest, _texts: None),  # type: ignore[arg-type,return-value]
        candidate(SURFACE, prose="", judge=lambda manifest, _: manifest.canonical_body),
        candidate(Surface.DAILY),
        candidate(SURFACE, title="다른 제목"),
        candidate(SURFACE, prose="셋은 ", judge=lambda _manifest, _texts: CANONICAL),
    ],
    ids=["missing", "rejected", "faulty", "not_text", "noop", "surface", "canonical", "answers_canonical"],
)
@pytest.mark.parametrize("mode", [Mode.ENABLED, Mode.SHADOW])
def test_an_invalid_candidate_is_a_commit_error(invalid: object, mode: Mode) -> None:
    ruling = Ruling(wins(SURFACE, mode).outcome, candidate=invalid)  # type: ignore[arg-type]
    final = end(found(mode), ruling)
    assert (final.outcome, final.reason, final.body) == (*INVALID, None)


def test_a_claim_without_a_canonical_body_takes_any_manifest_of_its_surface() -> None:
    ruling = Ruling(Outcome.SELECTED, candidate=candidate(SURFACE, title="다른 제목"))
    body = end(found(canonical_body=None), ruling).body
    assert body is not None
    assert body.startswith(OTHER_CANONICAL[:5])


def test_shadow_is_judged_like_enabled_and_gives_no_body() -> None:
    assert end(found(Mode.SHADOW), wins(SURFACE, Mode.SHADOW)) == Finalized(Outcome.SHADOW_SELECTED)

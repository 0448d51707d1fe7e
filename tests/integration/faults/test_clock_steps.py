"""Clocks that are set while a claim is alive: one process claims, another with other clocks looks at it."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from kexpr.authority.recovery import Durable, InFlight, Recovered
from kexpr.authority.weekly import WeeklyTask
from kexpr.clock import CLAIM_LEASE_MS, Instant, SystemClock
from kexpr.codes import Mode, Outcome
from kexpr.errors import ClaimRefused
from tests.integration.faults.test_claim_races import RACED, _artifact
from tests.integration.paths.invariants import outcomes
from tests.support.hosts import Gateway, Kind, canonical_text, card

DAY_MS = 24 * 3600 * 1000
OVER_MS = CLAIM_LEASE_MS + 1_000
SAME = "the machine's"


@dataclass
class SteppedClock:
    """The machine's clocks, with UTC set by `utc_ms`, `later_ms` later, in the boot that is given."""

    utc_ms: int = 0
    later_ms: int = 0
    boot_id: str | None = SAME

    def now(self) -> Instant:
        now = SystemClock().now()
        boot_id = now.boot_id if self.boot_id == SAME else self.boot_id
        return Instant(now.utc_ms + self.utc_ms + self.later_ms, now.boottime_ms + self.later_ms, boot_id)

    def monotonic(self) -> float:
        return SystemClock().monotonic()


def _claimed_elsewhere(directory: Path, kind: Kind, clock: SteppedClock) -> None:
    """Claim in a process that ends then, with its claim alive."""
    pid = os.fork()
    if pid == 0:
        ended = 1
        try:
            with Gateway(directory, None, mode=Mode.DISABLED, clock=clock) as gateway:
                _artifact(gateway, kind, "m").claim(Mode.ENABLED)
            ended = 0
        finally:
            os._exit(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _recovered(gateway: Gateway, kind: Kind) -> Recovered:
    if kind is Kind.DAILY:
        return gateway.daily_authority.recover("m")
    if kind is Kind.WEEKLY:
        return gateway.weekly_authority.recover(WeeklyTask("m"))
    return gateway.adaptive_authority.recover(card(kind, "m").origin)


def _look(directory: Path, kind: Kind, clock: SteppedClock) -> Recovered:
    with Gateway(directory, None, mode=Mode.DISABLED, clock=clock) as gateway:
        with pytest.raises(ClaimRefused):
            _artifact(gateway, kind, "m").claim(Mode.ENABLED)
        return _recovered(gateway, kind)


@pytest.mark.parametrize("step_ms", [-DAY_MS, DAY_MS])
@pytest.mark.parametrize("kind", RACED)
def test_a_step_of_utc_neither_ends_a_claim_nor_revives_one(kind: Kind, step_ms: int, tmp_path: Path) -> None:
    _claimed_elsewhere(tmp_path, kind, SteppedClock())
    alive = _look(tmp_path, kind, SteppedClock(utc_ms=step_ms))
    assert isinstance(alive, InFlight)
    assert 0 < alive.remaining_ms <= CLAIM_LEASE_MS
    ended = _look(tmp_path, kind, SteppedClock(utc_ms=step_ms, later_ms=OVER_MS))
    assert isinstance(ended, Durable)
    assert ended.outcome is Outcome.CANONICAL_CLAIM_EXPIRED
    assert isinstance(_look(tmp_path, kind, SteppedClock(utc_ms=-step_ms)), Durable)
    assert outcomes(tmp_path, kind, "m") == [Outcome.CANONICAL_CLAIM_EXPIRED]


@pytest.mark.parametrize("kind", RACED)
def test_a_claim_does_not_outlive_its_boot(kind: Kind, tmp_path: Path) -> None:
    _claimed_elsewhere(tmp_path, kind, SteppedClock())
    ended = _look(tmp_path, kind, SteppedClock(boot_id="another"))
    assert isinstance(ended, Durable)
    assert ended.outcome is Outcome.CANONICAL_CLAIM_EXPIRED


@pytest.mark.parametrize("kind", RACED)
@pytest.mark.parametrize(("written", "read"), [(None, None), (None, SAME), (SAME, None)])
def test_without_a_boot_id_utc_decides(written: str | None, read: str | None, kind: Kind, tmp_path: Path) -> None:
    _claimed_elsewhere(tmp_path, kind, SteppedClock(boot_id=written))
    assert isinstance(_look(tmp_path, kind, SteppedClock(boot_id=read)), InFlight)
    back = _look(tmp_path, kind, SteppedClock(utc_ms=-DAY_MS, boot_id=read))
    assert isinstance(back, InFlight)
    assert back.remaining_ms <= CLAIM_LEASE_MS, "a clock that was set back keeps a claim for a day"
    assert isinstance(_look(tmp_path, kind, SteppedClock(utc_ms=DAY_MS, boot_id=read)), Durable)


@pytest.mark.parametrize("kind", RACED)
@pytest.mark.parametrize("step_ms", [-DAY_MS, DAY_MS])
def test_a_step_within_one_process_does_not_move_its_lease(step_ms: int, kind: Kind, tmp_path: Path) -> None:
    clock = SteppedClock()
    with Gateway(tmp_path, None, mode=Mode.DISABLED, clock=clock) as gateway:
        _artifact(gateway, kind, "m").claim(Mode.ENABLED)
        clock.utc_ms = step_ms
        assert isinstance(_recovered(gateway, kind), InFlight)
        clock.later_ms = OVER_MS
        gateway.publish(kind, "m", replay=kind is Kind.DAILY)
        assert gateway.host.delivered("m") == [canonical_text(kind, "m")]
    assert outcomes(tmp_path, kind, "m") == [Outcome.CANONICAL_CLAIM_EXPIRED]

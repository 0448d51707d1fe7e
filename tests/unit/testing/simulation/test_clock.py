"""The machine's clocks: UTC goes both ways, the boot clock only forward, and a boot begins it anew."""

import pytest

from kexpr.clock import CLAIM_LEASE_MS, is_expired, lease_from
from kexpr.testing.simulation.clock import MachineClock, ProcessClock


def test_a_jump_moves_utc_alone() -> None:
    machine = MachineClock()
    clock = ProcessClock(machine)
    before = clock.now()
    machine.jump_utc(-5_000)
    assert clock.now().utc_ms == before.utc_ms - 5_000
    assert clock.now().boottime_ms == before.boottime_ms
    machine.set_right()
    assert clock.now() == before
    machine.jump_utc(-(1 << 60))
    assert clock.now().utc_ms == 0


def test_time_passes_on_all_clocks_and_never_back() -> None:
    machine = MachineClock()
    clock = ProcessClock(machine)
    lease, started = lease_from(clock.now()), clock.monotonic()
    machine.pass_ms(CLAIM_LEASE_MS - 1)
    assert not is_expired(lease, clock.now())
    machine.pass_ms(1)
    assert is_expired(lease, clock.now())
    assert clock.monotonic() - started == CLAIM_LEASE_MS / 1000
    with pytest.raises(ValueError):
        machine.pass_ms(-1)


def test_another_boot() -> None:
    machine = MachineClock()
    clock = ProcessClock(machine)
    lease = lease_from(clock.now())
    machine.reboot()
    assert is_expired(lease, ProcessClock(machine).now())
    assert clock.now().boot_id != ProcessClock(machine).now().boot_id, "a process reads it once"
    assert ProcessClock(machine, boot_id_readable=False).now().boot_id is None

"""Draining a loaded gateway, and ending what a stopped one left."""

import asyncio
import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr import failpoints
from kexpr.cli import main
from kexpr.codes import NOT_ATTEMPTED, Mode, Outcome
from kexpr.errors import AuthorityFailed, StoreFault
from kexpr.exits import Exit
from kexpr.ledger.journal import JOURNAL_NAME
from kexpr.private_files import KEY_NAME
from kexpr.rollback import Drained, drain, rollback_state
from kexpr.testing.canaries import Canaries
from kexpr.transport import ClientFactory
from tests.support.hosts import Gateway, Kind, canonical_text, records

LOAD = [(kind, f"{kind}-{number}") for number in range(6) for kind in Kind]
FINAL = set(Outcome) - NOT_ATTEMPTED


@pytest.fixture(scope="module")
def slow():
    """Every second answer comes at once, the others never."""
    with RehearsalServer(answer_bytes, FaultPlan.parse([f"stall@{number}" for number in range(2, 200, 2)])) as server:
        yield server


@pytest.fixture(scope="module")
def quick():
    with RehearsalServer(answer_bytes, FaultPlan.parse(())) as server:
        yield server


def stores(gateway: Gateway):
    return (gateway.daily_authority, gateway.weekly_authority, gateway.adaptive_authority)


def rows_of(directory: Path) -> dict[tuple[Kind, str], list[dict[str, object]]]:
    return {(kind, identity): records(directory, kind, identity) for kind, identity in LOAD}


def check_after(directory: Path, gateway: Gateway, drained: Drained) -> None:
    """No claim without an outcome, no text but a durable one, at most one edit of a selected text."""
    assert drained.clean
    assert drained.duration_ms <= 5_000
    assert set(drained.outcomes) <= FINAL
    for (kind, identity), rows in rows_of(directory).items():
        assert not any(row["lease"] for row in rows) or any(row.get("outcome") for row in rows)
        for text in gateway.host.delivered(identity):
            assert text == canonical_text(kind, identity) or any(row.get("outcome") == "selected" for row in rows)


@pytest.mark.parametrize("seed", range(50))
def test_draining_under_load_leaves_nothing_open(seed: int, tmp_path: Path, quick: RehearsalServer) -> None:
    with Gateway(tmp_path, ClientFactory(_seam=quick.seam), workers=4) as gateway, ThreadPoolExecutor(8) as pool:
        for kind, identity in LOAD:
            pool.submit(gateway.publish, kind, identity)
        time.sleep(random.Random(seed).uniform(0, 0.12))
        drained = drain(gateway.coordinator, stores(gateway))
        requests = quick.requests
        pool.shutdown(wait=True)
        assert quick.requests == requests
        check_after(tmp_path, gateway, drained)
        late = gateway.publish(Kind.DAILY, "late")
        assert late.outcome is Outcome.ADMISSION_CLOSED
        assert gateway.host.delivered("late") == [canonical_text(Kind.DAILY, "late")]
        assert quick.requests == requests


def test_a_peer_that_never_answers_holds_it_for_one_lease(tmp_path: Path, slow: RehearsalServer) -> None:
    with Gateway(tmp_path, ClientFactory(_seam=slow.seam), workers=4) as gateway, ThreadPoolExecutor(8) as pool:
        for kind, identity in LOAD[:8]:
            pool.submit(gateway.publish, kind, identity)
        time.sleep(0.2)
        intake: list[int] = []
        drained = drain(gateway.coordinator, stores(gateway), stop_intake=lambda: intake.append(1))
        pool.shutdown(wait=True)
        assert intake == [1]
        check_after(tmp_path, gateway, drained)
        assert drained.outcomes[Outcome.CANONICAL_TIMEOUT] >= 1


def test_an_asyncio_host_drains_in_a_thread(tmp_path: Path, quick: RehearsalServer) -> None:
    async def run(gateway: Gateway) -> Drained:
        async def no_wait() -> None:
            await asyncio.sleep(0)

        tasks = [asyncio.create_task(gateway.publish_async(kind, identity, no_wait)) for kind, identity in LOAD]
        await asyncio.sleep(0.05)
        drained = await asyncio.to_thread(drain, gateway.coordinator, stores(gateway))
        await asyncio.gather(*tasks)
        return drained

    with Gateway(tmp_path, ClientFactory(_seam=quick.seam), workers=4) as gateway:
        check_after(tmp_path, gateway, asyncio.run(run(gateway)))


def test_a_host_that_fails_and_a_store_that_is_gone_are_said(tmp_path: Path, quick: RehearsalServer) -> None:
    canaries = Canaries()
    text = canaries.plant("the host's exception")

    def fails() -> None:
        raise ValueError(text)

    with Gateway(tmp_path, ClientFactory(_seam=quick.seam)) as gateway:
        drained = drain(gateway.coordinator, stores(gateway), stop_intake=fails)
        assert (drained.intake_stopped, drained.outstanding, drained.clean) == (False, 0, False)
        gateway.daily_authority.close()
        gone = drain(gateway.coordinator, stores(gateway))
        assert (gone.outstanding, gone.clean) == (None, False)
    canaries.assert_absent({"drained": json.dumps(drained.to_json()) + repr(drained)})


class Died(BaseException):
    """A process that ends in the middle of an attempt."""


def left_open(directory: Path, server: RehearsalServer) -> None:
    """A gateway that died right after a claim in each store."""

    def dies(point: str) -> None:
        if point == "coordinator.claimed":
            raise Died

    failpoints.install(dies)
    try:
        with Gateway(directory, ClientFactory(_seam=server.seam)) as gateway:
            for kind in Kind:
                with pytest.raises(Died):
                    gateway.publish(kind, f"{kind}-0")
    finally:
        failpoints.install(None)


def test_what_a_stopped_process_left_is_ended(
    tmp_path: Path, quick: RehearsalServer, capsys: pytest.CaptureFixture[str]
) -> None:
    left_open(tmp_path, quick)
    started = time.monotonic()
    assert main(["rollback", "--state", str(tmp_path / "state"), "--json"]) == Exit.GOOD
    assert time.monotonic() - started < 5
    done = json.loads(capsys.readouterr().out)
    assert done["outcomes"] == {"canonical_claim_expired": 4}
    assert (done["outstanding"], done["schema_version"]) == (0, 1)
    assert main(["rollback", "--state", str(tmp_path / "state")]) == Exit.GOOD
    assert capsys.readouterr().out.startswith("nothing to end · 0 outstanding")


def test_a_restarted_disabled_process_only_recovers(tmp_path: Path, quick: RehearsalServer) -> None:
    left_open(tmp_path, quick)
    rollback_state(tmp_path / "state")
    before = rows_of(tmp_path)
    with Gateway(tmp_path, ClientFactory(), mode=Mode.DISABLED) as gateway:
        for kind in Kind:
            gateway.publish(kind, f"{kind}-0", replay=True)
            assert gateway.host.delivered(f"{kind}-0")[-1] == canonical_text(kind, f"{kind}-0")
    for key, rows in rows_of(tmp_path).items():
        added = rows[len(before[key]) :]
        assert not any(row["lease"] for row in added)
        assert not added or key[0] is not Kind.DAILY


def test_no_state_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "none", tmp_path):
        assert main(["rollback", "--state", str(path)]) == Exit.INVALID
    assert capsys.readouterr().err.count("not_regular") == 2
    assert list(tmp_path.iterdir()) == []


def test_an_outcome_journal_is_not_taken_for_an_empty_state(tmp_path: Path) -> None:
    root = tmp_path / "korean-expression-v1"
    root.mkdir(mode=0o700)
    for name in (KEY_NAME, JOURNAL_NAME):
        (root / name).write_bytes(b"x" * 32)
        (root / name).chmod(0o600)
    assert main(["rollback", "--state", str(root)]) == Exit.INVALID


def test_the_command_says_nothing_of_what_it_ended(
    tmp_path: Path, quick: RehearsalServer, capsys: pytest.CaptureFixture[str]
) -> None:
    left_open(tmp_path, quick)
    canaries = Canaries()
    for kind in Kind:
        canaries.adopt(f"{kind} text", max(canonical_text(kind, f"{kind}-0").splitlines(), key=len))
    assert main(["rollback", "--state", str(tmp_path / "state"), "--json"]) == Exit.GOOD
    assert main(["rollback", "--state", str(tmp_path / "state")]) == Exit.GOOD
    said = capsys.readouterr()
    canaries.assert_absent({"out": said.out, "err": said.err})


def test_a_state_that_is_not_whole_is_refused(tmp_path: Path, quick: RehearsalServer) -> None:
    left_open(tmp_path, quick)
    (tmp_path / "state-tombstones").rename(tmp_path / "elsewhere")
    with pytest.raises(AuthorityFailed) as caught:
        rollback_state(tmp_path / "state")
    assert caught.value.code is StoreFault.TOMBSTONE_MISSING
    assert not (tmp_path / "state-tombstones").exists()
    (tmp_path / "state" / KEY_NAME).unlink()
    with pytest.raises(AuthorityFailed) as caught:
        rollback_state(tmp_path / "state", tombstones=tmp_path / "elsewhere")
    assert caught.value.code is StoreFault.KEY_MISSING


def test_a_live_gateway_beside_it_is_not_disturbed(tmp_path: Path, quick: RehearsalServer) -> None:
    """Only what has expired is ended: an attempt of four seconds is not overtaken."""
    with Gateway(tmp_path, ClientFactory(_seam=quick.seam)) as gateway:
        done: list[Drained] = []
        beside = threading.Thread(target=lambda: done.append(rollback_state(tmp_path / "state")))
        beside.start()
        outcomes = [gateway.publish(kind, identity).outcome for kind, identity in LOAD[:8]]
        beside.join()
        assert set(outcomes) == {Outcome.SELECTED}
        assert done[0].clean

"""Two processes over one state claim each of thousands of identities at the same moment: exactly one wins each."""

import multiprocessing
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from kexpr.attempt import ArtifactAuthority
from kexpr.codes import Mode
from kexpr.errors import ClaimRefused
from kexpr.ledger.maintenance import verify
from tests.support.hosts import Gateway, Kind, canonical_text, card

ROUNDS = 1_000
RACED = (Kind.DAILY, Kind.WEEKLY, Kind.CALLBACK)


def _artifact(gateway: Gateway, kind: Kind, identity: str) -> ArtifactAuthority:
    if kind is Kind.DAILY:
        return gateway.daily_authority.artifact(identity)
    if kind is Kind.WEEKLY:
        task = gateway.delivery(identity)
        return gateway.weekly_authority.artifact(
            task.task,
            canonical_body=canonical_text(kind, identity),
            destination=task.destination,
            current_pins=task.current_pins,
        )
    found = card(kind, identity)
    return gateway.adaptive_authority.artifact(
        found.origin,
        canonical_payload=found.canonical_payload,
        surface=found.surface,
        binding_digest=found.binding_digest,
    )


def race(directory: Path, kind: Kind, barrier: Barrier, won: "Queue[list[int]]") -> None:
    """One racer; says the rounds that it won. A claim that failed, rather than was refused, ends it."""
    mine: list[int] = []
    with Gateway(directory, None, mode=Mode.DISABLED) as gateway:
        for number in range(ROUNDS):
            artifact = _artifact(gateway, kind, f"m{number}")
            barrier.wait(5)
            try:
                artifact.claim(Mode.ENABLED)
            except ClaimRefused:
                continue
            mine.append(number)
    won.put(mine)


@pytest.mark.parametrize("kind", RACED)
def test_one_of_two_processes_wins_every_claim(kind: Kind, tmp_path: Path) -> None:
    with Gateway(tmp_path, None, mode=Mode.DISABLED):
        pass
    context = multiprocessing.get_context("spawn")
    barrier, won = context.Barrier(2), context.Queue()
    racers = [context.Process(target=race, args=(tmp_path, kind, barrier, won)) for _ in range(2)]
    for racer in racers:
        racer.start()
    first, second = won.get(timeout=30), won.get(timeout=30)
    for racer in racers:
        racer.join(10)
        assert racer.exitcode == 0
    assert sorted(first + second) == list(range(ROUNDS))
    assert min(len(first), len(second)) > ROUNDS // 20, "one of them always came first: nothing was raced"
    assert verify(tmp_path / "state" / kind.ledger).rows >= ROUNDS

"""`python -m tests.integration.faults.full_disk PLACE`: weekly messages on a state that runs full, and on.

PLACE/state is a small file system of its own; deliveries and tombstones are outside of it. Prints what is wrong, then
the last durable states that a full disk left.
"""

import os
import sys
from pathlib import Path

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.errors import KexprError
from kexpr.ledger.maintenance import repair
from kexpr.transport import ClientFactory
from tests.integration.paths.invariants import last_state, violations
from tests.support.hosts import AheadClock, Gateway, Kind

ROUNDS = 6
MOST_ROUNDS = 40
"""Until the disk ran full at two different rows: where it does is up to the lengths of rows."""
MOST = 90
"""Messages that fit in what is left for a round; the disk is full before."""


def _fill(ballast: Path, room_bytes: int) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            os.ftruncate(file.fileno(), max(0, file.tell() - room_bytes))


def _publish(gateway: Gateway, identity: str) -> bool:
    """Whether the message went the whole way."""
    try:
        return gateway.publish(Kind.WEEKLY, identity).outcome == "selected"
    except KexprError:
        return False


def main(place: Path) -> None:
    wrong: list[str] = []
    left: list[str] = []
    sent: dict[str, int] = {}
    ballast = place / "state" / "ballast"
    with RehearsalServer(answer_bytes, FaultPlan()) as server:
        clients = ClientFactory(_seam=server.seam)

        def publish(gateway: Gateway, identity: str) -> bool:
            before = server.requests
            whole = _publish(gateway, identity)
            sent[identity] = sent.get(identity, 0) + server.requests - before
            return whole

        for number in range(MOST_ROUNDS):
            if number >= ROUNDS and len(set(left)) > 1:
                break
            ahead_ms = 2 * number * (CLAIM_LEASE_MS + 1_000)
            with Gateway(place, clients, clock=AheadClock(ahead_ms)) as gateway:
                _fill(ballast, number % 3 * 4096)
                for attempt in range(MOST):
                    identity = f"m{number}-{attempt}"
                    if not publish(gateway, identity):
                        break
                else:
                    wrong.append(f"round {number}: the disk never ran full")
                publish(gateway, identity)
            ballast.unlink()
            repair(place / "state" / "weekly")
            left.append(last_state(place, Kind.WEEKLY, identity) or "absent")
            with Gateway(place, clients, clock=AheadClock(ahead_ms + CLAIM_LEASE_MS + 1_000)) as gateway:
                publish(gateway, identity)
                if not publish(gateway, f"m{number}-next"):
                    wrong.append(f"round {number}: does not go on")
        for identity, requests in sent.items():
            wrong += [f"{identity}: {text}" for text in violations(place, Kind.WEEKLY, identity, requests)]
    print("; ".join(wrong))
    print(*left)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

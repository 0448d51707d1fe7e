"""A process killed at every named step of every path, and its restarts: within the claim's lease and after it.

Each gateway is a process of its own, and its death is a SIGKILL. What is checked is read from the files and from the
provider, not from the library.
"""

import random
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import Mode
from tests.integration.paths.conftest import Lane, Lanes
from tests.integration.paths.invariants import is_claimed, last_state, outcomes, violations
from tests.integration.paths.worker import Ended, Scene
from tests.support.hosts import AheadClock, Host, Kind, canonical_text, records

AFTER_THE_LEASE_MS = CLAIM_LEASE_MS + 1_000
SECOND_TAP_MS = 2 * AFTER_THE_LEASE_MS

STEPS = {
    Kind.DAILY: ("daily.claim.before", "daily.claim.after", "daily.finalize.before", "daily.finalize.after"),
    Kind.WEEKLY: (
        "weekly.tombstone_claimed.before",
        "tombstone.claimed",
        "weekly.claim.after",
        "weekly.finalize.after",
        "tombstone.sending",
        "weekly.mark_sending.after",
        "weekly.mark_delivered.after",
    ),
    Kind.CALLBACK: (
        "adaptive.claim.before",
        "adaptive.claim.after",
        "adaptive.finalize.after",
        "adaptive.mark_publish_claimed.after",
        "adaptive.mark_published.after",
    ),
}
STEPS[Kind.TYPED_NOTE] = STEPS[Kind.CALLBACK]
COMMON_STEPS = (
    "ledger.segment.created",
    "ledger.before_write",
    "ledger.after_write",
    "ledger.after_fsync",
    "coordinator.claimed",
    "coordinator.answered",
    "coordinator.ruled",
    "coordinator.finalized",
    "host.delivering",
    "host.delivered",
    "path.delivered",
)

Point = tuple[str, int]
_directories = count()


@dataclass(frozen=True)
class Message:
    """One message in a state of its own, driven by processes of one lane."""

    lane: Lane
    directory: Path
    kind: Kind
    mode: Mode

    @property
    def identity(self) -> str:
        return self.directory.name

    def run(self, **scene: object) -> Ended:
        return self.lane.run(
            replace(Scene(str(self.directory), self.kind.value, self.identity, self.mode.value), **scene)  # type: ignore[arg-type]
        )

    def restart(self, ahead_ms: int = 0, **scene: object) -> Ended:
        """What a host does after a restart: it replays what it had saved, and looks again at tasks and cards."""
        return self.run(ahead_ms=ahead_ms, replay=self.kind is Kind.DAILY, **scene)

    @property
    def delivered(self) -> list[str]:
        return Host(self.directory).delivered(self.identity)

    def claim_ends_at_ms(self) -> int | None:
        """Boot time at which the lease of the claim without an outcome ends; None without such a claim."""
        if not is_claimed(self.directory, self.kind, self.identity):
            return None
        return int(records(self.directory, self.kind, self.identity)[-1]["lease"]["boottime_deadline_ms"])

    @property
    def may_have_been_sent(self) -> bool:
        return any((self.directory / "state-tombstones").glob("*.sending"))


def fresh(lane: Lane, root: Path, kind: Kind, mode: Mode) -> Message:
    directory = root / f"message-{next(_directories)}"
    directory.mkdir(mode=0o700)
    return Message(lane, directory, kind, mode)


def points(names: list[str]) -> list[Point]:
    """Every reach of every name, as the name and how many times it was reached then."""
    return [(name, names[: index + 1].count(name)) for index, name in enumerate(names)]


def recovered(message: Message, died_ms: int = 0) -> list[str]:
    """Two restarts, within the lease of a process that died at `died_ms` and after it, and one more tap.

    Returns what is wrong about them.
    """
    wrong: list[str] = []
    claim_ends_at_ms, left = message.claim_ends_at_ms(), message.delivered
    is_alive = (claim_ends_at_ms or 0) > AheadClock(died_ms).now().boottime_ms
    was_sent = message.may_have_been_sent
    had_row = bool(records(message.directory, message.kind, message.identity))
    early = message.restart(died_ms)
    if is_alive:
        if message.delivered != left or not 0 < early.wait_ms <= CLAIM_LEASE_MS:
            wrong.append("published within another's lease")
    elif early.wait_ms:
        wrong.append("waits for no one")
    late = message.restart(died_ms + AFTER_THE_LEASE_MS)
    settled = message.delivered
    again = message.restart(died_ms + SECOND_TAP_MS)
    for ended in (early, late, again):
        if ended.raised:
            wrong.append(f"raised {ended.raised}")
    wrong += _undelivered(message, left, settled, was_sent)
    if message.kind is not Kind.DAILY and message.delivered != settled:
        wrong.append("delivered again by a later tap")
    if message.kind is Kind.WEEKLY and had_row and early.renders + late.renders + again.renders:
        wrong.append("rendered a task that has a row")
    if claim_ends_at_ms and outcomes(message.directory, message.kind, message.identity) != ["canonical_claim_expired"]:
        wrong.append("a claim that nobody held ended otherwise than by its expiry")
    return wrong


def _undelivered(message: Message, left: list[str], settled: list[str], was_sent: bool) -> list[str]:
    """What the recovery owes: daily a canonical replay, weekly exactly one send, adaptive an edit and `published`."""
    if message.kind is Kind.DAILY:
        return [] if settled[-1:] == [canonical_text(Kind.DAILY, message.identity)] else ["no canonical replay"]
    if message.kind is Kind.WEEKLY:
        owed = left if was_sent else settled[:1]
        return [] if settled == owed and (was_sent or len(settled) == 1) else [f"sent {len(settled)} times"]
    state = last_state(message.directory, message.kind, message.identity)
    return [] if settled and state == "published" else [f"not published: {state}, {len(settled)} edits"]


def case(root: Path, kind: Kind, mode: Mode, lane: Lane, *deaths: dict[str, object]) -> list[str]:
    """Processes that die one after the other, a recovery, and the invariants over all of it.

    All but the first start after the lease, as restarts do.
    """
    before = lane.server.requests
    message = fresh(lane, root, kind, mode)
    first, *others = deaths
    ended = [message.run(**first), *(message.restart(AFTER_THE_LEASE_MS, **death) for death in others)]
    wrong = ["a process that was to die did not" for one in ended if not one.killed]
    wrong += recovered(message, AFTER_THE_LEASE_MS if others else 0)
    wrong += violations(message.directory, kind, message.identity, lane.server.requests - before)
    return [f"{kind} {mode} {deaths}: {what}" for what in wrong]


def clean_run(lanes: Lanes, root: Path, kind: Kind, mode: Mode) -> Ended:
    clean = fresh(lanes.lanes[0], root, kind, mode).run()
    assert clean.outcome == ("selected" if mode is Mode.ENABLED else "shadow_selected")
    return clean


@pytest.mark.parametrize("mode", [Mode.ENABLED, Mode.SHADOW])
@pytest.mark.parametrize("kind", Kind)
def test_killed_at_every_step(kind: Kind, mode: Mode, lanes: Lanes, tmp_path: Path) -> None:
    clean = clean_run(lanes, tmp_path, kind, mode)
    assert {*STEPS[kind], *COMMON_STEPS} <= set(clean.reached)

    def killed_at(lane: Lane, point: Point) -> list[str]:
        return case(tmp_path, kind, mode, lane, {"kill": point})

    assert lanes.map(killed_at, points(clean.reached)) == []


@pytest.mark.parametrize("kind", Kind)
def test_killed_again_at_every_step_of_the_recovery(kind: Kind, lanes: Lanes, tmp_path: Path) -> None:
    """For each durable state that a first death can leave: a second one at every step of its recovery."""

    def deaths_after(lane: Lane, first: Point) -> list[tuple[object, Point, list[str]]]:
        message = fresh(lane, tmp_path, kind, Mode.ENABLED)
        assert message.run(kill=first).killed
        state = last_state(message.directory, kind, message.identity)
        left = (state, message.may_have_been_sent, len(message.delivered))
        return [(left, first, message.restart(AFTER_THE_LEASE_MS).reached)]

    found = lanes.map(deaths_after, points(clean_run(lanes, tmp_path, kind, Mode.ENABLED).reached))
    by_state = {left: (first, reached) for left, first, reached in found}
    assert len(by_state) >= 3
    pairs = [(first, second) for first, reached in by_state.values() for second in points(reached)]
    assert len(pairs) >= 12

    def killed_twice(lane: Lane, pair: tuple[Point, Point]) -> list[str]:
        first, second = pair
        return case(tmp_path, kind, Mode.ENABLED, lane, {"kill": first}, {"kill": second})

    assert lanes.map(killed_twice, pairs) == []


@pytest.mark.parametrize("kind", Kind)
def test_killed_at_any_moment(kind: Kind, lanes: Lanes, tmp_path: Path) -> None:
    """Between the steps as well: in the middle of a write, a handshake, an answer."""
    draw = random.Random(kind.value)
    moments = [0.2 + draw.random() * 14 for _ in range(24)]

    def killed_after(lane: Lane, moment: float) -> list[str]:
        before = lane.server.requests
        message = fresh(lane, tmp_path, kind, Mode.ENABLED)
        killed = message.run(kill_after_ms=moment).killed
        wrong = recovered(message) if killed else []
        wrong += violations(message.directory, kind, message.identity, lane.server.requests - before)
        return [str(killed), *(f"{kind} after {moment} ms: {what}" for what in wrong)]

    found = lanes.map(killed_after, moments)
    assert set(found) <= {"True", "False"}
    assert found.count("True") >= 6


def test_a_first_save_that_died_before_its_claim_may_be_one_again(lanes: Lanes, tmp_path: Path) -> None:
    """A host that had not saved anything yet starts over; with a claim, the same call is a replay."""

    def saved_again(lane: Lane, point: Point) -> list[str]:
        before = lane.server.requests
        message = fresh(lane, tmp_path, Kind.DAILY, Mode.ENABLED)
        assert message.run(kill=point).killed
        had_row = bool(records(message.directory, Kind.DAILY, message.identity))
        left = message.delivered
        again = message.run(ahead_ms=AFTER_THE_LEASE_MS)
        canonical = canonical_text(Kind.DAILY, message.identity)
        wrong = violations(message.directory, Kind.DAILY, message.identity, lane.server.requests - before)
        if (again.outcome is None) is not had_row:
            wrong.append("attempted after a claim, or not at all")
        if had_row and message.delivered != [*left, canonical]:
            wrong.append("the second first save of a claimed event is not a canonical replay")
        return [f"{point}: {what}" for what in wrong]

    clean = clean_run(lanes, tmp_path, Kind.DAILY, Mode.ENABLED)
    assert lanes.map(saved_again, points(clean.reached)) == []

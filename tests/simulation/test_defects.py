"""Defects put into the protocol code: the simulation finds each of them, so that finding nothing says something."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest

from kexpr import private_files
from kexpr.attempt import Finalized
from kexpr.authority import daily, finalise, journal, weekly
from kexpr.authority.adaptive import AdaptiveAuthority
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.journal import OutcomeJournal, WriterDelivery
from kexpr.authority.leases import SidecarLeases
from kexpr.authority.recovery import Absent
from kexpr.authority.weekly import WeeklyAuthority
from kexpr.codes import Mode, Outcome
from kexpr.errors import StoreFault
from kexpr.ledger.jsonl import JsonlLedger
from kexpr.ledger.segments import Segments
from kexpr.ledger.tombstones import Tombstones
from kexpr.paths.daily import DailyPath, RecentEvents
from kexpr.paths.journal import JournalPath
from kexpr.paths.publication import Publication
from kexpr.private_files import write_all
from kexpr.testing.simulation.disk import ProcessFiles
from kexpr.testing.simulation.host import _ProcessLocks
from kexpr.testing.simulation.invariants import JOURNAL_KINDS, STATE_KINDS, InvariantBroken, Kind
from tests.simulation.crashes import kill_in_every_state
from tests.simulation.histories import HistoryFailed, run_history
from tests.simulation.test_starts import start_at_once

MOST_HISTORIES: Final = 300
_NO_STEP: Final = "visible without its durable step"

Patch = pytest.MonkeyPatch


def no_fsync_of_rows(patch: Patch) -> None:
    def put(self: JsonlLedger, line: bytes, _failpoint: str) -> Any:
        segments = self._segments
        write_all(self._directory.files, segments.fd, line + b"\n")
        envelope = segments.chain.advance(line)
        segments.size += len(line) + 1
        return envelope

    patch.setattr(JsonlLedger, "_put", put)


def no_fsync_of_segment_directories(patch: Patch) -> None:
    original = JsonlLedger._require_segment

    def require_segment(self: JsonlLedger, utc: str) -> None:
        patch.setattr(self._directory, "sync", lambda: None)
        original(self, utc)

    patch.setattr(JsonlLedger, "_require_segment", require_segment)


def no_fsync_of_what_others_wrote(patch: Patch) -> None:
    original = Segments.advance

    def advance(self: Segments, *args: Any) -> None:
        self._is_writer = False
        original(self, *args)

    patch.setattr(Segments, "advance", advance)


def no_fsync_of_a_directory_that_is_there(patch: Patch) -> None:
    original = private_files._make_directory

    def make(path: Any, files: ProcessFiles) -> None:
        try:
            files.stat(str(path))
        except FileNotFoundError:
            original(path, files)

    patch.setattr(private_files, "_make_directory", make)


def no_claimed_mark(patch: Patch) -> None:
    patch.setattr(WeeklyAuthority, "_is_fresh", lambda self, digest: digest not in self._tasks)


def no_sending_mark(patch: Patch) -> None:
    patch.setattr(WeeklyAuthority, "_require_no_mark_ahead", lambda self, digest: None)


def no_tombstones(patch: Patch) -> None:
    patch.setattr(Tombstones, "mark", lambda self, digest, mark: None)


def marks_without_fsync(patch: Patch) -> None:
    original = Tombstones.mark

    def mark(self: Tombstones, *args: Any) -> None:
        with pytest.MonkeyPatch.context() as quiet:
            quiet.setattr(self._directory.files, "fsync", lambda fd: None)
            original(self, *args)

    patch.setattr(Tombstones, "mark", mark)


def no_pins_at_the_send(patch: Patch) -> None:
    original = WeeklyAuthority.load_prepared_customer_task_delivery

    def load(self: WeeklyAuthority, receipt: Any, **_pins: str) -> Any:
        return original(
            self,
            receipt,
            expected_registry_digest=receipt.registry_digest,
            expected_config_digest=receipt.config_digest,
            expected_destination_digest=receipt.destination_digest,
        )

    patch.setattr(WeeklyAuthority, "load_prepared_customer_task_delivery", load)


def no_pins_at_the_end(patch: Patch) -> None:
    def holds(port: Callable[[], bool]) -> bool:
        port()
        return True

    patch.setattr(weekly, "holds", holds)


def no_binding_at_the_end(patch: Patch) -> None:
    original = AdaptiveAuthority._still_bound

    def still_bound(self: AdaptiveAuthority, *args: Any) -> bool:
        original(self, *args)
        return True

    patch.setattr(AdaptiveAuthority, "_still_bound", still_bound)


def no_stop(patch: Patch) -> None:
    """A stop is noted, and nobody looks."""
    original = WeeklyAuthority._exclusive

    @contextmanager
    def exclusive(self: WeeklyAuthority, task_digest: str | None) -> Iterator[Any]:
        stopped, tasks = self._stopped, self._stopped_tasks
        self._stopped, self._stopped_tasks = None, {}
        try:
            with original(self, task_digest) as transaction:
                yield transaction
        finally:
            self._stopped = stopped or _stop_of(self)
            self._stopped_tasks = {**tasks, **self._stopped_tasks}

    patch.setattr(WeeklyAuthority, "_exclusive", exclusive)


def _stop_of(authority: WeeklyAuthority) -> StoreFault | None:
    return authority._stopped


def no_memory_of_canonical_edits(patch: Patch) -> None:
    patch.setattr(DailyPath, "_once", lambda self, message, when_absent: when_absent())


def no_publication_lock(patch: Patch) -> None:
    @contextmanager
    def hold(self: _ProcessLocks, name: tuple[str, ...]) -> Iterator[None]:
        self.locks.scheduler.step("lock")
        yield

    patch.setattr(_ProcessLocks, "_hold", hold)


def shadow_wins(patch: Patch) -> None:
    original = finalise.decide

    def decide(found: Any, asked: Any) -> Any:
        decision = original(found, asked)
        if decision.finalized.outcome is not Outcome.SHADOW_SELECTED:
            return decision
        body = asked.ruling.candidate.body()
        return finalise.Decision(Finalized(Outcome.SELECTED, None, body), decision.is_new)

    patch.setattr(daily, "decide", decide)
    patch.setattr(daily, "may_end", lambda claim, outcome: True)


def claims_again(patch: Patch) -> None:
    original = DailyAuthority.claim_finalized_presentation

    def claim(self: DailyAuthority, event_id: str, mode: Any) -> Any:
        self._held.pop(event_id, None)
        return original(self, event_id, mode)

    patch.setattr(DailyAuthority, "claim_finalized_presentation", claim)
    patch.setattr(DailyAuthority, "is_fresh", lambda self, event_id: True)
    patch.setattr(DailyAuthority, "recover", lambda self, event_id: Absent())


def selected_before_it_is_durable(patch: Patch) -> None:
    patch.setattr(DailyAuthority, "_end", lambda self, transaction, held, outcome: None)


def twice_sent(patch: Patch) -> None:
    original = WeeklyAuthority._sendable

    def mark(self: WeeklyAuthority, receipt: Any) -> None:
        with self._exclusive(receipt.task_digest):
            original(self, receipt)

    patch.setattr(WeeklyAuthority, "mark_customer_task_sending", mark)


CALM: Final = {"kill": 0.2, "cut_power": 0.2, "break_disk": 0.2, "fail_lock": 0.2}

DEFECTS: Final[dict[Callable[[Patch], None], tuple[dict[str, float], set[str]]]] = {
    no_fsync_of_rows: ({}, {"a request without a durable claim", _NO_STEP}),
    no_fsync_of_segment_directories: ({}, {"a request without a durable claim", _NO_STEP}),
    no_fsync_of_what_others_wrote: ({"kill": 4}, set()),
    no_claimed_mark: ({"put_back": 10, "back_up": 5}, {"more than one request"}),
    no_sending_mark: ({"put_back": 10, "back_up": 5}, {"a second message"}),
    no_tombstones: ({}, set()),
    marks_without_fsync: ({}, set()),
    no_pins_at_the_send: ({}, {"sent under other pins"}),
    no_pins_at_the_end: ({"change_pins": 30, **CALM}, {"selected under other pins"}),
    no_binding_at_the_end: ({"change_pins": 25, **CALM}, {"selected under another binding"}),
    no_stop: ({}, {"a hard stop did not stay"}),
    no_memory_of_canonical_edits: ({}, {"a selected edit after a canonical one"}),
    no_publication_lock: ({"tap": 4, **CALM}, set()),
    shadow_wins: ({}, {"selected in shadow"}),
    claims_again: ({}, set()),
    selected_before_it_is_durable: ({}, set()),
    twice_sent: ({}, {_NO_STEP}),
}
"""Each with the events that bring it out, and the promises it may be seen to break; an empty set is any."""


def no_sidecar(patch: Patch) -> None:
    patch.setattr(SidecarLeases, "put", lambda self, attempt_id, lease: None)


def selected_without_the_writer(patch: Patch) -> None:
    patch.setattr(journal, "_delivered", lambda delivery, attempt_id, finalized: finalized)


def no_recovery_of_the_durable_body(patch: Patch) -> None:
    patch.setattr(WriterDelivery, "durable_body", lambda self, attempt_id: None)


def an_observer_publishes_canonical(patch: Patch) -> None:
    original = JournalPath._found

    def found(self: JournalPath, message: Any, delivery: Any, found: Any) -> Any:
        publication = original(self, message, delivery, found)
        return Publication(message.canonical_payload) if publication.wait_ms else publication

    patch.setattr(JournalPath, "_found", found)


def no_memory_of_canonical_texts(patch: Patch) -> None:
    patch.setattr(RecentEvents, "add", lambda self, event_id: None)


def shadow_is_delivered(patch: Patch) -> None:
    original = finalise.decide

    def decide(found: Any, asked: Any) -> Any:
        decision = original(found, asked)
        if decision.finalized.outcome is not Outcome.SHADOW_SELECTED:
            return decision
        return finalise.Decision(Finalized(Outcome.SELECTED, None, asked.ruling.candidate.body()), decision.is_new)

    patch.setattr(journal, "decide", decide)


def the_commit_comes_before_the_writer(patch: Patch) -> None:
    """The terminal row, and then the body."""
    original = journal._delivered
    late: list[Any] = []

    def delivered(delivery: Any, attempt_id: str, finalized: Any) -> Any:
        late.append((delivery, attempt_id, finalized))
        return finalized

    end = OutcomeJournal._end

    def ended(self: OutcomeJournal, *args: Any) -> None:
        end(self, *args)
        while late:
            original(*late.pop())

    patch.setattr(journal, "_delivered", delivered)
    patch.setattr(OutcomeJournal, "_end", ended)


JOURNAL_DEFECTS: Final[dict[Callable[[Patch], None], set[str]]] = {
    no_fsync_of_rows: set(),
    no_sidecar: {"a claim without its lease"},
    selected_without_the_writer: {"selected before its body was durable"},
    no_recovery_of_the_durable_body: {"a durable body was not recovered"},
    an_observer_publishes_canonical: {"published beside a claim in flight"},
    no_memory_of_canonical_texts: {"a selected edit after a canonical one"},
    shadow_is_delivered: set(),
    the_commit_comes_before_the_writer: {"selected before its body was durable"},
}


@pytest.mark.parametrize("defect", JOURNAL_DEFECTS, ids=lambda defect: defect.__name__)
def test_a_defect_of_the_journal_is_found_by_histories(defect: Callable[[Patch], None], monkeypatch: Patch) -> None:
    defect(monkeypatch)
    found = next(filter(None, (_finding(seed, {}, JOURNAL_KINDS) for seed in range(MOST_HISTORIES))), None)
    assert found is not None
    assert not JOURNAL_DEFECTS[defect] or str(found) in JOURNAL_DEFECTS[defect]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_defect_is_found_by_histories(defect: Callable[[Patch], None], monkeypatch: Patch) -> None:
    favourites, broken = DEFECTS[defect]
    defect(monkeypatch)
    found = next(filter(None, (_finding(seed, favourites) for seed in range(MOST_HISTORIES))), None)
    assert isinstance(found, InvariantBroken)
    assert not broken or found.name in broken


def _finding(seed: int, favourites: dict[str, float], kinds: Sequence[Kind] = STATE_KINDS) -> BaseException | None:
    try:
        run_history(seed, kinds=kinds, favourites=favourites)
    except HistoryFailed as failed:
        return failed.__cause__
    return None


@pytest.mark.parametrize("defect", [no_fsync_of_segment_directories, no_fsync_of_rows])
def test_a_defect_is_found_by_kills_in_every_state(defect: Callable[[Patch], None], monkeypatch: Patch) -> None:
    defect(monkeypatch)
    with pytest.raises(InvariantBroken):
        kill_in_every_state(Kind.CALLBACK, Mode.ENABLED)


def test_the_defect_that_was_there_is_found_by_starts_at_once(monkeypatch: Patch) -> None:
    """Who found a directory took it for durable, while its maker had not come to its fsync."""
    no_fsync_of_a_directory_that_is_there(monkeypatch)
    with pytest.raises(InvariantBroken, match="without a durable claim"):
        start_at_once()

"""Any sequence of operations, crashes and reopenings keeps the counts honest and the history readable."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness.candidate import Candidate
from harness.evidence import EndReason, EvidenceLedger, EvidenceRefused, RunKind, Slot
from harness.profiles import PAIRS, PATHS
from kexpr.codes import Mode, Outcome, Reason, outcome_of
from kexpr.errors import LedgerFailed
from kexpr.telemetry.record import is_reachable
from tests.unit.harness.evidence_samples import OBSERVATION, OTHER_PIN, PIN, PROOF, SteppingClock

SLOTS = st.builds(
    lambda kind, pair, ordinal: Slot(
        kind, pair, PATHS[pair.surface][0], ordinal, "-" if kind is RunKind.PROOF else f"2026-09-{ordinal + 1:02d}"
    ),
    st.sampled_from(RunKind),
    st.sampled_from(PAIRS[:2]),
    st.integers(0, 1),
)
ENDINGS = st.one_of(
    st.tuples(st.sampled_from(sorted(set(Outcome) - {Outcome.SELECTED})), st.none()),
    st.sampled_from(Reason).map(lambda reason: (outcome_of(reason), reason)),
)


class Histories(RuleBasedStateMachine):
    """A model that knows only sets: which slots were intended, and which of them ended."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        self._directory = Path(self._temporary.name) / "evidence"
        self._clock = SteppingClock()
        self._evidence = EvidenceLedger.open(self._directory, self._clock)
        self._intended: list[str] = []
        self._ended: list[str] = []
        self._requests = 0
        self._candidate: Candidate | None = None
        self._running = False

    @rule(pin=st.sampled_from((PIN, OTHER_PIN)))
    def ensure_candidate(self, pin):
        try:
            self._candidate = self._evidence.ensure_candidate(pin)
        except EvidenceRefused:
            assert self._running

    @rule(spec=st.sampled_from((PROOF, OBSERVATION)), resume=st.booleans())
    def start(self, spec, resume):
        try:
            (self._evidence.resume_run if resume else self._evidence.begin_run)(spec)
        except EvidenceRefused:
            return
        assert not self._running
        self._running = True

    @rule()
    def finish(self):
        self._evidence.finish_run()
        self._running = False

    @precondition(lambda self: self._candidate)
    @rule(slot=SLOTS)
    def intend(self, slot):
        assert self._candidate is not None
        try:
            self._evidence.intent(slot)
        except EvidenceRefused:
            return
        assert self._running
        assert slot.key(self._candidate.id) not in self._intended
        self._intended.append(slot.key(self._candidate.id))

    @precondition(lambda self: self._candidate)
    @rule(slot=SLOTS, ending=ENDINGS, requests=st.integers(0, 1))
    def end(self, slot, ending, requests):
        assert self._candidate is not None
        try:
            self._evidence.outcome(slot, *ending, duration_ms=1, requests=requests)
        except EvidenceRefused:
            return
        except LedgerFailed:
            assert requests == 1  # not attempted, and yet a request: never a row
            return
        assert is_reachable(Mode.SHADOW, ending[0])
        key = slot.key(self._candidate.id)
        assert key in self._intended
        assert key not in self._ended
        self._ended.append(key)
        self._requests += requests

    @rule(reason=st.sampled_from(EndReason))
    def end_candidate(self, reason):
        try:
            self._evidence.end_candidate(reason)
        except EvidenceRefused:
            pass

    @rule()
    def crash(self):
        self._evidence.close()
        self._running = False
        self._evidence = EvidenceLedger.open(self._directory, self._clock)

    @invariant()
    def counts_are_honest(self):
        view = self._evidence.view()
        assert view.intents == len(self._intended) >= view.outcomes == len(self._ended)
        assert view.requests == self._requests <= view.outcomes
        assert sum(view.tallies.values()) == view.outcomes
        assert {*view.orphans, *view.in_progress} == set(self._intended) - set(self._ended)
        assert len(view.orphans) + len(view.in_progress) == view.intents - view.outcomes
        assert self._running or not view.in_progress
        assert sum(candidate.ended is None for candidate in view.candidates) <= 1
        assert [candidate.candidate.restart for candidate in view.candidates] == list(range(len(view.candidates)))

    @invariant()
    def a_second_reader_agrees(self):
        reader = EvidenceLedger.open(self._directory, self._clock)
        try:
            assert reader.view() == self._evidence.view()
        finally:
            reader.close()

    def teardown(self) -> None:
        self._evidence.close()
        self._temporary.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)

"""Any sequence of operations, crashes and reopenings keeps the counts honest and the history readable."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.candidate import Candidate
from harness.evidence import EndReason, EvidenceLedger, EvidenceRefused, RunKind, RunSpec, Slot
from harness.evidence.summary import Calls
from harness.profiles import PAIRS, PATHS
from kexpr.codes import NOT_ATTEMPTED, Outcome, Reason, outcome_of
from kexpr.errors import LedgerFailed
from tests.unit.harness.evidence_samples import OBSERVATION, OTHER_PIN, PIN, PROOF, SteppingClock

PLACES = st.tuples(st.sampled_from(PAIRS[:2]), st.integers(0, 2))
ENDINGS = st.one_of(
    st.just((Outcome.SHADOW_SELECTED, None)),
    st.sampled_from(sorted(NOT_ATTEMPTED)).map(lambda outcome: (outcome, None)),
    st.sampled_from(Reason).map(lambda reason: (outcome_of(reason), reason)),
)


def slot_of(kind: RunKind, place) -> Slot:
    pair, ordinal = place
    return Slot(kind, pair, PATHS[pair.surface][0], ordinal, "-" if kind is RunKind.PROOF else "2026-09-21")


class Histories(RuleBasedStateMachine):
    """A model of few sets: what was intended, what ended, what is under way, and who may start."""

    def __init__(self) -> None:
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.directory = Path(self.temporary.name) / "evidence"
        self.clock = SteppingClock()
        self.evidence = EvidenceLedger.open(self.directory, self.clock)
        self.intended: list[str] = []
        self.ended: list[str] = []
        self.requests = 0
        self.candidate: Candidate | None = None
        self.is_ended = True
        self.running: RunSpec | None = None
        self.under_way: dict[str, Slot] = {}

    def _took(self, act, expected: bool) -> bool:
        """Do `act`: it is taken exactly when the model says so."""
        try:
            act()
        except EvidenceRefused:
            assert not expected
            return False
        assert expected
        return True

    @initialize()
    def pin_first(self):
        self.ensure_candidate(PIN)

    @rule(pin=st.sampled_from((PIN, OTHER_PIN)))
    def ensure_candidate(self, pin):
        restarts = len(self.evidence.view().candidates)
        if self._took(lambda: self.evidence.ensure_candidate(pin), self.running is None):
            goes_on = not self.is_ended and self.candidate is not None and self.candidate.pin_digest == pin.digest
            self.candidate = self.candidate if goes_on else Candidate(pin.digest, restarts)
            self.is_ended = False

    def _proof_is_blocked(self) -> bool:
        assert self.candidate is not None
        lost = set(self.intended) - set(self.ended)
        return any(key.startswith(f"{self.candidate.id}/proof/") for key in lost)

    @precondition(lambda self: self.running is None)
    @rule(spec=st.sampled_from((PROOF, OBSERVATION)))
    def begin(self, spec):
        allowed = not self.is_ended and not (spec is PROOF and self._proof_is_blocked())
        if self._took(lambda: self.evidence.begin_run(spec), allowed):
            self.running = spec

    @precondition(lambda self: self.running is not None)
    @rule(spec=st.sampled_from((PROOF, OBSERVATION)))
    def begin_while_running(self, spec):
        self._took(lambda: self.evidence.begin_run(spec), False)

    @precondition(lambda self: self.running is None)
    @rule(spec=st.sampled_from((PROOF, OBSERVATION)))
    def resume(self, spec):
        run = self.evidence.view().run
        same = run is not None and run.row.run_kind is spec.kind
        allowed = same and not self.is_ended and not (spec is PROOF and self._proof_is_blocked())
        if self._took(lambda: self.evidence.resume_run(spec), allowed):
            self.running = spec

    @rule()
    def finish(self):
        self.evidence.finish_run()
        self.running = None
        self.under_way.clear()

    @rule(place=PLACES, kind=st.sampled_from(RunKind))
    def intend(self, place, kind):
        assert self.candidate is not None
        slot = slot_of(self.running.kind if self.running else kind, place)
        key = slot.key(self.candidate.id)
        allowed = self.running is not None and not self.is_ended and key not in self.intended
        if self._took(lambda: self.evidence.intent(slot), allowed):
            self.intended.append(key)
            self.under_way[key] = slot

    @precondition(lambda self: self.running is not None and not self.is_ended)
    @rule(places=st.lists(PLACES, min_size=1, max_size=3), ending=ENDINGS)
    def call(self, places, ending):
        """Whole calls in a row, so that histories get somewhere; a refused request counts none."""
        assert self.running is not None
        for place in places:
            self.intend(place, self.running.kind)
        requests = 0 if ending[0] in NOT_ATTEMPTED or ending[1] is Reason.NET_CONNECT else 1
        for key, slot in self.under_way.items():
            self.evidence.outcome(slot, *ending, duration_ms=1, requests=requests)
            self.ended.append(key)
            self.requests += requests
        self.under_way.clear()

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), ending=ENDINGS, requests=st.integers(0, 1))
    def end(self, data, ending, requests):
        key = data.draw(st.sampled_from(sorted(self.under_way)))
        try:
            self.evidence.outcome(self.under_way[key], *ending, duration_ms=1, requests=requests)
        except LedgerFailed:
            assert requests == 1
            assert ending[0] in NOT_ATTEMPTED
            return
        assert (requests, ending[0] in NOT_ATTEMPTED) != (1, True)
        del self.under_way[key]
        self.ended.append(key)
        self.requests += requests

    @rule(place=PLACES, kind=st.sampled_from(RunKind))
    def end_what_is_not_under_way(self, place, kind):
        assert self.candidate is not None
        slot = slot_of(kind, place)
        if slot.key(self.candidate.id) not in self.under_way:
            ending = (Outcome.SHADOW_SELECTED, None)
            self._took(lambda: self.evidence.outcome(slot, *ending, duration_ms=1, requests=1), False)

    @rule(reason=st.sampled_from(EndReason))
    def end_candidate(self, reason):
        if self._took(lambda: self.evidence.end_candidate(reason), not self.is_ended):
            self.is_ended = True

    @rule()
    def crash(self):
        self.evidence.close()
        self.running = None
        self.under_way.clear()
        self.evidence = EvidenceLedger.open(self.directory, self.clock)

    @invariant()
    def summary_counts_every_call_of_the_candidate(self):
        summary, view = self.evidence.summary(), self.evidence.view()
        prefix = f"{self.candidate.id}/" if self.candidate else "none"
        total = sum((calls for it in summary.pairs.values() for calls in it.cells.values()), Calls())
        assert total.intents == sum(key.startswith(prefix) for key in self.intended)
        assert total.outcomes == sum(key.startswith(prefix) for key in self.ended)
        assert total.orphans == sum(key.startswith(prefix) for key in view.orphans)
        assert total.in_progress == summary.in_progress == len(view.in_progress)
        assert summary.candidates == view.candidates

    @invariant()
    def counts_are_honest(self):
        view = self.evidence.view()
        assert view.intents == len(self.intended) >= view.outcomes == len(self.ended)
        assert view.requests == self.requests <= view.outcomes
        assert sum(self.evidence.summary().outcome_totals.values()) == view.outcomes
        prefix = f"{self.candidate.id}/proof/" if self.candidate else "none"
        assert len(view.slots) == sum(key.startswith(prefix) for key in self.intended)
        assert sum(slot.outcome is not None for slot in view.slots) == sum(k.startswith(prefix) for k in self.ended)
        lost = set(self.intended) - set(self.ended)
        assert sorted((*view.orphans, *view.in_progress)) == sorted(lost)
        assert self.running is not None or not view.in_progress
        assert set(self.under_way) <= set(view.in_progress)
        assert sum(candidate.ended is None for candidate in view.candidates) == (not self.is_ended)
        assert [candidate.candidate.restart for candidate in view.candidates] == list(range(len(view.candidates)))

    @invariant()
    def a_second_reader_agrees(self):
        reader = EvidenceLedger.open(self.directory, self.clock)
        try:
            assert reader.view() == self.evidence.view()
        finally:
            reader.close()

    def teardown(self) -> None:
        self.evidence.close()
        self.temporary.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)

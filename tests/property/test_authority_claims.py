"""Any history of two daily or adaptive processes that crash, race and lose their clock."""

from typing import ClassVar, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.adaptive import AdaptiveAuthority
from kexpr.authority.daily import DailyAuthority
from kexpr.authority.recovery import Durable, InFlight, Recovered
from kexpr.codes import Mode, Outcome, Surface
from kexpr.testing.memory_ledger import Fault
from tests.unit.authority.adaptive_support import ORIGINS, bind
from tests.unit.authority.machine_support import PROCESS, TROUBLE, Processes
from tests.unit.authority.support import CANONICAL, EVENT, LOST, candidate, wins

A = TypeVar("A", DailyAuthority, AdaptiveAuthority)

ENDINGS = st.sampled_from(["lost", "selected", "selected", "selected", "other", "shadow"])
CANCELLED = st.sampled_from([False, False, False, True])


class ClaimsMachine(Processes[A]):
    """One artifact. Subclasses say which authority."""

    surface: ClassVar[Surface]

    def artifact(self, authority: A) -> ArtifactAuthority:
        raise AssertionError

    def recovered(self, authority: A) -> Recovered:
        raise AssertionError

    def bound_claim(self, authority: A, mode: Mode) -> Ticket:
        return self.artifact(authority).claim(mode)

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[str] = []
        self.final: set[Outcome] = set()

    @precondition(lambda self: self.tickets)
    @rule(process=PROCESS, ending=ENDINGS, is_cancelled=CANCELLED, trouble=TROUBLE)
    def finalize(self, process: int, ending: str, is_cancelled: bool, trouble: int | Fault | None) -> None:
        ruling = {
            "lost": LOST,
            "selected": wins(self.surface),
            "other": Ruling(Outcome.SELECTED, candidate=candidate(self.surface, "천천히 읽어 보니 ")),
            "shadow": wins(self.surface, Mode.SHADOW),
        }[ending]
        cancellation = Cancellation()
        if is_cancelled:
            cancellation.set()
        was_open = not self.outcomes()
        final = self.attempt(
            process, trouble, lambda authority: self.artifact(authority).finalize(self.tickets[0], ruling, cancellation)
        )
        if isinstance(final, Finalized):
            self.final.add(final.outcome)
            if was_open:
                self.check_new(final.outcome, is_cancelled)
            assert final.body is None or final.outcome is Outcome.SELECTED
            if final.body is not None:
                self.bodies.append(final.body)

    def check_new(self, outcome: Outcome, is_cancelled: bool) -> None:
        """The order of `decide`, from outside."""
        if self.is_over():
            assert outcome is Outcome.CANONICAL_CLAIM_EXPIRED
        elif is_cancelled:
            assert outcome is Outcome.CANONICAL_TIMEOUT
        elif outcome is Outcome.SELECTED:
            assert self.tickets[0].mode is Mode.ENABLED
            assert self.surface is Surface.DAILY or self.world.session.just_consumed

    @rule(process=PROCESS, trouble=TROUBLE)
    def recover(self, process: int, trouble: int | Fault | None) -> None:
        was_open = not self.outcomes()
        found = self.attempt(process, trouble, self.recovered)
        if isinstance(found, Durable) and found.outcome:
            assert not was_open or not self.tickets or self.is_over()
            self.final.add(found.outcome)

    @invariant()
    def one_request_one_end_one_text(self) -> None:
        assert len(self.tickets) <= 1
        assert len(self.final) <= 1
        assert len(set(self.bodies)) <= 1

    @invariant()
    def the_rows_say_the_same_to_a_new_process(self) -> None:
        self.open().close()
        outcomes = self.outcomes()
        assert len(outcomes) <= 1
        assert not self.final or outcomes == [*self.final]


class DailyMachine(ClaimsMachine[DailyAuthority]):
    surface = Surface.DAILY

    def open(self) -> DailyAuthority:
        return self.world.daily()

    def artifact(self, authority: DailyAuthority) -> ArtifactAuthority:
        return authority.artifact(EVENT)

    def recovered(self, authority: DailyAuthority) -> Recovered:
        return authority.recover(EVENT)

    @invariant()
    def a_text_is_given_once_and_stored_never(self) -> None:
        assert len(self.bodies) <= 1
        assert all(len(record) == 7 for record in self.world.store.records())


class AdaptiveMachine(ClaimsMachine[AdaptiveAuthority]):
    surface = Surface.ADAPTIVE_PHYSIQUE

    def __init__(self) -> None:
        super().__init__()
        self.edited: list[str] = []

    def open(self) -> AdaptiveAuthority:
        return self.world.adaptive()

    def artifact(self, authority: AdaptiveAuthority) -> ArtifactAuthority:
        return bind(authority)

    def recovered(self, authority: AdaptiveAuthority) -> Recovered:
        return authority.recover(ORIGINS[0])

    @rule(just_consumed=st.booleans())
    def move_the_session(self, just_consumed: bool) -> None:
        self.world.session.just_consumed = just_consumed

    @rule(process=PROCESS, trouble=TROUBLE)
    def pend(self, process: int, trouble: int | Fault | None) -> None:
        self.attempt(process, trouble, lambda authority: authority.mark_publish_pending(ORIGINS[0], payload=CANONICAL))

    @rule(process=PROCESS, trouble=TROUBLE)
    def edit(self, process: int, trouble: int | Fault | None) -> None:
        def step(authority: AdaptiveAuthority) -> None:
            found = authority.recover(ORIGINS[0])
            if isinstance(found, Durable) and found.body is not None:
                authority.mark_publish_claimed(ORIGINS[0])
                self.edited.append(found.body)
                assert (found.body == CANONICAL) is (found.outcome is not Outcome.SELECTED)
                authority.mark_published(ORIGINS[0])
            elif isinstance(found, InFlight):
                assert not self.edited

        self.attempt(process, trouble, step)

    @invariant()
    def one_edit_of_one_durable_payload(self) -> None:
        assert len(self.edited) <= 1
        payloads = {record["payload"] for record in self.world.store.records() if "payload" in record}
        assert len(payloads) <= 1
        assert set(self.edited) <= payloads


SETTINGS = settings(max_examples=300, stateful_step_count=40, deadline=None)
DailyMachine.TestCase.settings = SETTINGS
AdaptiveMachine.TestCase.settings = SETTINGS
TestDailyMachine = DailyMachine.TestCase
TestAdaptiveMachine = AdaptiveMachine.TestCase

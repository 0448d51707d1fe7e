"""Any history of two weekly processes that crash, race, lose their clock and get an older ledger put back."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from kexpr.attempt import Finalized, Ruling, Ticket
from kexpr.authority.recovery import Durable
from kexpr.authority.weekly import Pins, WeeklyAuthority
from kexpr.codes import Mode, Outcome, Surface
from kexpr.testing.memory_ledger import Fault
from tests.unit.authority.machine_support import PROCESS, TROUBLE, Processes
from tests.unit.authority.support import (
    CANONICAL,
    DESTINATION,
    LOST,
    PINS,
    SELECTED,
    TASK,
    candidate,
    refusing,
    wins,
)
from tests.unit.authority.weekly_support import NOT_CANCELLED, bind, load

MOVED = Pins("moved", PINS.registry_digest, PINS.config_digest, PINS.template_digest)
RULINGS = st.sampled_from(
    [
        LOST,
        wins(Surface.WEEKLY),
        wins(Surface.WEEKLY),
        wins(Surface.WEEKLY, Mode.SHADOW),
        Ruling(Outcome.SELECTED, candidate=candidate(Surface.WEEKLY, judge=refusing)),
    ]
)


class WeeklyMachine(Processes[WeeklyAuthority]):
    """One task. Counts what must happen at most once: a ticket (then a request), and a send."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def open(self) -> WeeklyAuthority:
        return self.world.weekly()

    def bound_claim(self, authority: WeeklyAuthority, mode: Mode) -> Ticket:
        return bind(self.world, authority).claim(mode)

    @rule()
    def move_or_restore_a_pin(self) -> None:
        self.world.pins = PINS if self.world.pins == MOVED else MOVED

    @rule(rows=st.integers(0, 3))
    def put_an_older_ledger_back(self, rows: int) -> None:
        del self.world.store.memory.lines[rows:]
        self.processes = [self.open(), self.open()]

    @precondition(lambda self: self.tickets)
    @rule(process=PROCESS, ruling=RULINGS, trouble=TROUBLE)
    def finalize(self, process: int, ruling: Ruling, trouble: int | Fault | None) -> None:
        was_open = not self.outcomes()
        final = self.attempt(
            process,
            trouble,
            lambda authority: bind(self.world, authority).finalize(self.tickets[0], ruling, NOT_CANCELLED),
        )
        if isinstance(final, Finalized) and was_open:
            assert (final.outcome is Outcome.CANONICAL_CLAIM_EXPIRED) is self.is_over()
            if final.outcome is Outcome.SELECTED:
                assert self.world.pins == PINS
                assert self.tickets[0].mode is Mode.ENABLED

    @rule(process=PROCESS, trouble=TROUBLE)
    def recover(self, process: int, trouble: int | Fault | None) -> None:
        was_open = not self.outcomes()
        found = self.attempt(process, trouble, lambda authority: authority.recover(TASK))
        if was_open and self.tickets and isinstance(found, Durable) and found.outcome:
            assert self.is_over()

    @rule(process=PROCESS, trouble=TROUBLE)
    def reserve(self, process: int, trouble: int | Fault | None) -> None:
        self.attempt(
            process,
            trouble,
            lambda authority: authority.reserve_customer_task_delivery(
                TASK, body=CANONICAL, destination=DESTINATION, pins=PINS
            ),
        )

    @rule(process=PROCESS, trouble=TROUBLE)
    def send(self, process: int, trouble: int | Fault | None) -> None:
        def step(authority: WeeklyAuthority) -> None:
            receipt = authority.receipt(TASK)
            pinned = load(authority, receipt)
            authority.mark_customer_task_sending(receipt)
            self.sent.append(pinned.body)
            assert pinned.destination == DESTINATION
            assert pinned.body == (SELECTED if pinned.outcome is Outcome.SELECTED else CANONICAL)

        self.attempt(process, trouble, step)

    @rule(process=PROCESS, is_known=st.booleans(), trouble=TROUBLE)
    def settle(self, process: int, is_known: bool, trouble: int | Fault | None) -> None:
        def step(authority: WeeklyAuthority) -> None:
            receipt = authority.receipt(TASK)
            (authority.mark_customer_task_delivered if is_known else authority.mark_customer_task_unknown)(receipt)

        self.attempt(process, trouble, step)

    @invariant()
    def at_most_one_request_and_one_send(self) -> None:
        assert len(self.tickets) <= 1
        assert len(self.sent) <= 1

    @invariant()
    def the_rows_say_the_same_to_a_new_process(self) -> None:
        self.open().close()
        assert len(self.outcomes()) <= 1
        for record in self.world.store.records():
            if "body" in record:
                assert record["body"] == (SELECTED if record.get("outcome") == "selected" else CANONICAL)


WeeklyMachine.TestCase.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
TestWeeklyMachine = WeeklyMachine.TestCase

"""The part of the state machines that is about processes: two of them, that crash, fail and are started again."""

from collections.abc import Callable
from typing import Generic, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kexpr import failpoints
from kexpr.attempt import Ticket
from kexpr.clock import is_expired
from kexpr.codes import Mode
from kexpr.errors import AuthorityFailed, ClaimRefused, IllegalTransition
from kexpr.testing.memory_ledger import Fault
from tests.unit.authority.support import SetClock, Store, World

A = TypeVar("A")

REFUSALS = (AuthorityFailed, ClaimRefused, IllegalTransition)
PROCESS = st.sampled_from([0, 1])
MODE = st.sampled_from([Mode.ENABLED, Mode.ENABLED, Mode.SHADOW])
TROUBLE: st.SearchStrategy[int | Fault | None] = st.sampled_from([*[None] * 9, 1, 2, 3, 4, *Fault])
"""What happens to a call: mostly nothing, a crash at its n-th failpoint, or a ledger that fails."""


class Crash(BaseException):
    """A process that ends."""


class Processes(RuleBasedStateMachine, Generic[A]):
    """Two processes on one store. `tickets` are the requests that may have been made."""

    def open(self) -> A:
        raise AssertionError

    def bound_claim(self, authority: A, mode: Mode) -> Ticket:
        raise AssertionError

    @initialize(mode=MODE, claims=st.sampled_from([True, True, True, False]))
    def start(self, mode: Mode, claims: bool) -> None:
        self.world = World(Store(SetClock()))
        self.processes = [self.open(), self.open()]
        self.tickets: list[Ticket] = []
        if claims:
            self.claim(0, mode, None)

    def teardown(self) -> None:
        failpoints.install(None)

    def attempt(self, process: int, trouble: int | Fault | None, call: Callable[[A], object]) -> object:
        """One call of one process; a crash in it replaces the process."""
        self.left = trouble if isinstance(trouble, int) else 0
        self.world.store.memory.next_fault = trouble if isinstance(trouble, Fault) else None
        failpoints.install(self._reached)
        try:
            return call(self.processes[process])
        except REFUSALS:
            return None
        except Crash:
            self.processes[process] = self.open()
            return None
        finally:
            failpoints.install(None)
            self.world.store.memory.next_fault = None

    def _reached(self, _: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash

    @rule(process=PROCESS)
    def restart(self, process: int) -> None:
        self.processes[process] = self.open()

    @rule(duration_ms=st.sampled_from([1, 3_999, 4_000]))
    def wait(self, duration_ms: int) -> None:
        self.world.clock.pass_ms(duration_ms)

    @rule(boot_id=st.sampled_from(["boot", "another", None]), jump_ms=st.sampled_from([-10_000_000, 0, 10_000_000]))
    def lose_the_clock(self, boot_id: str | None, jump_ms: int) -> None:
        self.world.clock.boot_id = boot_id
        self.world.clock.utc_ms += jump_ms

    @rule(process=PROCESS, mode=MODE, trouble=TROUBLE)
    def claim(self, process: int, mode: Mode, trouble: int | Fault | None) -> None:
        ticket = self.attempt(process, trouble, lambda authority: self.bound_claim(authority, mode))
        if isinstance(ticket, Ticket):
            self.tickets.append(ticket)

    def is_over(self) -> bool:
        """Whether the claim of the ticket has expired by now."""
        return is_expired(self.tickets[0].lease, self.world.clock.now())

    def outcomes(self) -> list[object]:
        """The outcomes that are durable."""
        return [record["outcome"] for record in self.world.store.records() if record.get("outcome")]

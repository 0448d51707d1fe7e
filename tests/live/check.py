"""One call a surface of one contract, through its real path in shadow, and what must be true of all that came out.

The live test and its hermetic twin run exactly this; they differ in the clients alone.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from harness import preflight
from harness.calls import Intents
from harness.profiles import PAIRS
from harness.proof.plan import proof_slots
from harness.stage import Stage
from harness.watch import ContentWatch
from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling, Ticket
from kexpr.clock import SystemClock
from kexpr.codes import Mode, Outcome, Surface, WireVersion
from kexpr.transport import ClientFactory
from tests.live.isolation import isolated

__all__ = ["Checked", "check_contract"]


@dataclass(frozen=True, slots=True)
class Checked:
    """`passed` has each surface. `tried`: codes of what is forbidden. `clean`: no content in anything that came out."""

    passed: dict[Surface, bool]
    tried: tuple[str, ...]
    clean: bool

    @property
    def good(self) -> bool:
        return set(self.passed) == set(Surface) and all(self.passed.values()) and not self.tried and self.clean

    def lines(self) -> list[str]:
        """All that may be printed."""
        return [f"{surface}: {'pass' if passed else 'fail'}" for surface, passed in self.passed.items()]


class _Watched(Intents):
    """Sees the answers, so that they can be looked for; there is no evidence to write to."""

    def __init__(self, watch: ContentWatch) -> None:
        self._watch = watch

    def observe(self, authority: ArtifactAuthority) -> ArtifactAuthority:
        return _WatchedAuthority(authority, self._watch)


class _WatchedAuthority:
    def __init__(self, authority: ArtifactAuthority, watch: ContentWatch) -> None:
        self._authority = authority
        self._watch = watch

    @property
    def surface(self) -> Surface:
        return self._authority.surface

    def is_fresh(self) -> bool:
        return self._authority.is_fresh()

    def claim(self, mode: Mode) -> Ticket:
        return self._authority.claim(mode)

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        if ruling.candidate is not None:
            for number, text in enumerate(ruling.candidate.texts):
                self._watch.saw(f"answer {self.surface} {number}", text.text, ruling.candidate.body())
        return self._authority.finalize(ticket, ruling, cancellation)


def check_contract(
    wire: WireVersion, clients: ClientFactory, directory: Path, captured: Callable[[], Sequence[str]]
) -> Checked:
    """`directory` is temporary and takes all that is written; `captured` gives stdout and stderr until now."""
    configs = preflight.check_config(wire)
    first = {pair.surface: pair for pair in reversed(PAIRS)}
    slots = [next(slot for slot in proof_slots() if slot.pair == first[surface]) for surface in Surface]
    passed = {}
    with ContentWatch() as watch:
        stage = Stage(configs, clients, directory, SystemClock(), watch)
        with closing(stage), isolated(directory) as tried:
            world = stage.open(_Watched(watch))
            for slot in slots:
                publication = world.prepare(slot, f"live-check/{wire}/{slot.pair}")
                reached = (publication.outcome, publication.requests)
                passed[slot.pair.surface] = reached == (Outcome.SHADOW_SELECTED, 1)
        out, err = captured()
        outputs = {"stdout": out.encode(), "stderr": err.encode(), "telemetry": stage.metrics()}
        return Checked(passed, tuple(tried), watch.is_clean(outputs))

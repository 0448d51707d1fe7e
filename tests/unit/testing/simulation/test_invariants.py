"""Each promise of the checker is broken once, by a history made by hand; the same history without the breach passes."""

from collections.abc import Callable
from typing import Any

import pytest

from kexpr.codes import Mode, Surface
from kexpr.ledger.protocol import GENESIS_DIGEST
from kexpr.ledger.rows import KIND_ROW, KIND_SEGMENT, Chain, encode
from kexpr.testing.simulation.invariants import (
    RULES,
    STATE_KINDS,
    Actor,
    InvariantBroken,
    Invariants,
    Kind,
    Line,
    Message,
)

MONTH = "2026-01"
UTC = "2026-01-09T00:00:00.000Z"
PINS = {"registry_digest": "r", "config_digest": "c", "destination_digest": "d"}
SAID = ("r", "c", "d")
ENABLED = Actor(Mode.ENABLED)


class History:
    """A checker of one message of a kind, and its ledger, whose rows are written here."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.rules = RULES[kind]
        self.message = Message(kind, "key", "canonical")
        self.checker = Invariants([self.message])
        self.lines: list[Line] = []
        self.chain = Chain(GENESIS_DIGEST)
        self.chain.begin(MONTH)
        self._put(KIND_SEGMENT, self.chain.header(), None)

    def row(self, state: str, *, mode: Mode | None = None, actor: Actor | None = None, **fields: Any) -> None:
        """A durable row of the message."""
        name = "phase" if self.kind is Kind.DAILY else "state"
        record: dict[str, Any] = {self.rules.key_field: "key", name: state, **fields}
        self._put(KIND_ROW, record, mode)
        self.durable(actor)

    def durable(self, actor: Actor | None = None) -> None:
        self.checker.durable(self.rules.ledger, self.lines, actor)

    def claim(self, mode: Mode = Mode.ENABLED, **fields: Any) -> None:
        self.row(self.rules.claimed, mode=mode, **{**self._pins(), **fields})

    def end(self, outcome: str, body: str = "canonical", actor: Actor | None = None, **fields: Any) -> None:
        stored = {} if self.rules.body_field is None else {self.rules.body_field: body}
        after = {Kind.DAILY: "finalized", Kind.WEEKLY: "prepared"}.get(self.kind, "publish_pending")
        self.row(after, outcome=outcome, actor=actor, **{**self._pins(), **stored, **fields})

    def step_to_shown(self) -> None:
        if self.rules.shown_in:
            self.row(self.rules.shown_in)

    def request(self, actor: Actor = ENABLED) -> None:
        self.checker.requested(self.message, actor)

    def show(self, text: str, actor: Actor = ENABLED) -> None:
        self.checker.shown(self.message, text, actor)

    def selected(self) -> None:
        """A whole attempt whose selected text is visible."""
        self.claim()
        self.request()
        self.end("selected", "selected")
        self.step_to_shown()
        self.show("selected")

    def _pins(self) -> dict[str, str]:
        return PINS if self.kind is Kind.WEEKLY else {"binding_digest": "b"} if self.kind is not Kind.DAILY else {}

    def _put(self, kind: str, record: Any, mode: Mode | None) -> None:
        chain = self.chain
        line = encode(kind, record, sequence=chain.sequence + 1, previous=chain.digest, utc=UTC, lease=None, mode=mode)
        chain.advance(line)
        self.lines.append((MONTH, line))


def broken_by(history: History, breach: Callable[[History], None]) -> str:
    with pytest.raises(InvariantBroken) as caught:
        breach(history)
    return caught.value.name


@pytest.mark.parametrize("kind", STATE_KINDS)
def test_a_history_that_keeps_the_promises(kind: Kind) -> None:
    history = History(kind)
    history.selected()
    if not history.rules.sends_once:
        history.show("canonical")
    assert history.checker.visible(history.message)[0] == "selected"
    assert history.checker.requests(history.message) == 1
    assert history.checker.checks > 3


def second_request(history: History) -> None:
    history.claim()
    history.request()
    history.request()


def request_without_claim(history: History) -> None:
    history.request()


def request_after_outcome(history: History) -> None:
    history.claim()
    history.end("canonical_timeout")
    history.request()


def request_while_disabled(history: History) -> None:
    history.claim()
    history.request(Actor(Mode.DISABLED))


def request_after_stop(history: History) -> None:
    history.claim()
    history.request(Actor(Mode.ENABLED, was_stopped=True))


def shown_after_stop(history: History) -> None:
    history.step_to_shown()
    history.show("canonical", Actor(Mode.ENABLED, was_stopped=True))


def claimed_again(history: History) -> None:
    history.claim()
    history.claim()


def claimed_after_outcome(history: History) -> None:
    history.claim()
    history.end("canonical_timeout")
    history.claim()


def claimed_while_disabled(history: History) -> None:
    history.claim(Mode.DISABLED)


def outcome_without_claim(history: History) -> None:
    history.end("selected", "selected")


def second_outcome(history: History) -> None:
    history.claim()
    history.end("canonical_timeout")
    history.end("selected", "selected")


def selected_in_shadow(history: History) -> None:
    history.claim(Mode.SHADOW)
    history.end("selected", "selected")


def shown_without_outcome(history: History) -> None:
    history.claim()
    history.step_to_shown()
    history.show("selected")


def shown_in_shadow(history: History) -> None:
    history.claim(Mode.SHADOW)
    history.end("shadow_selected")
    history.step_to_shown()
    history.show("selected")


def lost_row(history: History) -> None:
    history.claim()
    history.lines.pop()
    history.durable()


def changed_row(history: History) -> None:
    history.claim()
    month, line = history.lines[-1]
    history.lines[-1] = (month, line.replace(b"enabled", b"shadow"))
    history.durable()


def broken_chain(history: History) -> None:
    history.claim()
    history.lines.append(history.lines[-1])
    history.durable()


OF_ALL_PATHS: dict[Callable[[History], None], str] = {
    second_request: "more than one request",
    request_without_claim: "a request without a durable claim",
    request_after_outcome: "a request after the outcome",
    request_while_disabled: "a request while disabled",
    request_after_stop: "a hard stop did not stay",
    shown_after_stop: "a hard stop did not stay",
    claimed_again: "claimed again",
    claimed_after_outcome: "claimed again",
    claimed_while_disabled: "a claim without its mode",
    outcome_without_claim: "an outcome without a claim",
    second_outcome: "a second outcome",
    selected_in_shadow: "selected in shadow",
    shown_without_outcome: "visible text is neither canonical nor durably selected",
    shown_in_shadow: "visible text is neither canonical nor durably selected",
    lost_row: "a durable row was lost",
    changed_row: "a durable row was lost",
    broken_chain: "the chain does not verify",
}


@pytest.mark.parametrize("kind", STATE_KINDS)
@pytest.mark.parametrize("breach", OF_ALL_PATHS, ids=lambda breach: breach.__name__)
def test_a_breach_on_any_path_is_named(breach: Callable[[History], None], kind: Kind) -> None:
    assert broken_by(History(kind), breach) == OF_ALL_PATHS[breach]


def second_selected(history: History) -> None:
    history.selected()
    history.show("selected")


def selected_after_canonical(history: History) -> None:
    history.claim()
    history.end("selected", "selected")
    history.step_to_shown()
    history.show("canonical")
    history.show("selected")


@pytest.mark.parametrize("kind", [kind for kind in STATE_KINDS if not RULES[kind].sends_once])
def test_the_order_of_edits(kind: Kind) -> None:
    assert broken_by(History(kind), second_selected) == "a second selected edit"
    assert broken_by(History(kind), selected_after_canonical) == "a selected edit after a canonical one"


@pytest.mark.parametrize("text", ["selected", "canonical"])
def test_a_second_message(text: str) -> None:
    history = History(Kind.WEEKLY)
    history.selected()
    assert broken_by(history, lambda history: history.show(text)) == "a second message"


@pytest.mark.parametrize("kind", [kind for kind in STATE_KINDS if RULES[kind].shown_in])
def test_visible_without_its_durable_step(kind: Kind) -> None:
    def breach(history: History) -> None:
        history.claim()
        history.end("selected", "selected")
        history.show("selected")

    assert broken_by(History(kind), breach) == "visible without its durable step"


@pytest.mark.parametrize("kind", [kind for kind in STATE_KINDS if RULES[kind].body_field])
def test_another_text_than_the_stored_one(kind: Kind) -> None:
    def breach(history: History) -> None:
        history.claim()
        history.end("selected", "another")
        history.step_to_shown()
        history.show("selected")

    assert broken_by(History(kind), breach) == "visible text is neither canonical nor durably selected"


@pytest.mark.parametrize("kind", [kind for kind in STATE_KINDS if kind is not Kind.DAILY])
def test_an_outcome_under_other_pins_than_its_claim(kind: Kind) -> None:
    changed: dict[str, Any] = {"config_digest" if kind is Kind.WEEKLY else "binding_digest": "changed"}

    def breach(history: History) -> None:
        history.claim()
        history.end("canonical_timeout", **changed)

    assert broken_by(History(kind), breach) == "the outcome has other pins than the claim"


def test_a_candidate_that_won_under_pins_the_host_had_changed() -> None:
    def weekly(history: History) -> None:
        history.claim()
        history.end("selected", "selected", actor=Actor(Mode.ENABLED, pins=("r", "changed", "d")))

    def adaptive(history: History) -> None:
        history.claim()
        history.end("selected", "selected", actor=Actor(Mode.ENABLED, bound_to="changed"))

    assert broken_by(History(Kind.WEEKLY), weekly) == "selected under other pins"
    assert broken_by(History(Kind.CALLBACK), adaptive) == "selected under another binding"


def test_a_send_under_pins_the_host_had_changed() -> None:
    def breach(history: History) -> None:
        history.claim()
        history.end("selected", "selected")
        history.step_to_shown()
        history.show("selected", Actor(Mode.ENABLED, pins=("changed", "c", "d")))

    assert broken_by(History(Kind.WEEKLY), breach) == "sent under other pins"


def test_the_same_pins_pass() -> None:
    history = History(Kind.WEEKLY)
    said = Actor(Mode.ENABLED, pins=SAID)
    history.claim()
    history.end("selected", "selected", actor=said)
    history.step_to_shown()
    history.show("selected", said)


@pytest.mark.parametrize("kind", STATE_KINDS)
def test_an_old_copy_put_back_gives_no_second_request(kind: Kind) -> None:
    history = History(kind)
    history.claim()
    history.request()
    history.checker.restored(history.rules.ledger)
    assert broken_by(history, lambda history: history.request()) == "more than one request"


def test_an_old_copy_frees_the_order_of_edits_of_adaptive_alone() -> None:
    for kind in STATE_KINDS:
        history = History(kind)
        history.selected()
        history.checker.restored(history.rules.ledger)
        history.durable()
        if RULES[kind].surface in (Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE):
            history.show("selected")
        else:
            with pytest.raises(InvariantBroken):
                history.show("selected")


def test_after_a_disk_that_lied_a_broken_chain_holds_nothing() -> None:
    history = History(Kind.DAILY)
    history.claim()
    history.checker.lied_to(history.rules.ledger)
    history.lines = history.lines[:1] + history.lines[:1]
    history.durable()
    assert history.checker.facts(history.message) == []
    assert broken_by(history, lambda history: history.request()) == "a request without a durable claim"

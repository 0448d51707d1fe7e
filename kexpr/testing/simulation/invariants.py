"""What must hold at every step of every history (authorities, "The rule above all").

The world tells what happens as it happens: which rows are durable, each request, each text that became visible. Each
method raises `InvariantBroken` with the name of what does not hold. Nothing here knows how the library works; it knows
the row formats of the contract and the promises.

What is promised after an old copy of a ledger was put back, with the tombstones kept (`restored`): weekly, everything.
Daily, everything, as long as the host replays what it has saved. Adaptive, at most one request while the host's session
is not just consumed any more, and only canonical or durable selected text; but a `publish_pending` that came back may
be edited in again, also after a canonical edit, since no tombstone says that it was. The journal has no tombstones:
nothing is promised, and no old copy of it is put back here.

What is promised while a publication lock cannot be had: all of it among the taps of one process, and at most one
request ever. That a canonical text of one process comes before a selected one of another is not excluded then; hosts
have a daily event saved in one process and replayed in all others, and a journal's message brought forward by one.
Without a row a canonical text of the journal is known to its own process only, so the order of a message of its writers
is checked for each process.

Of a claim in flight in the journal nobody else publishes anything, unless the journal itself cannot be used: then the
text is canonical by the contract. So that is checked until the first failed call of a history.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import orjson

from kexpr.codes import JournalOutcome, Mode, Outcome, Surface
from kexpr.errors import LedgerFailed
from kexpr.ledger.journal import JournalChain
from kexpr.ledger.rows import Chain, Malformed

__all__ = [
    "JOURNAL",
    "JOURNAL_KINDS",
    "RULES",
    "STATE_KINDS",
    "Actor",
    "InvariantBroken",
    "Invariants",
    "Kind",
    "Line",
    "Message",
    "PathRules",
]

Line = tuple[str, bytes]
"""The month of its segment, and a raw line without LF."""


class Kind(StrEnum):
    """The paths, both producers of cards, and the three surfaces over the outcome journal."""

    DAILY = "daily"
    WEEKLY = "weekly"
    CALLBACK = "callback"
    TYPED_NOTE = "typed_note"
    JOURNAL_DAILY = "journal_daily"
    JOURNAL_WEEKLY = "journal_weekly"
    JOURNAL_ADAPTIVE = "journal_adaptive"


@dataclass(frozen=True, slots=True)
class PathRules:
    """How a path's rows are read, and what its messages promise. One line here adds a path to the simulation."""

    surface: Surface
    ledger: str
    key_field: str
    body_field: str | None
    """Where the selected body is stored; None: nowhere."""
    claimed: str
    shown_in: str | None
    """The durable state in which alone anything may become visible; None: canonical text needs none."""
    sends_once: bool
    """Each delivery is a new message: there is at most one."""
    survives_old_copies: bool
    """The order of edits holds also after an old copy of the ledger was put back."""


JOURNAL: Final = "journal"
"""The ledger of the journal's kinds."""

_JOURNAL: Final = (JOURNAL, "artifact_key", None, "attempt_started", None, False, True)
_ADAPTIVE: Final = ("adaptive", "card_digest", "payload", "presentation_claimed", "publish_claimed", False, False)

RULES: Final[Mapping[Kind, PathRules]] = {
    Kind.DAILY: PathRules(Surface.DAILY, "daily", "finalized_event_id", None, "claimed", None, False, True),
    Kind.WEEKLY: PathRules(
        Surface.WEEKLY, "weekly", "task_digest", "body", "presentation_claimed", "sending", True, True
    ),
    Kind.CALLBACK: PathRules(Surface.ADAPTIVE_DUALCOACHTEST, *_ADAPTIVE),
    Kind.TYPED_NOTE: PathRules(Surface.ADAPTIVE_PHYSIQUE, *_ADAPTIVE),
    Kind.JOURNAL_DAILY: PathRules(Surface.DAILY, *_JOURNAL),
    Kind.JOURNAL_WEEKLY: PathRules(Surface.WEEKLY, *_JOURNAL),
    Kind.JOURNAL_ADAPTIVE: PathRules(Surface.ADAPTIVE_PHYSIQUE, *_JOURNAL),
}
JOURNAL_KINDS: Final = tuple(kind for kind, rules in RULES.items() if rules.ledger == JOURNAL)
STATE_KINDS: Final = tuple(kind for kind in RULES if kind not in JOURNAL_KINDS)

JOURNAL_KEYS: Final = {
    "schema_version",
    "sequence",
    "artifact_key",
    "surface",
    "mode",
    "attempt_id",
    "state",
    "outcome",
    "started_at_utc",
    "deadline_at_utc",
    "finalized_at_utc",
    "previous_row_digest",
    "row_digest",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `key` is its identity in the rows of its ledger."""

    kind: Kind
    key: str = field(repr=False)
    canonical: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something: in which mode, on which answers of the host, and whether it had been told to stop."""

    mode: Mode
    was_stopped: bool = False
    pins: tuple[str, ...] | None = None
    """Weekly: registry, config and destination digest, as the host last said them to this actor."""
    bound_to: str | None = None
    """Adaptive: the binding of a session that is just consumed, as the host last said."""
    process: int = 0
    """Its number."""


class InvariantBroken(AssertionError):
    """`name` is the promise that does not hold."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass
class _Fact:
    """One durable row about one message."""

    state: str
    outcome: str | None
    mode: str | None
    record: Mapping[str, Any]


@dataclass
class _Ledger:
    lines: list[Line] = field(default_factory=list)
    chain: Chain = field(default_factory=lambda: Chain(None))
    month: str = ""
    facts: dict[str, list[_Fact]] = field(default_factory=lambda: defaultdict(list))
    was_lied_to: bool = False
    is_broken: bool = False
    """Its disk lied, and what is left is no chain: the library must refuse it, and nothing may rest on it."""


@dataclass
class _Seen:
    requests: int = 0
    shown: list[str] = field(default_factory=list)
    is_order_promised: bool = True
    canonical_by: set[int] = field(default_factory=set)
    """The processes that have shown the canonical text."""


def require(holds: bool, name: str) -> None:
    if not holds:
        raise InvariantBroken(name)


class Invariants:
    """The checker of one history. `checks` counts what it has judged, so that a test can see that it did."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = {(RULES[message.kind].ledger, message.key): message for message in messages}
        self._ledgers: dict[str, _Ledger] = defaultdict(_Ledger)
        self._ledgers[JOURNAL].chain = JournalChain(None)
        self._seen: dict[Message, _Seen] = defaultdict(_Seen)
        self.checks = 0
        self.written: Mapping[str, Mapping[str, str]] = {}
        """Journal: the bodies in the host's own store, by message and attempt."""
        self.is_live: Callable[[str], bool] = lambda attempt_id: False
        """Journal: whether an attempt's lease is alive for certain, and nothing has failed that may hide its row."""
        self.has_lease: Callable[[str], bool] = lambda attempt_id: True
        """Journal: whether an attempt's lease sidecar is durable."""
        self._keys: dict[Message, str] = {}

    def named(self, message: Message, key: str) -> None:
        """Journal: the opaque name of the message's artifact, which only an opened journal can tell."""
        self._keys[message] = key

    def durable(self, ledger: str, lines: Sequence[Line], actor: Actor | None = None) -> None:
        """All durable lines of a ledger now. What was durable stays; what is new follows from it."""
        held = self._ledgers[ledger]
        if held.is_broken:
            return
        known = len(held.lines)
        require(list(lines[:known]) == held.lines, "a durable row was lost")
        for line in lines[known:]:
            self._take(ledger, held, line, actor)
            if held.is_broken:
                return

    def restored(self, ledger: str) -> None:
        """An old copy of the ledger was put back: the next `durable` begins anew."""
        self._forget(ledger)

    def lied_to(self, ledger: str) -> None:
        """The power went after a failed fsync: what was read from the cache meanwhile may be gone."""
        self._forget(ledger)
        self._ledgers[ledger].was_lied_to = True
        if ledger == JOURNAL:
            self._ledgers[ledger].chain = JournalChain(None)

    def requested(self, message: Message, actor: Actor) -> None:
        """A request goes out."""
        self.checks += 1
        seen = self._seen[message]
        seen.requests += 1
        require(seen.requests == 1, "more than one request")
        require(actor.mode is not Mode.DISABLED, "a request while disabled")
        require(not actor.was_stopped, "a hard stop did not stay")
        rules = RULES[message.kind]
        facts = self.facts(message)
        require(sum(fact.state == rules.claimed for fact in facts) == 1, "a request without a durable claim")
        ended = {fact.outcome for fact in facts if fact.outcome}
        require(ended <= _EXPIRED, "a request after the outcome")

    def shown(self, message: Message, text: str, actor: Actor) -> None:
        """A text became visible."""
        self.checks += 1
        rules, seen = RULES[message.kind], self._seen[message]
        facts = self.facts(message)
        is_canonical = text == message.canonical
        require(not actor.was_stopped, "a hard stop did not stay")
        require(not (rules.sends_once and seen.shown), "a second message")
        if rules.shown_in:
            require(bool(facts) and facts[-1].state == rules.shown_in, "visible without its durable step")
        if rules.ledger == JOURNAL:
            self._shown_of_journal(message, text, actor)
        elif not is_canonical:
            require(_selected(rules, facts, text), "visible text is neither canonical nor durably selected")
            if seen.is_order_promised:
                require(all(before == message.canonical for before in seen.shown), "a second selected edit")
                require(message.canonical not in seen.shown, "a selected edit after a canonical one")
        if actor.pins is not None and facts:
            stored = next((fact.record for fact in reversed(facts) if "registry_digest" in fact.record), None)
            require(stored is not None and _pins(stored) == actor.pins, "sent under other pins")
        seen.shown.append(text)
        if is_canonical:
            seen.canonical_by.add(actor.process)

    def _shown_of_journal(self, message: Message, text: str, actor: Actor) -> None:
        facts, seen = self.facts(message), self._seen[message]
        last = facts[-1] if facts else None
        if text == message.canonical:
            is_started = last is not None and last.state == RULES[message.kind].claimed
            in_flight = is_started and self.is_live(str(facts[-1].record["attempt_id"]))
            require(not in_flight, "published beside a claim in flight")
            return
        if message.kind is Kind.JOURNAL_DAILY:
            is_owners = last is not None and last.outcome is None and last.mode == Mode.ENABLED
            require(is_owners, "a selected edit outside its claim")
            require(all(before == message.canonical for before in seen.shown), "a second selected edit")
        else:
            bodies = self.written.get(message.key, {})
            is_recorded = last is not None and last.outcome == JournalOutcome.SELECTED
            require(is_recorded, "visible text is neither canonical nor durably selected")
            require(text == bodies.get(str(facts[-1].record["attempt_id"])), "not the durable body")
        if seen.is_order_promised:
            # Without a row only the process itself knows of its canonical text; daily hosts replay everywhere else.
            by = seen.canonical_by if message.kind is Kind.JOURNAL_DAILY else seen.canonical_by & {actor.process}
            require(not by, "a selected edit after a canonical one")

    def facts(self, message: Message) -> list[_Fact]:
        key = self._keys.get(message, message.key)
        return self._ledgers[RULES[message.kind].ledger].facts.get(key, [])

    def visible(self, message: Message) -> tuple[str, ...]:
        return tuple(self._seen[message].shown)

    def requests(self, message: Message) -> int:
        return self._seen[message].requests

    def last_state(self, message: Message) -> str | None:
        facts = self.facts(message)
        return facts[-1].state if facts else None

    def last_outcome(self, message: Message) -> str | None:
        facts = self.facts(message)
        return facts[-1].outcome if facts else None

    def _forget(self, ledger: str) -> None:
        self._ledgers[ledger] = _Ledger()
        for (name, _), message in self._messages.items():
            if name == ledger and not RULES[message.kind].survives_old_copies:
                self._seen[message].is_order_promised = False

    def _take(self, ledger: str, held: _Ledger, line: Line, actor: Actor | None) -> None:
        self.checks += 1
        month, raw = line
        if month != held.month:
            held.chain.begin(month)
            held.month = month
        try:
            envelope = held.chain.advance(raw)
        except (Malformed, LedgerFailed):
            envelope = None
        if envelope is None:
            held.is_broken = held.was_lied_to
            require(held.is_broken, "the chain does not verify")
            return
        held.lines.append(line)
        if ledger == JOURNAL:
            require(orjson.loads(raw).keys() == JOURNAL_KEYS, "a record of another form")
        if envelope["kind"] == "row":
            record = envelope["record"]
            self._take_row(ledger, held, record, envelope["mode"] or record.get("mode"), actor)
            if ledger == JOURNAL:
                self._take_journal_row(record, is_first_seen=not held.was_lied_to)

    def _take_journal_row(self, record: Mapping[str, Any], *, is_first_seen: bool) -> None:
        attempt_id, outcome = record["attempt_id"], record["outcome"]
        message = next(message for message, key in self._keys.items() if key == record["artifact_key"])
        has_body = attempt_id in self.written.get(message.key, {})
        if outcome == JournalOutcome.ATTEMPT_STARTED and is_first_seen:
            require(self.has_lease(attempt_id), "a claim without its lease")
        if message.kind is not Kind.JOURNAL_DAILY and outcome == JournalOutcome.SELECTED:
            require(has_body, "selected before its body was durable")
        require(not (has_body and outcome in _EXPIRED), "a durable body was not recovered")

    def _take_row(
        self, ledger: str, held: _Ledger, record: Mapping[str, Any], mode: str | None, actor: Actor | None
    ) -> None:
        rules = next(rules for rules in RULES.values() if rules.ledger == ledger)
        facts = held.facts[record[rules.key_field]]
        outcome = record.get("outcome")
        outcome = None if outcome == JournalOutcome.ATTEMPT_STARTED else outcome
        fact = _Fact(str(record.get("phase", record.get("state"))), outcome, mode, record)
        claims = [before for before in facts if before.state == rules.claimed]
        if fact.state == rules.claimed:
            require(not facts, "claimed again")
            require(mode in (Mode.ENABLED, Mode.SHADOW), "a claim without its mode")
        if fact.outcome:
            require(len(claims) == 1, "an outcome without a claim")
            require(not any(before.outcome for before in facts), "a second outcome")
            require(fact.outcome != Outcome.SELECTED or claims[0].mode == Mode.ENABLED, "selected in shadow")
            _require_same_pins(claims[0].record, fact)
            if fact.outcome in (Outcome.SELECTED, Outcome.SHADOW_SELECTED) and actor is not None:
                _require_pins_held(actor, record)
        facts.append(fact)


_EXPIRED: Final = {Outcome.CANONICAL_CLAIM_EXPIRED, JournalOutcome.CLAIM_EXPIRED_CANONICAL}


def _selected(rules: PathRules, facts: Sequence[_Fact], text: str) -> bool:
    ends = [fact for fact in facts if fact.outcome == Outcome.SELECTED]
    return len(ends) == 1 and (rules.body_field is None or ends[0].record[rules.body_field] == text)


_PINNED: Final = ("destination", "template_digest", "destination_digest", "registry_digest", "config_digest")
_BOUND: Final = (
    "binding_digest",
    "origin_kind",
    "surface",
    "claim_id",
    "attempt_id",
    "presentation_attempt_id",
    "canonical_body_digest",
)


def _require_same_pins(claim: Mapping[str, Any], fact: _Fact) -> None:
    same = all(claim.get(name) == fact.record.get(name) for name in (*_PINNED, *_BOUND))
    require(same, "the outcome has other pins than the claim")


def _require_pins_held(actor: Actor, record: Mapping[str, Any]) -> None:
    """A candidate won on what the host said to whoever asked for it, inside the lock."""
    if actor.pins is not None and "registry_digest" in record:
        require(_pins(record) == actor.pins, "selected under other pins")
    if actor.bound_to is not None and "binding_digest" in record:
        require(record["binding_digest"] == actor.bound_to, "selected under another binding")


def _pins(record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(record[name] for name in ("registry_digest", "config_digest", "destination_digest"))


def parse(content: bytes) -> list[bytes]:
    """The whole lines at the start of a segment; a torn tail was never acknowledged."""
    lines: list[bytes] = []
    for line in content.split(b"\n")[:-1]:
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            break
        lines.append(line)
    return lines

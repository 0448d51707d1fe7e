"""A host's own stores, as small as they can be: one dictionary under one lock, all three ports, and defects by name.

Without a defect they pass the conformance suite; each defect breaks one invariant, which the suite has to notice.
"""

import copy
import secrets
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kexpr.attempt import ArtifactAuthority, Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.adaptive_records import CardPresentationOrigin
from kexpr.authority.finalise import Asked, Claim, Found, decide
from kexpr.authority.recovery import Absent, Durable, InFlight, Recovered
from kexpr.authority.weekly_records import PinnedScheduledDelivery, Pins, ScheduledDeliveryReceipt, WeeklyTask
from kexpr.clock import lease_from
from kexpr.codes import Mode, Outcome, Reason, Surface
from kexpr.errors import AuthorityFailed, ClaimRefused, HardStop, IllegalTransition, StoreFault
from kexpr.failpoints import reach
from kexpr.testing.conformance import HostPorts
from kexpr.testing.simulation.clock import MachineClock, ProcessClock


class Defect(StrEnum):
    """What is wrong with a store; the value is the check that has to fail, without its surface."""

    CLAIMS_TWICE = "an_artifact_is_claimed_once"
    CHECKS_THEN_ACTS = "claims_race_and_one_wins"
    CLAIM_IN_MEMORY = "a_claim_is_durable_when_it_returns"
    OUTCOME_IN_MEMORY = "a_selected_outcome_is_durable"
    SHADOW_GIVES_A_BODY = "shadow_keeps_the_canonical_text"
    SHADOW_SELECTS = "a_shadow_claim_is_never_selected"
    DISABLED_CLAIMS = "a_disabled_feature_claims_nothing"
    TAKES_LATE_RESULTS = "a_late_worker_is_dropped"
    FREES_EXPIRED = "an_expired_claim_ends_and_is_not_claimed_again"
    EXPIRES_EARLY = "a_live_claim_is_not_ended"
    FORGETS_OUTSTANDING = "outstanding_claims_are_expired_and_counted"
    OVERWRITES = "the_first_outcome_stays"
    COMMITS_EACH_CANDIDATE = "two_candidates_are_one_commit"
    IGNORES_CANCELLATION = "a_cancelled_attempt_is_canonical"
    TAKES_ANY_TICKET = "a_ticket_of_another_attempt_is_refused"
    TRUSTS_CANDIDATES = "a_candidate_is_judged_again"
    CLAIM_AFTER_REQUEST = "a_crash_at_any_step_leaves_one_request_at_most"
    EXPIRES_BY_UTC = "a_clock_that_jumps_ends_no_claim_and_revives_none"
    SURVIVES_BOOT = "another_boot_ends_every_claim"
    CLAIMS_UNKNOWN_EVENTS = "daily_claims_only_an_event_that_exists"
    KEEPS_DAILY_BODY = "daily_never_gives_a_body_back"
    LOADS_CANONICAL = "weekly_loads_exactly_what_is_durable"
    LOADS_WITHOUT_PINS = "weekly_stops_when_a_pin_changed_before_the_send"
    LOADS_WITHOUT_FENCE = "weekly_stops_when_the_schedule_fell"
    ENDS_WITHOUT_PINS = "weekly_is_canonical_when_a_pin_changed_during_the_call"
    SENDS_TWICE = "weekly_sends_once"
    LEAVES_EDGE_OPEN = "weekly_direct_edge_is_open_without_a_row_and_closed_after_a_claim"
    CLAIMS_SPENT_SESSIONS = "adaptive_claims_only_a_session_that_was_just_consumed"
    CLAIMS_OLD_BINDINGS = "adaptive_binds_the_claim"
    ENDS_WITHOUT_BINDING = "adaptive_is_canonical_when_its_binding_changed"
    EDITS_TWICE = "adaptive_edits_once"
    LEAVES_CARD_EDGE_OPEN = "adaptive_direct_edge_is_closed_after_a_claim"


@dataclass
class _Entry:
    surface: Surface
    canonical: str
    claim: Claim | None = None
    outcome: Outcome | None = None
    body: str | None = None
    destination: str = ""
    pins: Pins | None = None
    step: str = "claimed"


@dataclass
class _Shared:
    """What outlives a process."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


class ToyKit:
    """`kexpr.testing.conformance.Kit` on toy stores."""

    def __init__(self, defect: Defect | None = None) -> None:
        self.ports = HostPorts()
        self.clock = MachineClock()
        self._defect = defect
        self._durable = {name: _Shared() for name in ("daily", "weekly", "adaptive")}

    def pass_lease(self) -> None:
        self.clock.pass_ms(4_000)

    def daily(self) -> "ToyDaily":
        return ToyDaily(self._durable["daily"], self.ports, ProcessClock(self.clock), self._defect)

    def weekly(self) -> "ToyWeekly":
        return ToyWeekly(self._durable["weekly"], self.ports, ProcessClock(self.clock), self._defect)

    def adaptive(self) -> "ToyAdaptive":
        return ToyAdaptive(self._durable["adaptive"], self.ports, ProcessClock(self.clock), self._defect)


class _Toy:
    """One process's handle."""

    def __init__(self, durable: _Shared, ports: HostPorts, clock: ProcessClock, defect: Defect | None) -> None:
        self.durable = durable
        self.ports = ports
        self.clock = clock
        self.defect = defect
        self._unwritten: dict[str, _Entry] = {}
        self._mine = copy.deepcopy(durable.entries) if defect in _IN_MEMORY else durable.entries

    def has(self, defect: Defect) -> bool:
        return self.defect is defect

    @property
    def entries(self) -> dict[str, _Entry]:
        return self._mine

    def outstanding(self) -> tuple[str, ...]:
        with self.durable.lock:
            return tuple(entry.claim.attempt_id for entry in self._claimed().values() if entry.claim)

    def outcomes(self) -> Counter[Outcome]:
        return Counter(entry.outcome for entry in self.entries.values() if entry.outcome)

    def expire_outstanding(self) -> int:
        if self.has(Defect.FORGETS_OUTSTANDING):
            return 0
        with self.durable.lock:
            return sum(self.expire(key) for key in list(self._claimed()))

    def close(self) -> None:
        """Nothing to release."""

    def _claimed(self) -> dict[str, _Entry]:
        return {key: entry for key, entry in self.entries.items() if entry.claim and entry.outcome is None}

    def expire(self, key: str) -> bool:
        entry = self.entries.get(key)
        if entry is None or entry.claim is None or entry.outcome is not None:
            return False
        if self.remaining_ms(entry.claim) and not self.has(Defect.EXPIRES_EARLY):
            return False
        entry.outcome, entry.body, entry.step = Outcome.CANONICAL_CLAIM_EXPIRED, entry.canonical, "pending"
        return True

    def remaining_ms(self, claim: Claim) -> int:
        now, lease = self.clock.now(), claim.lease
        assert lease is not None
        if self.has(Defect.EXPIRES_BY_UTC):
            return max(0, lease.utc_deadline_ms - now.utc_ms)
        if self.has(Defect.SURVIVES_BOOT):
            lease = replace(lease, boot_id=now.boot_id, boottime_deadline_ms=now.boottime_ms + 4_000)
        return lease.remaining_ms(now)

    def look(self, key: str) -> Recovered:
        with self.durable.lock:
            self.expire(key)
            entry = self.entries.get(key)
            if entry is None:
                return Absent()
            if entry.claim and entry.outcome is None:
                return InFlight(self.remaining_ms(entry.claim))
            keeps = entry.surface is not Surface.DAILY or self.has(Defect.KEEPS_DAILY_BODY)
            return Durable(entry.outcome, entry.body if keeps else None, entry.step)

    def claim(self, key: str, entry: _Entry, mode: Mode) -> Ticket:
        if mode is Mode.DISABLED and not self.has(Defect.DISABLED_CLAIMS):
            raise ClaimRefused
        with self.durable.lock:
            self._require_fresh(key)
            lease = lease_from(self.clock.now())
            claim = Claim(secrets.token_hex(8), mode, lease, entry.surface, entry.canonical if entry.pins else None)
            reach("toy.claim")
            where = self._unwritten if self.has(Defect.CLAIM_AFTER_REQUEST) else self.entries
            where[key] = replace(entry, claim=claim)
        return Ticket(claim.attempt_id, mode, lease)

    def _require_fresh(self, key: str) -> None:
        taken = self.entries.get(key)
        if taken is None or self.has(Defect.CLAIMS_TWICE):
            return
        if self.has(Defect.FREES_EXPIRED) and taken.claim and self.remaining_ms(taken.claim) == 0:
            return
        raise ClaimRefused

    def finalize(self, key: str, asked: Asked, *, holds: bool) -> Finalized:
        with self.durable.lock:
            reach("toy.ruled")
            self.entries.update(self._unwritten)
            entry = self.entries.get(key)
            final = Finalized(entry.outcome, body=_selected(entry)) if entry and entry.outcome else None
            claim = entry.claim if entry else None
            found = Found("toy", entry.step if entry else "absent", claim, final, self.clock.now())
            found, asked = self._misjudged(found, replace(asked, pins_hold=holds))
            decision = decide(found, asked)
            finalized = self._trusted(decision.finalized, asked)
            if entry is not None and decision.is_new:
                self._end(entry, finalized)
            return finalized

    def _end(self, entry: _Entry, finalized: Finalized) -> None:
        if self.has(Defect.OUTCOME_IN_MEMORY):
            return
        entry.outcome, entry.step = finalized.outcome, "pending"
        entry.body = finalized.body or entry.canonical
        reach("toy.final")

    def _misjudged(self, found: Found, asked: Asked) -> tuple[Found, Asked]:
        claim = found.claim
        if self.has(Defect.OVERWRITES) or self.has(Defect.COMMITS_EACH_CANDIDATE):
            found = replace(found, final=None)
        if self.has(Defect.IGNORES_CANCELLATION):
            asked = replace(asked, cancelled=False)
        if claim and self.has(Defect.TAKES_ANY_TICKET):
            asked = replace(asked, attempt_id=claim.attempt_id)
        if claim and self.has(Defect.SHADOW_SELECTS):
            found = replace(found, claim=replace(claim, mode=Mode.ENABLED))
        if claim and self.has(Defect.TAKES_LATE_RESULTS):
            found = replace(found, claim=replace(claim, lease=lease_from(found.now)))
        if self.has(Defect.ENDS_WITHOUT_PINS) or self.has(Defect.ENDS_WITHOUT_BINDING):
            asked = replace(asked, pins_hold=True)
        return found, asked

    def _trusted(self, finalized: Finalized, asked: Asked) -> Finalized:
        if self.has(Defect.TRUSTS_CANDIDATES) and finalized.reason is Reason.COMMIT_CANDIDATE_INVALID:
            return Finalized(Outcome.SELECTED, body="제목\n믿었습니다.\n끝")
        if self.has(Defect.SHADOW_GIVES_A_BODY) and finalized.outcome is Outcome.SHADOW_SELECTED:
            assert asked.ruling.candidate is not None
            return replace(finalized, body=asked.ruling.candidate.body())
        return finalized


_IN_MEMORY = frozenset({Defect.CLAIM_IN_MEMORY})


@dataclass(frozen=True)
class _Artifact:
    toy: _Toy
    key: str
    entry: _Entry
    may_claim: Callable[[], None]
    holds: Callable[[], bool]

    @property
    def surface(self) -> Surface:
        return self.entry.surface

    def is_fresh(self) -> bool:
        return self.key not in self.toy.entries

    def claim(self, mode: Mode) -> Ticket:
        if self.toy.has(Defect.CHECKS_THEN_ACTS):
            return self._claim_in_two_steps(mode)
        with self.toy.durable.lock:
            if self.is_fresh():
                self.may_claim()
            return self.toy.claim(self.key, self.entry, mode)

    def _claim_in_two_steps(self, mode: Mode) -> Ticket:
        if not self.is_fresh():
            raise ClaimRefused
        self.may_claim()
        threading.Event().wait(0.002)
        self.toy.entries.pop(self.key, None)
        return self.toy.claim(self.key, self.entry, mode)

    def finalize(self, ticket: Ticket, ruling: Ruling, cancellation: Cancellation) -> Finalized:
        asked = Asked(ticket.attempt_id, ruling, cancellation.is_set())
        return self.toy.finalize(self.key, asked, holds=self.holds())


class ToyDaily(_Toy):
    def artifact(self, event_id: str) -> ArtifactAuthority:
        def may_claim() -> None:
            if not self.ports.finalized_event_exists(event_id) and not self.has(Defect.CLAIMS_UNKNOWN_EVENTS):
                raise AuthorityFailed(StoreFault.UNKNOWN_EVENT)

        return _Artifact(self, event_id, _Entry(Surface.DAILY, "canonical"), may_claim, lambda: True)

    def recover(self, event_id: str) -> Recovered:
        return self.look(event_id)


class ToyWeekly(_Toy):
    def artifact(
        self, task: WeeklyTask, *, canonical_body: str, destination: str, current_pins: Callable[[], Pins]
    ) -> ArtifactAuthority:
        pins = current_pins()
        entry = _Entry(Surface.WEEKLY, canonical_body, destination=destination, pins=pins)
        return _Artifact(self, task.digest, entry, lambda: None, lambda: current_pins() == pins)

    def recover(self, task: WeeklyTask) -> Recovered:
        return self.look(task.digest)

    def reserve_customer_task_delivery(
        self, task: WeeklyTask, *, body: str, destination: str, pins: Pins
    ) -> ScheduledDeliveryReceipt:
        with self.durable.lock:
            if task.digest in self.entries and not self.has(Defect.LEAVES_EDGE_OPEN):
                raise IllegalTransition("weekly", "claimed", "reserve")
            self.entries[task.digest] = _Entry(Surface.WEEKLY, body, None, None, body, destination, pins, "pending")
        return self.receipt(task)

    def receipt(self, task: WeeklyTask) -> ScheduledDeliveryReceipt:
        entry = self.entries[task.digest]
        assert entry.pins is not None
        assert entry.body is not None
        return ScheduledDeliveryReceipt(
            task_digest=task.digest, body_digest=_digest(entry.body), **_digests(entry.pins)
        )

    def load_prepared_customer_task_delivery(
        self,
        receipt: ScheduledDeliveryReceipt,
        *,
        expected_registry_digest: str,
        expected_config_digest: str,
        expected_destination_digest: str,
    ) -> PinnedScheduledDelivery:
        entry = self.entries[receipt.task_digest]
        pins = entry.pins
        assert pins is not None
        assert entry.body is not None
        current = (expected_registry_digest, expected_config_digest, expected_destination_digest)
        changed = current != (pins.registry_digest, pins.config_digest, pins.destination_digest)
        if (changed or receipt.body_digest != _digest(entry.body)) and not self.has(Defect.LOADS_WITHOUT_PINS):
            raise HardStop(StoreFault.PIN_CHANGED)
        if not self.ports.ready_fence(receipt.task_digest) and not self.has(Defect.LOADS_WITHOUT_FENCE):
            raise HardStop(StoreFault.NOT_READY)
        body = entry.canonical if self.has(Defect.LOADS_CANONICAL) else entry.body
        return PinnedScheduledDelivery(
            body=body,
            destination=entry.destination,
            body_digest=_digest(body),
            canonical_body_digest=_digest(entry.canonical),
            outcome=entry.outcome,
            **_digests(pins),
        )

    def mark_customer_task_sending(self, receipt: ScheduledDeliveryReceipt) -> None:
        self._step(receipt, "pending", "sending")

    def mark_customer_task_delivered(self, receipt: ScheduledDeliveryReceipt) -> None:
        self._step(receipt, "sending", "delivered")

    def mark_customer_task_unknown(self, receipt: ScheduledDeliveryReceipt) -> None:
        self._step(receipt, "sending", "unknown")

    def _step(self, receipt: ScheduledDeliveryReceipt, before: str, after: str) -> None:
        with self.durable.lock:
            entry = self.entries[receipt.task_digest]
            if entry.step != before and not self.has(Defect.SENDS_TWICE):
                raise IllegalTransition("weekly", entry.step, after)
            entry.step = after


class ToyAdaptive(_Toy):
    def artifact(
        self, origin: CardPresentationOrigin, *, canonical_payload: str, surface: Surface, binding_digest: str
    ) -> ArtifactAuthority:
        def holds() -> bool:
            return self.ports.current_binding_digest(origin) == binding_digest

        def may_claim() -> None:
            spent = not self.ports.is_just_consumed(origin) and not self.has(Defect.CLAIMS_SPENT_SESSIONS)
            if spent or not (holds() or self.has(Defect.CLAIMS_OLD_BINDINGS)):
                raise ClaimRefused

        entry = _Entry(surface, canonical_payload, pins=Pins("", "", "", ""))
        return _Artifact(self, origin.card_digest, entry, may_claim, holds)

    def recover(self, origin: CardPresentationOrigin) -> Recovered:
        return self.look(origin.card_digest)

    def mark_publish_pending(self, origin: CardPresentationOrigin, *, payload: str) -> Durable:
        with self.durable.lock:
            if origin.card_digest in self.entries and not self.has(Defect.LEAVES_CARD_EDGE_OPEN):
                raise IllegalTransition("adaptive", "claimed", "mark_publish_pending")
            entry = _Entry(Surface.ADAPTIVE_DUALCOACHTEST, payload, body=payload, step="pending")
            self.entries[origin.card_digest] = entry
            return Durable(None, payload, "pending")

    def mark_publish_claimed(self, origin: CardPresentationOrigin) -> None:
        self._step(origin, "pending", "publishing")

    def mark_published(self, origin: CardPresentationOrigin) -> None:
        self._step(origin, "publishing", "published")

    def _step(self, origin: CardPresentationOrigin, before: str, after: str) -> None:
        with self.durable.lock:
            entry = self.entries[origin.card_digest]
            if entry.step != before and not self.has(Defect.EDITS_TWICE):
                raise IllegalTransition("adaptive", entry.step, after)
            entry.step = after


def _selected(entry: _Entry) -> str | None:
    return entry.body if entry.outcome is Outcome.SELECTED else None


def _digest(text: str) -> str:
    return f"{hash(text) & (2**256 - 1):064x}"


def _digests(pins: Pins) -> dict[str, str]:
    return {
        "template_digest": pins.template_digest,
        "destination_digest": pins.destination_digest,
        "registry_digest": pins.registry_digest,
        "config_digest": pins.config_digest,
    }

"""Identities and texts are planted everywhere, and found in no `repr`, exception or row that must not have them."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kexpr.attempt import Ruling
from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.authority.finalise import Asked, Found, decide
from kexpr.authority.recovery import Durable
from kexpr.authority.weekly import Pins, WeeklyTask
from kexpr.codes import Mode, Outcome, Surface
from kexpr.errors import KexprError
from kexpr.ledger.protocol import Record
from kexpr.manifest import Manifest, SlotText, compose
from kexpr.testing.canaries import Canaries, chain_text
from kexpr.testing.memory_ledger import Fault
from tests.unit.authority.support import CANONICAL, LOST, SELECTED, SetClock, Store, World, candidate
from tests.unit.authority.weekly_support import NOT_CANCELLED

PHYSIQUE = Surface.ADAPTIVE_PHYSIQUE
TEXTS = ("저장된 기록을 확인했습니다", "차분히 살펴보니")


class Planted:
    """What is planted, and everything that authorities and their errors say."""

    def __init__(self) -> None:
        self.canaries = Canaries()
        self.said: dict[str, str] = {}
        for text in TEXTS:
            self.canaries.adopt("text", text)

    def plant(self, place: str) -> str:
        return self.canaries.plant(place)

    def show(self, value: object) -> None:
        self.said[f"{len(self.said)} {type(value).__name__}"] = repr(value)

    def fail(self, call: Callable[[], object]) -> None:
        with pytest.raises((KexprError, TypeError)) as failed:
            call()
        self.said[f"{len(self.said)} {type(failed.value).__name__}"] = chain_text(failed.value)

    def check(self) -> None:
        self.canaries.assert_absent(self.said)


@pytest.fixture
def planted() -> Iterator[Planted]:
    planted = Planted()
    yield planted
    planted.check()


def selecting(surface: Surface, judge: Callable[[Manifest, tuple[SlotText, ...]], str] = compose) -> Ruling:
    return Ruling(Outcome.SELECTED, candidate=candidate(surface, judge=judge))


def told(planted: Planted, place: str) -> Callable[..., str]:
    text = planted.plant(place)

    def raises(*_: object) -> str:
        raise RuntimeError(text)

    return raises


def world() -> World:
    return World(Store(SetClock()))


def test_daily_says_nothing(planted: Planted) -> None:
    here, event = world(), planted.plant("event")
    here.events = {event}
    authority = here.daily()
    artifact = authority.artifact(event)
    ticket = artifact.claim(Mode.ENABLED)
    planted.canaries.adopt("attempt", ticket.attempt_id)
    for value in (artifact, ticket, authority.state(event), selecting(Surface.DAILY), authority._held[event]):
        planted.show(value)
    planted.fail(lambda: artifact.claim(Mode.ENABLED))
    planted.fail(lambda: authority.claim_finalized_presentation(planted.plant("no event"), Mode.ENABLED))
    planted.fail(lambda: artifact.finalize(ticket, Ruling(Outcome.SHADOW_SELECTED), NOT_CANCELLED))
    planted.show(artifact.finalize(ticket, selecting(Surface.DAILY), NOT_CANCELLED))
    planted.show(authority.recover(event))
    here.store.memory.next_fault = Fault.AFTER_WRITE
    here.events.add("second")
    planted.fail(lambda: authority.claim_finalized_presentation("second", Mode.ENABLED))
    for text in TEXTS:
        assert text not in json.dumps(here.store.records(), ensure_ascii=False)


def test_weekly_says_nothing(planted: Planted) -> None:
    here = world()
    here.pins = Pins(*(planted.plant(place) for place in ("destination pin", "registry", "config", "template")))
    task, destination = WeeklyTask(planted.plant("task")), planted.plant("destination")
    authority = here.weekly()
    artifact = authority.artifact(
        task, canonical_body=CANONICAL, destination=destination, current_pins=lambda: here.pins
    )
    ticket = artifact.claim(Mode.ENABLED)
    planted.canaries.adopt("attempt", ticket.attempt_id)
    for value in (artifact, task, ticket, here.pins, authority._tasks[task.digest], authority.state(task)):
        planted.show(value)
    planted.fail(lambda: artifact.claim(Mode.ENABLED))
    planted.fail(lambda: authority.receipt(task))
    planted.show(artifact.finalize(ticket, selecting(Surface.WEEKLY), NOT_CANCELLED))
    receipt = authority.receipt(task)
    current = {
        "expected_registry_digest": here.pins.registry_digest,
        "expected_config_digest": here.pins.config_digest,
        "expected_destination_digest": here.pins.destination_digest,
    }
    planted.show((receipt, authority.recover(task)))
    planted.show(authority.load_prepared_customer_task_delivery(receipt, **current))
    moved = {**current, "expected_config_digest": planted.plant("moved")}
    planted.fail(lambda: authority.load_prepared_customer_task_delivery(receipt, **moved))
    planted.fail(lambda: authority.recover(task))
    planted.fail(
        lambda: authority.artifact(
            WeeklyTask("second"),
            canonical_body=CANONICAL,
            destination=destination,
            current_pins=told(planted, "pin error"),  # type: ignore[arg-type]
        ).claim(Mode.ENABLED)
    )
    here.store.memory.next_fault = Fault.BEFORE_WRITE
    planted.fail(
        lambda: authority.reserve_customer_task_delivery(
            WeeklyTask("third"), body=CANONICAL, destination=destination, pins=here.pins
        )
    )
    assert task.identity not in json.dumps(here.store.records(), ensure_ascii=False)
    assert destination in json.dumps(here.store.records(), ensure_ascii=False)


def test_adaptive_says_nothing(planted: Planted) -> None:
    here, secrets = world(), [planted.plant(place) for place in ("session", "callback", "message")]
    from_ = CardPresentationOrigin(OriginKind.TYPED_NOTE, *secrets)
    here.session.binding = planted.plant("binding")
    authority = here.adaptive()
    artifact = authority.artifact(
        from_, canonical_payload=CANONICAL, surface=PHYSIQUE, binding_digest=here.session.binding
    )
    ticket = artifact.claim(Mode.ENABLED)
    planted.canaries.adopt("claim", ticket.attempt_id)
    for value in (artifact, from_, ticket, authority._cards[from_.card_digest], authority.state(from_)):
        planted.show(value)
    planted.fail(lambda: artifact.claim(Mode.ENABLED))
    planted.fail(lambda: authority.mark_published(from_))
    planted.fail(lambda: artifact.finalize(ticket, Ruling(Outcome.OVERLOADED), NOT_CANCELLED))
    planted.show(artifact.finalize(ticket, selecting(PHYSIQUE), NOT_CANCELLED))
    planted.fail(lambda: artifact.finalize(ticket, selecting(PHYSIQUE, told(planted, "judge")), NOT_CANCELLED))
    recovered = authority.recover(from_)
    assert recovered == Durable(Outcome.SELECTED, SELECTED, "publish_pending")
    planted.show(recovered)
    here.session.on_ask = told(planted, "session error")
    other = CardPresentationOrigin(OriginKind.CALLBACK, planted.plant("second session"), "", "")
    planted.fail(lambda: authority.presentation_identity(other, binding_digest=here.session.binding))

    @contextmanager
    def broken() -> Iterator[None]:
        raise OSError(planted.plant("lock error"))
        yield

    here.session_lock = broken
    planted.fail(lambda: here.adaptive().state(from_))
    stored = json.dumps(here.store.records(), ensure_ascii=False)
    assert not [secret for secret in secrets if secret in stored]
    assert SELECTED in here.store.records()[-1].values()


def test_a_decision_says_nothing(planted: Planted) -> None:
    here = world()
    here.events = {"event"}
    authority = here.daily()
    ticket = authority.artifact("event").claim(Mode.ENABLED)
    planted.canaries.adopt("attempt", ticket.attempt_id)
    claim = authority._held["event"].claim
    found = Found("daily", "claimed", claim, None, here.clock.now())
    for ruling in (LOST, selecting(Surface.DAILY), selecting(Surface.DAILY, told(planted, "judge"))):
        asked = Asked(ticket.attempt_id, ruling, cancelled=False)
        for value in (claim, found, asked, decide(found, asked)):
            planted.show(value)
    planted.fail(lambda: decide(found, Asked(planted.plant("forged"), LOST, cancelled=False)))


def test_a_history_that_is_refused_says_nothing(planted: Planted) -> None:
    here = world()
    record: Record = {"schema_version": 1, "finalized_event_id": planted.plant("event"), "outcome": planted.plant("x")}
    here.store.put(record)
    planted.fail(here.daily)
    other = world()
    other.store.put({"task_digest": planted.plant("task"), "body": SELECTED, "state": "prepared"})
    planted.fail(other.weekly)


def test_the_search_would_find_a_leak() -> None:
    planted = Planted()
    planted.show([planted.plant("somewhere")])
    with pytest.raises(AssertionError):
        planted.check()

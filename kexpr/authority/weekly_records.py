"""Weekly rows and the records that leave the authority. Version 1 is the host's own row, 2 has a presentation."""

from dataclasses import dataclass, field
from typing import Final

from kexpr.authority.finalise import Claim, may_end
from kexpr.authority.records import digest_of, final_outcome, from_record, require
from kexpr.authority.transitions import WEEKLY, WeeklyEvent, WeeklyState
from kexpr.codes import Outcome, Surface
from kexpr.ledger.protocol import Row

__all__ = [
    "DELIVERY_EVENT",
    "HeldTask",
    "PinnedScheduledDelivery",
    "Pins",
    "PreparedV1",
    "PresentedV2",
    "ScheduledDeliveryReceipt",
    "StepV1",
    "WeeklyTask",
    "fold",
]

_TASK_DOMAIN: Final = "kexpr.weekly.task.v1"


@dataclass(frozen=True, slots=True)
class WeeklyTask:
    """A scheduled customer task by the host's identity of it. Only `digest` is stored or named anywhere."""

    identity: str = field(repr=False)

    @property
    def digest(self) -> str:
        """Opaque: SHA-256 hex. Needs no key, so that tombstones still speak when a key was lost."""
        return digest_of(_TASK_DOMAIN, self.identity)


@dataclass(frozen=True, slots=True)
class Pins:
    """What must not change between claim and send, as the host digests it."""

    destination_digest: str = field(repr=False)
    registry_digest: str = field(repr=False)
    config_digest: str = field(repr=False)
    template_digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ScheduledDeliveryReceipt:
    """Names one prepared delivery. Digests only."""

    task_digest: str = field(repr=False)
    body_digest: str = field(repr=False)
    template_digest: str = field(repr=False)
    destination_digest: str = field(repr=False)
    registry_digest: str = field(repr=False)
    config_digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PinnedScheduledDelivery:
    """The exact durable material of a prepared delivery: send this, and nothing from memory."""

    body: str = field(repr=False)
    destination: str = field(repr=False)
    body_digest: str = field(repr=False)
    canonical_body_digest: str = field(repr=False)
    template_digest: str = field(repr=False)
    destination_digest: str = field(repr=False)
    registry_digest: str = field(repr=False)
    config_digest: str = field(repr=False)
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class PreparedV1:
    """A prepared row without a presentation: immutable canonical."""

    schema_version: int
    task_digest: str
    state: str
    body: str = field(repr=False)
    destination: str = field(repr=False)
    body_digest: str
    template_digest: str = field(repr=False)
    destination_digest: str = field(repr=False)
    registry_digest: str = field(repr=False)
    config_digest: str = field(repr=False)

    @property
    def canonical_body_digest(self) -> str:
        return self.body_digest


@dataclass(frozen=True, slots=True)
class PresentedV2:
    """`presentation_claimed` (body is the canonical one, outcome None) and the `prepared` that follows it."""

    schema_version: int
    task_digest: str
    state: str
    body: str = field(repr=False)
    destination: str = field(repr=False)
    body_digest: str
    template_digest: str = field(repr=False)
    destination_digest: str = field(repr=False)
    registry_digest: str = field(repr=False)
    config_digest: str = field(repr=False)
    canonical_body_digest: str
    presentation_surface: str
    presentation_attempt_id: str = field(repr=False)
    deadline: str
    outcome: str | None


@dataclass(frozen=True, slots=True)
class StepV1:
    """A delivery step after `prepared`."""

    schema_version: int
    task_digest: str
    state: str


DELIVERY_EVENT: Final = {
    WeeklyState.SENDING: WeeklyEvent.MARK_SENDING,
    WeeklyState.DELIVERED: WeeklyEvent.MARK_DELIVERED,
    WeeklyState.UNKNOWN: WeeklyEvent.MARK_UNKNOWN,
    WeeklyState.ABANDONED: WeeklyEvent.MARK_ABANDONED,
    WeeklyState.SENT_AUDITED: WeeklyEvent.MARK_SENT_AUDITED,
}
"""Each delivery state is the name of the event that leads to it."""

_UNCHANGED: Final = (
    "task_digest",
    "destination",
    "template_digest",
    "destination_digest",
    "registry_digest",
    "config_digest",
    "canonical_body_digest",
    "presentation_surface",
    "presentation_attempt_id",
    "deadline",
)
"""All of a claim but its body, state and outcome: the presentation transition may change nothing else."""


@dataclass(frozen=True, slots=True)
class HeldTask:
    """What the rows of one task add up to. What holds text is dropped when that can no longer be sent."""

    state: WeeklyState
    receipt: ScheduledDeliveryReceipt
    pinned: PreparedV1 | PresentedV2 | None
    claim: Claim | None
    outcome: Outcome | None


def fold(held: HeldTask | None, row: Row) -> HeldTask:
    """The task after one verified row; raises `IllegalHistory` or `IllegalTransition` for one that we do not write."""
    version, state = row.record.get("schema_version"), row.record.get("state")
    before = held.state if held else WeeklyState.READY
    if state in DELIVERY_EVENT:
        step = from_record(StepV1, row.record)
        after = WEEKLY.step(before, DELIVERY_EVENT[WeeklyState(step.state)])
        require(step.schema_version == 1 and held is not None)
        assert held is not None
        return HeldTask(after, held.receipt, None, None, held.outcome)
    if version == 1:
        prepared = from_record(PreparedV1, row.record)
        require(prepared.state == WEEKLY.step(before, WeeklyEvent.RESERVE))
        require(prepared.body_digest == digest_of(prepared.body))
        return HeldTask(WeeklyState.PREPARED, _receipt(prepared), prepared, None, None)
    presented = from_record(PresentedV2, row.record)
    require(presented.schema_version == 2 and presented.presentation_surface == Surface.WEEKLY.wire)
    require(presented.body_digest == digest_of(presented.body))
    if held is None:
        return _claimed(presented, row)
    return _prepared(held, presented)


def _claimed(presented: PresentedV2, row: Row) -> HeldTask:
    require(presented.state == WEEKLY.step(WeeklyState.READY, WeeklyEvent.CLAIM))
    require(presented.outcome is None and presented.canonical_body_digest == presented.body_digest)
    claim = Claim(presented.presentation_attempt_id, row.mode, row.lease, Surface.WEEKLY, presented.body)
    return HeldTask(WeeklyState.PRESENTATION_CLAIMED, _receipt(presented), presented, claim, None)


def _prepared(held: HeldTask, presented: PresentedV2) -> HeldTask:
    outcome = final_outcome(presented.outcome)
    require(presented.state == WEEKLY.step(held.state, WeeklyEvent.ending(outcome)))
    assert held.claim is not None
    require(all(getattr(presented, name) == getattr(held.pinned, name) for name in _UNCHANGED))
    require(may_end(held.claim, outcome))
    is_canonical = presented.body_digest == presented.canonical_body_digest
    require(is_canonical is not (outcome is Outcome.SELECTED))
    return HeldTask(WeeklyState.PREPARED, _receipt(presented), presented, held.claim, outcome)


def _receipt(row: PreparedV1 | PresentedV2) -> ScheduledDeliveryReceipt:
    return ScheduledDeliveryReceipt(
        row.task_digest,
        row.body_digest,
        row.template_digest,
        row.destination_digest,
        row.registry_digest,
        row.config_digest,
    )

"""Adaptive: an operator's card, from a callback or a typed note, through one shared step.

The caller edits only the durable payload. A card left at `publish_claimed` (a crash or a failed edit in between) may or
may not show its selected text: it is edited once more, to the canonical one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from kexpr.attempt import Cancellation
from kexpr.authority.adaptive import CardPresentationOrigin
from kexpr.authority.ports import AdaptiveStore
from kexpr.authority.recovery import Absent, Durable, InFlight
from kexpr.authority.transitions import AdaptiveState
from kexpr.codes import Surface
from kexpr.coordinator import Coordinator, Job
from kexpr.paths.base import Path, stopping
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import (
    STOPPED,
    Preparation,
    Publication,
    Timers,
    publication_of,
    publish,
    publish_async,
)

__all__ = ["AdaptivePath", "Card"]

Edit = Callable[[str], None]
AsyncEdit = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Card:
    """A fresh card: where it came from, its typed presentation (any other object is canonical) and the host's text."""

    origin: CardPresentationOrigin
    surface: Surface
    presentation: object = field(repr=False)
    canonical_payload: str = field(repr=False)
    binding_digest: str = field(repr=False)


class AdaptivePath(Path):
    """Consumed session → claim → attempt → durable payload → `publish_claimed` → one edit → `published`."""

    def __init__(
        self,
        coordinator: Coordinator,
        authority: AdaptiveStore,
        locks: PublicationLocks,
        timers: Timers | None = None,
    ) -> None:
        super().__init__(coordinator, locks, timers)
        self._authority = authority

    def publish(self, card: Card, edit: Edit) -> Publication:
        """Bring one card as far as it goes: a new one, after a restart, or again. `stopped`: nothing may be edited."""
        publication = publish(self.preparation(card), lambda ready: edit(ready.text or ""))
        return self._watched(publication, lambda: self.publish(card, edit))

    async def publish_async(self, card: Card, edit: AsyncEdit) -> Publication:
        """`publish` for asyncio hosts; `wait_ms` > 0 in the result asks for another call after that long."""
        return await publish_async(self._coordinator, self.preparation(card), lambda ready: edit(ready.text or ""))

    def preparation(self, card: Card) -> Preparation:
        """The durable part up to `publish_pending`. The card is claimed for its edit only when that is delivered."""
        return lambda flag: self._held(
            ("adaptive", card.origin.card_digest), stopping(lambda: self._prepared(card, flag)), lambda: STOPPED
        )

    def _prepared(self, card: Card, flag: Cancellation) -> Publication:
        found = self._authority.recover(card.origin)
        if isinstance(found, InFlight):
            return Publication(None, wait_ms=max(1, found.remaining_ms))
        if isinstance(found, Absent):
            return self._presented(card, flag)
        if found.state == AdaptiveState.PUBLISH_CLAIMED:
            return Publication(card.canonical_payload, after=lambda delivered: self._settle(card, delivered))
        return self._pending(card, found, Publication(None))

    def _presented(self, card: Card, flag: Cancellation) -> Publication:
        artifact = self._authority.artifact(
            card.origin,
            canonical_payload=card.canonical_payload,
            surface=card.surface,
            binding_digest=card.binding_digest,
        )
        identity = ("adaptive", card.origin.card_digest, card.binding_digest)
        presented = self._coordinator.present(Job(card.presentation, card.canonical_payload, artifact, identity), flag)
        attempt = publication_of(presented, None)
        if presented.broken:
            return attempt
        if not presented.claimed:
            pending = self._authority.mark_publish_pending(card.origin, payload=card.canonical_payload)
            return self._pending(card, pending, attempt)
        found = self._authority.recover(card.origin)
        assert isinstance(found, Durable)
        return self._pending(card, found, attempt)

    def _pending(self, card: Card, found: Durable, attempt: Publication) -> Publication:
        """The exact durable payload, if editing it is the next step."""
        return replace(
            attempt,
            text=found.body,
            stopped=False,
            before=lambda: self._authority.mark_publish_claimed(card.origin),
            after=lambda delivered: self._settle(card, delivered),
        )

    def _settle(self, card: Card, delivered: bool) -> None:
        if delivered:
            self._authority.mark_published(card.origin)

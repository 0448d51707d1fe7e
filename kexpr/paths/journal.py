"""The anchor-grammar contract's path: one for its three surfaces, over the outcome journal.

A selected body reaches the customer in one of two ways. Weekly and adaptive: `finalize` has it written by the host's
durable writer, and the path delivers it afterwards, again after a restart. Daily: `finalize` itself makes the edit, and
the path delivers canonical texts only. The artifact's lock is not held over the request, so that an observer learns at
once that a claim is in flight: it edits, reserves and sends nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kexpr.attempt import Cancellation
from kexpr.authority.journal import (
    Delivery,
    DurableWriter,
    EditDelivery,
    JournalArtifact,
    OutcomeJournal,
    WriterDelivery,
)
from kexpr.authority.recovery import Absent, InFlight, Recovered
from kexpr.codes import Outcome, Surface
from kexpr.coordinator import Coordinator, Job, Presented
from kexpr.errors import AuthorityFailed, LedgerFailed
from kexpr.paths.base import watched
from kexpr.paths.daily import RecentEvents
from kexpr.paths.publication import (
    STOPPED,
    Held,
    Preparation,
    Publication,
    ThreadTimers,
    Timers,
    publication_of,
    publish,
    publish_async,
)

__all__ = ["EDIT_BOUND_S", "JournalMessage", "JournalPath"]

Deliver = Callable[[str], None]
AsyncDeliver = Callable[[str], Awaitable[None]]

EDIT_BOUND_S: Final = 10.0
"""How long an asynchronous edit may hold its artifact's lock; after that it counts as failed."""


@dataclass(frozen=True, slots=True)
class JournalMessage:
    """A message of one artifact. `identity`: the fields of contract section 8 after the surface.

    `presentation` is a `CanonicalText` or a typed presentation; any other object is canonical.
    """

    surface: Surface
    identity: tuple[str, ...] = field(repr=False)
    presentation: object = field(repr=False)
    canonical_payload: str = field(repr=False)


class JournalPath:
    """Canonical text → claim → attempt → writer or edit → terminal row. Thread-safe."""

    def __init__(self, coordinator: Coordinator, journal: OutcomeJournal, timers: Timers | None = None) -> None:
        self._coordinator = coordinator
        self._journal = journal
        self._timers = timers or ThreadTimers()
        self._edited = RecentEvents()

    def publish(self, message: JournalMessage, writer: DurableWriter, deliver: Deliver) -> Publication:
        """Weekly and adaptive: bring one message as far as it goes. `stopped`: an operator must look."""
        publication = publish(self.preparation(message, WriterDelivery(writer)), _through(deliver))
        return watched(self._timers, publication, lambda: self.publish(message, writer, deliver))

    async def publish_async(self, message: JournalMessage, writer: DurableWriter, deliver: AsyncDeliver) -> Publication:
        """`publish` for asyncio hosts; `wait_ms` > 0 in the result asks for another call after that long."""
        preparation = self.preparation(message, WriterDelivery(writer))
        return await publish_async(self._coordinator, preparation, _through_async(deliver))

    def first_save(self, message: JournalMessage, edit: Deliver) -> Publication:
        """Daily: edit the message of a first save. `edit` must be bounded. What comes later is canonical."""
        publication = publish(self.preparation(message, EditDelivery(edit)), _through(edit))
        return watched(self._timers, publication, lambda: self.replay(message, edit))

    async def first_save_async(self, message: JournalMessage, edit: AsyncDeliver) -> Publication:
        loop = asyncio.get_running_loop()
        delivery = EditDelivery(lambda body: _wait_for(edit, body, loop))
        return await publish_async(self._coordinator, self.preparation(message, delivery), _through_async(edit))

    def replay(self, message: JournalMessage, edit: Deliver) -> Publication:
        """Daily: edit the canonical text in, after the end of a claim in flight; never an attempt."""
        publication = publish(self.replay_preparation(message), _through(edit))
        return watched(self._timers, publication, lambda: self.replay(message, edit))

    async def replay_async(self, message: JournalMessage, edit: AsyncDeliver) -> Publication:
        return await publish_async(self._coordinator, self.replay_preparation(message), _through_async(edit))

    def preparation(self, message: JournalMessage, delivery: Delivery) -> Preparation:
        """The durable part, for hosts and harnesses that deliver themselves."""
        return lambda flag: self._prepared(message, delivery, lambda artifact: self._attempted(message, artifact, flag))

    def replay_preparation(self, message: JournalMessage) -> Preparation:
        return lambda _: self._prepared(message, EditDelivery(_no_edit), lambda _: _Looked())

    def _prepared(
        self, message: JournalMessage, delivery: Delivery, when_absent: "Callable[[JournalArtifact], _Looked]"
    ) -> Held:
        """A journal that cannot be used is canonical; a host's store that cannot be read stops its own messages."""
        artifact = self._artifact(message, delivery)
        try:
            found = artifact.recover()
            if not isinstance(found, Absent):
                return self._in_turn(message, artifact, self._found(message, delivery, found))
            looked = when_absent(artifact)
            if looked.publication is not None:
                return self._in_turn(message, artifact, looked.publication)
            return self._without_a_row(message, artifact, looked.attempt)
        except AuthorityFailed as failed:
            canonical = isinstance(failed, LedgerFailed) or isinstance(delivery, EditDelivery)
        return self._in_turn(message, artifact, Publication(message.canonical_payload) if canonical else STOPPED)

    def _in_turn(self, message: JournalMessage, artifact: JournalArtifact, publication: Publication) -> Held:
        """No selected text follows a canonical one of this process, which may have left no row."""
        if publication.text is None:
            return Held(publication, ExitStack())
        with ExitStack() as stack:
            stack.enter_context(self._journal.among_threads(artifact.key))
            if artifact.key in self._edited:
                publication = replace(publication, text=message.canonical_payload)
            if publication.text == message.canonical_payload:
                self._edited.add(artifact.key)
            return Held(publication, stack.pop_all())

    def _artifact(self, message: JournalMessage, delivery: Delivery) -> JournalArtifact:
        artifact = self._journal.artifact(message.surface, message.identity, delivery)
        if isinstance(delivery, EditDelivery):
            artifact = replace(artifact, delivery=EditDelivery(partial(self._edit, artifact.key, delivery.edit)))
        return replace(artifact, may_claim=lambda: artifact.key not in self._edited)

    def _edit(self, key: str, edit: Deliver, body: str) -> None:
        with self._journal.among_threads(key):
            if key in self._edited:
                raise _IsCanonical
            edit(body)

    def _found(self, message: JournalMessage, delivery: Delivery, found: Recovered) -> Publication:
        """A live claim is waited for; a selected body of the host's store is delivered as it is."""
        if isinstance(found, InFlight):
            return Publication(None, wait_ms=max(1, found.remaining_ms))
        if isinstance(found, Absent) or found.outcome is not Outcome.SELECTED or isinstance(delivery, EditDelivery):
            return Publication(message.canonical_payload)
        return Publication(found.body) if found.body is not None else STOPPED

    def _attempted(self, message: JournalMessage, artifact: JournalArtifact, flag: Cancellation) -> "_Looked":
        job = Job(message.presentation, message.canonical_payload, artifact, message.identity)
        presented = self._coordinator.present(job, flag)
        if not presented.claimed:
            return _Looked(attempt=publication_of(presented, message.canonical_payload))
        publication = publication_of(presented, _text_of(message, artifact, presented))
        return _Looked(replace(publication, stopped=publication.stopped and presented.broken))

    def _without_a_row(self, message: JournalMessage, artifact: JournalArtifact, attempt: Publication | None) -> Held:
        """The canonical text, delivered under the artifact's lock, unless somebody has claimed it in the meantime.

        After it this process makes no attempt: a second tap must not select what a first one left canonical.
        """
        with ExitStack() as stack:
            stack.enter_context(self._journal.hold(artifact.key))
            if isinstance(self._journal.state(artifact.key), Absent):
                self._edited.add(artifact.key)
                return Held(attempt or Publication(message.canonical_payload), stack.pop_all())
        return self._in_turn(message, artifact, self._found(message, artifact.delivery, artifact.recover()))


class _IsCanonical(Exception):
    """A canonical text without a row came first: this edit is not made."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """A publication of an artifact with a row; without it the canonical text, which `attempt` would deliver."""

    publication: Publication | None = None
    attempt: Publication | None = None


def _text_of(message: JournalMessage, artifact: JournalArtifact, presented: Presented) -> str | None:
    """What is still to be delivered after an attempt; None: nothing, or not before an operator has looked."""
    if isinstance(artifact.delivery, EditDelivery):
        return None if presented.outcome is Outcome.SELECTED else message.canonical_payload
    if presented.broken:
        return None
    return presented.body or message.canonical_payload


def _no_edit(_body: str) -> None:
    """A replay never has a body."""


def _through(deliver: Deliver) -> Callable[[Publication], None]:
    return lambda publication: deliver(publication.text or "")


def _through_async(deliver: AsyncDeliver) -> Callable[[Publication], Awaitable[None]]:
    return lambda publication: deliver(publication.text or "")


def _wait_for(edit: AsyncDeliver, body: str, loop: asyncio.AbstractEventLoop) -> None:
    """Make an edit on the host's loop from a thread of the coordinator, and wait for it within its bound."""

    async def bounded() -> None:
        async with asyncio.timeout(EDIT_BOUND_S):
            await edit(body)

    asyncio.run_coroutine_threadsafe(bounded(), loop).result()

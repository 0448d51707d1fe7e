"""Daily: the first save of a check-in may carry prose; everything after it is canonical.

`first_save` is the only entry that may attempt. `replay` (duplicate, explicit or restart) never reaches the
coordinator. A refused attempt leaves no row, so the path remembers in memory which events it has given their canonical
text: an ordinary double tap selects nothing after that. After a restart only the host knows, and calls `replay`.
"""

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from kexpr.attempt import Cancellation
from kexpr.authority.ports import DailyStore
from kexpr.authority.recovery import Absent, InFlight
from kexpr.coordinator import Coordinator, Job
from kexpr.errors import AuthorityFailed
from kexpr.paths.base import Path
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import Held, Preparation, Publication, Timers, publication_of, publish, publish_async

__all__ = ["DailyMessage", "DailyPath", "RecentEvents"]

Edit = Callable[[str], None]
AsyncEdit = Callable[[str], Awaitable[None]]

_REMEMBERED: Final = 4_096
"""Events; a second tap comes within seconds, and a gateway saves a few check-ins a second at most."""


@dataclass(frozen=True, slots=True)
class DailyMessage:
    """A finalised check-in: its event, its typed presentation (any other object is canonical) and the host's text."""

    event_id: str = field(repr=False)
    presentation: object = field(repr=False)
    canonical_payload: str = field(repr=False)


class DailyPath(Path):
    """Canonical text → claim → attempt → durable outcome → one edit.

    The async twins ask, by `wait_ms` > 0 in their result, for a `replay_async` after that long; the others arm a timer.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        authority: DailyStore,
        locks: PublicationLocks,
        timers: Timers | None = None,
    ) -> None:
        super().__init__(coordinator, locks, timers)
        self._authority = authority
        self._edited = RecentEvents()

    def first_save(self, message: DailyMessage, edit: Edit) -> Publication:
        """Edit the message of a first save. A claim in flight elsewhere: nothing now, a canonical replay at its end."""
        publication = publish(self.preparation(message), _through(edit))
        return self._watched(publication, lambda: self.replay(message, edit))

    def replay(self, message: DailyMessage, edit: Edit) -> Publication:
        """Edit the canonical text in, after the end of a claim in flight; never an attempt."""
        publication = publish(self.replay_preparation(message), _through(edit))
        return self._watched(publication, lambda: self.replay(message, edit))

    async def first_save_async(self, message: DailyMessage, edit: AsyncEdit) -> Publication:
        return await publish_async(self._coordinator, self.preparation(message), _through_async(edit))

    async def replay_async(self, message: DailyMessage, edit: AsyncEdit) -> Publication:
        return await publish_async(self._coordinator, self.replay_preparation(message), _through_async(edit))

    def preparation(self, message: DailyMessage) -> Preparation:
        """The durable part of `first_save`, for hosts and harnesses that deliver themselves."""
        return lambda flag: self._prepared(message, lambda: self._present(message, flag))

    def replay_preparation(self, message: DailyMessage) -> Preparation:
        return lambda _: self._prepared(message, _canonical_of(message))

    def _prepared(self, message: DailyMessage, when_absent: Callable[[], Publication]) -> Held:
        """Without its lock a message becomes canonical, unless somebody's claim is alive."""

        def prepare(when_absent: Callable[[], Publication]) -> Publication:
            return self._recovered(message) or self._once(message, when_absent)

        return self._held(
            ("daily", message.event_id), lambda: prepare(when_absent), lambda: prepare(_canonical_of(message))
        )

    def _recovered(self, message: DailyMessage) -> Publication | None:
        """Replay rule: whatever is on the artifact, the text is canonical; a live claim is waited for."""
        canonical = Publication(message.canonical_payload)
        try:
            found = self._authority.recover(message.event_id)
        except AuthorityFailed:
            self._edited.add(message.event_id)
            return canonical
        if isinstance(found, InFlight):
            return Publication(None, wait_ms=max(1, found.remaining_ms))
        return None if isinstance(found, Absent) else canonical

    def _once(self, message: DailyMessage, when_absent: Callable[[], Publication]) -> Publication:
        """No attempt after an edit that left no row: a second tap must not select what a first one left canonical."""
        if message.event_id in self._edited:
            return Publication(message.canonical_payload)
        publication = when_absent()
        if publication.text == message.canonical_payload:
            self._edited.add(message.event_id)
        return publication

    def _present(self, message: DailyMessage, flag: Cancellation) -> Publication:
        artifact = self._authority.artifact(message.event_id)
        identity = ("daily", message.event_id)
        presented = self._coordinator.present(
            Job(message.presentation, message.canonical_payload, artifact, identity), flag
        )
        return publication_of(presented, presented.body or message.canonical_payload)


class RecentEvents:
    """The events of the last edits without a row. In memory: after a restart the host replays what it has saved."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: OrderedDict[str, None] = OrderedDict()

    def add(self, event_id: str) -> None:
        with self._lock:
            self._events[event_id] = None
            while len(self._events) > _REMEMBERED:
                self._events.popitem(last=False)

    def __contains__(self, event_id: str) -> bool:
        with self._lock:
            return event_id in self._events


def _canonical_of(message: DailyMessage) -> Callable[[], Publication]:
    return lambda: Publication(message.canonical_payload)


def _through(edit: Edit) -> Callable[[Publication], None]:
    return lambda publication: edit(publication.text or "")


def _through_async(edit: AsyncEdit) -> Callable[[Publication], Awaitable[None]]:
    return lambda publication: edit(publication.text or "")

"""From a durable text to the host's edit or send: what every path does the same way.

A path prepares a `Publication` (all durable work, in a thread), the host delivers its text, and the path settles. The
message's publication lock is held from before the first look at the authority until after the delivery.
"""

import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from kexpr.attempt import Cancellation
from kexpr.codes import Outcome, Reason
from kexpr.coordinator import Coordinator, Presented
from kexpr.errors import KexprError
from kexpr.failpoints import reach

__all__ = [
    "STOPPED",
    "Held",
    "Preparation",
    "Publication",
    "ThreadTimers",
    "Timers",
    "publication_of",
    "publish",
    "publish_async",
]


def _nothing() -> None:
    """No step between preparing and delivering."""


def _settled(_delivered: bool) -> None:
    """Nothing to record after delivering."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What may be delivered now.

    `text` None means: deliver nothing; with `wait_ms` > 0, look again after that long; with `stopped`, an operator has
    to look first. `outcome` is None where this call made no attempt. `destination` is the durable one (weekly).
    """

    text: str | None = field(repr=False)
    outcome: Outcome | None = None
    reason: Reason | None = None
    requests: int = 0
    duration_ms: int = 0
    wait_ms: int = 0
    stopped: bool = False
    destination: str | None = field(default=None, repr=False)
    before: Callable[[], None] = field(default=_nothing, repr=False)
    after: Callable[[bool], None] = field(default=_settled, repr=False)


STOPPED: Final = Publication(None, stopped=True)


def publication_of(presented: Presented, text: str | None) -> Publication:
    """The publication of an attempt that this call made."""
    return Publication(
        text, presented.outcome, presented.reason, presented.requests, presented.duration_ms, stopped=text is None
    )


class Held:
    """A publication together with its message's lock."""

    def __init__(self, publication: Publication, lock: ExitStack) -> None:
        self.publication = publication
        self._lock = lock

    def begin(self, cancellation: Cancellation) -> "Held":
        """Take the last durable step before the delivery; without it, or cancelled before it, nothing is delivered."""
        with ExitStack() as stack:
            stack.callback(self.close)
            self.publication = Publication(None) if cancellation.is_set() else _begun(self.publication)
            if self.publication.text is not None:
                stack.pop_all()
        return self

    def end(self, delivered: bool) -> Publication:
        """Record how the delivery went, and let go of the message."""
        try:
            return _settled_as(self.publication, delivered)
        finally:
            self.close()

    def drop(self) -> None:
        """Let go of a message whose delivery has begun, if so, but will not be made."""
        if self.publication.text is None:
            self.close()
        else:
            self.end(False)

    def close(self) -> None:
        self._lock.close()


Preparation = Callable[[Cancellation], Held]


def publish(preparation: Preparation, deliver: Callable[[Publication], None]) -> Publication:
    """Prepare, deliver, settle. The host's own exception from `deliver` is settled as not delivered and passes on."""
    flag = Cancellation()
    held = preparation(flag).begin(flag)
    if held.publication.text is None:
        return held.publication
    delivered = False
    try:
        deliver(held.publication)
        delivered = True
    finally:
        reach("path.delivered")
        settled = held.end(delivered)
    return settled


async def publish_async(
    coordinator: Coordinator, preparation: Preparation, deliver: Callable[[Publication], Awaitable[None]]
) -> Publication:
    """`publish` for asyncio hosts: durable work in threads, the delivery on the loop.

    Cancelled before the delivery, nothing of this call is delivered: the flag is set, and what the thread brings is
    dropped. Cancelled in the delivery or after it, the message is settled first.
    """
    held = await coordinator.run(lambda flag: preparation(flag).begin(flag), discard=Held.drop)
    if held.publication.text is None:
        return held.publication
    delivered = False
    try:
        await deliver(held.publication)
        delivered = True
    finally:
        reach("path.delivered")
        settled = await coordinator.complete(lambda: held.end(delivered))
    return settled


def _begun(publication: Publication) -> Publication:
    if publication.text is None:
        return publication
    try:
        publication.before()
    except KexprError:
        return replace(publication, text=None, stopped=True)
    return publication


def _settled_as(publication: Publication, delivered: bool) -> Publication:
    try:
        publication.after(delivered)
    except KexprError:
        return replace(publication, stopped=True)
    return publication


class Timers(Protocol):
    """Runs a call later; a path arms one when it finds a claim in flight."""

    def call_later(self, delay_ms: int, call: Callable[[], None]) -> None: ...


class ThreadTimers:
    """Daemon threads: a process that ends takes its timers along, and its restart arms new ones."""

    MARGIN_MS: Final = 20
    """Past the lease by a little, so that the claim has expired when the timer looks."""

    def call_later(self, delay_ms: int, call: Callable[[], None]) -> None:
        timer = threading.Timer((delay_ms + self.MARGIN_MS) / 1000, call)
        timer.daemon = True
        timer.start()

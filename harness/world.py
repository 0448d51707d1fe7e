"""The world of a shadow run: three real authorities and paths on a state directory that goes away with it.

Nothing can be sent: the paths are asked for their durable texts only, and no host is behind them. The visible bytes are
written below the same directory, and they must be the canonical ones; so must those that a recovery would publish.
"""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.evidence.rows import Slot
from harness.manifests import synthetic
from harness.profiles import PathKind
from harness.watch import ContentWatch
from kexpr.attempt import Cancellation
from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.authority.weekly import Pins, WeeklyTask
from kexpr.clock import Clock
from kexpr.codes import Reason, Surface, outcome_of
from kexpr.coordinator import Coordinator
from kexpr.paths.adaptive import AdaptivePath, Card
from kexpr.paths.daily import DailyMessage, DailyPath
from kexpr.paths.publication import Preparation, Publication
from kexpr.paths.weekly import WeeklyDelivery, WeeklyPath, WeeklyReport
from kexpr.state import State
from kexpr.surfaces import Presentation

__all__ = ["ShadowWorld"]

_ORIGIN_OF_PATH = {PathKind.CALLBACK: OriginKind.CALLBACK, PathKind.TYPED_NOTE: OriginKind.TYPED_NOTE}


class _Session:
    """An operator session that is always just consumed; its binding is its identity's digest."""

    def is_just_consumed(self, origin: CardPresentationOrigin) -> bool:
        return bool(origin.source_session_id)

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        return _digest(origin.source_session_id)


class ShadowWorld:
    """Drives each slot through its real path up to the durable text."""

    def __init__(
        self,
        directory: Path,
        open_coordinator: Callable[[Callable[[], bytes]], Coordinator],
        clock: Clock,
        watch: ContentWatch,
    ):
        self._state = state = State(directory / "state", clock=clock)
        coordinator = open_coordinator(lambda: state.identity_key)
        self._watch = watch
        self._visible = directory / "visible"
        self._visible.mkdir(mode=0o700)
        self._daily = DailyPath(coordinator, state.daily(lambda _: True), state.locks)
        self._weekly = WeeklyPath(coordinator, state.weekly(lambda _: True), state.locks)
        self._adaptive = AdaptivePath(coordinator, state.adaptive(threading.Lock, _Session()), state.locks)
        self._preparations: dict[Surface, Callable[[Slot, str, Presentation], Preparation]] = {
            Surface.DAILY: self._of_daily,
            Surface.WEEKLY: self._of_weekly,
            Surface.ADAPTIVE_DUALCOACHTEST: self._of_card,
            Surface.ADAPTIVE_PHYSIQUE: self._of_card,
        }

    def close(self) -> None:
        self._state.close()

    def prepare(self, slot: Slot, identity: str) -> Publication:
        """Run one path. Bytes that are not the canonical ones make the outcome `commit.bytes_changed`."""
        presentation = synthetic(slot.pair.surface, slot.ordinal, identity=identity)
        self._watch.saw(f"{slot.pair.surface} by {slot.path}", identity, presentation.canonical_payload)
        preparation = self._preparations[slot.pair.surface](slot, identity, presentation)
        publication = _taken(preparation)
        if publication.stopped or publication.outcome is None:
            return publication
        again = _taken(preparation)
        canonical = presentation.canonical_payload
        (self._visible / _digest(identity)).write_text(publication.text or "", "utf-8")
        if publication.text != canonical or again.text != canonical or again.outcome is not None:
            reason = Reason.COMMIT_BYTES_CHANGED
            return replace(publication, outcome=outcome_of(reason), reason=reason)
        return publication

    def _of_daily(self, _slot: Slot, identity: str, presentation: Presentation) -> Preparation:
        return self._daily.preparation(DailyMessage(identity, presentation, presentation.canonical_payload))

    def _of_weekly(self, _slot: Slot, identity: str, presentation: Presentation) -> Preparation:
        canonical = presentation.canonical_payload
        pins = Pins(*(_digest(f"{name}/{identity}") for name in ("destination", "registry", "config", "template")))
        return self._weekly.preparation(
            WeeklyDelivery(WeeklyTask(identity), "nowhere", lambda: pins, lambda: WeeklyReport(presentation, canonical))
        )

    def _of_card(self, slot: Slot, identity: str, presentation: Presentation) -> Preparation:
        origin = CardPresentationOrigin(_ORIGIN_OF_PATH[slot.path], identity, f"callback/{identity}", identity)
        canonical = presentation.canonical_payload
        return self._adaptive.preparation(Card(origin, slot.pair.surface, presentation, canonical, _digest(identity)))


def _taken(preparation: Preparation) -> Publication:
    held = preparation(Cancellation())
    held.close()
    return held.publication


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

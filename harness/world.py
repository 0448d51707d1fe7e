"""The world of a shadow run: real authorities and paths on a state directory that goes away with it.

Each contract has its paths: open prose its three surface-owned authorities, the anchor grammar the outcome journal.

Nothing can be sent: the paths are asked for their durable texts only, and no host is behind them. The visible bytes are
written below the same directory, and they must be the canonical ones; so must those that a recovery would publish.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from harness.evidence.rows import Slot
from harness.manifests import synthetic
from harness.profiles import PathKind
from harness.watch import ContentWatch
from kexpr.attempt import Cancellation
from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.authority.journal import EditDelivery, OutcomeJournal, WriterDelivery
from kexpr.authority.weekly import Pins, WeeklyTask
from kexpr.clock import Clock
from kexpr.codes import Reason, Surface, WireVersion, outcome_of
from kexpr.coordinator import Coordinator
from kexpr.paths.adaptive import AdaptivePath, Card
from kexpr.paths.daily import DailyMessage, DailyPath
from kexpr.paths.journal import JournalMessage, JournalPath
from kexpr.paths.publication import Preparation, Publication
from kexpr.paths.weekly import WeeklyDelivery, WeeklyPath, WeeklyReport
from kexpr.state import State
from kexpr.surfaces import Presentation
from kexpr.surfaces.card_text import CanonicalText

__all__ = ["ShadowWorld"]

_ORIGIN_OF_PATH = {PathKind.CALLBACK: OriginKind.CALLBACK, PathKind.TYPED_NOTE: OriginKind.TYPED_NOTE}


class _Session:
    """An operator session that is always just consumed; its binding is its identity's digest."""

    def is_just_consumed(self, origin: CardPresentationOrigin) -> bool:
        return bool(origin.source_session_id)

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        return _digest(origin.source_session_id)


class Paths(Protocol):
    """The paths of one contract on one state directory."""

    @property
    def identity_key(self) -> bytes: ...

    def use(self, coordinator: Coordinator) -> None:
        """Comes once, before the first preparation."""
        ...

    def preparation(self, slot: Slot, identity: str, presentation: Presentation) -> Preparation: ...

    def close(self) -> None: ...


class SurfacePaths:
    """Open prose: the three authorities that its surfaces own."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._state = State(directory, clock=clock)
        self._preparations: dict[Surface, Callable[[Slot, str, Presentation], Preparation]] = {
            Surface.DAILY: self._of_daily,
            Surface.WEEKLY: self._of_weekly,
            Surface.ADAPTIVE_DUALCOACHTEST: self._of_card,
            Surface.ADAPTIVE_PHYSIQUE: self._of_card,
        }

    @property
    def identity_key(self) -> bytes:
        return self._state.identity_key

    def use(self, coordinator: Coordinator) -> None:
        state = self._state
        self._daily = DailyPath(coordinator, state.daily(lambda _: True), state.locks)
        self._weekly = WeeklyPath(coordinator, state.weekly(lambda _: True), state.locks)
        self._adaptive = AdaptivePath(coordinator, state.adaptive(threading.Lock, _Session()), state.locks)

    def preparation(self, slot: Slot, identity: str, presentation: Presentation) -> Preparation:
        return self._preparations[slot.pair.surface](slot, identity, presentation)

    def close(self) -> None:
        self._state.close()

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


class HostWriterCalled(Exception):
    """A shadow run reached for the host's writer or edit; it has none."""


class _NoWriter:
    """A durable writer that must not be called: in shadow the journal is all that is written."""

    def write(self, attempt_id: str, body: str) -> None:
        raise HostWriterCalled

    def read(self, attempt_id: str) -> str | None:
        raise HostWriterCalled


def _no_edit(_body: str) -> None:
    raise HostWriterCalled


class JournalPaths:
    """The anchor grammar: one path over the outcome journal, from final canonical texts alone."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        directory.mkdir(mode=0o700)
        self._journal = OutcomeJournal.open(directory, clock=clock)

    @property
    def identity_key(self) -> bytes:
        return self._journal.identity_key

    def use(self, coordinator: Coordinator) -> None:
        self._path = JournalPath(coordinator, self._journal)

    def preparation(self, slot: Slot, identity: str, presentation: Presentation) -> Preparation:
        surface, canonical = slot.pair.surface, presentation.canonical_payload
        fields: tuple[str, ...] = (identity,)
        if slot.path in _ORIGIN_OF_PATH:
            fields = (identity, _digest(identity), "1", surface.wire)
        message = JournalMessage(surface, fields, CanonicalText(surface, canonical), canonical)
        delivery = EditDelivery(_no_edit) if surface is Surface.DAILY else WriterDelivery(_NoWriter())
        return self._path.preparation(message, delivery)

    def close(self) -> None:
        self._journal.close()


_PATHS_OF: Final[Mapping[WireVersion, Callable[[Path, Clock], Paths]]] = MappingProxyType(
    {
        WireVersion.KEXP_1: SurfacePaths,
        WireVersion.KEXP_2: SurfacePaths,
        WireVersion.ANCHOR_GRAMMAR: JournalPaths,
    }
)


class ShadowWorld:
    """Drives each slot through its real path up to the durable text."""

    def __init__(
        self,
        directory: Path,
        open_coordinator: Callable[[Callable[[], bytes]], Coordinator],
        clock: Clock,
        watch: ContentWatch,
        wire: WireVersion,
    ):
        self._paths = paths = _PATHS_OF[wire](directory / "state", clock)
        paths.use(open_coordinator(lambda: paths.identity_key))
        self._watch = watch
        self._visible = directory / "visible"
        self._visible.mkdir(mode=0o700)

    def close(self) -> None:
        self._paths.close()

    def prepare(self, slot: Slot, identity: str) -> Publication:
        """Run one path. Bytes that are not the canonical ones make the outcome `commit.bytes_changed`."""
        presentation = synthetic(slot.pair.surface, slot.ordinal, identity=identity)
        self._watch.saw(f"{slot.pair.surface} by {slot.path}", identity, presentation.canonical_payload)
        preparation = self._paths.preparation(slot, identity, presentation)
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


def _taken(preparation: Preparation) -> Publication:
    held = preparation(Cancellation())
    held.close()
    return held.publication


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

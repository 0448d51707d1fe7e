"""The test profiles, the five profile x surface pairs, and the paths that drive them (harness, "Phases")."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kexpr.codes import Surface

__all__ = ["PAIRS", "PATHS", "Pair", "PathKind", "Profile", "pair_of"]


class Profile(StrEnum):
    PHYSIQUE_COACH = "physique-coach"
    DUALCOACHTEST = "dualcoachtest"


class PathKind(StrEnum):
    """How an artifact comes about: the surface's one path, or for a card its producer."""

    DAILY = "daily"
    WEEKLY = "weekly"
    CALLBACK = "callback"
    TYPED_NOTE = "typed_note"


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """A surface on a profile: the unit of a promotion."""

    profile: Profile
    surface: Surface

    def __str__(self) -> str:
        return f"{self.profile}/{self.surface}"


PAIRS: Final = (
    Pair(Profile.PHYSIQUE_COACH, Surface.DAILY),
    Pair(Profile.PHYSIQUE_COACH, Surface.WEEKLY),
    Pair(Profile.DUALCOACHTEST, Surface.WEEKLY),
    Pair(Profile.DUALCOACHTEST, Surface.ADAPTIVE_DUALCOACHTEST),
    Pair(Profile.PHYSIQUE_COACH, Surface.ADAPTIVE_PHYSIQUE),
)
"""In the order of the controlled proof."""

_PAIR_AT: Final = {(pair.profile, pair.surface): pair for pair in PAIRS}


def pair_of(profile: Profile, surface: Surface) -> Pair:
    """The pair of `PAIRS` itself where there is one: a million rows are looked up by it, and the same object is found
    without comparing."""
    return _PAIR_AT.get((profile, surface)) or Pair(profile, surface)


PATHS: Final = {
    Surface.DAILY: (PathKind.DAILY,),
    Surface.WEEKLY: (PathKind.WEEKLY,),
    Surface.ADAPTIVE_DUALCOACHTEST: (PathKind.CALLBACK, PathKind.TYPED_NOTE),
    Surface.ADAPTIVE_PHYSIQUE: (PathKind.CALLBACK, PathKind.TYPED_NOTE),
}

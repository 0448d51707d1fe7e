"""The four surfaces: typed presentation → manifest → accepted slots → payload.

Typed codes are the authority; nothing here searches a card's text for meaning (contract, section 2).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kexpr.codes import Reason
from kexpr.errors import Rejected, UnknownPresentation
from kexpr.manifest import Manifest, SlotText, compose
from kexpr.surfaces.daily import DailyPresentationV1, daily_segments
from kexpr.surfaces.dualcoachtest import DualCoachCardPresentationV1, dual_segments
from kexpr.surfaces.physique import PhysiqueCardPresentationV1, physique_segments
from kexpr.surfaces.weekly import WeeklyPresentationV1, weekly_segments

__all__ = [
    "DailyPresentationV1",
    "DualCoachCardPresentationV1",
    "PhysiqueCardPresentationV1",
    "Presentation",
    "WeeklyPresentationV1",
    "apply_presentation_segments_v1",
    "presentation_segments_v1",
]

Presentation = DailyPresentationV1 | WeeklyPresentationV1 | DualCoachCardPresentationV1 | PhysiqueCardPresentationV1

_SEGMENTS: Final[Mapping[type, Callable[[Any], Manifest]]] = {
    DailyPresentationV1: daily_segments,
    WeeklyPresentationV1: weekly_segments,
    DualCoachCardPresentationV1: dual_segments,
    PhysiqueCardPresentationV1: physique_segments,
}


def presentation_segments_v1(presentation: object) -> Manifest:
    """The manifest of a presentation; raises `UnknownPresentation`, and nothing else, for whatever it does not know."""
    segments = _SEGMENTS.get(type(presentation))
    if segments is None:
        raise UnknownPresentation
    return segments(presentation)


def apply_presentation_segments_v1(presentation: object, accepted: Sequence[SlotText]) -> str:
    """The payload with the accepted texts in the slots, in order.

    Raises `UnknownPresentation` for the presentation and `Rejected` for the texts. The texts are not judged here.
    """
    manifest = presentation_segments_v1(presentation)
    if type(accepted) not in {list, tuple} or not all(map(_is_slot_text, accepted)):
        raise Rejected(Reason.COMPOSE_FROZEN_CHANGED)
    return compose(manifest, accepted)


def _is_slot_text(value: object) -> bool:
    return (
        type(value) is SlotText
        and type(value.text) is str
        and type(value.tokens) is tuple
        and all(type(token) is str and token for token in value.tokens)
    )

"""What holds for all surfaces: exact types, content-free errors and reprs, frozen bytes, the message bound."""

import traceback
from dataclasses import fields, replace

import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected, UnknownPresentation
from kexpr.manifest import Frozen, SlotText, utf16_length
from kexpr.surfaces import Presentation, apply_presentation_segments_v1, presentation_segments_v1
from kexpr.surfaces.daily import DailyPresentationV1, daily_presentation
from kexpr.surfaces.dualcoachtest import dual_card_presentation
from kexpr.surfaces.physique import physique_card_presentation, render_physique_source
from kexpr.surfaces.weekly import weekly_presentation

CANARY = "비밀카나리아"
TOKEN = "⟦p_abcdef⟧"


def presentations(mark: str = "예시") -> list[Presentation]:
    return [
        daily_presentation(f"{mark}-event", (mark,) * 7, (mark,)),
        weekly_presentation(
            interpretation_enum="variable",
            rationale_enum="single_week",
            title=mark,
            facts=(mark,),
            judgment=mark,
            actions=(mark,),
        ),
        dual_card_presentation(
            envelope=mark,
            title=f"적응형 영양 검토 {mark}",
            decision_code="hold",
            recommendations=(mark,),
            reason_codes=("short_window", "sleep_note"),
            details=(mark,),
        ),
        physique_card_presentation(
            "keep",
            render_physique_source(
                envelope=mark, subject=f"{mark} · D+1", review_decision_code="keep", basis=mark, optional=()
            ),
        ),
    ]


ALL = pytest.mark.parametrize("presentation", presentations(), ids=lambda p: type(p).__name__)


@ALL
def test_prose_changes_slot_bytes_and_no_other(presentation: Presentation) -> None:
    manifest = presentation_segments_v1(presentation)
    body = apply_presentation_segments_v1(
        presentation, [SlotText(f"앞말 {TOKEN} 뒷말", (TOKEN,))] * len(manifest.slots)
    )
    for segment in manifest.segments:
        expected = segment.text if isinstance(segment, Frozen) else f"앞말 {segment.canonical} 뒷말"
        assert body.startswith(expected)
        body = body.removeprefix(expected)
    assert body == ""


@ALL
def test_placeholders_alone_give_the_canonical_payload(presentation: Presentation) -> None:
    texts = [SlotText(TOKEN, (TOKEN,)) for _ in presentation_segments_v1(presentation).slots]
    assert apply_presentation_segments_v1(presentation, texts) == presentation.canonical_payload
    assert apply_presentation_segments_v1(presentation, tuple(texts)) == presentation.canonical_payload


@ALL
def test_too_few_or_too_many_texts_are_rejected(presentation: Presentation) -> None:
    texts = [SlotText(TOKEN, (TOKEN,)) for _ in presentation_segments_v1(presentation).slots]
    for wrong in (texts[1:], [*texts, texts[0]]):
        with pytest.raises(Rejected) as caught:
            apply_presentation_segments_v1(presentation, wrong)
        assert caught.value.reason is Reason.COMPOSE_FROZEN_CHANGED


@ALL
@pytest.mark.parametrize(
    "accepted",
    [None, "", 7, iter(()), {}, ["⟦p⟧"], [SlotText("가", ("",))], [SlotText(b"x", ("t",))], [SlotText("가", ["t"])]],  # type: ignore[arg-type]
    ids=repr,
)
def test_texts_of_a_wrong_type_are_rejected(presentation: Presentation, accepted: object) -> None:
    with pytest.raises(Rejected):
        apply_presentation_segments_v1(presentation, accepted)  # type: ignore[arg-type]


@pytest.mark.parametrize("stranger", [None, "", 0, object(), DailyPresentationV1, {}, ("daily",), b""], ids=repr)
def test_what_is_not_a_presentation_is_unknown(stranger: object) -> None:
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(stranger)
    with pytest.raises(UnknownPresentation):
        apply_presentation_segments_v1(stranger, [])


def test_a_subclass_is_not_the_presentation() -> None:
    class Loose(DailyPresentationV1):
        pass

    good = presentations()[0]
    loose = Loose(**{f.name: getattr(good, f.name) for f in fields(good)})
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(loose)


def test_a_string_subclass_cannot_pose_as_text_or_code() -> None:
    class Shifting(str):
        __slots__ = ()

    good = presentations()[0]
    assert isinstance(good, DailyPresentationV1)
    for name in ("branch", "canonical_payload", "finalized_event_id"):
        with pytest.raises(UnknownPresentation):
            presentation_segments_v1(replace(good, **{name: Shifting(getattr(good, name))}))  # type: ignore[arg-type]


@pytest.mark.parametrize("presentation", presentations(CANARY), ids=lambda p: type(p).__name__)
def test_no_repr_holds_content(presentation: Presentation) -> None:
    manifest = presentation_segments_v1(presentation)
    assert CANARY in manifest.canonical_body
    texts = [SlotText(TOKEN, (TOKEN,)) for _ in manifest.slots]
    for shown in (repr(presentation), str(presentation), repr(manifest), repr(texts)):
        assert CANARY not in shown
        assert TOKEN not in shown
        assert not any(slot.canonical in shown or slot.semantic_ids[0] in shown for slot in manifest.slots)


@pytest.mark.parametrize("presentation", presentations(CANARY), ids=lambda p: type(p).__name__)
def test_the_error_and_its_chain_hold_no_content(presentation: Presentation) -> None:
    for field in fields(presentation):
        with pytest.raises(UnknownPresentation) as caught:
            presentation_segments_v1(replace(presentation, **{field.name: f"{CANARY}\n{CANARY}"}))  # type: ignore[arg-type]
        lines = traceback.format_exception_only(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert CANARY not in "".join(lines)
        assert caught.value.args == ("unknown_presentation",)


def _daily_of_utf16(units: int, filler: str) -> DailyPresentationV1:
    """A daily message of exactly `units` UTF-16 units; `filler` is one character."""
    base = utf16_length(daily_presentation("event", ("가",) * 7, ("가",)).canonical_payload)
    rest = units - base
    width = utf16_length(filler)
    action = "가" + filler * (rest // width) + "나" * (rest % width)
    return daily_presentation("event", ("가",) * 7, (action,))


@pytest.mark.parametrize("filler", ["가", "\U0001f600", "\U00020000"])
def test_the_message_bound_counts_utf16_units(filler: str) -> None:
    fits = _daily_of_utf16(4096, filler)
    assert utf16_length(presentation_segments_v1(fits).canonical_body) == 4096
    over = _daily_of_utf16(4097, filler)
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(over)


def test_prose_that_overflows_the_message_is_rejected() -> None:
    full = _daily_of_utf16(4096, "\U0001f600")
    assert apply_presentation_segments_v1(full, [SlotText(TOKEN, (TOKEN,))]) == full.canonical_payload
    with pytest.raises(Rejected) as caught:
        apply_presentation_segments_v1(full, [SlotText(f"{TOKEN}!", (TOKEN,))])
    assert caught.value.reason is Reason.COMPOSE_UTF16_BOUND


def test_a_lone_surrogate_is_unknown() -> None:
    with pytest.raises(UnknownPresentation):
        presentation_segments_v1(daily_presentation("event", ("\ud83d",) * 7, ("가",)))

"""Properties of every presentation: byte identity, frozen bytes under composition, and one error for every fault."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kexpr.errors import Rejected, UnknownPresentation
from kexpr.manifest import TELEGRAM_UTF16_LIMIT, Frozen, SlotText, utf16_length
from kexpr.surfaces import Presentation, apply_presentation_segments_v1, presentation_segments_v1
from kexpr.surfaces.daily import MISSING_FACT, daily_presentation
from kexpr.surfaces.dualcoachtest import DECISIONS, REASONS, dual_card_presentation
from kexpr.surfaces.physique import (
    OPTIONAL_LABELS,
    REVIEW_DECISIONS,
    physique_card_presentation,
    render_physique_source,
)
from kexpr.surfaces.weekly import INTERPRETATIONS, RATIONALES, weekly_presentation

TOKEN = "⟦p_a2b3c4⟧"


def is_line(value: str) -> bool:
    return value.splitlines() == [value]


LINE = st.one_of(
    st.text("가나다 12.·:-\U0001f600\U00020000", min_size=1, max_size=24),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=24),
).filter(is_line)
LINES = st.lists(LINE, min_size=1, max_size=4).map(tuple)
FACTS = st.lists(st.one_of(LINE, st.just(MISSING_FACT)), min_size=7, max_size=7).map(tuple)


def code(table: Any) -> st.SearchStrategy[str]:
    """The enum member, or its value as a host stores it."""
    return st.sampled_from([*table, *(member.value for member in table)])


DAILY: st.SearchStrategy[Presentation] = st.builds(daily_presentation, LINE, FACTS, LINES)
WEEKLY: st.SearchStrategy[Presentation] = st.builds(
    weekly_presentation,
    interpretation_enum=code(INTERPRETATIONS),
    rationale_enum=code(RATIONALES),
    title=LINE,
    facts=LINES,
    judgment=LINE,
    actions=LINES,
)
DUAL: st.SearchStrategy[Presentation] = st.builds(
    dual_card_presentation,
    envelope=LINE,
    title=LINE.map(lambda rest: f"적응형 영양 검토{rest}"),
    decision_code=code(DECISIONS),
    recommendations=LINES,
    reason_codes=st.lists(st.sampled_from(list(REASONS)), unique=True, max_size=4).map(tuple),
    details=st.lists(LINE, max_size=3).map(tuple),
)


@st.composite
def physique(draw: Callable[..., Any]) -> Presentation:
    review = draw(code(REVIEW_DECISIONS))
    optional = draw(st.lists(st.tuples(st.sampled_from(OPTIONAL_LABELS), LINE).map("".join), max_size=4))
    source = render_physique_source(
        envelope=draw(LINE),
        subject=f"{draw(LINE)} · D+{draw(st.integers(0, 999))}",
        review_decision_code=review,
        basis=draw(LINE),
        optional=tuple(optional),
    )
    return physique_card_presentation(review, source)


PRESENTATIONS = st.one_of(DAILY, WEEKLY, DUAL, physique())
PROSE = st.text("가나다라 .,!?", max_size=30)


@given(PRESENTATIONS)
def test_placeholders_alone_give_the_canonical_payload(presentation: Presentation) -> None:
    manifest = presentation_segments_v1(presentation)
    assert manifest.canonical_body == presentation.canonical_payload
    assert utf16_length(manifest.canonical_body) == len(manifest.canonical_body.encode("utf-16-le")) // 2
    texts = [SlotText(TOKEN, (TOKEN,)) for _ in manifest.slots]
    assert apply_presentation_segments_v1(presentation, texts) == presentation.canonical_payload


@given(PRESENTATIONS, st.data())
def test_prose_changes_slot_bytes_and_no_other(presentation: Presentation, data: st.DataObject) -> None:
    manifest = presentation_segments_v1(presentation)
    prose = [data.draw(st.tuples(PROSE, PROSE)) for _ in manifest.slots]
    texts = [SlotText(f"{before}{TOKEN}{after}", (TOKEN,)) for before, after in prose]
    body = apply_presentation_segments_v1(presentation, texts)
    around = iter(prose)
    for segment in manifest.segments:
        if isinstance(segment, Frozen):
            expected = segment.text
        else:
            before, after = next(around)
            expected = f"{before}{segment.canonical}{after}"
        assert body.startswith(expected)
        body = body[len(expected) :]
    assert body == ""


@given(PRESENTATIONS, st.data())
def test_one_changed_character_of_the_payload_is_unknown(presentation: Presentation, data: st.DataObject) -> None:
    payload = presentation.canonical_payload
    position = data.draw(st.integers(0, len(payload) - 1))
    character = data.draw(st.sampled_from("가 \n-"))
    changed = payload[:position] + character + payload[position + 1 :]
    try:
        manifest = presentation_segments_v1(replace(presentation, canonical_payload=changed))
    except UnknownPresentation:
        assert changed != payload
    else:
        assert manifest.canonical_body == changed == payload


@given(PRESENTATIONS, st.integers(0, 9), st.integers(0, 4200))
def test_the_message_bound_is_in_utf16_units(presentation: Presentation, index: int, count: int) -> None:
    """Astral characters count twice, wherever they come from: here from the slots' prose."""
    slots = presentation_segments_v1(presentation).slots
    texts = [SlotText(TOKEN, (TOKEN,)) for _ in slots]
    texts[index % len(slots)] = SlotText(TOKEN + "\U00020000" * count, (TOKEN,))
    units = utf16_length(presentation.canonical_payload) + 2 * count
    cap = slots[index % len(slots)]
    fits = units <= TELEGRAM_UTF16_LIMIT and len(cap.canonical) + count <= cap.caps.expanded
    try:
        body = apply_presentation_segments_v1(presentation, texts)
    except Rejected:
        assert not fits
    else:
        assert fits
        assert utf16_length(body) == units


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.binary(),
        st.sampled_from([*DECISIONS, *REASONS, *INTERPRETATIONS, *RATIONALES, *REVIEW_DECISIONS]),
        st.builds(object),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=7),
        st.lists(inner, max_size=7).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(PRESENTATIONS, st.data())
def test_a_wrong_field_is_unknown_and_nothing_else(presentation: Presentation, data: st.DataObject) -> None:
    """Any field, any value: either the presentation still says the same thing, or it is unknown."""
    names = data.draw(st.lists(st.sampled_from([f.name for f in fields(presentation)]), min_size=1, max_size=3))
    changed = replace(presentation, **{name: data.draw(ANYTHING) for name in names})
    try:
        manifest = presentation_segments_v1(changed)
    except UnknownPresentation:
        return
    assert manifest.canonical_body == changed.canonical_payload


@given(ANYTHING, ANYTHING)
def test_a_stranger_is_unknown(stranger: object, accepted: Any) -> None:
    for call in (
        lambda: presentation_segments_v1(stranger),
        lambda: apply_presentation_segments_v1(stranger, accepted),
    ):
        try:
            call()
        except UnknownPresentation:
            continue
        raise AssertionError


@given(PRESENTATIONS, ANYTHING)
def test_wrong_texts_are_rejected_and_nothing_else(presentation: Presentation, accepted: Any) -> None:
    try:
        apply_presentation_segments_v1(presentation, accepted)
    except Rejected:
        return
    raise AssertionError

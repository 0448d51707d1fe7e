"""Composition: tokens exactly once and in order, bounds, no numeric token outside the expansions."""

import pytest

from kexpr.codes import Reason, SlotKind, Surface
from kexpr.errors import Rejected
from kexpr.manifest import Frozen, Manifest, Placeholder, PlaceholderKind, Slot, SlotText, compose, utf16_length


def manifest(*expansions: str, frozen: str = "머리\n", kind: SlotKind = SlotKind.WEEKLY_RATIONALE) -> Manifest:
    placeholders = tuple(Placeholder(PlaceholderKind.SENTENCE, text) for text in expansions)
    slot = Slot("slot", kind, ("s",), ("a",), placeholders, " ".join(expansions))
    return Manifest(Surface.WEEKLY, (Frozen(frozen), slot, Frozen("\n끝")))


def test_canonical_and_composed():
    made = manifest("첫 문장입니다.", "둘째입니다. 12")
    assert made.canonical_body == "머리\n첫 문장입니다. 둘째입니다. 12\n끝"
    body = compose(made, [SlotText("이어서 ⟦a⟧ 그리고 ⟦b⟧", ("⟦a⟧", "⟦b⟧"))])
    assert body == "머리\n이어서 첫 문장입니다. 그리고 둘째입니다. 12\n끝"


@pytest.mark.parametrize(
    ("text", "tokens", "reason"),
    [
        ("⟦a⟧", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_EXPANSION),
        ("⟦b⟧ ⟦a⟧", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_EXPANSION),
        ("⟦a⟧ ⟦a⟧ ⟦b⟧", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_EXPANSION),
        ("⟦a⟧ ⟦b⟧ ⟦b⟧", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_EXPANSION),
        ("⟦a⟧ ⟦b⟧", ("⟦a⟧",), Reason.COMPOSE_EXPANSION),
        ("⟦a⟧ ⟦b⟧", ("", "⟦b⟧"), Reason.COMPOSE_EXPANSION),
        ("3 ⟦a⟧ ⟦b⟧", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_NUMERIC_TOKEN),
        ("⟦a⟧ ½ ⟦b⟧", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_NUMERIC_TOKEN),
        ("⟦a⟧ ⟦b⟧ 三", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_NUMERIC_TOKEN),
        ("가" * 600 + " ⟦a⟧ ⟦b⟧", ("⟦a⟧", "⟦b⟧"), Reason.COMPOSE_EXPANDED_CAP),
    ],
)
def test_refused(text, tokens, reason):
    with pytest.raises(Rejected) as refused:
        compose(manifest("하나.", "또 하나."), [SlotText(text, tokens)])
    assert refused.value.reason is reason


def test_one_text_a_slot():
    with pytest.raises(Rejected) as refused:
        compose(manifest("하나."), [])
    assert refused.value.reason is Reason.COMPOSE_FROZEN_CHANGED


def test_the_bound_counts_utf16_units():
    assert utf16_length("가😀") == 3
    text = [SlotText("이어서 ⟦a⟧", ("⟦a⟧",))]
    around = utf16_length(compose(manifest("끝."), text)) - utf16_length("머리\n")
    fits = "😀" * ((4096 - around) // 2)
    assert utf16_length(compose(manifest("끝.", frozen=fits), text)) <= 4096
    with pytest.raises(Rejected) as refused:
        compose(manifest("끝.", frozen=fits + "😀"), text)
    assert refused.value.reason is Reason.COMPOSE_UTF16_BOUND


def test_no_repr_holds_content():
    made = manifest("비밀 문장입니다.", frozen="비밀 머리")
    assert "비밀" not in repr(made) + repr(SlotText("비밀", ("비밀",)))


@pytest.mark.parametrize("expansion", ["", "\u1100\u1161\u11a8"])
def test_an_expansion_is_nonempty_nfc(expansion):
    with pytest.raises(ValueError, match="NFC"):
        Placeholder(PlaceholderKind.SENTENCE, expansion)

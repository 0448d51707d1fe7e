"""Near the grammar, the library accepts exactly what an independent reference parser accepts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kexpr.errors import Rejected
from kexpr.manifest import SlotText
from kexpr.wire.anchor_grammar import GRAMMAR_OF, check_slot
from tests.support import anchor_fuzz
from tests.support.anchor_reference import accepts
from tests.unit.wire.anchor_support import TEXTS, issued_of

FUZZED = 20_000

SLOTS = [
    (GRAMMAR_OF[kept.kind], slot.tokens)
    for surface, text in TEXTS
    for issued in (issued_of(surface, text),)
    for kept, slot in zip(issued.manifest.slots, issued.slots, strict=True)
]
NEAR = st.lists(st.sampled_from(anchor_fuzz.PIECES), max_size=8).map("".join)


def is_accepted(slot: tuple[object, tuple[str, ...]], text: str) -> bool:
    grammar, tokens = slot
    try:
        check_slot(grammar, SlotText(text, tokens))  # type: ignore[arg-type]
    except Rejected:
        return False
    return True


@settings(max_examples=1_500)
@given(st.sampled_from(SLOTS), NEAR)
def test_texts_near_the_grammar(slot: tuple[object, tuple[str, ...]], text: str) -> None:
    grammar, tokens = slot
    assert is_accepted(slot, text) == accepts(grammar.grammar_id.value, tokens, text)  # type: ignore[attr-defined]


@settings(max_examples=500)
@given(st.sampled_from(SLOTS), st.data())
def test_texts_one_edit_away(slot: tuple[object, tuple[str, ...]], data: st.DataObject) -> None:
    grammar, tokens = slot
    name = grammar.grammar_id.value  # type: ignore[attr-defined]
    random = data.draw(st.randoms(use_true_random=False))
    text = anchor_fuzz.in_grammar(random, {"grammar_id": name, "anchors": list(tokens)})
    assert is_accepted(slot, text)
    edited = anchor_fuzz.mutate_text(random, text)
    assert is_accepted(slot, edited) == accepts(name, tokens, edited)


def test_mutated_answers() -> None:
    """`make fuzz-anchor-grammar` runs a million."""
    counts = anchor_fuzz.run(FUZZED)
    assert counts.total == FUZZED
    assert 0.05 < counts.accepted / FUZZED < 0.6, "both sides are exercised"

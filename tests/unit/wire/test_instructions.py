"""The static instructions: pinned, content-free, and short enough for the largest manifests."""

import pytest

from kexpr.codes import Surface, WireVersion
from kexpr.wire.instructions import INSTRUCTIONS_VERSION, instructions, instructions_digest

ONE, TWO = WireVersion.KEXP_1, WireVersion.KEXP_2

PINNED = {
    (1, ONE): "533a088618cd0a49fe7f8a67e8889fecdc0ea39c0b92cdbf66424679a72ab9e9",
    (1, TWO): "e128b00e2d1aa76b1b8be3daff709b57fa8a6016d35ad3c954eeccdf4f789637",
}


@pytest.mark.parametrize("wire", [ONE, TWO])
def test_a_changed_text_needs_a_new_version(wire: WireVersion):
    """On failure: raise INSTRUCTIONS_VERSION, pin the new digest here, and count the budget again."""
    assert instructions_digest(wire) == PINNED[INSTRUCTIONS_VERSION, wire]


@pytest.mark.parametrize("wire", [ONE, TWO])
def test_they_say_what_a_model_gets_wrong_unasked(wire: WireVersion):
    text = instructions(wire)
    assert "JSON" in text, "the provider refuses json_object without the word"
    assert "⟦p_x⟧입니다. Never ⟦p_x⟧ 입니다" in text
    assert "limit" in text
    assert Surface.ADAPTIVE_DUALCOACHTEST.wire in text
    for subject in ("health", "safety", "evidence", "praise", "decisions", "approval", "negation", "numbers", "dates"):
        assert subject in text
    for subject in ("names", "AI"):
        assert subject in text


def test_each_wire_shows_its_own_answer_form():
    assert '{"key":"k_…","slots":{"l_…":"TEXT"' in instructions(TWO)
    assert '"schema_version":…,"surface":…,"artifact_key":…,"slots":[{"slot":…,"semantic":[…]' in instructions(ONE)
    assert '"generated_ko":"TEXT"' in instructions(ONE)
    assert "generated_ko" not in instructions(TWO)
    assert instructions_digest(ONE) != instructions_digest(TWO)

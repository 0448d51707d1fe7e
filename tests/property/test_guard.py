"""Spelling tricks change nothing; no text makes the guard raise or take long."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.guardscore import TOKEN, Label
from kexpr.codes import SlotKind
from kexpr.guard import judge, lexicon_digest
from tests.unit.guard.corpora import DEV, rows
from tests.unit.guard.test_policy import slot_of

PLAIN = {"plain", "inflection", "synonym", "honorific", "passive"}
REFUSED = [row for row in rows(DEV) if row.label is Label.REJECT and row.technique in PLAIN]
ACCEPTED = [row for row in rows(DEV) if row.label is Label.ACCEPT]


def is_hangul(character: str) -> bool:
    return "가" <= character <= "힣"


def between_syllables(mark: str, text: str, chance: random.Random) -> str:
    """`mark` inside every word of three syllables or more, at one place each."""
    return " ".join(_cut(word, mark, chance.choice([1, 2])) for word in text.split(" "))


def _cut(word: str, mark: str, at: int) -> str:
    return word[:at] + mark + word[at:] if len(word) >= 3 and all(map(is_hangul, word[:3])) else word


def as_jamo(text: str) -> str:
    import unicodedata

    return "".join(unicodedata.normalize("NFD", c) if is_hangul(c) else c for c in text)


@pytest.mark.parametrize("mark", [".", "·", "-", "'", "\u200b", "\u00ad", "\u3164"])
def test_marks_inside_words_stay_refused(mark):
    chance = random.Random(1)
    for row in REFUSED:
        assert not judge(between_syllables(mark, row.text, chance), row.slot, (TOKEN,)).accepted


def test_decomposed_text_is_refused_for_its_form():
    for row in (*REFUSED, *ACCEPTED):
        spelled = as_jamo(row.text)
        if spelled != row.text:
            assert judge(spelled, row.slot, (TOKEN,)).layer in ("form", "unicode")


def test_refused_words_spaced_out_stay_refused():
    chance = random.Random(2)
    escaped = [
        row.id for row in REFUSED if judge(between_syllables(" ", row.text, chance), row.slot, (TOKEN,)).accepted
    ]
    assert len(escaped) <= len(REFUSED) // 50


@given(st.text(max_size=60), st.sampled_from(SlotKind))
def test_never_raises(text, kind):
    judge(text, slot_of(kind), (TOKEN,))


@given(
    st.lists(
        st.sampled_from(["오늘", "이야기를", "약", "가", "⟦p⟧", ".", " ", "ㄱ", "藥", "3", "⟦", "⟧", "하", "요"]),
        max_size=40,
    )
)
def test_never_raises_on_near_text(parts):
    judge("".join(parts), slot_of(SlotKind.DUAL_JUDGMENT), (TOKEN,))


@pytest.mark.parametrize("unit", ["가", "가 ", "약", "이야기를 ", "⟦p⟧", ".", "藥", "가.", "듯 "])
def test_giant_text_is_judged_in_linear_time(unit):
    text = unit * (16_384 // len(unit))
    started = time.perf_counter()
    assert not judge(text, slot_of(SlotKind.WEEKLY_RATIONALE), (TOKEN,)).accepted
    assert time.perf_counter() - started < 0.25


def test_decisions_hold_no_content():
    for row in REFUSED[:50]:
        assert row.text not in repr(judge(row.text, row.slot, (TOKEN,)))


def test_the_digest_is_stable():
    assert lexicon_digest() == lexicon_digest()
    assert len(lexicon_digest()) == 64

"""The guard never raises, decides the same every time, and its time grows with the length of a text only."""

import hashlib
import os
import random
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.guardscore import TOKEN
from kexpr.codes import SlotKind
from kexpr.guard import judge, warm
from kexpr.manifest import CAPS, Caps
from tests.unit.guard.corpora import DEV, EXTRA, rows
from tests.unit.guard.test_policy import slot_of

KIND = SlotKind.WEEKLY_RATIONALE
NEAR = [
    *(
        "오늘",
        "이야기를",
        "약",
        "이",
        "듯",
        "⟦p⟧",
        "⟦",
        "⟧",
        " ",
        "  ",
        ".",
        ",",
        "…",
        "·",
        "-",
        "'",
        '"',
        "(",
        ")",
        ":",
        "!",
    ),
    *(
        "ㄱ",
        "藥",
        "理",
        "\ufa0b",
        "3",
        "a",
        "ᄀ",
        "ᅡ",
        "ᆨ",
        "\u200b",
        "\ud800",
        "\U0001f600",
        "\n",
        "\0",
        "힣",
        "뷁",
        "요",
        "님",
    ),
]
TEXTS = st.one_of(
    st.text(max_size=200),
    st.text(st.characters(codec=None), max_size=60),
    st.lists(st.sampled_from(NEAR), max_size=60).map("".join),
    st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), max_size=120).map(
        lambda text: f"{TOKEN} {text}"
    ),
    st.lists(st.sampled_from(NEAR), max_size=40).map(lambda parts: f"{TOKEN} " + "".join(parts)),
)


@given(TEXTS, st.sampled_from(SlotKind), st.text(min_size=1, max_size=20))
def test_never_raises_and_points_into_the_text(text, kind, noun):
    decision = judge(text, slot_of(kind, noun if noun.isascii() else "유지"), (TOKEN,))
    assert decision == judge(text, slot_of(kind, noun if noun.isascii() else "유지"), (TOKEN,))
    if decision.span is not None:
        assert 0 <= decision.span[0] <= decision.span[1] <= len(text)


@given(st.sampled_from(rows(DEV)), st.lists(st.tuples(st.integers(0, 80), st.sampled_from(NEAR)), max_size=4))
def test_never_raises_on_a_row_with_anything_in_it(row, insertions):
    text = row.text
    for at, inserted in insertions:
        text = text[:at] + inserted + text[at:]
    judge(text, row.slot, (TOKEN,))


def decisions_digest() -> str:
    decided = [repr(judge(row.text, row.slot, (TOKEN,))) for row in rows(DEV, *EXTRA)]
    return hashlib.sha256("\n".join(decided).encode()).hexdigest()


def test_the_order_of_texts_does_not_matter():
    texts = [(row.text, row.slot) for row in rows(DEV, *EXTRA)]
    before = [judge(text, slot, (TOKEN,)) for text, slot in texts]
    random.Random(7).shuffle(order := list(range(len(texts))))
    after = {at: judge(*texts[at], (TOKEN,)) for at in order}
    assert before == [after[at] for at in range(len(texts))]


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_another_process_decides_the_same(seed):
    program = "from tests.property.guard.test_robustness import decisions_digest; print(decisions_digest())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert done.stdout.strip() == decisions_digest()


UNITS = [
    *(
        "가",
        "약",
        "힣",
        "는",
        "듯",
        "가아",
        "았다",
        "가 ",
        "듯 ",
        "약 ",
        "그 이 저 한 ",
        "이야기를 ",
        "꽃이 ",
        "손바닥 보듯 ",
        "않고 ",
    ),
    *(" ", ".", "가.", "가, ", "가… ", "- ", "가·", "'", '"', "(", ")", "'가' ", "(가) ", "('", "가'", "가'가"),
    *("⟦p⟧", "⟦", "⟧", "⟧⟦", "⟦p", "⟦⟦p⟧⟧", "藥", "理 ", "理解", "㐀", "ㅋ", "ᄀ", "ᅡ", "\u200b", "a", "3", "\n", "😀"),
]


def strange_words(length: int) -> str:
    chance = random.Random(3)
    words = (
        "".join(chr(0xAC00 + chance.randrange(11_172)) for _ in range(chance.randint(1, 6))) for _ in range(length)
    )
    return " ".join(words)[:length].rstrip()


def seconds(text: str) -> float:
    """The least of three."""
    slot = slot_of(KIND)
    least = 9.0
    for _ in range(3):
        began = time.perf_counter()
        judge(text, slot, (TOKEN,))
        least = min(least, time.perf_counter() - began)
    return least


def assert_linear(made: dict[int, str]) -> None:
    """Four times the length takes at most seven times as long, but for what a clock cannot tell."""
    short, long = (seconds(f"{TOKEN} {text}") for text in made.values())
    assert long < 7 * short + 0.002
    assert long < 0.5


@pytest.fixture
def uncapped(monkeypatch):
    """Caps so wide that nothing is refused for its length alone."""
    warm()
    monkeypatch.setitem(CAPS, KIND, Caps(1_000_000, 1_000_000))


@pytest.mark.parametrize("unit", UNITS)
def test_giant_text_is_refused_at_once(unit):
    warm()
    assert_linear({size: (unit * size)[:size].rstrip(" ") for size in (4_096, 16_384)})


@pytest.mark.usefixtures("uncapped")
@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_the_length(unit):
    assert_linear({size: (unit * size)[:size].rstrip(" ") for size in (2_048, 8_192)})


@pytest.mark.usefixtures("uncapped")
def test_time_grows_with_the_number_of_unknown_words_that_compare():
    assert_linear({size: ("코뿔소처럼 " * size)[:size].rstrip(" ") for size in (2_048, 8_192)})


@pytest.mark.usefixtures("uncapped")
def test_time_grows_with_the_depth_of_brackets():
    assert_linear({size: f"{'(' * size}말{')' * size}." for size in (2_048, 8_192)})


@pytest.mark.usefixtures("uncapped")
def test_time_grows_with_the_number_of_strange_words():
    assert_linear({size: strange_words(size) for size in (2_048, 8_192)})

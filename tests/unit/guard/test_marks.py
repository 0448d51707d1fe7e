"""Brackets and quotation marks stand around words, never inside one."""

import pytest

from kexpr.codes import Reason
from tests.unit.guard.test_policy import reason


@pytest.mark.parametrize(
    "text",
    [
        "오늘 '이야기'를 읽어 주세요. ⟦p⟧",
        '오늘 "이야기"를 읽어 주세요. ⟦p⟧',
        "오늘 (이야기)를 읽어 주세요. ⟦p⟧",
        "오늘 ('이야기')를 읽어 주세요. ⟦p⟧",
        "'반가운 이야기'를 읽어 주세요. ⟦p⟧",
        "오늘은 '이야기', '소식'을 읽어 주세요. ⟦p⟧",
    ],
)
def test_around_words(text):
    assert reason(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "오늘 이야'기를 읽어 주세요. ⟦p⟧",
        '오늘 이야"기를 읽어 주세요. ⟦p⟧',
        "오늘 이야)기를 읽어 주세요. ⟦p⟧",
        "오늘 이야(기)를 읽어 주세요. ⟦p⟧",
        "오늘 이야'기'를 읽어 주세요. ⟦p⟧",
        "오늘 이야' '기를 읽어 주세요. ⟦p⟧",
        "오늘 '이야기를 읽어 주세요. ⟦p⟧",
        "오늘 이야기를 읽어 주세요') ⟦p⟧",
        "오늘 (이야기를 읽어 주세요. ⟦p⟧",
        "오늘 (이야기'를) 읽어' 주세요. ⟦p⟧",
        "오늘 ''이야기를 읽어 주세요. ⟦p⟧",
        "오늘 ' 이야기'를 읽어 주세요. ⟦p⟧",
        "읽어 주세요 :) ⟦p⟧",
    ],
)
def test_inside_or_without_a_fellow(text):
    assert reason(text) in (Reason.FORM_PUNCTUATION, Reason.FORM_SPACING)

"""What a respelling is taken back to."""

import pytest

from kexpr.guard.plainer import drawn_in, plainer


@pytest.mark.parametrize(
    ("heard", "spelled"),
    [
        *(
            ("보오듯", "보듯"),
            ("바아아안", "반"),
            ("복요옹", "복용"),
            ("여러부우운", "여러분"),
            ("아아안저어언한", "안전한"),
        ),
        *(("기로글", "기록을"), ("위허메", "위험에"), ("아늘", "않을"), ("여나믄", "여남은"), ("별비치", "별빛이")),
        *(("긴그피", "긴급히"), ("조코", "좋고"), ("가치", "같이"), ("마텨", "맏혀")),
        *(("임니다", "입니다"), ("존네요", "좋네요"), ("궁물", "국물"), ("암문", "앞문")),
        *(("껼꾹", "결국"), ("확씰히", "확실히")),
    ],
)
def test_a_respelling_is_taken_back(heard, spelled):
    assert spelled in plainer(heard)


def test_nothing_is_plainer_than_itself():
    for word in ("", "가", "이야기를", "기록을", "아이", "우유", "가" * 25):
        assert word not in plainer(word)
        assert len(set(plainer(word))) == len(plainer(word))
    assert plainer("가") == ()
    assert plainer("껴" * 25) == ()


def test_a_vowel_is_drawn_in_only_where_it_is_repeated():
    assert [drawn_in(word) for word in ("아아아", "아이", "우유", "방안", "보오옹", "시이작", "와아")] == [
        *("아", "아이", "우유", "방안", "봉", "시작", "와")
    ]

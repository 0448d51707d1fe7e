"""How an expansion that does not end in a Hangul syllable is read: numbers, units, letters, brackets, marks, Hanja."""

import itertools
import string

import pytest

from kexpr.codes import SlotKind
from kexpr.guard.hanja import reading_of
from kexpr.guard.particles import PARTICLES, LastSound, last_sound
from tests.unit.guard.test_particles import fits, refusal, tail_of, words

V, L, C, U = LastSound.VOWEL, LastSound.RIEUL, LastSound.CONSONANT, LastSound.UNKNOWN
DIGITS = "영일이삼사오육칠팔구"


def class_of(syllable: str) -> LastSound:
    return {0: V, 8: L}.get(tail_of(syllable), C)


def spoken(number: int) -> str:
    """`number` in Sino-Korean, by groups of four digits from the right."""
    if number == 0:
        return DIGITS[0]
    groups = []
    for name in ("", "만", "억", "조", "경"):
        number, group = divmod(number, 10_000)
        said = "".join(
            DIGITS[int(digit)] + place
            for digit, place in zip(f"{group:04}", ("천", "백", "십", ""), strict=True)
            if digit != "0"
        )
        groups.append(said + name if group else "")
    return "".join(reversed(groups))


NUMBERS = [
    *range(2_100),
    *(lead * 10**zeros for lead in (1, 2, 9, 12, 105, 3_001) for zeros in range(16)),
    *(lead * 10**zeros + 8 for lead in (1, 12) for zeros in range(1, 16)),
]


def test_integers():
    for number in NUMBERS:
        for written in (str(number), f"{number:,}"):
            assert last_sound(f"목표 {written}") is class_of(spoken(number)[-1]), written


def test_the_names_that_close_and_the_one_that_does_not():
    assert [spoken(10**zeros)[-1] for zeros in (1, 2, 3, 4, 7, 8, 12, 16)] == list("십백천만만억조경")
    assert [last_sound(str(10**zeros)) for zeros in (8, 11, 12, 15, 16, 20)] == [C, C, V, V, C, U]


def test_decimals_and_leading_zeros_are_read_by_digit():
    for last, name in enumerate(DIGITS):
        for written in (f"0.{last}", f"1,200.5{last}", f"3.00{last}", f"00{last}", f"01{last}", f"-{last}"):
            assert last_sound(written) is class_of(name), written
    assert last_sound("1.000000000000") is C


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1/2",
            "3/4",
            "10:30",
            "2,000kcal/일",
            "10회/일",
            "20kg/주",
            "2^3",
            "D3",
            "B12",
            "오메가3",
            "오메가-3",
            "$10",
        ),
        *("2026.12.4", "1,2", "1,23", ".5", "1.2.3", "5'30\"", '30"', "①", "Ⅲ", "½", "10²", "٣", "三3x2"),
    ],
)
def test_what_cannot_be_told_of_numbers(text):
    assert last_sound(text) is U


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        *(
            ("kg", "킬로그램"),
            ("g", "그램"),
            ("mg", "밀리그램"),
            ("mcg", "마이크로그램"),
            ("kcal", "킬로칼로리"),
            ("kJ", "킬로줄"),
        ),
        *(
            ("km", "킬로미터"),
            ("cm", "센티미터"),
            ("mm", "밀리미터"),
            ("m", "미터"),
            ("ml", "밀리리터"),
            ("mL", "밀리리터"),
        ),
        *(("dL", "데시리터"), ("L", "리터"), ("l", "리터"), ("%", "퍼센트"), ("℃", "도"), ("°C", "도"), ("°", "도")),
        *(
            ("㎏", "킬로그램"),
            ("㎎", "밀리그램"),
            ("㎞", "킬로미터"),
            ("㎝", "센티미터"),
            ("㎖", "밀리리터"),
            ("㎉", "킬로칼로리"),
        ),
        *(
            ("ℓ", "리터"),
            ("％", "퍼센트"),
            ("ｋｇ", "킬로그램"),
            ("bpm", "비피엠"),
            ("IU", "아이유"),
            ("%p", "퍼센트포인트"),
        ),
        *(
            (counter, counter)
            for counter in words("회 세트 번 일 주 끼 명 개 시간 분 초 단계 배 점 걸음 kg급 월 호 잔 알")
        ),
    ],
)
def test_units_after_every_digit(unit, name):
    for digit, space in itertools.product([*string.digits, "10", "1,500", "0.8"], ["", " "]):
        assert last_sound(f"섭취 {digit}{space}{unit}") is class_of(name[-1])


@pytest.mark.parametrize(
    "text", ["20KG", "5KM", "5M", "5G", "3sets", "3hrs", "kg", "km", "g", "KCAL", "m", "ml", "목표 kg"]
)
def test_a_unit_that_may_be_something_else_cannot_be_told(text):
    assert last_sound(text) is U


NAMES = dict(
    zip(
        string.ascii_uppercase,
        words(
            "에이 비 씨 디 이 에프 지 에이치 아이 제이 케이 엘 엠 엔 오 피 큐 알 에스 티 유 브이 더블유 엑스 와이 제트"
        ),
        strict=True,
    )
)


@pytest.mark.parametrize("letter", string.ascii_uppercase)
def test_letters_are_read_by_name(letter):
    name = class_of(NAMES[letter][-1])
    assert last_sound(f"계획 {letter}") is (U if letter in "IVX" else name)
    assert last_sound(f"계획{letter}") is (U if letter in "IVX" else name)
    assert last_sound(letter.lower()) is (U if letter in "IVXGML" else name)
    if letter not in "AEIOUY":
        assert last_sound(f"PT{letter}") is name


@pytest.mark.parametrize(
    ("spelled", "sound"),
    [
        ("BMI TDEE-A DHA cardio menu yoga push rush bus plus max leaf low view body HIGH Menu wifi quiz it-is", V),
        ("goal label scroll GOAL HDL LDL email", L),
        ("plan session program gym column PLAN 1RM 10RM RPM rhythm", C),
        ("PT HR-PT WBC BP", V),
        ("HR LR", L),
        (
            "CUT cut job basic load bike type RPE ECG back step upper stomach Nasdaq II iv XI Dr hr kg BPM it's",
            U,
        ),
        ("café über naïve jalapeñ αβγ йога Zoë", U),
    ],
)
def test_words_and_acronyms(spelled, sound):
    expected = dict.fromkeys(words(spelled), sound)
    assert {word: last_sound(f"계획 {word}") for word in expected} == expected


BRACKETS = list(zip("([〔【（［", ")]〕】）］", strict=True))
QUOTES = list(zip("'\"‘“「『《〈", "'\"’”」』》〉", strict=True))


@pytest.mark.parametrize("noun", ["유지", "조절", "상향"])
def test_brackets_at_the_end_are_not_read(noun):
    sound = class_of(noun[-1])
    for (opened, closed), aside in itertools.product(BRACKETS, ["권장", "유지", "조절", "3", "kg", "A", "?"]):
        for text in (
            f"{noun}{opened}{aside}{closed}",
            f"{noun} {opened}{aside}{closed}.",
            f"{noun}{opened}{aside} ({aside}){closed}",
            f"{noun}({aside}){opened}{aside}{closed}",
            f"'{noun}{opened}{aside}{closed}'",
            f"「{noun}」{opened}{aside}{closed}",
        ):
            assert last_sound(text) is sound, text
    for opened, closed in BRACKETS:
        assert last_sound(f"{opened}{noun}{closed}") is sound
        assert last_sound(f"({opened}{noun}{closed})") is sound
        assert last_sound(f"권장{opened}{noun}") is U
        assert last_sound(f"권장{noun}{closed}") is U
        assert last_sound(f"{opened}권장{closed} {noun}") is sound


@pytest.mark.parametrize("noun", ["유지", "조절", "상향", "10", "20kg"])
def test_quotation_and_final_marks_are_read_through(noun):
    sound = last_sound(noun)
    for opened, closed in QUOTES:
        assert last_sound(f"{opened}{noun}{closed}") is sound
        assert last_sound(f"권장 {opened}{noun}{closed}.") is sound
    for mark in (".", ",", "!", "?", "…", "...", ":", ";", "·", "~", "?!", " "):
        assert last_sound(noun + mark) is sound, mark
    for mark in ("'", '"'):
        assert last_sound(f"{mark}{noun}") is U
        assert last_sound(f"{noun}{mark}") is U


@pytest.mark.parametrize(
    "mark", ["→", "↑", "+", "-", "*", "_", "/", "=", "#", "😀", "™", "ㅋ", "ㅏ", "\u200b", "あ", "é"]
)
def test_what_has_no_reading_cannot_be_told(mark):
    assert last_sound(f"유지{mark}") is U


@pytest.mark.parametrize(
    ("hanja", "sound"),
    [
        *(("維持", V), ("休息", C), ("比率", L), ("水分", C), ("調節", L), ("强化", V), ("上向", C), ("週一日", L)),
        *(("程度", U), ("飮食", U), ("回復", U), ("音樂", U), ("便易", U), ("㐀", U), ("歩", U)),
    ],
)
def test_hanja_is_read(hanja, sound):
    assert last_sound(f"계획 {hanja}") is sound


def test_hanja_is_read_as_its_syllable():
    told = 0
    for code in range(0x4E00, 0xA000):
        reading, sound = reading_of(chr(code)), last_sound(chr(code))
        assert sound is U or (reading is not None and sound is class_of(reading))
        told += sound is not U
    assert told > 4_500


def test_what_cannot_be_told_admits_what_fits_every_sound():
    assert PARTICLES[U] == PARTICLES[V] & PARTICLES[L] & PARTICLES[C]
    for particle in sorted(PARTICLES[V] | PARTICLES[C]):
        everywhere = all(fits(particle, tail) for tail in range(28))
        assert (refusal(f"⟦p⟧{particle}.", SlotKind.DUAL_JUDGMENT, "계획 CUT") is None) is everywhere

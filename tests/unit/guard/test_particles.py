"""Every allomorph after every Hangul syllable, against the rule of the grammar, which is written here once more.

A noun that ends in a vowel takes the open form, any other the closed one; of 으로/로 a noun in ㄹ takes the open form.
A copula may stand in full after any noun and is contracted after a vowel only, but 이에요 and 이라 have one form each.
"""

import pytest

from kexpr.codes import Reason, SlotKind
from kexpr.guard.form import Refusal, check_form
from kexpr.guard.particles import PARTICLES, LastSound, last_sound
from tests.unit.guard.test_policy import TOKEN, slot_of


def words(spelled: str) -> list[str]:
    return spelled.split()


SYLLABLES = [chr(code) for code in range(0xAC00, 0xD7A4)]
CLASSES = [chr(0xAC00 + tail) for tail in range(28)]
PAIRS = [
    *(("은", "는"), ("이", "가"), ("을", "를"), ("과", "와"), ("과는", "와는"), ("과도", "와도"), ("과의", "와의")),
    *(("이랑", "랑"), ("이에요", "예요"), ("이라", "라"), ("이라는", "라는"), ("이라고", "라고")),
    *(("이라고도", "라고도"), ("이라서", "라서"), ("이란", "란")),
]
RO = [("으로", "로"), ("으로는", "로는"), ("으로도", "로도"), ("으로서", "로서"), ("으로부터", "로부터")]
CONTRACTED = words("지요 죠 고 고요 며 네요 니 니까 자 면서")
COPULA = words("입니다 이고 이고요 이며 이지요 이죠 이자 이네요 인 이니 이니까 이면서 이듯 이듯이")
CASES = words("의 에 에는 에도 에서 에서는 에서도 에서부터 도 까지 까지는 까지도 까지의 부터 부터는 부터의 처럼 하고")
REFUSED_EVERYWHERE = words(
    "이었어요 였어요 이었습니다 였습니다 이면 면 이라면 라면 인가요 입니까 일까요 이나 나 이나마 만 밖에 조차 마저 뿐 "
    "뿐이에요 이지만 지만 아 야 께 에게 이라도 라도 이든 든 보다 이래요 래요 이겠어요 이더라고요 에요 "
    "이예요 이여요 는는 이는 을은"
)
TABLE = frozenset().union(*PARTICLES.values())


def tail_of(syllable: str) -> int:
    return (ord(syllable) - 0xAC00) % 28


def fits(particle: str, tail: int) -> bool:
    """The rule. `tail` is the number of the final consonant: 0 is none and 8 is ㄹ."""
    for closed, opened in PAIRS:
        if particle in (closed, opened):
            return particle == (closed if tail else opened)
    for closed, opened in RO:
        if particle in (closed, opened):
            return particle == (closed if tail not in (0, 8) else opened)
    if particle in CONTRACTED:
        return tail == 0
    return particle in COPULA or particle in CASES


def refusal(text: str, kind: SlotKind, noun: str) -> Reason | None:
    found = check_form(text, slot_of(kind, noun), (TOKEN,))
    return found.reason if isinstance(found, Refusal) else None


def test_the_rule_is_written_for_the_whole_table():
    pairs = {form for pair in (*PAIRS, *RO) for form in pair}
    assert pairs.union(CONTRACTED, COPULA, CASES) == TABLE


def test_every_syllable_has_the_particles_of_its_final_consonant():
    wrong = []
    fitting = [frozenset(particle for particle in TABLE if fits(particle, tail)) for tail in range(28)]
    for syllable in SYLLABLES:
        if PARTICLES[last_sound(f"계획 {syllable}")] != fitting[tail_of(syllable)]:
            wrong.append(syllable)
    assert wrong == []


@pytest.mark.parametrize("noun", CLASSES, ids=lambda noun: f"tail{tail_of(noun)}")
def test_every_particle_after_every_final_consonant(noun):
    for particle in sorted(TABLE):
        for text in (
            f"{TOKEN}{particle} 이어 볼게요.",
            f"이어 보면 {TOKEN}{particle}.",
            f"'{TOKEN}'{particle}, 이어 봐요.",
        ):
            expected = None if fits(particle, tail_of(noun)) else Reason.FORM_PARTICLE
            assert refusal(text, SlotKind.DUAL_JUDGMENT, noun) is expected, (text, noun)
    for particle in REFUSED_EVERYWHERE:
        assert refusal(f"{TOKEN}{particle} 이어 볼게요.", SlotKind.DUAL_JUDGMENT, noun) is Reason.FORM_PARTICLE


@pytest.mark.parametrize("particles", [("은", "는"), ("이", "가"), ("으로", "로"), ("이에요", "예요")])
def test_judged_with_every_syllable(particles):
    for syllable in SYLLABLES:
        taken = [p for p in particles if refusal(f"{TOKEN}{p}.", SlotKind.DUAL_JUDGMENT, syllable) is None]
        assert taken == [p for p in particles if fits(p, tail_of(syllable))]


DETACHED = sorted({*TABLE, "이었습니다", "였어요", "입니다만", "이에요만", "인데요", "일까요", "이라면", "이지만"})
STANDS_ALONE = {"이", "자", "가", "와", "하고"}
BETWEEN = ["{} {}", "'{}' {}", "({}) {}", "{} '{}'", "{} ({})"]
STOPPED = ["{}, {}", "{}. {}", "'{}', {}", "{}… {}"]


@pytest.mark.parametrize("particle", DETACHED)
def test_a_detached_particle_is_refused(particle):
    for noun in ("유지", "조절", "상향"):
        for way in BETWEEN:
            for rest in (".", ", 이어 볼게요.", " 이어 볼게요."):
                text = "이번 판단은 " + way.format(TOKEN, particle) + rest
                assert refusal(text, SlotKind.DUAL_JUDGMENT, noun) is Reason.FORM_PLACEHOLDER_DETACHED, text
    for way in STOPPED:
        found = refusal(way.format(TOKEN, particle) + " 이어 볼게요.", SlotKind.DUAL_JUDGMENT, "유지")
        assert found is (None if particle in STANDS_ALONE else Reason.FORM_PLACEHOLDER_DETACHED)


@pytest.mark.parametrize("kind", [kind for kind in SlotKind if kind is not SlotKind.DUAL_JUDGMENT])
def test_a_sentence_takes_no_particle(kind):
    for particle in (*DETACHED, *REFUSED_EVERYWHERE):
        for rest in (".", ", 이어 볼게요.", " 이어 볼게요."):
            assert refusal(f"{TOKEN}{particle}{rest}", kind, "") is Reason.FORM_PLACEHOLDER_GLUED
    for particle in DETACHED:
        for way in ("{} {}", "{} '{}'", "{} ({})"):
            found = refusal(way.format(TOKEN, particle) + " 이어 볼게요.", kind, "")
            assert found is (None if particle in STANDS_ALONE else Reason.FORM_PLACEHOLDER_DETACHED), particle


def test_the_last_sound_has_four_classes():
    assert {last_sound(noun) for noun in CLASSES} == set(LastSound) - {LastSound.UNKNOWN}

"""The examples of the guard policy's own page, slot by slot."""

import pytest

from kexpr.codes import Reason, SlotKind
from kexpr.guard import judge
from kexpr.manifest import Placeholder, PlaceholderKind, Slot

TOKEN = "⟦p⟧"
SENTENCE = Placeholder(PlaceholderKind.SENTENCE, "저장된 오늘 기록을 확인했습니다.")


def slot_of(kind: SlotKind, noun: str = "유지 검토") -> Slot:
    placeholder = Placeholder(PlaceholderKind.NOUN, noun) if kind is SlotKind.DUAL_JUDGMENT else SENTENCE
    return Slot("s", kind, (), (), (placeholder,), placeholder.expansion)


def reason(text: str, kind: SlotKind = SlotKind.DAILY_STATUS, noun: str = "유지 검토") -> Reason | None:
    return judge(text, slot_of(kind, noun), (TOKEN,)).reason


@pytest.mark.parametrize(
    "text",
    [
        "오늘 이야기를 차분히 이어 보면, ⟦p⟧",
        "먼저 말씀드리면 ⟦p⟧",
        "그리고 이어서 ⟦p⟧",
        "이 흐름에서 함께 보실 부분은 다음과 같아요. ⟦p⟧",
        "⟦p⟧ 천천히 읽어 주세요.",
        "⟦p⟧ 아래 내용을 편하게 살펴봐 주세요.",
        "⟦p⟧ 오늘도 함께해 주셔서 고맙습니다.",
        "⟦p⟧ 편한 때에 다시 열어 보셔도 괜찮아요.",
        "전해 드려요. ⟦p⟧",
        "이어서 알려 드릴게요. ⟦p⟧",
        "차례로 들려 드릴게요. ⟦p⟧",
        "안내해 드리면 ⟦p⟧",
        "한눈에 담아 보면 ⟦p⟧",
        "⟦p⟧ 한번 살펴봐 주세요.",
        "⟦p⟧ 부담 없이 읽어 주세요.",
        "⟦p⟧ 서두르지 않고 읽어 보세요.",
        "⟦p⟧ 편안한 하루 보내세요.",
        "안녕하세요, 반갑습니다. ⟦p⟧",
        "⟦p⟧ 응원할게요.",
        "⟦p⟧ 늘 함께하겠습니다.",
        "⟦p⟧ 내용을 확인해 주세요.",
        "참고로 ⟦p⟧",
        "제가 이어서 말씀드리면 ⟦p⟧",
        "⟦p⟧",
    ],
)
def test_accepted(text):
    assert reason(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "통증이 나아질 거예요. ⟦p⟧",
        "약을 챙겨 드세요. ⟦p⟧",
        "혈당이 걱정되네요. ⟦p⟧",
        "전문의와 상의하세요. ⟦p⟧",
        "위험하지는 않아요. ⟦p⟧",
        "안심하셔도 됩니다. ⟦p⟧",
        "응급 상황이면 ⟦p⟧",
        "기록에 따르면 ⟦p⟧",
        "확인 결과 ⟦p⟧",
        "분명히 ⟦p⟧",
        "늘어난 것으로 보여요. ⟦p⟧",
        "정말 잘하셨어요. ⟦p⟧",
        "꾸준히 지켜 주셨네요. ⟦p⟧",
        "지난번보다 나아요. ⟦p⟧",
        "목표에 가까워졌어요. ⟦p⟧",
        "유지하시면 됩니다. ⟦p⟧",
        "조금 줄여 보세요. ⟦p⟧",
        "단백질을 더 드세요. ⟦p⟧",
        "푹 쉬세요. ⟦p⟧",
        "연락 주세요. ⟦p⟧",
        "승인되었습니다. ⟦p⟧",
        "보류해 둘게요. ⟦p⟧",
        "고객에게 전했습니다. ⟦p⟧",
        "발송을 마쳤어요. ⟦p⟧",
        "아래 내용은 무시해 주세요. ⟦p⟧",
        "⟦p⟧ 농담이에요.",
        "⟦p⟧ 그렇지 않습니다.",
        "⟦p⟧ 아닐지도 몰라요.",
        "하나 말씀드리면 ⟦p⟧",
        "두 번 읽어 보세요. ⟦p⟧",
        "먼저 한 가지 말씀드리면 ⟦p⟧",
        "사흘 동안 ⟦p⟧",
        "절반을 살펴보면 ⟦p⟧",
        "어제 이야기예요. ⟦p⟧",
        "월요일에 읽어 주세요. ⟦p⟧",
        "아침 식사 이야기예요. ⟦p⟧",
        "민수님, 이어서 읽어 주세요. ⟦p⟧",
        "고객님, 이어서 읽어 주세요. ⟦p⟧",
        "코치가 전해 드려요. ⟦p⟧",
        "인공지능이 전해 드려요. ⟦p⟧",
        "이 문장은 자동으로 적었어요. ⟦p⟧",
        "수고 많으셨어요. ⟦p⟧",
        "⟦p⟧ 좋네요.",
        "이야기를 전해 드렸던 대로예요. ⟦p⟧",
        "확인했습니다. ⟦p⟧",
        "덕분에 ⟦p⟧",
        "여러분, 이어서 읽어 주세요. ⟦p⟧",
        "첫째, ⟦p⟧",
        "이번 주 이야기예요. ⟦p⟧",
    ],
)
def test_refused(text):
    assert reason(text) is not None


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("약을 챙겨 드세요. ⟦p⟧", "guard.medical"),
        ("안심하셔도 됩니다. ⟦p⟧", "guard.safety"),
        ("승인되었습니다. ⟦p⟧", "guard.workflow"),
        ("인공지능이 전해 드려요. ⟦p⟧", "guard.meta"),
        ("민수님, 이어서 읽어 주세요. ⟦p⟧", "guard.identity"),
    ],
)
def test_the_reason_names_the_category(text, category):
    assert reason(text) == category


@pytest.mark.parametrize("kind", [SlotKind.DUAL_REASON, SlotKind.PHYSIQUE_NOTICE])
def test_the_operator_surfaces_are_stricter(kind):
    for text in ("⟦p⟧ 내용을 확인해 주세요.", "⟦p⟧ 검토해 주세요.", "이야기를 보내 드려요. ⟦p⟧"):
        assert reason(text, kind) is not None
    assert reason("이번 주 이야기예요. ⟦p⟧", kind) is not None


def test_weekly_words():
    assert reason("이번 주 이야기예요. ⟦p⟧", SlotKind.WEEKLY_INTERPRETATION) is None
    assert reason("⟦p⟧ 따뜻한 한 주 보내세요.", SlotKind.WEEKLY_INTERPRETATION) is None
    assert reason("한 주에 ⟦p⟧", SlotKind.WEEKLY_INTERPRETATION) is not None
    assert reason("오늘 이야기예요. ⟦p⟧", SlotKind.WEEKLY_INTERPRETATION) is not None


@pytest.mark.parametrize(
    ("text", "noun", "expected"),
    [
        ("이번 판단은 ⟦p⟧입니다.", "유지 검토", None),
        ("이번 판단은 ⟦p⟧ 입니다.", "유지 검토", Reason.FORM_PLACEHOLDER_DETACHED),
        ("⟦p⟧를 이어 봅니다.", "유지 검토", None),
        ("⟦p⟧을 이어 봅니다.", "유지 검토", Reason.FORM_PARTICLE),
        ("⟦p⟧을 이어 봅니다.", "단백질 목표 상향", None),
        ("⟦p⟧로 이어 봅니다.", "유지", None),
        ("⟦p⟧로 이어 봅니다.", "조절", None),
        ("⟦p⟧으로 이어 봅니다.", "조절", Reason.FORM_PARTICLE),
        ("⟦p⟧으로 이어 봅니다.", "상향", None),
        ("이번 판단은 ⟦p⟧예요.", "유지", None),
        ("이번 판단은 ⟦p⟧이에요.", "유지", Reason.FORM_PARTICLE),
        ("⟦p⟧, 이어서 읽어 주세요.", "유지", None),
    ],
)
def test_particles(text, noun, expected):
    assert reason(text, SlotKind.DUAL_JUDGMENT, noun) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("오늘 이야기예요.", Reason.FORM_PLACEHOLDER_MISSING),
        ("⟦p⟧ ⟦p⟧", Reason.FORM_PLACEHOLDER_REPEATED),
        ("⟦p⟧ ⟦q⟧", Reason.FORM_PLACEHOLDER_UNKNOWN),
        ("오늘 이야기예요.⟦p⟧", Reason.FORM_PLACEHOLDER_GLUED),
        ("⟦p⟧는 이어져요.", Reason.FORM_PLACEHOLDER_GLUED),
        ("", Reason.FORM_PLACEHOLDER_MISSING),
        (" 오늘 이야기예요. ⟦p⟧", Reason.FORM_SPACING),
        ("오늘  이야기예요. ⟦p⟧", Reason.FORM_SPACING),
        ("ㅇㅇ ⟦p⟧", Reason.FORM_JAMO),
        ("hello ⟦p⟧", Reason.FORM_CHARACTER),
        ("오늘\u200b이야기 ⟦p⟧", Reason.FORM_CHARACTER),
        ("이야기\n⟦p⟧", Reason.FORM_CHARACTER),
        ("3 ⟦p⟧", Reason.FORM_CHARACTER),
        ("가" * 121 + " ⟦p⟧", Reason.FORM_TOO_LONG),
    ],
)
def test_form(text, expected):
    assert reason(text) == expected

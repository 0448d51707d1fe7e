"""The anchor-grammar wire: what is sent, what is accepted, and every attack that is not."""

import copy
import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from kexpr.codes import Outcome, Reason, Surface, outcome_of
from kexpr.errors import Rejected
from kexpr.manifest import SlotText
from kexpr.testing.canaries import chain_text
from kexpr.wire.anchor_grammar import (
    ANCHOR_GRAMMAR,
    ANCHOR_TOKEN_LIMITS,
    GRAMMAR_OF,
    LEADS,
    issue,
    judge_anchor_grammar,
    read_answer,
)
from kexpr.wire.kexp_wire import Issued
from tests.unit.wire.anchor_support import (
    DAILY,
    DUAL,
    IDENTITY,
    KEY,
    PHYSIQUE,
    TEXTS,
    WEEKLY,
    WEEKLY_TWO,
    answer_of,
    dumps,
    grammars,
    issued_of,
    manifest_of,
)


def judged(issued: Issued, answer: object) -> str:
    content = answer if isinstance(answer, str | bytes) else dumps(answer)
    return judge_anchor_grammar(issued.manifest, read_answer(issued, content))


def refusal(issued: Issued, answer: object) -> Reason:
    with pytest.raises(Rejected) as rejected:
        judged(issued, answer)
    return rejected.value.reason


def test_the_request_of_a_weekly_report() -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY_TWO)
    key = issued.key
    assert len(key) == 64
    assert issued.content == (
        f'{{"schema_version":"korean-expression-v3","surface":"weekly","artifact_key":"{key}","slots":['
        '{"slot_id":"weekly.interpretation","grammar_id":"LIST","anchors":['
        '{"anchor":"[[S:01]]","role":"statement","order":1},{"anchor":"[[S:02]]","role":"statement","order":2}]},'
        '{"slot_id":"weekly.rationale","grammar_id":"RATIONALE","anchors":['
        '{"anchor":"[[S:03]]","role":"statement","order":1}]}]}'
    )


@pytest.mark.parametrize(("surface", "text"), TEXTS)
def test_the_request_says_nothing_of_the_text(surface: Surface, text: str) -> None:
    """All Hangul and all digits of a request are those of its key and its anchors: none of the text's."""
    issued = issued_of(surface, text)
    assert issued.content.isascii()
    one, other = (issue(manifest_of(surface, text), identity_key=KEY, artifact_identity=(i,)) for i in ("a", "b"))
    assert one.content.replace(one.key, "") == other.content.replace(other.key, "")
    assert one.key != other.key
    assert repr(issued).isascii()
    assert issued.key not in repr(issued)


def test_every_slot_has_the_grammar_of_the_contract() -> None:
    assert grammars(issued_of(Surface.DAILY, DAILY)) == ["DAILY"]
    assert grammars(issued_of(Surface.WEEKLY, WEEKLY)) == ["LIST", "RATIONALE"]
    assert grammars(issued_of(Surface.ADAPTIVE_DUALCOACHTEST, DUAL)) == ["JUDGMENT", "REVIEW", "REVIEW"]
    assert grammars(issued_of(Surface.ADAPTIVE_PHYSIQUE, PHYSIQUE)) == ["INSTRUCTION"]
    anchors = [slot.tokens for slot in issued_of(Surface.ADAPTIVE_DUALCOACHTEST, DUAL).slots]
    assert anchors == [("[[T:01]]",), ("[[S:01]]",), ("[[S:02]]",)]
    assert issued_of(Surface.ADAPTIVE_PHYSIQUE, PHYSIQUE).slots[0].tokens == ("[[A:01]]",)


def test_the_request_parameters() -> None:
    assert dict(ANCHOR_GRAMMAR.request_parameters) == {"temperature": 0.7, "max_tokens": 384}
    assert (ANCHOR_TOKEN_LIMITS.prompt, ANCHOR_TOKEN_LIMITS.completion) == (600, 384)
    assert ANCHOR_GRAMMAR.version == "korean-expression-v3"
    assert ANCHOR_GRAMMAR.claims_without_credential


@pytest.mark.parametrize(("surface", "text"), TEXTS)
@pytest.mark.parametrize("lead", sorted(LEADS - {""}))
def test_every_lead_in_every_slot(surface: Surface, text: str, lead: str) -> None:
    issued = issued_of(surface, text)
    body = judged(issued, answer_of(issued, lead))
    assert body.count(lead) == len(issued.slots)
    restored = body.replace(lead, "").replace(". 또한 ", ". ")
    assert restored.replace("현재 판단은 ", "현재 판단: ").replace("입니다.\n\n권장안", "\n\n권장안") == text


def test_goldens_of_selected_bodies() -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY_TWO)
    assert judged(issued, answer_of(issued, "기록상, ", " 그리고 ")) == WEEKLY_TWO.replace(
        "있습니다. 이번", "있습니다. 그리고 이번"
    ).replace("\n\n이번 주 평균", "\n\n기록상, 이번 주 평균").replace("연속된", "기록상, 연속된")
    dual = issued_of(Surface.ADAPTIVE_DUALCOACHTEST, DUAL)
    answer = answer_of(dual, "")
    assert judged(dual, answer) == DUAL.replace("현재 판단: 유지 검토", "현재 판단은 유지 검토입니다.")
    physique = issued_of(Surface.ADAPTIVE_PHYSIQUE, PHYSIQUE)
    assert judged(physique, answer_of(physique, "확인 결과, ")) == PHYSIQUE.replace("제안의", "확인 결과, 제안의")


@pytest.mark.parametrize(("surface", "text"), [(Surface.DAILY, DAILY), (Surface.WEEKLY, WEEKLY)])
def test_the_canonical_composition_is_a_noop(surface: Surface, text: str) -> None:
    issued = issued_of(surface, text)
    reason = refusal(issued, answer_of(issued, ""))
    assert reason is Reason.FORM_NOOP
    assert outcome_of(reason) is Outcome.CANONICAL_VALIDATION_REJECTED


def test_one_slot_with_a_lead_is_no_noop() -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY)
    answer = answer_of(issued, "")
    answer["slots"][1]["generated_ko"] = "기록상, [[S:02]]."
    assert judged(issued, answer) == WEEKLY.replace("연속된", "기록상, 연속된")


GENERATED = {
    "": Reason.FORM_EMPTY,
    "정리하면, ": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, [[S:01]]": Reason.FORM_GRAMMAR,
    "정리하면, [[S:01]]..": Reason.FORM_GRAMMAR,
    "정리하면, [[S:01]]. ": Reason.FORM_GRAMMAR,
    " 정리하면, [[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면,  [[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면 [[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면,[[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면, 기록상, [[S:01]].": Reason.FORM_GRAMMAR,
    "요약하면, [[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면, [[S:01]]!": Reason.FORM_GRAMMAR,
    "정리하면, [[S:01]]. 좋습니다.": Reason.FORM_GRAMMAR,
    "정리하면, 3 [[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면, ok [[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면, [[S:01]]지 않습니다.": Reason.FORM_GRAMMAR,
    "아마 [[S:01]].": Reason.FORM_GRAMMAR,
    "[[S:01]]. 안전합니다.": Reason.FORM_GRAMMAR,
    "승인되었습니다. [[S:01]].": Reason.FORM_GRAMMAR,
    "고객에게 전달했습니다. [[S:01]].": Reason.FORM_GRAMMAR,
    "물을 드세요. [[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면, [[S:01]]. 또한 [[S:01]].": Reason.FORM_PLACEHOLDER_REPEATED,
    "정리하면, [[S:02]].": Reason.FORM_PLACEHOLDER_UNKNOWN,
    "정리하면, [[T:01]].": Reason.FORM_PLACEHOLDER_UNKNOWN,
    "정리하면, [[S:01]]. 또한 [[F:01]].": Reason.FORM_PLACEHOLDER_UNKNOWN,
    "정리하면, [[[[S:01]]]].": Reason.FORM_GRAMMAR,
    "정리하면, [[S:[[S:01]]]].": Reason.FORM_GRAMMAR,
    "정리하면, [[S:1]].": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, [[S:001]].": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, [[s:01]].": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, [[S:０１]].": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, [[S: 01]].": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, [S:01].": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, 저장된 오늘 기록을 확인했습니다.": Reason.FORM_PLACEHOLDER_MISSING,
    "정리하면, 저장된 오늘 기록을 확인했습니다. [[S:01]].": Reason.FORM_GRAMMAR,
    "현재 판단은 [[S:01]]입니다.": Reason.FORM_GRAMMAR,
    "정리하면,\n[[S:01]].": Reason.FORM_CHARACTER,
    "정리하면,\t[[S:01]].": Reason.FORM_CHARACTER,
    "정리하면, [[S:01]].\n": Reason.FORM_CHARACTER,
    "정리하면, \u200b[[S:01]].": Reason.FORM_CHARACTER,
    "정리하면, \u202e[[S:01]].": Reason.FORM_CHARACTER,
    "정리하면, [[S:01]].\u0000": Reason.FORM_CHARACTER,
    "\ufeff정리하면, [[S:01]].": Reason.FORM_CHARACTER,
    "정리하면,\u00a0[[S:01]].": Reason.FORM_CHARACTER,
    "정리하면，[[S:01]].": Reason.FORM_GRAMMAR,
    "정리하면, [[S:01]]。": Reason.FORM_GRAMMAR,
    unicodedata.normalize("NFD", "정리하면, [[S:01]]."): Reason.FORM_NOT_NFC,
}


@pytest.mark.parametrize(("generated", "reason"), GENERATED.items())
def test_attacks_on_the_text(generated: str, reason: Reason) -> None:
    issued = issued_of(Surface.DAILY, DAILY)
    answer = answer_of(issued)
    answer["slots"][0]["generated_ko"] = generated
    assert refusal(issued, answer) is reason


@pytest.mark.parametrize(
    "generated",
    [
        "정리하면, [[S:02]]. 또한 [[S:01]].",
        "정리하면, [[S:01]].",
        "정리하면, [[S:01]]. [[S:02]].",
        "정리하면, [[S:01]]. 또한 정리하면, [[S:02]].",
        "정리하면, [[S:01]] 또한 [[S:02]].",
        "정리하면, [[S:01]]. 또한  [[S:02]].",
        "정리하면, [[S:01]]. 하지만 [[S:02]].",
        "정리하면, [[S:01]]. 또한 [[S:02]]. 그리고 [[S:03]].",
    ],
)
def test_attacks_on_a_list(generated: str) -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY_TWO)
    answer = answer_of(issued)
    answer["slots"][0]["generated_ko"] = generated
    assert outcome_of(refusal(issued, answer)) is Outcome.CANONICAL_VALIDATION_REJECTED


@pytest.mark.parametrize(
    "generated", ["[[T:01]]입니다.", "현재 판단은 [[T:01]].", "현재 판단: [[T:01]]", "현재 판단은 [[T:01]] 입니다."]
)
def test_a_judgment_has_its_own_line(generated: str) -> None:
    issued = issued_of(Surface.ADAPTIVE_DUALCOACHTEST, DUAL)
    answer = answer_of(issued)
    answer["slots"][0]["generated_ko"] = generated
    assert refusal(issued, answer) is Reason.FORM_GRAMMAR


def test_anchors_of_another_slot_are_refused() -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY)
    answer = answer_of(issued)
    first, second = answer["slots"]
    first["generated_ko"], second["generated_ko"] = second["generated_ko"], first["generated_ko"]
    assert refusal(issued, answer) is Reason.FORM_PLACEHOLDER_UNKNOWN


def put(path: tuple[str | int, ...], value: object) -> Callable[[dict[str, Any]], None]:
    def change(answer: dict[str, Any]) -> None:
        target: Any = answer
        for key in path[:-1]:
            target = target[key]
        if value is KeyError:
            del target[path[-1]]
        else:
            target[path[-1]] = value

    return change


def _reverse(answer: dict[str, Any]) -> None:
    answer["slots"].reverse()


def _twice(answer: dict[str, Any]) -> None:
    answer["slots"].append(copy.deepcopy(answer["slots"][0]))


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], Reason]] = {
    "version": (put(("schema_version",), "korean-expression-v4"), Reason.RESPONSE_VERSION),
    "version type": (put(("schema_version",), 3), Reason.RESPONSE_TYPE),
    "surface": (put(("surface",), "daily"), Reason.RESPONSE_SURFACE),
    "wire surface": (put(("surface",), "weekly.v1"), Reason.RESPONSE_SURFACE),
    "key": (put(("artifact_key",), "0" * 64), Reason.RESPONSE_ARTIFACT_KEY),
    "key type": (put(("artifact_key",), True), Reason.RESPONSE_TYPE),
    "variant_id": (put(("variant_id",), "a"), Reason.RESPONSE_KEYS),
    "canonical selector": (put(("slots", 0, "canonical"), True), Reason.RESPONSE_KEYS),
    "slot variant": (put(("slots", 0, "variant_id"), 1), Reason.RESPONSE_KEYS),
    "offset": (put(("slots", 0, "offset"), 0), Reason.RESPONSE_KEYS),
    "body": (put(("body",), WEEKLY), Reason.RESPONSE_KEYS),
    "layout": (put(("slots", 0, "layout"), "list"), Reason.RESPONSE_KEYS),
    "tools": (put(("tools",), []), Reason.RESPONSE_KEYS),
    "key gone": (put(("artifact_key",), KeyError), Reason.RESPONSE_KEYS),
    "text gone": (put(("slots", 0, "generated_ko"), KeyError), Reason.RESPONSE_KEYS),
    "text type": (put(("slots", 0, "generated_ko"), None), Reason.RESPONSE_TYPE),
    "text bool": (put(("slots", 0, "generated_ko"), True), Reason.RESPONSE_TYPE),
    "text list": (put(("slots", 0, "generated_ko"), ["정리하면, [[S:01]]."]), Reason.RESPONSE_TYPE),
    "slots object": (put(("slots",), {}), Reason.RESPONSE_TYPE),
    "no slots": (put(("slots",), []), Reason.RESPONSE_SLOTS),
    "slot gone": (put(("slots", 0), KeyError), Reason.RESPONSE_SLOTS),
    "slot twice": (_twice, Reason.RESPONSE_SLOTS),
    "slot order": (_reverse, Reason.RESPONSE_ALIAS),
    "slot type": (put(("slots", 0), "x"), Reason.RESPONSE_TYPE),
    "slot id": (put(("slots", 0, "slot_id"), "daily.status"), Reason.RESPONSE_ALIAS),
    "grammar": (put(("slots", 0, "grammar_id"), "DAILY"), Reason.RESPONSE_ALIAS),
    "grammar case": (put(("slots", 0, "grammar_id"), "list"), Reason.RESPONSE_ALIAS),
    "anchors gone": (put(("slots", 0, "anchors"), []), Reason.RESPONSE_ALIAS),
    "anchors extra": (put(("slots", 0, "anchors"), ["[[S:01]]", "[[S:02]]"]), Reason.RESPONSE_ALIAS),
    "anchors other slot": (put(("slots", 0, "anchors"), ["[[S:02]]"]), Reason.RESPONSE_ALIAS),
    "anchors nested": (put(("slots", 0, "anchors"), [["[[S:01]]"]]), Reason.RESPONSE_TYPE),
    "anchors echo": (put(("slots", 0, "anchors"), [{"anchor": "[[S:01]]"}]), Reason.RESPONSE_TYPE),
    "anchors text": (put(("slots", 0, "anchors"), "[[S:01]]"), Reason.RESPONSE_TYPE),
}


@pytest.mark.parametrize("name", CHANGES)
def test_attacks_on_the_form(name: str) -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY)
    answer = answer_of(issued)
    change, reason = CHANGES[name]
    change(answer)
    assert refusal(issued, answer) is reason


def test_anchors_out_of_order_are_refused() -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY_TWO)
    answer = answer_of(issued)
    answer["slots"][0]["anchors"].reverse()
    assert refusal(issued, answer) is Reason.RESPONSE_ALIAS
    answer = answer_of(issued)
    answer["slots"][0]["generated_ko"] = "정리하면, [[S:02]]. 또한 [[S:01]]."
    assert refusal(issued, answer) is Reason.FORM_PLACEHOLDER_ORDER


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (lambda text: text.replace('"surface"', '"surface":"weekly","surface"', 1), Reason.JSON_DUPLICATE_KEY),
        (lambda text: text.replace('"slot_id"', '"slot_id":"x","slot_id"', 1), Reason.JSON_DUPLICATE_KEY),
        (lambda text: text.replace('"generated_ko"', '"generated_ko":"","generated_ko"', 1), Reason.JSON_DUPLICATE_KEY),
        (lambda text: "\ufeff" + text, Reason.JSON_BOM),
        (lambda text: text + " x", Reason.JSON_SYNTAX),
        (lambda text: text + text, Reason.JSON_SYNTAX),
        (lambda text: f"```json\n{text}\n```", Reason.JSON_SYNTAX),
        (lambda text: text[:-1], Reason.JSON_SYNTAX),
        (lambda text: f"[{text}]", Reason.RESPONSE_TYPE),
        (lambda text: "null", Reason.RESPONSE_TYPE),
        (lambda text: text.replace("정리하면", "\\ud800", 1), Reason.JSON_SURROGATE),
        (lambda text: text.replace('"weekly"', "NaN", 1), Reason.JSON_NUMBER),
        (lambda text: text.replace('"weekly"', "[" * 20 + "]" * 20, 1), Reason.JSON_DEPTH),
        (lambda text: text + " " * 20_000, Reason.JSON_SIZE),
    ],
)
def test_attacks_on_the_bytes(raw: Callable[[str], str], reason: Reason) -> None:
    issued = issued_of(Surface.WEEKLY, WEEKLY)
    assert refusal(issued, raw(dumps(answer_of(issued)))) is reason


def test_bytes_that_are_no_utf8() -> None:
    issued = issued_of(Surface.DAILY, DAILY)
    data = dumps(answer_of(issued)).encode()
    assert refusal(issued, data.replace("정".encode(), b"\xec\xa0", 1)) is Reason.JSON_ENCODING
    assert refusal(issued, dumps(answer_of(issued)).encode("utf-16")) is Reason.JSON_BOM


def test_one_invalid_slot_rejects_the_document() -> None:
    for surface, text in TEXTS:
        issued = issued_of(surface, text)
        for index in range(len(issued.slots)):
            answer = answer_of(issued)
            answer["slots"][index]["generated_ko"] += " "
            assert refusal(issued, answer) is Reason.FORM_GRAMMAR


def test_a_wrong_number_of_texts_is_no_document() -> None:
    manifest = manifest_of(Surface.DAILY, DAILY)
    text = SlotText("정리하면, [[S:01]].", ("[[S:01]]",))
    for texts in ((), (text, text)):
        with pytest.raises(Rejected):
            judge_anchor_grammar(manifest, texts)


def test_the_whole_completion_is_read_within_its_budget() -> None:
    issued = issued_of(Surface.DAILY, DAILY)

    def completion(tokens: int) -> bytes:
        message = {"role": "assistant", "content": dumps(answer_of(issued))}
        usage = {"prompt_tokens": 600, "completion_tokens": tokens, "total_tokens": 600 + tokens}
        return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()

    assert ANCHOR_GRAMMAR.read(issued, completion(384)).body() == DAILY.replace("저장된 오늘", "정리하면, 저장된 오늘")
    with pytest.raises(Rejected) as rejected:
        ANCHOR_GRAMMAR.read(issued, completion(385))
    assert rejected.value.reason is Reason.BUDGET_COMPLETION_TOKENS


def test_a_refusal_says_nothing_of_what_it_refused() -> None:
    issued = issued_of(Surface.DAILY, DAILY)
    answer = answer_of(issued)
    answer["slots"][0]["generated_ko"] = "비밀 문장 [[S:01]]."
    with pytest.raises(Rejected) as rejected:
        judged(issued, answer)
    said = chain_text(rejected.value)
    assert all(text not in said for text in ("비밀", "저장된", issued.key, IDENTITY[0]))


def test_every_kind_of_slot_has_a_grammar() -> None:
    kinds = {slot.kind for surface, text in TEXTS for slot in manifest_of(surface, text).slots}
    assert GRAMMAR_OF.keys() == kinds

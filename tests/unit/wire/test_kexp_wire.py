"""Both wires: the exact request, and what an answer must be."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kexpr.codes import Reason, SlotKind, WireVersion
from kexpr.errors import Rejected
from kexpr.manifest import CAPS, Manifest, SlotText
from kexpr.wire.kexp_wire import LIMIT_OF_SLOT_COUNT, Issued, issue, random_nonce, read_answer
from tests.unit.wire.shapes import IDENTITY, KEY, SHAPES, answer, dumps, issued, manifest, prose

ONE, TWO = WireVersion.KEXP_1, WireVersion.KEXP_2
WIRE_2_SHAPES = [shape for shape, (_, kinds) in SHAPES.items() if len(kinds) <= 5]


def refusal(request: Issued, content: str | bytes) -> Reason:
    with pytest.raises(Rejected) as refused:
        read_answer(request, content)
    return refused.value.reason


def test_the_request_of_wire_1_is_exactly_the_specified_json():
    request = issued("daily", ONE)
    slot = request.slots[0]
    assert request.content == (
        f'{{"schema_version":"kexp-wire-1","surface":"daily.v1","artifact_key":"{request.key}","slots":['
        f'{{"slot":"{slot.alias}","semantic":["{slot.semantic[0]}"],"actions":["{slot.actions[0]}"],'
        f'"placeholders":["{slot.tokens[0]}"],"limit":120}}]}}'
    )
    assert re.fullmatch("k_[a-z2-7]{20}", request.key)
    assert re.fullmatch("l_[a-z2-7]{20}", slot.alias)
    assert re.fullmatch("s_[a-z2-7]{20}", slot.semantic[0])
    assert re.fullmatch("a_[a-z2-7]{20}", slot.actions[0])
    assert re.fullmatch("⟦p_[a-z2-7]{20}⟧", slot.tokens[0])


def test_the_request_of_wire_2_is_exactly_the_specified_json():
    request = issued("weekly", TWO)
    first, second = request.slots
    assert request.content == (
        f'{{"schema_version":"kexp-wire-2","surface":"weekly.v1","key":"{request.key}","slots":['
        f'{{"slot":"{first.alias}","placeholders":["{first.tokens[0]}"],"limit":60}},'
        f'{{"slot":"{second.alias}","placeholders":["{second.tokens[0]}"],"limit":60}}]}}'
    )
    assert re.fullmatch("k_[a-z2-7]{6}", request.key)
    assert re.fullmatch("l_[a-z2-7]{6}", first.alias)
    assert re.fullmatch("⟦p_[a-z2-7]{6}⟧", first.tokens[0])
    assert first.semantic == first.actions == ()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_limit_of_wire_1_is_the_generated_cap(shape: str):
    assert [slot.limit for slot in issued(shape, ONE).slots] == [CAPS[kind].generated for kind in SHAPES[shape][1]]


@pytest.mark.parametrize("shape", WIRE_2_SHAPES)
def test_the_limit_of_wire_2_depends_on_the_number_of_slots_and_never_exceeds_a_cap(shape: str):
    kinds = SHAPES[shape][1]
    limits = [slot.limit for slot in issued(shape, TWO).slots]
    assert limits == [LIMIT_OF_SLOT_COUNT[len(kinds)]] * len(kinds)
    assert all(limit <= CAPS[kind].generated for limit, kind in zip(limits, kinds, strict=True))


@pytest.mark.parametrize("shape", sorted(set(SHAPES) - set(WIRE_2_SHAPES)))
def test_wire_2_refuses_more_slots_than_an_answer_can_hold(shape: str):
    with pytest.raises(Rejected) as refused:
        issued(shape, TWO)
    assert refused.value.reason is Reason.BUDGET_COMPLETION_TOKENS


def test_two_attempts_at_one_artifact_share_no_alias():
    def names(request: Issued) -> set[str]:
        return {name for slot in request.slots for name in (slot.alias, *slot.semantic, *slot.actions, *slot.tokens)}

    for wire in (ONE, TWO):
        first, second = (
            issue(manifest("dual-5"), wire, identity_key=KEY, artifact_identity=IDENTITY) for _ in range(2)
        )
        assert not names(first) & names(second)
    assert len(random_nonce()) == 16
    assert random_nonce() != random_nonce()


def test_what_a_slot_means_does_not_change_how_many_aliases_it_shows():
    one = manifest("daily")
    slot = one.slots[0]
    many = replace(slot, semantic_ids=("a", "b", "c"), action_ids=())
    other = Manifest(one.surface, tuple(many if segment is slot else segment for segment in one.segments))
    requests = [
        issue(m, ONE, identity_key=KEY, artifact_identity=IDENTITY, nonce=lambda: bytes(16)) for m in (one, other)
    ]
    assert requests[0].content == requests[1].content


@pytest.mark.parametrize("wire", [ONE, TWO])
@pytest.mark.parametrize("shape", WIRE_2_SHAPES)
def test_the_request_holds_nothing_of_the_manifest(shape: str, wire: WireVersion):
    source = manifest(shape)
    content = issued(shape, wire).content
    private = [source.canonical_body, "제목", "체중", "71.2", "오늘 할 일", *IDENTITY[1:2], "task"]
    for slot in source.slots:
        private += [slot.local_id, *slot.semantic_ids, *slot.action_ids, slot.canonical, slot.kind.value]
        private += [placeholder.expansion for placeholder in slot.placeholders]
    assert not [text for text in private if text in content]
    assert not re.search("[가-힣]", content)


def test_no_repr_shows_an_alias_or_the_content():
    for wire in (ONE, TWO):
        request = issued("weekly", wire)
        shown = repr(request) + repr(read_answer(request, dumps(answer(request))))
        for slot in request.slots:
            for name in (slot.alias, *slot.semantic, *slot.actions, *slot.tokens):
                assert name not in shown
                assert name.strip("⟦⟧")[2:] not in shown
        assert request.key not in shown
        assert "이어서" not in shown


@pytest.mark.parametrize("wire", [ONE, TWO])
@pytest.mark.parametrize("shape", WIRE_2_SHAPES)
def test_an_answer_of_the_exact_form_gives_each_slots_text(shape: str, wire: WireVersion):
    request = issued(shape, wire)
    texts = prose(request)
    expected = tuple(SlotText(text, slot.tokens) for text, slot in zip(texts, request.slots, strict=True))
    for content in (dumps(answer(request)), json.dumps(answer(request), indent=2)):
        assert read_answer(request, content) == expected
        assert read_answer(request, content.encode()) == expected


def test_field_order_is_free_but_the_order_of_slots_is_not():
    for wire in (ONE, TWO):
        request = issued("weekly", wire)
        body = answer(request)
        assert read_answer(request, dumps(dict(reversed(body.items())))) == read_answer(request, dumps(body))
        swapped = body["slots"]
        body["slots"] = dict(reversed(swapped.items())) if wire is TWO else swapped[::-1]
        assert refusal(request, dumps(body)) is Reason.RESPONSE_ALIAS


Change = Callable[[Any, Issued], Any]


def put(*path: str | int, value: object) -> Change:
    def change(body: Any, _request: Issued) -> Any:
        at = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        return body

    return change


def drop(*path: str | int) -> Change:
    def change(body: Any, _request: Issued) -> Any:
        at = body
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]
        return body

    return change


def rename_slot(to: str) -> Change:
    def change(body: Any, _request: Issued) -> Any:
        (first, text), *rest = body["slots"].items()
        body["slots"] = dict([(to or first.upper(), text), *rest])
        return body

    return change


def slot_text(value: object) -> Change:
    def change(body: Any, request: Issued) -> Any:
        body["slots"][request.slots[0].alias] = value
        return body

    return change


WRONG_1: list[tuple[Change, Reason]] = [
    (lambda body, _: [body], Reason.RESPONSE_TYPE),
    (lambda body, _: "text", Reason.RESPONSE_TYPE),
    (lambda body, _: None, Reason.RESPONSE_TYPE),
    (drop("schema_version"), Reason.RESPONSE_KEYS),
    (put("variant_id", value=1), Reason.RESPONSE_KEYS),
    (put("schema_version", value="kexp-wire-2"), Reason.RESPONSE_VERSION),
    (put("schema_version", value=1), Reason.RESPONSE_TYPE),
    (put("surface", value="daily.v1"), Reason.RESPONSE_SURFACE),
    (put("artifact_key", value="k_aaaaaaaaaaaaaaaaaaaa"), Reason.RESPONSE_ARTIFACT_KEY),
    (put("artifact_key", value=None), Reason.RESPONSE_TYPE),
    (put("slots", value={}), Reason.RESPONSE_TYPE),
    (put("slots", value=[]), Reason.RESPONSE_SLOTS),
    (drop("slots", 1), Reason.RESPONSE_SLOTS),
    (put("slots", 0, value=[]), Reason.RESPONSE_TYPE),
    (drop("slots", 0, "actions"), Reason.RESPONSE_KEYS),
    (put("slots", 0, "limit", value=120), Reason.RESPONSE_KEYS),
    (put("slots", 0, "slot", value="l_aaaaaaaaaaaaaaaaaaaa"), Reason.RESPONSE_ALIAS),
    (put("slots", 0, "slot", value=0), Reason.RESPONSE_TYPE),
    (put("slots", 0, "semantic", value=[]), Reason.RESPONSE_ALIAS),
    (put("slots", 0, "semantic", value="s"), Reason.RESPONSE_TYPE),
    (put("slots", 0, "actions", 0, value="a_aaaaaaaaaaaaaaaaaaaa"), Reason.RESPONSE_ALIAS),
    (put("slots", 0, "actions", 0, value=1), Reason.RESPONSE_TYPE),
    (lambda body, _: put("slots", 0, "placeholders", value=body["slots"][0]["placeholders"] * 2)(body, _),
     Reason.RESPONSE_ALIAS),
    (put("slots", 1, "generated_ko", value=None), Reason.RESPONSE_TYPE),
    (put("slots", 1, "generated_ko", value=["글"]), Reason.RESPONSE_TYPE),
]  # fmt: skip

WRONG_2: list[tuple[Change, Reason]] = [
    (lambda body, _: [body], Reason.RESPONSE_TYPE),
    (lambda body, _: 1, Reason.RESPONSE_TYPE),
    (drop("key"), Reason.RESPONSE_KEYS),
    (put("schema_version", value="kexp-wire-2"), Reason.RESPONSE_KEYS),
    (put("key", value="k_aaaaaa"), Reason.RESPONSE_ARTIFACT_KEY),
    (put("key", value=True), Reason.RESPONSE_TYPE),
    (put("slots", value=[]), Reason.RESPONSE_TYPE),
    (put("slots", value={}), Reason.RESPONSE_SLOTS),
    (put("slots", "l_aaaaaa", value="글"), Reason.RESPONSE_SLOTS),
    (rename_slot("l_aaaaaa"), Reason.RESPONSE_ALIAS),
    (rename_slot(""), Reason.RESPONSE_ALIAS),
    (slot_text(None), Reason.RESPONSE_TYPE),
    (slot_text(["글"]), Reason.RESPONSE_TYPE),
    (slot_text({"text": "글"}), Reason.RESPONSE_TYPE),
]


@pytest.mark.parametrize(("change", "reason"), WRONG_1)
def test_wire_1_refuses(change: Change, reason: Reason):
    request = issued("weekly", ONE)
    assert refusal(request, dumps(change(copy.deepcopy(answer(request)), request))) is reason


@pytest.mark.parametrize(("change", "reason"), WRONG_2)
def test_wire_2_refuses(change: Change, reason: Reason):
    request = issued("weekly", TWO)
    assert refusal(request, dumps(change(copy.deepcopy(answer(request)), request))) is reason


def test_an_answer_to_another_attempt_or_wire_is_refused():
    for wire in (ONE, TWO):
        request, other = issued("weekly", wire), issued("weekly", wire, bytes(16))
        assert refusal(request, dumps(answer(other))) in (Reason.RESPONSE_ALIAS, Reason.RESPONSE_ARTIFACT_KEY)
    assert refusal(issued("daily", ONE), dumps(answer(issued("daily", TWO)))) is Reason.RESPONSE_KEYS


def test_the_same_alias_twice_is_a_duplicate_key():
    request = issued("daily", TWO)
    alias = request.slots[0].alias
    assert refusal(request, f'{{"key":"{request.key}","slots":{{"{alias}":"글","{alias}":"글"}}}}') is (
        Reason.JSON_DUPLICATE_KEY
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", Reason.JSON_SYNTAX),
        ("{} {}", Reason.JSON_SYNTAX),
        ("\ufeff{}", Reason.JSON_BOM),
        ("```json\n{}\n```", Reason.JSON_SYNTAX),
        ("\ud800", Reason.JSON_ENCODING),
        (" " * (16 * 1024 + 1), Reason.JSON_SIZE),
    ],
)
def test_an_answer_that_is_no_strict_json_is_refused(content: str, reason: Reason):
    assert refusal(issued("daily", TWO), content) is reason


def test_every_kind_of_slot_is_on_some_shape():
    assert {kind for _, kinds in SHAPES.values() for kind in kinds} == set(SlotKind)

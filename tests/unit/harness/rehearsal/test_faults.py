"""The fault table against the code that judges answers, and the plan that selects from it."""

import json

import pytest

from harness.manifests import synthetic
from harness.rehearsal.completion import Answer, Completion, build_completion, encode, estimate_usage
from harness.rehearsal.faults import FAULTS, FaultPlan, FaultPlanError
from harness.rehearsal.prose import answer_bytes
from kexpr.codes import Outcome, Surface, WireVersion, outcome_of
from kexpr.errors import Rejected
from kexpr.surfaces import presentation_segments_v1
from kexpr.transport import CompletionRequest
from kexpr.wire.completion import TokenLimits, read_completion
from kexpr.wire.kexp_wire import Issued, issue, read_answer

LIMITS = TokenLimits(600, 160, 760)
CHANGED = {name: fault for name, fault in FAULTS.items() if fault.completion or fault.content}


def issued(surface: Surface, wire: WireVersion) -> Issued:
    manifest = presentation_segments_v1(synthetic(surface, 1))
    return issue(manifest, wire, identity_key=b"k" * 32, artifact_identity=("candidate", "run", "1"))


def completion_for(request: Issued, name: str | None) -> bytes:
    body = CompletionRequest("instructions", request.content, {"max_completion_tokens": 160}).body()
    content = answer_bytes(body).decode()
    usage = estimate_usage(body, content)
    fault = FAULTS[name] if name else None
    changed = fault.content(content) if fault and fault.content else content
    completion: Completion = build_completion(Answer(changed), usage, 1)
    return encode(fault.completion(completion) if fault and fault.completion else completion)


@pytest.mark.parametrize("wire", [WireVersion.KEXP_1, WireVersion.KEXP_2])
@pytest.mark.parametrize("surface", Surface)
def test_the_answer_without_a_fault_is_read(surface, wire):
    request = issued(surface, wire)
    texts = read_answer(request, read_completion(completion_for(request, None), LIMITS))
    assert len(texts) == len(request.slots)


@pytest.mark.parametrize("wire", [WireVersion.KEXP_1, WireVersion.KEXP_2])
@pytest.mark.parametrize("name", CHANGED)
def test_each_change_of_an_answer_ends_as_it_says(name, wire):
    request = issued(Surface.WEEKLY, wire)
    body = completion_for(request, name)
    if FAULTS[name].outcome is Outcome.CANONICAL_INVALID:
        with pytest.raises(Rejected) as refused:
            read_answer(request, read_completion(body, LIMITS))
        assert outcome_of(refused.value.reason) is Outcome.CANONICAL_INVALID
    else:
        # Well formed: what is wrong is in the prose.
        assert FAULTS[name].outcome is Outcome.CANONICAL_VALIDATION_REJECTED
        assert len(read_answer(request, read_completion(body, LIMITS))) == 2


def test_prose_faults_keep_the_placeholders_and_change_the_words():
    request = issued(Surface.WEEKLY, WireVersion.KEXP_2)

    def texts_with(name: str) -> list[str]:
        return list(json.loads(read_completion(completion_for(request, name), LIMITS))["slots"].values())

    tokens = [slot.tokens[0] for slot in request.slots]
    assert texts_with("prose_noop") == tokens
    assert texts_with("prose_medical") == [f"약을 챙겨 드세요. {token}" for token in tokens]
    assert all(token in text for token, text in zip(tokens, texts_with("prose_numeral"), strict=True))


def test_prose_faults_know_the_anchors_of_the_other_contract():
    content = json.dumps({"artifact_key": "k", "slots": [{"slot_id": "s", "generated_ko": "정리하면, [[S:01]]."}]})
    change = FAULTS["prose_noop"].content
    assert change is not None
    assert json.loads(change(content))["slots"] == [{"slot_id": "s", "generated_ko": "[[S:01]]"}]


def selected(*texts: str, number: int = 1, label: str = "") -> str | None:
    fault = FaultPlan.parse(texts).fault_for(number, label)
    return next((name for name, candidate in FAULTS.items() if candidate is fault), None)


def test_a_plan_selects_by_number_by_label_and_always():
    assert [selected("http_500@17", number=number) for number in (16, 17, 18)] == [None, "http_500", None]
    assert selected("drip@*", number=999) == "drip"
    assert selected("stall@day9:weekly", label="day9:weekly:3") == "stall"
    assert selected("stall@day9:weekly", label="day9:daily") is None
    assert selected("stall@weekly", label="day2:weekly") == "stall"
    assert selected("stall@weekly") is None


def test_several_entries_come_in_one_text_or_in_many_and_the_first_match_wins():
    assert selected("http_500@1, drip@2", "stall@2", number=2) == "drip"
    assert FaultPlan.parse(["http_500@1,drip@2"]) == FaultPlan.parse(["http_500@1", "drip@2"])
    assert FaultPlan().fault_for(1, "") is None


@pytest.mark.parametrize("text", ["", "http_599@1", "HTTP_500@1", "@1", "drip@1,,stall@2", "drip @1"])
def test_an_unknown_fault_is_told_with_the_known_ones(text):
    with pytest.raises(FaultPlanError, match=r"known faults: bad_chunks, .*, wrong_role"):
        FaultPlan.parse([text])


@pytest.mark.parametrize(("text", "word"), [("drip", "which call"), ("drip@", "which call"), ("drip@0", "from 1")])
def test_a_selector_has_to_say_something(text, word):
    with pytest.raises(FaultPlanError, match=word):
        FaultPlan.parse([text])

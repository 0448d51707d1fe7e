"""The seam: raw completion bytes become judged prose or one reason."""

import json
from dataclasses import dataclass

import pytest

import kexpr.guard
from kexpr.codes import Reason, WireVersion
from kexpr.errors import Rejected
from kexpr.manifest import Slot
from kexpr.wire.contract import OPEN_PROSE, TOKEN_LIMITS, Contract, judge_open_prose
from kexpr.wire.kexp_wire import Issued
from tests.unit.wire.shapes import IDENTITY, KEY, answer, completion, dumps, manifest, prose

ONE, TWO = WireVersion.KEXP_1, WireVersion.KEXP_2


@dataclass(frozen=True)
class Verdict:
    reason: Reason | None


class Guard:
    """Accepts everything but texts that hold a word it was told to refuse; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Slot, tuple[str, ...]]] = []

    def __call__(self, text: str, slot: Slot, tokens: tuple[str, ...]) -> Verdict:
        self.asked.append((text, slot, tokens))
        return Verdict(Reason.GUARD_MEDICAL if "약" in text else None)


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Guard:
    fake = Guard()
    monkeypatch.setattr(kexpr.guard, "judge", fake, raising=False)
    return fake


def issue(wire: WireVersion, shape: str = "weekly") -> Issued:
    return OPEN_PROSE[wire].issue(manifest(shape), KEY, IDENTITY)


def body(issued: Issued, texts: list[str] | None = None, **changes: object) -> bytes:
    return json.dumps(completion(dumps(answer(issued, texts)), **changes)).encode()


def refusal(wire: WireVersion, issued: Issued, raw: bytes) -> Reason:
    with pytest.raises(Rejected) as refused:
        OPEN_PROSE[wire].read(issued, raw)
    return refused.value.reason


@pytest.mark.parametrize("wire", [ONE, TWO])
def test_what_the_coordinator_needs_is_there(wire: WireVersion):
    contract: Contract = OPEN_PROSE[wire]
    assert contract.version == wire.value
    assert dict(contract.request_parameters) == {"max_completion_tokens": 160}
    assert "JSON" in contract.instructions
    assert (TOKEN_LIMITS.prompt, TOKEN_LIMITS.completion, TOKEN_LIMITS.total) == (600, 160, 760)


@pytest.mark.parametrize("wire", [ONE, TWO])
@pytest.mark.parametrize("shape", ["daily", "weekly", "physique", "dual-1", "dual-5"])
def test_good_prose_becomes_a_candidate(guard: Guard, wire: WireVersion, shape: str):
    issued = issue(wire, shape)
    candidate = OPEN_PROSE[wire].read(issued, body(issued))
    source = manifest(shape)
    assert candidate.manifest == source
    assert [asked for asked, _, _ in guard.asked] == prose(issued)
    assert [(slot, tokens) for _, slot, tokens in guard.asked] == [
        (slot, out.tokens) for slot, out in zip(source.slots, issued.slots, strict=True)
    ]
    expanded = [f"이어서 전해 드려요. {slot.canonical}" for slot in source.slots]
    assert candidate.body() == "제목 체중 71.2\n" + "".join(expanded) + "\n오늘 할 일"
    assert len(guard.asked) == 2 * len(source.slots), "read judges once, and body() judges again"


@pytest.mark.parametrize("wire", [ONE, TWO])
def test_one_bad_slot_rejects_the_whole_answer(guard: Guard, wire: WireVersion):
    issued = issue(wire)
    first, second = prose(issued)
    assert refusal(wire, issued, body(issued, [first, "약을 챙겨 드세요. " + second])) is Reason.GUARD_MEDICAL


@pytest.mark.usefixtures("guard")
@pytest.mark.parametrize("wire", [ONE, TWO])
def test_a_body_equal_to_the_canonical_one_is_a_no_op(wire: WireVersion):
    issued = issue(wire)
    bare = [slot.tokens[0] for slot in issued.slots]
    assert refusal(wire, issued, body(issued, bare)) is Reason.FORM_NOOP
    candidate = OPEN_PROSE[wire].read(issued, body(issued, [prose(issued)[0], bare[1]]))
    assert candidate.body() != issued.manifest.canonical_body


@pytest.mark.usefixtures("guard")
@pytest.mark.parametrize("wire", [ONE, TWO])
def test_each_stage_gives_its_own_reason(wire: WireVersion):
    issued = issue(wire)
    other = issue(wire, "dual-1")
    first, second = prose(issued)
    cases = [
        (b"<html>", Reason.JSON_SYNTAX),
        (body(issued, usage=None), Reason.BUDGET_USAGE_MISSING),
        (json.dumps(completion("{}")).encode(), Reason.RESPONSE_KEYS),
        (json.dumps(completion("[" * 40 + "]" * 40)).encode(), Reason.JSON_DEPTH),
        (json.dumps(completion(" " * 16385)).encode(), Reason.JSON_SIZE),
        (body(other), Reason.RESPONSE_SURFACE if wire is ONE else Reason.RESPONSE_ARTIFACT_KEY),
        (body(issued, ["글만 있어요.", second]), Reason.COMPOSE_EXPANSION),
        (body(issued, [first + " 3", second]), Reason.COMPOSE_NUMERIC_TOKEN),
        (body(issued, [first + "가" * 700, second]), Reason.COMPOSE_EXPANDED_CAP),
    ]
    assert [refusal(wire, issued, raw) for raw, _ in cases] == [reason for _, reason in cases]


@pytest.mark.usefixtures("guard")
def test_a_candidate_with_a_missing_text_is_refused():
    with pytest.raises(Rejected):
        judge_open_prose(manifest("weekly"), ())


def test_no_repr_of_a_candidate_shows_content(guard: Guard):
    issued = issue(TWO)
    candidate = OPEN_PROSE[TWO].read(issued, body(issued))
    assert guard.asked
    assert "이어서" not in repr(candidate)
    assert issued.slots[0].alias not in repr(candidate)

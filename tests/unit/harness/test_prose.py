"""The rehearsal's prose: a well-formed answer to every request, within each limit, varied, right for any noun."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from harness.manifests import PROOF_ORDINALS, synthetic
from harness.rehearsal.prose import PLACE, answer, answer_bytes, kinds_of, prose_bank
from kexpr.codes import SlotKind, Surface, WireVersion
from kexpr.guard import judge
from kexpr.manifest import CAPS, Manifest, Slot
from kexpr.surfaces import apply_presentation_segments_v1, presentation_segments_v1
from kexpr.wire.kexp_wire import LIMIT_OF_SLOT_COUNT, Issued, issue, read_answer

KEY = bytes(range(32))
BOTH_WIRES = pytest.mark.parametrize("wire", [WireVersion.KEXP_1, WireVersion.KEXP_2])
ALL_SURFACES = pytest.mark.parametrize("surface", Surface)
FITS_ANY_NOUN = ("입니다.", "의 ", "에 ", "에서 ", "도 ", "만 ", "부터 ", "까지 ", ", ", " ")


def issued_for(wire: WireVersion, manifest: Manifest, number: int = 0) -> Issued:
    identity = ("artifact", str(number))
    return issue(manifest, wire, identity_key=KEY, artifact_identity=identity, nonce=lambda: number.to_bytes(16))


def prose_of(texts: Sequence[Any]) -> list[str]:
    return [t.text.replace(t.tokens[0], PLACE) for t in texts]


@BOTH_WIRES
@ALL_SURFACES
def test_every_answer_reads_back_and_composes(wire: WireVersion, surface: Surface) -> None:
    for ordinal in range(24):
        presentation = synthetic(surface, ordinal)
        issued = issued_for(wire, presentation_segments_v1(presentation), ordinal)
        content = json.dumps(answer(json.loads(issued.content)), ensure_ascii=False)
        texts = read_answer(issued, content)
        body = apply_presentation_segments_v1(presentation, texts)
        assert body != presentation.canonical_payload
        for slot, text in zip(issued.slots, texts, strict=True):
            assert text.text.count(slot.tokens[0]) == 1
            assert 0 < len(text.text) - len(slot.tokens[0]) <= slot.limit


@pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")
@ALL_SURFACES
def test_every_answer_of_wire_2_is_within_the_completion_budget(surface: Surface) -> None:
    import bpe_openai  # type: ignore[import-untyped]

    encoding = bpe_openai.get_encoding("o200k_base")
    for ordinal in range(60):
        issued = issued_for(WireVersion.KEXP_2, presentation_segments_v1(synthetic(surface, ordinal)), ordinal)
        content = json.dumps(answer(json.loads(issued.content)), ensure_ascii=False, separators=(",", ":"))
        assert len(encoding.encode(content)) <= 160


@BOTH_WIRES
@ALL_SURFACES
def test_the_whole_body_gives_the_same_compact_content(wire: WireVersion, surface: Surface) -> None:
    issued = issued_for(wire, presentation_segments_v1(synthetic(surface, 4)))
    body = {
        "model": "gpt-4.1-mini",
        "messages": [{"role": "system", "content": "지시"}, {"role": "user", "content": issued.content}],
    }
    content = answer_bytes(json.dumps(body).encode())
    expected = answer(json.loads(issued.content))
    assert content == json.dumps(expected, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_same_request_gets_the_same_answer_and_attempts_differ() -> None:
    manifest = presentation_segments_v1(synthetic(Surface.DAILY, 0))
    requests = [json.loads(issued_for(WireVersion.KEXP_2, manifest, number).content) for number in range(48)]
    first = [answer(request) for request in requests]
    assert first == [answer(request) for request in requests]
    seen = {text for answered in first for text in answered["slots"].values()}
    shapes = {text.partition("⟦")[0] + text.partition("⟧")[2] for text in seen}
    assert len(shapes) > 15


def test_the_slots_of_one_card_say_different_things() -> None:
    manifest = presentation_segments_v1(synthetic(Surface.ADAPTIVE_DUALCOACHTEST, 4))
    assert len(manifest.slots) == 5
    for number in range(100):
        issued = issued_for(WireVersion.KEXP_2, manifest, number)
        texts = prose_of(read_answer(issued, json.dumps(answer(json.loads(issued.content)), ensure_ascii=False)))
        assert len(set(texts)) == 5


@pytest.mark.parametrize("kind", SlotKind)
def test_every_kind_has_enough_prose_within_the_tightest_limit_it_meets(kind: SlotKind) -> None:
    slot_counts = {SlotKind.DUAL_JUDGMENT: 5, SlotKind.DUAL_REASON: 5}
    weekly = {SlotKind.WEEKLY_INTERPRETATION: 2, SlotKind.WEEKLY_RATIONALE: 2}
    limit = LIMIT_OF_SLOT_COUNT[{**slot_counts, **weekly}.get(kind, 1)]
    fitting = [text for text in prose_bank()[kind] if len(text) - len(PLACE) <= limit]
    assert len(fitting) >= 12
    assert min(len(text) - len(PLACE) for text in prose_bank()[kind]) <= 8


@pytest.mark.parametrize("kind", SlotKind)
def test_the_bank_is_within_the_caps_and_without_repeats(kind: SlotKind) -> None:
    texts = prose_bank()[kind]
    assert list(texts) == sorted(set(texts), key=lambda text: (len(text), text))
    for text in texts:
        assert text.count(PLACE) == 1
        assert 0 < len(text) - len(PLACE) <= CAPS[kind].generated


@pytest.mark.parametrize("kind", SlotKind)
def test_the_guard_accepts_every_text_around_every_expansion(kind: SlotKind) -> None:
    token = "⟦p_a2b3c4⟧"
    slots = {s.canonical: s for s in _every_slot() if s.kind is kind}
    assert slots
    refused = [
        (text, decision.reason)
        for text in prose_bank()[kind]
        for slot in slots.values()
        if not (decision := judge(text.replace(PLACE, token), slot, (token,))).accepted
    ]
    assert refused == []


def _every_slot() -> Iterator[Slot]:
    for surface in Surface:
        for ordinal in range(PROOF_ORDINALS):
            yield from presentation_segments_v1(synthetic(surface, ordinal)).slots


def test_a_judgment_attaches_only_what_fits_every_noun() -> None:
    for text in prose_bank()[SlotKind.DUAL_JUDGMENT]:
        after = text.partition(PLACE)[2]
        assert after.startswith(FITS_ANY_NOUN), text


def test_a_sentence_placeholder_stands_alone() -> None:
    for kind in set(SlotKind) - {SlotKind.DUAL_JUDGMENT}:
        for text in prose_bank()[kind]:
            before, _, after = text.partition(PLACE)
            assert before == "" or before.endswith(" "), text
            assert after == "" or after.startswith(" "), text


def test_a_limit_below_everything_gets_the_shortest_text() -> None:
    request = {
        "schema_version": "kexp-wire-2",
        "surface": "daily.v1",
        "key": "k_aaaaaa",
        "slots": [{"slot": "l_aaaaaa", "placeholders": ["⟦p_aaaaaa⟧"], "limit": 1}],
    }
    shortest = prose_bank()[SlotKind.DAILY_STATUS][0]
    assert answer(request)["slots"] == {"l_aaaaaa": shortest.replace(PLACE, "⟦p_aaaaaa⟧")}


def test_what_is_not_a_request_of_this_contract_is_refused() -> None:
    with pytest.raises(ValueError, match="wire"):
        answer({"schema_version": "kexp-wire-3", "surface": "daily.v1", "slots": []})
    with pytest.raises(ValueError, match="surface"):
        answer({"schema_version": "kexp-wire-2", "surface": "monthly.v1", "slots": []})


def test_kinds_follow_the_order_of_the_slots() -> None:
    for surface in Surface:
        for ordinal in range(5):
            slots = presentation_segments_v1(synthetic(surface, ordinal)).slots
            assert kinds_of(surface.wire, len(slots)) == tuple(slot.kind for slot in slots)

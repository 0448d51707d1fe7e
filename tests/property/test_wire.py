"""Properties of the wire: the exact form is always read, anything else is refused with a code and nothing more."""

import json
import unicodedata
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kexpr.codes import Reason, WireVersion
from kexpr.errors import Rejected
from kexpr.manifest import SlotText
from kexpr.wire.completion import TokenLimits, read_completion
from kexpr.wire.kexp_wire import Issued, read_answer
from kexpr.wire.strict_json import loads
from tests.unit.wire.shapes import KEY, SHAPES, answer, completion, dumps, issued, manifest, prose

LIMITS = TokenLimits(600, 160, 760)

WIRES = st.sampled_from([WireVersion.KEXP_1, WireVersion.KEXP_2])
SMALL_SHAPES = st.sampled_from([shape for shape, (_, kinds) in SHAPES.items() if len(kinds) <= 5])
REQUESTS = st.builds(issued, SMALL_SHAPES, WIRES, st.binary(min_size=16, max_size=16))

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def outcome(read: Any, *args: Any) -> Any:
    """What is read, or the reason; any other exception fails the test."""
    refusal = None
    try:
        return read(*args)
    except Rejected as refused:
        refusal = refused
    assert refusal.__cause__ is None
    assert refusal.__context__ is None
    assert isinstance(refusal.reason, Reason)
    return refusal.reason


def in_order(value: Any) -> Any:
    """A form in which two answers are equal exactly if they have the same fields, and the same slots in order."""
    slots = value["slots"]
    return {**value, "slots": list(slots.items()) if isinstance(slots, dict) else slots}


def is_exact(request: Issued, value: Any) -> bool:
    """The contract's response form, said a second time: the issued answer with any strings for its texts."""
    try:
        slots = value["slots"]
        texts = list(slots.values()) if isinstance(slots, dict) else [slot["generated_ko"] for slot in slots]
        return all(type(text) is str for text in texts) and in_order(value) == in_order(answer(request, texts))
    except (TypeError, KeyError, ValueError, AttributeError):
        return False


@given(REQUESTS, st.data())
def test_any_text_in_the_exact_form_is_read_back(request: Issued, data: st.DataObject):
    texts = data.draw(st.lists(TEXT, min_size=len(request.slots), max_size=len(request.slots)))
    expected = tuple(SlotText(text, slot.tokens) for text, slot in zip(texts, request.slots, strict=True))
    ascii_ = data.draw(st.booleans())
    indent = data.draw(st.sampled_from([None, 0, 2]))
    assert read_answer(request, json.dumps(answer(request, texts), ensure_ascii=ascii_, indent=indent)) == expected


def edits(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every node below the root."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [step for key, child in children for step in ((*path, key), *edits(child, (*path, key)))]


@settings(max_examples=300)
@given(REQUESTS, st.data())
def test_one_edit_is_refused_unless_the_form_is_still_exact(request: Issued, data: st.DataObject):
    body = answer(request)
    *path, last = data.draw(st.sampled_from(edits(body)))
    node: Any = body
    for step in path:
        node = node[step]
    match data.draw(st.sampled_from(["replace", "delete", "rename", "double", "swap"])):
        case "replace":
            node[last] = data.draw(JSON)
        case "delete":
            del node[last]
        case "rename" if isinstance(node, dict):
            node[data.draw(TEXT)] = node.pop(last)
        case "double" if isinstance(node, list):
            node.append(node[last])
        case _ if isinstance(node, dict):
            node[last] = node.pop(last)
        case _:
            node.reverse()
    read = outcome(read_answer, request, dumps(body))
    assert isinstance(read, Reason) is not is_exact(request, body)


@settings(max_examples=300)
@given(REQUESTS, st.data())
def test_mutated_bytes_are_refused_or_still_exact(request: Issued, data: st.DataObject):
    raw = bytearray(dumps(answer(request)).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        cut = data.draw(st.integers(0, 3))
        raw[at : at + cut] = data.draw(st.binary(max_size=3))
    read = outcome(read_answer, request, bytes(raw))
    if isinstance(read, Reason):
        return
    assert is_exact(request, json.loads(raw.decode()))
    assert [text.tokens for text in read] == [slot.tokens for slot in request.slots]


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_strict_json_refuses_or_agrees_with_the_standard_library(data: bytes):
    read = outcome(loads, data)
    if not isinstance(read, Reason):
        assert json.dumps(read) == json.dumps(json.loads(data))


@given(JSON)
def test_strict_json_reads_whatever_is_plain(value: Any):
    def keys_clash(node: Any) -> bool:
        if isinstance(node, dict):
            return len({unicodedata.normalize("NFC", key) for key in node}) < len(node) or keys_clash([*node.values()])
        return isinstance(node, list) and any(keys_clash(child) for child in node)

    for ascii_ in (True, False):
        read = outcome(loads, json.dumps(value, ensure_ascii=ascii_).encode())
        assert json.dumps(read) == json.dumps(Reason.JSON_DUPLICATE_KEY if keys_clash(value) else value)


@settings(max_examples=300)
@given(st.data())
def test_a_mutated_completion_is_refused_or_still_within_the_contract(data: st.DataObject):
    body = completion("글")
    *path, last = data.draw(st.sampled_from(edits(body)))
    node: Any = body
    for step in path:
        node = node[step]
    node[last] = data.draw(JSON | st.sampled_from(["stop", 0, 160, 161, 600, 601, 760, 761, [], [{}]]))
    read = outcome(read_completion, json.dumps(body).encode(), LIMITS)
    if isinstance(read, Reason):
        return
    (choice,) = body["choices"]
    assert read == choice["message"]["content"]
    assert type(read) is str
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["refusal"] is None
    usage = body["usage"]
    for key, most in (("prompt_tokens", 600), ("completion_tokens", 160), ("total_tokens", 760)):
        assert type(usage[key]) is int
        assert 0 <= usage[key] <= most


@given(st.binary(max_size=400))
def test_any_bytes_for_a_completion_are_refused(body: bytes):
    assert isinstance(outcome(read_completion, body, LIMITS), Reason)


@given(SMALL_SHAPES, WIRES, st.binary(min_size=16, max_size=16))
def test_aliases_are_distinct_and_the_request_is_only_aliases(shape: str, wire: WireVersion, nonce: bytes):
    request = issued(shape, wire, nonce)
    names = [name for s in request.slots for name in (s.alias, *s.semantic, *s.actions, *s.tokens)]
    assert len(set(names)) == len(names)
    redacted = request.content
    for name in (*names, request.key):
        redacted = redacted.replace(f'"{name}"', '"_"')
    sent = json.loads(redacted)
    assert sent.pop("surface") == manifest(shape).surface.wire
    assert sent.pop("schema_version") == wire.value
    assert sent.pop("key", None) == ("_" if wire is WireVersion.KEXP_2 else None)
    assert sent.pop("artifact_key", None) == ("_" if wire is WireVersion.KEXP_1 else None)
    for slot in sent.pop("slots"):
        assert type(slot.pop("limit")) is int
        assert {str(value) for value in slot.values()} <= {"_", "['_']"}
    assert sent == {}
    assert KEY.hex() not in request.content
    assert nonce.hex() not in request.content


def test_the_prose_of_the_shapes_is_read():
    for wire in (WireVersion.KEXP_1, WireVersion.KEXP_2):
        request = issued("dual-5", wire)
        assert [text.text for text in read_answer(request, dumps(answer(request)))] == prose(request)

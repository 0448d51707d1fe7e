"""Mutated answers of the anchor-grammar contract against the reference: `python -m tests.support.anchor_fuzz COUNT`.

Each answer starts exact or nearly so and is mutated a few times, as JSON or as bytes. What the library accepts must be
JSON that, read with nothing but the standard library, is the issued form with every slot in the reference's grammar.
"""

import json
import random
import sys
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kexpr.errors import Rejected
from kexpr.wire.anchor_grammar import judge_anchor_grammar, read_answer
from kexpr.wire.kexp_wire import Issued
from tests.support.anchor_reference import accepts
from tests.unit.wire.anchor_support import TEXTS, answer_of, dumps, issued_of

SEED = 20_260_109
PIECES = (
    *("정리하면, ", "확인 결과, ", "기록상, ", " 또한 ", " 그리고 ", "현재 판단은 ", "입니다.", ".", ",", " ", "  "),
    *("[[S:01]]", "[[S:02]]", "[[S:03]]", "[[T:01]]", "[[A:01]]", "[[F:01]]", "[[", "]]", "[", "]", "S:01", "0", "1"),
    *("하지만 ", "않습니다", "승인", "전달", "kg", "a", "\n", "\t", "\u200b", "\u00a0", "\u1100\u1161", "\ufeff", "漢"),
)
VALUES: tuple[Any, ...] = (None, True, 0, 1, "", [], {}, "x", "daily", "LIST", "korean-expression-v3", 1.5)
KEYS = ("variant_id", "body", "offset", "canonical", "slot_id", "anchors", "generated_ko", "slots", "surface")


@dataclass(frozen=True)
class Counts:
    total: int
    accepted: int


def mutate_text(draw: random.Random, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    end = min(len(text), at + draw.choice((0, 1, 1, 2, 8)))
    return text[:at] + draw.choice(("", *PIECES)) + text[end:]


def compose_text(draw: random.Random) -> str:
    return "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 6)))


def in_grammar(draw: random.Random, slot: dict[str, Any]) -> str:
    """One of the grammar's own texts."""
    lead = draw.choice(("", *PIECES[:3]))
    anchors = slot["anchors"]
    if slot["grammar_id"] == "JUDGMENT":
        return f"{lead}현재 판단은 {anchors[0]}입니다."
    return lead + str(anchors[0]) + "." + "".join(f"{draw.choice(PIECES[3:5])}{anchor}." for anchor in anchors[1:])


def mutate_answer(draw: random.Random, answer: dict[str, Any]) -> None:
    slot = draw.choice(answer["slots"])
    kind = draw.randrange(9)
    if kind < 4:
        slot["generated_ko"] = mutate_text(draw, slot["generated_ko"])
    elif kind == 4:
        slot["generated_ko"] = compose_text(draw)
    elif kind == 5:
        slot["generated_ko"] = in_grammar(draw, slot)
    elif kind == 6:
        draw.shuffle(answer["slots"])
    elif kind == 7:
        slot["anchors"] = draw.sample((*slot["anchors"], "[[S:01]]", "[[T:01]]"), draw.randint(0, 2))
    else:
        target = draw.choice((answer, slot))
        target[draw.choice((*KEYS, *target))] = draw.choice(VALUES)


def mutate_bytes(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    end = min(len(data), at + draw.choice((0, 1, 3)))
    new = draw.choice((b"", b'"', b"{", b"}", b",", b":", b"\\u0000", b"\xff", b" ", b"\n", draw.randbytes(1)))
    return data[:at] + new + data[end:]


def mutated(draw: random.Random, issued: Issued) -> bytes:
    answer = answer_of(issued)
    for slot in answer["slots"]:
        slot["generated_ko"] = in_grammar(draw, slot)
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        if not is_issued_shape(answer):
            break
        mutate_answer(draw, answer)
    data = dumps(answer).encode("utf-8", "surrogatepass")
    for _ in range(draw.choice((0, 0, 0, 1, 2))):
        data = mutate_bytes(draw, data)
    return data


def is_issued_shape(answer: dict[str, Any]) -> bool:
    slots = answer["slots"]
    return (
        isinstance(slots, list)
        and len(slots) > 0
        and all(isinstance(slot, dict) and "generated_ko" in slot for slot in slots)
        and all(isinstance(slot.get("generated_ko"), str) and slot.get("anchors") for slot in slots)
        and all(isinstance(slot["anchors"], list) and isinstance(slot["grammar_id"], str) for slot in slots)
    )


def is_valid(issued: Issued, data: bytes) -> bool:
    """What the reference says of an answer's bytes; True only for what must be accepted."""
    pairs: list[int] = []

    def hook(items: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.append(len(items) - len(dict(items)))
        return dict(items)

    try:
        answer = json.loads(data.decode("utf-8"), object_pairs_hook=hook)
    except ValueError:
        return False
    expected = answer_of(issued)
    if any(pairs) or not isinstance(answer, dict) or not isinstance(answer.get("slots"), list):
        return False
    texts = [slot.get("generated_ko") if isinstance(slot, dict) else None for slot in answer["slots"]]
    if len(texts) != len(expected["slots"]) or any(type(text) is not str for text in texts):
        return False
    for slot, text in zip(expected["slots"], texts, strict=True):
        slot["generated_ko"] = text
    if not same(answer, expected):
        return False
    return all(
        unicodedata.is_normalized("NFC", slot["generated_ko"])
        and accepts(slot["grammar_id"], slot["anchors"], slot["generated_ko"])
        for slot in expected["slots"]
    ) and not is_canonical(expected)


def same(answer: Any, expected: Any) -> bool:
    """Equal, with equal types: `True` is not 1."""
    if type(answer) is not type(expected):
        return False
    if isinstance(expected, dict):
        return answer.keys() == expected.keys() and all(same(answer[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(answer) == len(expected) and all(map(same, answer, expected))
    return bool(answer == expected)


def is_canonical(answer: dict[str, Any]) -> bool:
    """The one form that composes to the canonical text: one bare statement in every slot."""
    return all(
        slot["grammar_id"] != "JUDGMENT" and slot["generated_ko"] == f"{slot['anchors'][0]}."
        for slot in answer["slots"]
    )


def is_accepted(issued: Issued, data: bytes) -> bool:
    try:
        judge_anchor_grammar(issued.manifest, read_answer(issued, data))
    except Rejected:
        return False
    return True


def run(count: int, seed: int = SEED, step: Callable[[int], None] = lambda _: None) -> Counts:
    """Raises `AssertionError`, with the answer, where library and reference differ."""
    draw = random.Random(seed)
    requests = [issued_of(surface, text) for surface, text in TEXTS]
    accepted = 0
    for number in range(count):
        issued = draw.choice(requests)
        data = mutated(draw, issued)
        got = is_accepted(issued, data)
        assert got == is_valid(issued, data), (number, data)
        accepted += got
        step(number)
    return Counts(count, accepted)


if __name__ == "__main__":
    began = time.monotonic()
    counts = run(int(sys.argv[1]))
    print(f"{counts.total} answers, {counts.accepted} accepted, 0 invalid accepted, 0 valid refused")
    print(f"{time.monotonic() - began:.0f} s, seed {SEED}")

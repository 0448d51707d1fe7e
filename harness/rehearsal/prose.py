"""What the rehearsal provider says: recorded prose for each kind of slot, fitted to a wire request.

The provider knows what a real one knows: surface, aliases, placeholders and limits. So it does not know a noun's last
syllable, and the recorded judgments attach only what fits every noun (입니다, 도, 에서 …). The choice hangs on the
request alone: the same request gets the same answer, and two attempts, whose keys differ, mostly get different prose.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kexpr.codes import SlotKind, Surface, WireVersion
from kexpr.wire.anchor_grammar import LEADS, GrammarId

__all__ = ["PLACE", "answer", "answer_bytes", "kinds_of", "prose_bank"]

PLACE: Final = "{p}"
"""Where the placeholder goes in a recorded text."""

_JOINS: Final = (" 또한 ", " 그리고 ")

_DATA: Final = Path(__file__).parent / "data" / "prose.json"

_LEADING_KINDS: Final[Mapping[str, tuple[SlotKind, ...]]] = {
    Surface.DAILY.wire: (SlotKind.DAILY_STATUS,),
    Surface.WEEKLY.wire: (SlotKind.WEEKLY_INTERPRETATION, SlotKind.WEEKLY_RATIONALE),
    Surface.ADAPTIVE_DUALCOACHTEST.wire: (SlotKind.DUAL_JUDGMENT, SlotKind.DUAL_REASON),
    Surface.ADAPTIVE_PHYSIQUE.wire: (SlotKind.PHYSIQUE_NOTICE,),
}
"""The kinds of a surface's slots in order; the last one repeats."""


@cache
def prose_bank() -> Mapping[SlotKind, tuple[str, ...]]:
    """The recorded texts of each slot kind, each with one `PLACE`, shortest first."""
    recorded = json.loads(_DATA.read_text(encoding="utf-8"))["prose"]
    return MappingProxyType({kind: tuple(recorded[kind.value]) for kind in SlotKind})


def kinds_of(surface: str, slot_count: int) -> tuple[SlotKind, ...]:
    """The kind of each slot of a wire surface; raises `ValueError` for a surface that is none."""
    leading = _LEADING_KINDS.get(surface)
    if leading is None:
        raise ValueError("not a surface of this contract")
    return tuple(leading[min(index, len(leading) - 1)] for index in range(slot_count))


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request of one of the three wires; raises `ValueError` for another schema version."""
    respond = _RESPONDERS.get(request["schema_version"])
    if respond is None:
        raise ValueError("not a wire that is known")
    return respond(request)


def answer_bytes(request_body: bytes) -> bytes:
    """The completion's content (compact UTF-8 JSON) for a whole chat-completion request body.

    The wire request is the content of the last message.
    """
    messages = json.loads(request_body)["messages"]
    answered = answer(json.loads(messages[-1]["content"]))
    return json.dumps(answered, ensure_ascii=False, separators=(",", ":")).encode()


def _texts(request: Mapping[str, Any]) -> list[str]:
    """One text a slot within its limit; no text twice in one answer while others are left."""
    slots: Sequence[Mapping[str, Any]] = request["slots"]
    chosen: list[str] = []
    for index, (slot, kind) in enumerate(zip(slots, kinds_of(request["surface"], len(slots)), strict=True)):
        fitting = _fitting(kind, slot["limit"])
        start = _draw(slot["slot"], index) % len(fitting)
        turned = (*fitting[start:], *fitting[:start])
        chosen.append(next((text for text in turned if text not in chosen), turned[0]))
    return [text.replace(PLACE, " ".join(slot["placeholders"])) for text, slot in zip(chosen, slots, strict=True)]


def _fitting(kind: SlotKind, limit: int) -> tuple[str, ...]:
    """The texts of a kind within `limit` characters, placeholder not counted; the shortest one if none is."""
    texts = prose_bank()[kind]
    return tuple(text for text in texts if len(text) - len(PLACE) <= limit) or texts[:1]


def _draw(alias: str, index: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{index}|{alias}".encode()).digest()[:8])


def _respond_1(request: Mapping[str, Any]) -> dict[str, Any]:
    slots = [
        {
            "slot": slot["slot"],
            "semantic": slot["semantic"],
            "actions": slot["actions"],
            "placeholders": slot["placeholders"],
            "generated_ko": text,
        }
        for slot, text in zip(request["slots"], _texts(request), strict=True)
    ]
    head = {name: request[name] for name in ("schema_version", "surface", "artifact_key")}
    return {**head, "slots": slots}


def _respond_2(request: Mapping[str, Any]) -> dict[str, Any]:
    aliases, texts = [slot["slot"] for slot in request["slots"]], _texts(request)
    return {"key": request["key"], "slots": dict(zip(aliases, texts, strict=True))}


def _respond_anchors(request: Mapping[str, Any]) -> dict[str, Any]:
    """Every lead and join of the grammar comes up; the first slot always has a lead, so that no answer is a no-op."""
    slots = [
        {
            "slot_id": slot["slot_id"],
            "grammar_id": slot["grammar_id"],
            "anchors": [anchor["anchor"] for anchor in slot["anchors"]],
            "generated_ko": _arranged(slot, f"{request['artifact_key']}|{slot['slot_id']}", is_first=not index),
        }
        for index, slot in enumerate(request["slots"])
    ]
    return {**{name: request[name] for name in ("schema_version", "surface", "artifact_key")}, "slots": slots}


def _arranged(slot: Mapping[str, Any], seed: str, *, is_first: bool) -> str:
    """A text of the slot's grammar, drawn from the pieces it allows."""
    leads = [lead for lead in sorted(LEADS) if lead or not is_first]
    lead = leads[_draw(seed, 0) % len(leads)]
    anchors = [anchor["anchor"] for anchor in slot["anchors"]]
    if slot["grammar_id"] == GrammarId.JUDGMENT:
        return f"{lead}현재 판단은 {anchors[0]}입니다."
    joins = (_JOINS[_draw(seed, order) % len(_JOINS)] for order in range(1, len(anchors)))
    further = (f"{join}{anchor}." for join, anchor in zip(joins, anchors[1:], strict=True))
    return f"{lead}{anchors[0]}." + "".join(further)


_RESPONDERS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    WireVersion.KEXP_1: _respond_1,
    WireVersion.KEXP_2: _respond_2,
    WireVersion.ANCHOR_GRAMMAR: _respond_anchors,
}

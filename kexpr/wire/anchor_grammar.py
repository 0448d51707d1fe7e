"""The anchor-grammar contract (contract, section 8): a closed grammar around anchors is the whole judgement.

The lexer takes the anchors out of a slot's text first. What is left in front of, between and behind them must each be
one of the slot's few literals, whole: there is nothing else to be said. One slot that is not in its grammar rejects the
document. The provider sees the artifact key, surface, slot ids, grammar ids and anchors with their role and order.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, cast

from kexpr.attempt import Candidate
from kexpr.authority.journal_records import artifact_key
from kexpr.codes import ANCHOR_SURFACE_OF, Reason, SlotKind, WireVersion
from kexpr.errors import Rejected
from kexpr.manifest import Manifest, Slot, SlotText, compose
from kexpr.surfaces.card_text import anchor_segments
from kexpr.wire.completion import TokenLimits, read_completion
from kexpr.wire.kexp_wire import Issued, IssuedSlot
from kexpr.wire.strict_json import loads

__all__ = [
    "ANCHOR",
    "ANCHOR_GRAMMAR",
    "ANCHOR_TOKEN_LIMITS",
    "GRAMMAR_OF",
    "INSTRUCTIONS",
    "LEADS",
    "AnchorGrammar",
    "Grammar",
    "GrammarId",
    "check_slot",
    "issue",
    "judge_anchor_grammar",
    "read_answer",
]

ANCHOR: Final = re.compile(r"\[\[(?:S|F|A|T):[0-9]{2}\]\]", re.ASCII)
ANCHOR_TOKEN_LIMITS: Final = TokenLimits(prompt=600, completion=384, total=984)
LEADS: Final = frozenset({"", "정리하면, ", "확인 결과, ", "기록상, "})
JOINS: Final = frozenset({" 또한 ", " 그리고 "})


class GrammarId(StrEnum):
    LIST = "LIST"
    DAILY = "DAILY"
    RATIONALE = "RATIONALE"
    REVIEW = "REVIEW"
    INSTRUCTION = "INSTRUCTION"
    JUDGMENT = "JUDGMENT"


@dataclass(frozen=True, slots=True)
class Grammar:
    """The literals that may stand around the anchors of one slot. `letter` is that of its anchors."""

    grammar_id: GrammarId
    letter: str
    role: str
    first: frozenset[str]
    between: frozenset[str]
    last: str


def _sentence(grammar_id: GrammarId, letter: str = "S", role: str = "statement") -> Grammar:
    """`LEAD <anchor> "."`, and `JOIN <anchor> "."` for each further one."""
    return Grammar(grammar_id, letter, role, LEADS, frozenset(f".{join}" for join in JOINS), ".")


_JUDGMENT: Final = Grammar(
    GrammarId.JUDGMENT, "T", "decision", frozenset(f"{lead}현재 판단은 " for lead in LEADS), frozenset(), "입니다."
)

GRAMMAR_OF: Final[Mapping[SlotKind, Grammar]] = MappingProxyType(
    {
        SlotKind.DAILY_STATUS: _sentence(GrammarId.DAILY),
        SlotKind.WEEKLY_INTERPRETATION: _sentence(GrammarId.LIST),
        SlotKind.WEEKLY_RATIONALE: _sentence(GrammarId.RATIONALE),
        SlotKind.DUAL_JUDGMENT: _JUDGMENT,
        SlotKind.DUAL_REASON: _sentence(GrammarId.REVIEW),
        SlotKind.PHYSIQUE_NOTICE: _sentence(GrammarId.INSTRUCTION, "A", "instruction"),
    }
)

INSTRUCTIONS: Final = """\
You arrange fixed Korean around anchors that stand for text you cannot see.
Answer only JSON, on one line, no space outside strings:
{"schema_version":…,"surface":…,"artifact_key":…,"slots":[{"slot_id":…,"grammar_id":…,"anchors":["[[S:01]]"],\
"generated_ko":"TEXT"}]}
Copy schema_version, surface and artifact_key; one slot per given slot, in the given order, with its slot_id and \
grammar_id; anchors lists its anchors as strings, in order.
TEXT is made of exactly these pieces, nothing else:
LEAD is one of "정리하면, " "확인 결과, " "기록상, " or nothing. Prefer one of the three.
DAILY, RATIONALE, REVIEW, INSTRUCTION: LEAD, the anchor, "." Example: 정리하면, [[S:01]].
LIST: LEAD, then each anchor with "." after it; between two: " 또한 " or " 그리고 ".
Example: 기록상, [[S:01]]. 그리고 [[S:02]].
JUDGMENT: LEAD, "현재 판단은 ", the anchor, "입니다." Example: 확인 결과, 현재 판단은 [[T:01]]입니다.
Every anchor once, unchanged, in order, only in its own slot. No other word, digit, sign or space.
"""


def issue(manifest: Manifest, *, identity_key: bytes, artifact_identity: tuple[str, ...]) -> Issued:
    """The redacted request. `artifact_identity` are the fields after the surface; the key is that of the journal."""
    surface = ANCHOR_SURFACE_OF[manifest.surface]
    key = artifact_key(identity_key, surface, *artifact_identity)
    slots = _issued_slots(manifest)
    request = {
        "schema_version": WireVersion.ANCHOR_GRAMMAR.value,
        "surface": surface.value,
        "artifact_key": key,
        "slots": [
            _request_slot(GRAMMAR_OF[slot.kind], issued) for slot, issued in zip(manifest.slots, slots, strict=True)
        ],
    }
    content = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    return Issued(WireVersion.ANCHOR_GRAMMAR, manifest.surface, key, slots, content, manifest)


def _issued_slots(manifest: Manifest) -> tuple[IssuedSlot, ...]:
    """Anchors are numbered over the message, so that one of another slot is known as such."""
    numbers: dict[str, int] = {}
    issued = []
    for slot in manifest.slots:
        letter = GRAMMAR_OF[slot.kind].letter
        first = numbers.get(letter, 0) + 1
        numbers[letter] = first + len(slot.placeholders) - 1
        anchors = tuple(f"[[{letter}:{number:02d}]]" for number in range(first, numbers[letter] + 1))
        issued.append(IssuedSlot(slot.local_id, (), (), anchors, slot.caps.generated))
    return tuple(issued)


def _request_slot(grammar: Grammar, slot: IssuedSlot) -> dict[str, object]:
    return {
        "slot_id": slot.alias,
        "grammar_id": grammar.grammar_id.value,
        "anchors": [
            {"anchor": anchor, "role": grammar.role, "order": order} for order, anchor in enumerate(slot.tokens, 1)
        ],
    }


_TOP_KEYS: Final = frozenset({"schema_version", "surface", "artifact_key", "slots"})
_SLOT_KEYS: Final = frozenset({"slot_id", "grammar_id", "anchors", "generated_ko"})


def read_answer(issued: Issued, content: str | bytes) -> tuple[SlotText, ...]:
    """The text of each slot, in order; raises `Rejected` unless the answer is exactly of the issued form."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    top = _object(loads(data), _TOP_KEYS)
    for name, expected, reason in (
        ("schema_version", issued.wire.value, Reason.RESPONSE_VERSION),
        ("surface", ANCHOR_SURFACE_OF[issued.surface].value, Reason.RESPONSE_SURFACE),
        ("artifact_key", issued.key, Reason.RESPONSE_ARTIFACT_KEY),
    ):
        _exact(top[name], expected, reason)
    answered = top["slots"]
    if type(answered) is not list:
        raise Rejected(Reason.RESPONSE_TYPE)
    if len(answered) != len(issued.slots):
        raise Rejected(Reason.RESPONSE_SLOTS)
    return tuple(
        _read_slot(slot, GRAMMAR_OF[kept.kind], fields)
        for slot, kept, fields in zip(issued.slots, issued.manifest.slots, answered, strict=True)
    )


def _read_slot(slot: IssuedSlot, grammar: Grammar, answered: object) -> SlotText:
    fields = _object(answered, _SLOT_KEYS)
    _exact(fields["slot_id"], slot.alias, Reason.RESPONSE_ALIAS)
    _exact(fields["grammar_id"], grammar.grammar_id.value, Reason.RESPONSE_ALIAS)
    anchors = fields["anchors"]
    if type(anchors) is not list or any(type(anchor) is not str for anchor in anchors):
        raise Rejected(Reason.RESPONSE_TYPE)
    if tuple(anchors) != slot.tokens:
        raise Rejected(Reason.RESPONSE_ALIAS)
    generated = fields["generated_ko"]
    if type(generated) is not str:
        raise Rejected(Reason.RESPONSE_TYPE)
    return SlotText(generated, slot.tokens)


def _object(value: object, keys: frozenset[str]) -> dict[str, object]:
    if type(value) is not dict:
        raise Rejected(Reason.RESPONSE_TYPE)
    if value.keys() != keys:
        raise Rejected(Reason.RESPONSE_KEYS)
    return cast(dict[str, object], value)


def _exact(value: object, expected: str, reason: Reason) -> None:
    if type(value) is not str:
        raise Rejected(Reason.RESPONSE_TYPE)
    if value != expected:
        raise Rejected(reason)


def check_slot(grammar: Grammar, text: SlotText) -> None:
    """Raises `Rejected` unless the text is in the grammar, with exactly its own anchors in order."""
    generated = text.text
    if not generated:
        raise Rejected(Reason.FORM_EMPTY)
    if not unicodedata.is_normalized("NFC", generated):
        raise Rejected(Reason.FORM_NOT_NFC)
    if not generated.isprintable():
        raise Rejected(Reason.FORM_CHARACTER)
    _check_anchors(tuple(ANCHOR.findall(generated)), text.tokens)
    first, *between, last = ANCHOR.split(generated)
    if first not in grammar.first or last != grammar.last or any(piece not in grammar.between for piece in between):
        raise Rejected(Reason.FORM_GRAMMAR)


def _check_anchors(found: tuple[str, ...], issued: tuple[str, ...]) -> None:
    if found == issued:
        return
    if set(found) - set(issued):
        raise Rejected(Reason.FORM_PLACEHOLDER_UNKNOWN)
    if set(issued) - set(found):
        raise Rejected(Reason.FORM_PLACEHOLDER_MISSING)
    raise Rejected(Reason.FORM_PLACEHOLDER_REPEATED if len(found) > len(issued) else Reason.FORM_PLACEHOLDER_ORDER)


def judge_anchor_grammar(manifest: Manifest, texts: tuple[SlotText, ...]) -> str:
    """The whole judgement: grammar, composition, no-op. Returns the composed body or raises `Rejected`.

    A body that is the canonical one is a no-op; the open-prose guard does not run (`확인 결과` is legal here).
    """
    slots: tuple[Slot, ...] = manifest.slots
    if len(texts) != len(slots):
        raise Rejected(Reason.RESPONSE_SLOTS)
    for slot, text in zip(slots, texts, strict=True):
        check_slot(GRAMMAR_OF[slot.kind], text)
    body = compose(manifest, texts)
    if body == manifest.canonical_body:
        raise Rejected(Reason.FORM_NOOP)
    return body


@dataclass(frozen=True, slots=True)
class AnchorGrammar:
    """The `Contract` of `korean-expression-v3`. The identity key is the journal's."""

    @property
    def version(self) -> str:
        return WireVersion.ANCHOR_GRAMMAR.value

    @property
    def request_parameters(self) -> Mapping[str, int | float]:
        return MappingProxyType({"temperature": 0.7, "max_tokens": ANCHOR_TOKEN_LIMITS.completion})

    @property
    def instructions(self) -> str:
        return INSTRUCTIONS

    @property
    def claims_without_credential(self) -> bool:
        return True

    def warm(self) -> None:
        """The grammar needs nothing loaded."""

    def manifest(self, presentation: object) -> Manifest:
        return anchor_segments(presentation)

    def issue(self, manifest: Manifest, identity_key: bytes, artifact_identity: tuple[str, ...]) -> Issued:
        return issue(manifest, identity_key=identity_key, artifact_identity=artifact_identity)

    def read(self, issued: Issued, body: bytes) -> Candidate:
        content = read_completion(body, ANCHOR_TOKEN_LIMITS)
        candidate = Candidate(issued.manifest, read_answer(issued, content), judge_anchor_grammar)
        candidate.body()
        return candidate


ANCHOR_GRAMMAR: Final = AnchorGrammar()

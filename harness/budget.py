"""The budget check: can an answer of each shape fit, before a call is spent? (harness spec, "budget check")

Theory of operation. A request and its answers are built through the real wire for every surface and number of slots,
under 256 fixed nonces, since an alias costs more or fewer tokens from one attempt to the next, and counted with the
model's own tokenizer. What must fit is the dearest of them; the least possible answer is the cheapest. The table is
pinned in `data/budget.json`, so that `proof` need not load a tokenizer; `budget` and a test count again.

Two questions, two columns. `possible`: does the least answer fit, placeholders and no prose? If not, no call can ever
succeed. `feasible`: does a full answer fit, every slot filled to the limit that the request names? Only that makes a
wire fit to use.

    python -m harness.budget > harness/data/budget.json     after a change of wire, limits or instructions
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import count
from types import MappingProxyType
from typing import Final

from harness.contracts import TERMS
from kexpr.codes import ANCHOR_SURFACE_OF, SlotKind, Surface, WireVersion
from kexpr.manifest import Manifest, Placeholder, PlaceholderKind, Slot
from kexpr.transport.request import CompletionRequest
from kexpr.wire.anchor_grammar import ANCHOR_GRAMMAR, GRAMMAR_OF, GrammarId
from kexpr.wire.completion import TokenLimits
from kexpr.wire.contracts import CONTRACTS
from kexpr.wire.kexp_wire import Issued, IssuedSlot, issue

__all__ = [
    "CHAT_OVERHEAD_TOKENS",
    "RATE_TOKENS_PER_SECOND",
    "READ_TIMEOUT_S",
    "REQUEST_BYTES_LIMIT",
    "SHAPES",
    "Budget",
    "Row",
    "StaleBudget",
    "compute",
    "load",
    "pinned_text",
]

REQUEST_BYTES_LIMIT: Final = 6144
READ_TIMEOUT_S: Final = 2.0
RATE_TOKENS_PER_SECOND: Final = 75
"""A stated assumption about the model's output speed; it decides the warning `slow` and nothing else."""

CHAT_OVERHEAD_TOKENS: Final = 11
"""Two messages of three tokens and a role each, and three that open the answer."""

DRAWS: Final = 256

SHAPES: Final[tuple[tuple[Surface, tuple[SlotKind, ...]], ...]] = (
    (Surface.DAILY, (SlotKind.DAILY_STATUS,)),
    (Surface.WEEKLY, (SlotKind.WEEKLY_INTERPRETATION, SlotKind.WEEKLY_RATIONALE)),
    *(
        (Surface.ADAPTIVE_DUALCOACHTEST, (SlotKind.DUAL_JUDGMENT, *[SlotKind.DUAL_REASON] * reasons))
        for reasons in range(5)
    ),
    (Surface.ADAPTIVE_PHYSIQUE, (SlotKind.PHYSIQUE_NOTICE,)),
)
"""Every surface with every number of slots it can have."""

_AVERAGE_PROSE: Final = (
    "오늘 이야기를 차분히 전해 드려요. 편한 때에 다시 열어 보셔도 괜찮아요. 이어지는 내용도 함께 살펴볼게요. "
    "천천히 따라와 주시면 고맙겠습니다. 담담하게 풀어 보면 이렇습니다. 마음을 가볍게 두고 봐 주세요. "
    "차례로 읽어 가시면 만나게 돼요. 따뜻한 마음으로 함께할게요. "
)
"""Prose of average cost: 0.63 tokens a character, where the accepted rows of the guard's corpus have 0.61."""


class StaleBudget(Exception):
    """The pinned table is of other instructions or another wire; it has to be counted again."""

    def __init__(self) -> None:
        super().__init__("stale_budget")


@dataclass(frozen=True, slots=True)
class Row:
    """One surface with one number of slots. Counts are the worst of all draws, `least_answer_tokens` the best."""

    surface: Surface
    slots: int
    limit: int
    request_bytes: int
    prompt_tokens: int
    least_answer_tokens: int
    full_answer_tokens: int
    limits: TokenLimits

    @property
    def possible(self) -> bool:
        """An answer of placeholders alone fits; without that, no call can ever succeed."""
        return self._fits(self.least_answer_tokens)

    @property
    def feasible(self) -> bool:
        """An answer that uses all of its limit fits."""
        return self._fits(self.full_answer_tokens)

    @property
    def full_answer_seconds(self) -> float:
        return round(self.full_answer_tokens / RATE_TOKENS_PER_SECOND, 2)

    @property
    def slow(self) -> bool:
        """A warning: at the stated rate a full answer outlasts the read timeout."""
        return self.full_answer_seconds > READ_TIMEOUT_S

    def counts(self) -> dict[str, object]:
        """What is pinned: everything but the limits, which are the contract's."""
        counts = {**asdict(self), "surface": self.surface.value}
        del counts["limits"]
        return counts

    def _fits(self, answer_tokens: int) -> bool:
        return (
            self.request_bytes <= REQUEST_BYTES_LIMIT
            and self.prompt_tokens <= self.limits.prompt
            and answer_tokens <= self.limits.completion
            and self.prompt_tokens + answer_tokens <= self.limits.total
        )

    def to_json(self) -> dict[str, object]:
        derived = ("possible", "feasible", "full_answer_seconds", "slow")
        return {**self.counts(), **{name: getattr(self, name) for name in derived}}


@dataclass(frozen=True, slots=True)
class Budget:
    """The table of one wire."""

    wire: WireVersion
    rows: tuple[Row, ...]

    @property
    def feasible(self) -> bool:
        return all(row.feasible for row in self.rows)

    def to_json(self) -> dict[str, object]:
        return {
            "wire": self.wire.value,
            "feasible": self.feasible,
            "limits": {
                **asdict(TERMS[self.wire].limits),
                "request_bytes": REQUEST_BYTES_LIMIT,
                "read_timeout_s": READ_TIMEOUT_S,
            },
            "rate_tokens_per_second": RATE_TOKENS_PER_SECOND,
            "rows": [row.to_json() for row in self.rows],
        }


def load(wire: WireVersion) -> Budget:
    """The pinned table, without a tokenizer; raises `StaleBudget` when it was counted for other instructions."""
    pinned = json.loads(files("harness").joinpath("data", "budget.json").read_text("utf-8"))[wire.value]
    terms = TERMS[wire]
    if pinned["instructions_digest"] != terms.instructions_digest:
        raise StaleBudget
    rows = (Row(**{**row, "surface": Surface(row["surface"])}, limits=terms.limits) for row in pinned["rows"])
    return Budget(wire, tuple(rows))


def compute(wire: WireVersion) -> Budget:
    """The table counted now, with the model's tokenizer (`o200k_base`)."""
    return Budget(wire, tuple(_row(wire, surface, kinds) for surface, kinds in SHAPES))


def pinned_text() -> str:
    """What `data/budget.json` has to hold."""
    tables = {
        wire.value: {
            "instructions_digest": TERMS[wire].instructions_digest,
            "rows": [row.counts() for row in compute(wire).rows],
        }
        for wire in WireVersion
    }
    return json.dumps(tables, indent=1) + "\n"


def _row(wire: WireVersion, surface: Surface, kinds: tuple[SlotKind, ...]) -> Row:
    tokens, forms = _tokenizer(), _FORMS[wire]
    manifest = Manifest(surface, tuple(forms.slot(kind, number) for number, kind in enumerate(kinds)))
    requests = [forms.issue(manifest, draw) for draw in range(DRAWS)]
    static = tokens(CONTRACTS[wire].instructions) + CHAT_OVERHEAD_TOKENS
    return Row(
        surface=surface,
        slots=len(kinds),
        limit=max(slot.limit for slot in requests[0].slots),
        request_bytes=max(_body_bytes(issued) for issued in requests),
        prompt_tokens=static + max(tokens(issued.content) for issued in requests),
        least_answer_tokens=min(tokens(forms.answer(issued, forms.least(issued))) for issued in requests),
        full_answer_tokens=max(
            tokens(forms.answer(issued, forms.full(issued, draw))) for draw, issued in enumerate(requests)
        ),
        limits=TERMS[wire].limits,
    )


@cache
def _tokenizer() -> Callable[[str], int]:
    """Counts tokens of the model's encoding. The package reads its own data through a deprecated call: not our news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai  # type: ignore[import-untyped]

        encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def _prose_slot(kind: SlotKind, _number: int) -> Slot:
    return Slot(kind.value, kind, (), (), (Placeholder(PlaceholderKind.SENTENCE, "."),), ".")


def _issue_prose(wire: WireVersion, manifest: Manifest, draw: int) -> Issued:
    nonces = (hashlib.sha256(b"budget %d %d" % (draw, turn)).digest()[:16] for turn in count())
    return issue(manifest, wire, identity_key=bytes(32), artifact_identity=(str(draw),), nonce=lambda: next(nonces))


def _body_bytes(issued: Issued) -> int:
    contract = CONTRACTS[issued.wire]
    request = CompletionRequest(contract.instructions, issued.content, contract.request_parameters)
    return len(_compact(request.arguments()).encode())


def _least_text(issued: Issued) -> tuple[str, ...]:
    """Each slot's placeholders and no prose: any answer that could be accepted costs more."""
    return tuple(" ".join(slot.tokens) for slot in issued.slots)


def _full_text(issued: Issued, draw: int) -> tuple[str, ...]:
    """Each slot's placeholders behind exactly `limit` characters of prose, which starts elsewhere in every slot."""
    return tuple(_prose(slot, 17 * draw + 29 * ordinal) for ordinal, slot in enumerate(issued.slots))


def _prose(slot: IssuedSlot, start: int) -> str:
    offset = start % len(_AVERAGE_PROSE)
    length = slot.limit - len(slot.tokens)
    return " ".join(((_AVERAGE_PROSE * 3)[offset : offset + length], *slot.tokens))


def _answer_1(issued: Issued, texts: tuple[str, ...]) -> str:
    slots = [
        {
            "slot": slot.alias,
            "semantic": slot.semantic,
            "actions": slot.actions,
            "placeholders": slot.tokens,
            "generated_ko": text,
        }
        for slot, text in zip(issued.slots, texts, strict=True)
    ]
    return _compact(
        {
            "schema_version": issued.wire.value,
            "surface": issued.surface.wire,
            "artifact_key": issued.key,
            "slots": slots,
        }
    )


def _answer_2(issued: Issued, texts: tuple[str, ...]) -> str:
    aliases = (slot.alias for slot in issued.slots)
    return _compact({"key": issued.key, "slots": dict(zip(aliases, texts, strict=True))})


def _anchor_slot(kind: SlotKind, number: int) -> Slot:
    """With the dearest slot id and the most anchors that the kind can have."""
    anchor = Placeholder(PlaceholderKind.NOUN if kind is SlotKind.DUAL_JUDGMENT else PlaceholderKind.SENTENCE, ".")
    anchors = (anchor,) * (2 if GRAMMAR_OF[kind].grammar_id is GrammarId.LIST else 1)
    return Slot(_ANCHOR_SLOT_IDS[kind].format(number=number), kind, (), (), anchors, ".")


_ANCHOR_SLOT_IDS: Final[Mapping[SlotKind, str]] = MappingProxyType(
    {
        SlotKind.DAILY_STATUS: "daily.status",
        SlotKind.WEEKLY_INTERPRETATION: "weekly.interpretation",
        SlotKind.WEEKLY_RATIONALE: "weekly.rationale",
        SlotKind.DUAL_JUDGMENT: "adaptive.dual.judgment",
        SlotKind.DUAL_REASON: "adaptive.dual.review.{number}",
        SlotKind.PHYSIQUE_NOTICE: "adaptive.physique.review_instruction",
    }
)


def _issue_anchors(manifest: Manifest, draw: int) -> Issued:
    return ANCHOR_GRAMMAR.issue(manifest, bytes(32), (str(draw),))


def _least_anchors(issued: Issued) -> tuple[str, ...]:
    """No lead: a no-op or not, any answer that could be accepted costs as much."""
    return _arranged(issued, min)


def _full_anchors(issued: Issued, _draw: int) -> tuple[str, ...]:
    """The longest lead and joins everywhere: the grammar has no longer text."""
    return _arranged(issued, max)


def _arranged(issued: Issued, pick: Callable[..., str]) -> tuple[str, ...]:
    texts = []
    for slot, kept in zip(issued.slots, issued.manifest.slots, strict=True):
        grammar = GRAMMAR_OF[kept.kind]
        between = pick(grammar.between, key=_tokenizer()) if len(slot.tokens) > 1 else ""
        texts.append(pick(grammar.first, key=_tokenizer()) + between.join(slot.tokens) + grammar.last)
    return tuple(texts)


def _answer_anchors(issued: Issued, texts: tuple[str, ...]) -> str:
    slots = [
        {
            "slot_id": slot.alias,
            "grammar_id": GRAMMAR_OF[kept.kind].grammar_id.value,
            "anchors": slot.tokens,
            "generated_ko": text,
        }
        for slot, kept, text in zip(issued.slots, issued.manifest.slots, texts, strict=True)
    ]
    return _compact(
        {
            "schema_version": issued.wire.value,
            "surface": ANCHOR_SURFACE_OF[issued.surface].value,
            "artifact_key": issued.key,
            "slots": slots,
        }
    )


@dataclass(frozen=True, slots=True)
class _Forms:
    """How the slots, requests and answers of one wire look; `least` and `full` are the texts of an answer."""

    slot: Callable[[SlotKind, int], Slot]
    issue: Callable[[Manifest, int], Issued]
    answer: Callable[[Issued, tuple[str, ...]], str]
    least: Callable[[Issued], tuple[str, ...]]
    full: Callable[[Issued, int], tuple[str, ...]]


def _prose_forms(wire: WireVersion, answer: Callable[[Issued, tuple[str, ...]], str]) -> _Forms:
    return _Forms(_prose_slot, partial(_issue_prose, wire), answer, _least_text, _full_text)


_FORMS: Final[Mapping[WireVersion, _Forms]] = MappingProxyType(
    {
        WireVersion.KEXP_1: _prose_forms(WireVersion.KEXP_1, _answer_1),
        WireVersion.KEXP_2: _prose_forms(WireVersion.KEXP_2, _answer_2),
        WireVersion.ANCHOR_GRAMMAR: _Forms(
            _anchor_slot, _issue_anchors, _answer_anchors, _least_anchors, _full_anchors
        ),
    }
)


def _compact(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    print(pinned_text(), end="")

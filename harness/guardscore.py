"""The guard against a labelled corpus: recall, false rejection and time (issue's `guard score` object).

A corpus is JSON lines `{id, surface, slot, placeholder, expansion, category, technique, label, text}`; `⟦p⟧` is the
placeholder and `noop` rows are not scored. A row that is refused for any reason counts as refused.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar

from kexpr.codes import SlotKind
from kexpr.guard import judge, warm
from kexpr.manifest import Placeholder, PlaceholderKind, Slot

__all__ = ["CorpusInvalid", "Label", "Row", "load_corpus", "score"]

TOKEN: Final = "⟦p⟧"
_SENTENCE: Final = "저장된 내용을 안내합니다."
_NOUN: Final = "유지 검토"
_Member = TypeVar("_Member", bound=StrEnum)


class CorpusInvalid(Exception):
    """A corpus that cannot be scored: what is wrong and on which line, never the line's content."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.line = line


class Label(StrEnum):
    ACCEPT = "accept"
    REJECT = "reject"
    NOOP = "noop"


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text in its slot."""

    id: str
    slot: Slot
    category: str
    technique: str
    label: Label
    text: str = field(repr=False)


def load_corpus(path: Path) -> tuple[Row, ...]:
    """The rows of `path`; raises `CorpusInvalid`."""
    if not path.is_file():
        raise CorpusInvalid("the corpus is not a regular file")
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError:
        raise CorpusInvalid("the corpus cannot be read") from None
    except UnicodeDecodeError:
        raise CorpusInvalid("the corpus is not UTF-8") from None
    rows = tuple(_row(line, number) for number, line in enumerate(lines, 1) if line.strip())
    if not rows:
        raise CorpusInvalid("the corpus has no rows")
    repeated = [identity for identity, times in Counter(row.id for row in rows).items() if times > 1]
    if repeated:
        raise CorpusInvalid(f"{len(repeated)} id(s) occur more than once")
    return rows


def score(rows: Iterable[Row]) -> dict[str, Any]:
    """`{rows, recall, false_rejection, us_per_text, misses, false_rejections}`; rates are None where nothing counts."""
    scored = [row for row in rows if row.label is not Label.NOOP]
    warm()
    refused, microseconds = _judged(scored)
    rejects = [row for row in scored if row.label is Label.REJECT]
    accepts = [row for row in scored if row.label is Label.ACCEPT]
    return {
        "rows": len(scored),
        "recall": {
            "overall": _rate(rejects, refused),
            "category": _by(rejects, refused, lambda row: row.category),
            "technique": _by(rejects, refused, lambda row: row.technique),
        },
        "false_rejection": {
            "overall": _rate(accepts, refused),
            "slot": _by(accepts, refused, lambda row: row.slot.kind.value),
        },
        "us_per_text": _times(microseconds),
        "misses": [row.id for row in rejects if row.id not in refused],
        "false_rejections": [row.id for row in accepts if row.id in refused],
    }


def _judged(rows: Sequence[Row]) -> tuple[frozenset[str], list[float]]:
    """(ids refused, microseconds of each judgement)."""
    refused: set[str] = set()
    microseconds: list[float] = []
    for row in rows:
        began = time.perf_counter_ns()
        decision = judge(row.text, row.slot, (TOKEN,))
        microseconds.append((time.perf_counter_ns() - began) / 1000)
        if not decision.accepted:
            refused.add(row.id)
    return frozenset(refused), microseconds


def _rate(rows: Sequence[Row], refused: frozenset[str]) -> float | None:
    return round(sum(row.id in refused for row in rows) / len(rows), 4) if rows else None


def _by(rows: Sequence[Row], refused: frozenset[str], key: Callable[[Row], str]) -> dict[str, float | None]:
    names = sorted({key(row) for row in rows})
    return {name: _rate([row for row in rows if key(row) == name], refused) for name in names}


def _times(microseconds: list[float]) -> dict[str, float | None]:
    if not microseconds:
        return {"median": None, "p99": None}
    ordered = sorted(microseconds)
    return {"median": round(median(ordered), 1), "p99": round(ordered[(len(ordered) * 99 - 1) // 100], 1)}


def _row(line: str, number: int) -> Row:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise CorpusInvalid("not JSON", number) from None
    if type(fields) is not dict:
        raise CorpusInvalid("not a JSON object", number)
    label = _member(Label, fields, "label", number)
    kind = _member(PlaceholderKind, fields, "placeholder", number)
    category = _string(fields, "category", number, optional=True)
    if label is Label.REJECT and not category:
        raise CorpusInvalid("a reject row has no category", number)
    expansion = _string(fields, "expansion", number, optional=True)
    default = _NOUN if kind is PlaceholderKind.NOUN else _SENTENCE
    try:
        placeholder = Placeholder(kind, expansion or default)
    except ValueError:
        raise CorpusInvalid("`expansion` is not NFC", number) from None
    slot_kind = _member(SlotKind, fields, "slot", number)
    return Row(
        id=_string(fields, "id", number),
        slot=Slot("corpus", slot_kind, (), (), (placeholder,), placeholder.expansion),
        category=category or "",
        technique=_string(fields, "technique", number, optional=True) or "plain",
        label=label,
        text=_string(fields, "text", number, empty=True),
    )


def _string(fields: Mapping[str, Any], key: str, number: int, *, optional: bool = False, empty: bool = False) -> str:
    value = fields.get(key)
    if value is None and optional:
        return ""
    if type(value) is not str or not (value or empty):
        raise CorpusInvalid(f"`{key}` is missing or not a string", number)
    return value


def _member(enum: type[_Member], fields: Mapping[str, Any], key: str, number: int) -> _Member:
    value = fields.get(key)
    if type(value) is str and value in enum.__members__.values():
        return enum(value)
    raise CorpusInvalid(f"`{key}` is not one of {', '.join(enum)}", number)

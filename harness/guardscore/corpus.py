"""A labelled corpus, read strictly.

It is JSON lines `{id, surface, slot, placeholder, expansion, category, technique, label, text}`; `⟦p⟧` is the
placeholder.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from kexpr.codes import SlotKind
from kexpr.manifest import Placeholder, PlaceholderKind, Slot

__all__ = ["TOKEN", "CorpusInvalid", "Label", "Row", "check_ids", "load_corpus", "numbered_lines", "rows_of"]

TOKEN: Final = "⟦p⟧"
_SENTENCE: Final = "저장된 내용을 안내합니다."
_NOUN: Final = "유지 검토"
_Member = TypeVar("_Member", bound=StrEnum)


class CorpusInvalid(Exception):
    """A corpus that cannot be scored: what is wrong and on which line, never the line's content."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem, line)
        self.problem, self.line = problem, line

    def __str__(self) -> str:
        return self.problem if self.line is None else f"line {self.line}: {self.problem}"


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
    rows = tuple(rows_of(numbered_lines(path)))
    check_ids([row.id for row in rows])
    return rows


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line) of each line that is not blank; raises `CorpusInvalid`."""
    if not path.is_file():
        raise CorpusInvalid("the corpus is not a regular file")
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError:
        raise CorpusInvalid("the corpus cannot be read") from None
    except UnicodeDecodeError:
        raise CorpusInvalid("the corpus is not UTF-8") from None


def rows_of(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """The rows of numbered lines; raises `CorpusInvalid`."""
    return (_row(line, number) for number, line in lines)


def check_ids(ids: Sequence[str]) -> None:
    """Raises `CorpusInvalid` if there are none or if one occurs more than once."""
    if not ids:
        raise CorpusInvalid("the corpus has no rows")
    repeated = sum(times > 1 for times in Counter(ids).values())
    if repeated:
        raise CorpusInvalid(f"{repeated} id(s) occur more than once")


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

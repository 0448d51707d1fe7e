"""What the guard says of each row, and on which lexicon: what a worker computes, wherever it runs.

A worker is sent lines as they stand in the file and returns no text: reading them costs half as much as judging them,
and rows cost more to send than to read.
"""

import time
from typing import NamedTuple

from harness.guardscore.corpus import TOKEN, Label, Row, rows_of
from kexpr.guard import judge, lexicon_digest, warm

__all__ = ["Chunk", "Judged", "Verdict", "judged", "verdict"]


class Verdict(NamedTuple):
    """What is known of a row once it is judged; `microseconds` are those of the judgement, where it ran."""

    id: str
    label: Label
    category: str
    technique: str
    slot: str
    refused: bool
    microseconds: float


class Judged(NamedTuple):
    """The verdicts of a chunk, in its order, and the digest of the lexicon that gave them."""

    lexicon_digest: str
    verdicts: tuple[Verdict, ...]


class Chunk:
    """Numbered lines on their way to a worker. Shows how many there are and no more, whoever logs it."""

    __slots__ = ("lines",)

    def __init__(self, lines: tuple[tuple[int, str], ...]) -> None:
        self.lines = lines

    def __repr__(self) -> str:
        return f"Chunk({len(self.lines)} lines)"


def judged(chunk: Chunk) -> Judged:
    """The verdicts of one chunk in this process; raises `CorpusInvalid`."""
    warm()
    return Judged(lexicon_digest(), tuple(map(verdict, rows_of(chunk.lines))))


def verdict(row: Row) -> Verdict:
    """Of one row; a `noop` row is not judged."""
    refused, microseconds = False, 0.0
    if row.label is not Label.NOOP:
        began = time.perf_counter_ns()
        refused = not judge(row.text, row.slot, (TOKEN,)).accepted
        microseconds = (time.perf_counter_ns() - began) / 1000
    return Verdict(row.id, row.label, row.category, row.technique, row.slot.kind.value, refused, microseconds)

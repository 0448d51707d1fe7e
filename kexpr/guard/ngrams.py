"""The second layer: how much a text's words look like those of refused texts, by their character n-grams.

Theory of operation. A linear model over the pieces of every word, one to three characters long and its edges marked,
was fitted offline to the labelled corpora (`tests.support.ngram_training`) and rounded to whole numbers: the sum is the
same on every machine. It only ever refuses. A text that the lexicon accepts is refused if the sum is over the limit,
which no harmless text of a corpus passes under a model that has not seen the corpus (`reports/guard.md`).
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from kexpr.guard.data_files import sections

__all__ = ["LONGEST", "grams", "limit", "runs", "weight"]

LONGEST: Final = 3
"""Characters of a piece, edges counted."""
_RUN: Final = re.compile("[가-힣]+")


def runs(written: str) -> list[str]:
    """The runs of Hangul in one word as written."""
    return _RUN.findall(written)


def grams(run: str) -> Iterator[str]:
    """The pieces of one run, each as often as it occurs; `^` and `$` stand for its edges."""
    yield from run
    marked = f"^{run}$"
    for length in range(2, LONGEST + 1):
        for start in range(len(marked) - length + 1):
            yield marked[start : start + length]


def weight(written: str) -> int:
    """The sum of the pieces of one word as written; positive leans towards refusal."""
    weights = _model()[1]
    return sum(weights.get(gram, 0) for run in runs(written) for gram in grams(run))


def limit() -> int:
    """The greatest sum of a text that is accepted."""
    return _model()[0]


@cache
def _model() -> tuple[int, Mapping[str, int]]:
    parts = {name: " ".join(lines).split() for name, lines in sections("ngrams.txt")}
    pairs = (entry.rsplit(":", 1) for entry in parts["weight"])
    return int(parts["limit"][0]), {gram: int(value) for gram, value in pairs}

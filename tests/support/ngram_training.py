"""Fits the weights of `kexpr.guard.ngrams` to the labelled corpora, and studies what they are worth.

`python -m tests.support.ngram_training` fits and writes the weights; with `--study` it writes nothing and prints, for
each corpus in turn, how a model that has seen only the others ranks its rows. The fit is a logistic regression with a
ridge, both labels weighing the same. The limit is the total that two in a thousand harmless rows pass under a model
that has not seen their corpus.
"""

import argparse
import hashlib
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import kexpr.guard
from harness.guardscore import Label, Row
from kexpr.guard.form import MARK, check_form
from kexpr.guard.ngrams import grams, runs
from tests.unit.guard.corpora import DEV, EXTRA, MODELLIKE, rows

__all__ = ["WEIGHTS", "corpora_digest"]

WEIGHTS: Final = Path(kexpr.guard.__file__).parent / "data" / "ngrams.txt"
TRAINED_ON: Final = (DEV, *EXTRA, MODELLIKE)
SCALE: Final = 100
RIDGE: Final = 0.3
SELDOM: Final = 2
"""Pieces of fewer rows are left out."""
SLIGHT: Final = 5
"""Weights below this are left out."""
PASSED_PERMILLE: Final = 2
"""Harmless rows of an unseen corpus that the limit may cost."""
Counts = Counter[str]
Model = tuple[Mapping[str, int], int]
"""(weight of each piece, the constant)."""
Floats = NDArray[np.float64]


def counted(row: Row) -> Counts | None:
    """The pieces of a row as the guard sees them; None if its form is refused."""
    prose = check_form(row.text, row.slot, ("⟦p⟧",))
    if not isinstance(prose, str):
        return None
    return Counter(gram for word in prose.split(" ") if MARK not in word for run in runs(word) for gram in grams(run))


def fitted(texts: Sequence[tuple[Counts, bool]]) -> Model:
    """A model of (pieces, refused) pairs."""
    rows_with = Counter(gram for counts, _ in texts for gram in counts)
    place = {gram: index for index, gram in enumerate(sorted(g for g, n in rows_with.items() if n >= SELDOM))}
    matrix = _matrix((counts for counts, _ in texts), place)
    sign = np.array([1.0 if refused else -1.0 for _, refused in texts])
    heavy = np.where(sign > 0, 1.0, (sign > 0).sum() / (sign < 0).sum())

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (matrix @ weights[:-1] + weights[-1])
        slope = -sign * heavy / (1 + np.exp(np.clip(margin, -50, 50)))
        value = (heavy * np.logaddexp(0, -margin)).sum() + (weights[:-1] ** 2).sum() / (2 * RIDGE)
        return float(value), np.append(matrix.T @ slope + weights[:-1] / RIDGE, slope.sum())

    found = minimize(loss, np.zeros(len(place) + 1), jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
    whole = np.round(found * SCALE).astype(int)
    return {gram: int(whole[at]) for gram, at in place.items() if abs(whole[at]) >= SLIGHT}, int(whole[-1])


def _matrix(texts: Iterable[Counts], place: Mapping[str, int]) -> csr_matrix:
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    for counts in texts:
        for gram, times in counts.items():
            if gram in place:
                columns.append(place[gram])
                values.append(float(times))
        ends.append(len(columns))
    return csr_matrix((values, columns, ends), shape=(len(ends) - 1, len(place)))


def total(model: Model, counts: Counts) -> int:
    weights, constant = model
    return constant + sum(weights.get(gram, 0) * times for gram, times in counts.items())


def texts_of(path: Path) -> list[tuple[Row, Counts]]:
    """The scored rows of a corpus whose form is not refused."""
    scored = [row for row in rows(path) if row.label is not Label.NOOP]
    return [(row, counts) for row in scored if (counts := counted(row)) is not None]


def unseen_totals() -> dict[Path, list[tuple[Row, int]]]:
    """Each corpus' rows with their totals under a model of the other corpora."""
    corpora = {path: texts_of(path) for path in TRAINED_ON}
    return {
        path: [
            (row, total(model, counts))
            for model in [fitted([_pair(text) for other in corpora if other != path for text in corpora[other]])]
            for row, counts in texts
        ]
        for path, texts in corpora.items()
    }


def _pair(text: tuple[Row, Counts]) -> tuple[Counts, bool]:
    return text[1], text[0].label is Label.REJECT


def corpora_digest() -> str:
    """SHA-256 (hex) over the corpora the weights were fitted to."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in TRAINED_ON)).hexdigest()


def _limit(unseen: Mapping[Path, list[tuple[Row, int]]]) -> int:
    harmless = sorted(total for rows in unseen.values() for row, total in rows if row.label is Label.ACCEPT)
    return harmless[-1 - len(harmless) * PASSED_PERMILLE // 1000]


def _written(model: Model, limit: int) -> str:
    weights, constant = model
    entries = textwrap.wrap(" ".join(f"{gram}:{value}" for gram, value in sorted(weights.items())), 100)
    head = [
        "# How much each piece of a word leans towards refusal (kexpr.guard.ngrams), in hundredths of the log odds.",
        "# Written by `python -m tests.support.ngram_training`, never by hand. SHA-256 of what it was fitted to:",
        f"# {corpora_digest()}",
    ]
    return "\n".join([*head, "", "[limit]", str(limit - constant), "", "[weight]", *entries, ""])


def _study(unseen: Mapping[Path, list[tuple[Row, int]]]) -> None:
    print("| corpus left out | refused rows above every harmless one | greatest harmless |")
    print("| --- | --- | --- |")
    for path, totals in unseen.items():
        harmless = max(total for row, total in totals if row.label is Label.ACCEPT)
        refused = [total for row, total in totals if row.label is Label.REJECT]
        share = f"{sum(total > harmless for total in refused) / len(refused):.1%}" if refused else "none refused"
        print(f"| {path.stem} | {share} | {harmless / SCALE:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", action="store_true")
    totals = unseen_totals()
    if parser.parse_args().study:
        _study(totals)
    else:
        texts = [_pair(text) for path in TRAINED_ON for text in texts_of(path)]
        WEIGHTS.write_text(_written(fitted(texts), _limit(totals)), "utf-8")

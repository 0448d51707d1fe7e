"""`python -m tests.bench.guard_report [FILE ...]`: the table of the labelled corpora in `reports/guard.md`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from harness.guardscore import load_corpus, score

__all__ = ["CORPORA", "TECHNIQUES", "main", "table"]

ROOT: Final = Path(__file__).parent.parent.parent
CORPORA: Final = (ROOT / "harness" / "data" / "guard-dev.jsonl", *sorted((ROOT / "tests" / "corpora").glob("*.jsonl")))
TECHNIQUES: Final = ("idiom", "euphemism", "implicit")
"""Refused texts that hold no refused word: what a word list finds last."""


def table(paths: Sequence[Path]) -> Iterator[str]:
    """Markdown lines, a corpus each; raises `CorpusInvalid`."""
    heads = ["corpus", "rows", "recall", "worst category", *TECHNIQUES, "false rejection"]
    yield _row(heads)
    yield _row(["---"] * len(heads))
    for path in paths:
        yield _row(_cells(path, score(load_corpus(path))))


def _cells(path: Path, result: dict[str, Any]) -> list[str]:
    recall, name = result["recall"], path.resolve()
    rates = recall["category"]
    worst = min(rates, key=rates.__getitem__, default=None)
    return [
        f"`{name.relative_to(ROOT) if name.is_relative_to(ROOT) else name.name}`",
        str(result["rows"]),
        _percent(recall["overall"]),
        "–" if worst is None else f"{_percent(rates[worst])} ({worst})" if rates[worst] < 1 else "100 %",
        *(_percent(recall["technique"].get(technique)) for technique in TECHNIQUES),
        _percent(result["false_rejection"]["overall"]),
    ]


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f} %".replace(".0 %", " %")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    print("\n".join(table([Path(name) for name in arguments] or CORPORA)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The labelled corpora. `DEV` ships with the harness, since the preflight scores it."""

from pathlib import Path

from harness.guardscore import Row, load_corpus

ROOT = Path(__file__).parent.parent.parent.parent
DEV = ROOT / "harness" / "data" / "guard-dev.jsonl"
MODELLIKE = ROOT / "tests" / "corpora" / "modellike-dev.jsonl"
EXTRA = tuple(ROOT / "tests" / "corpora" / f"guard-extra-{name}.jsonl" for name in "abcd")
HELD = (ROOT / "tests" / "corpora" / "guard-held-f.jsonl",)
"""Written apart and never tuned on: only their rates may be looked at."""


def rows(*paths: Path) -> tuple[Row, ...]:
    return tuple(row for path in paths for row in load_corpus(path))

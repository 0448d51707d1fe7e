"""`python -m tests.bench.guard_libraries --corpus FILE [--rounds N]`: the guard beside what else works offline.

All contenders judge the same rows in turn, round by round; a time is the median over the rounds of a round's mean. None
of the libraries is a dependency: install those to be measured in a throw-away environment and put its `site-packages`
on PYTHONPATH. One that is not there is named and skipped. The corpus is printed as rates only.
"""

import argparse
import gc
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from harness.guardscore import TOKEN, CorpusInvalid, Label, Row, load_corpus
from kexpr.guard import judge, warm
from tests.bench.calls import judge_eight_slots_us
from tests.bench.guard_contenders import CONTENDERS, Refuses
from tests.bench.guard_speed import forget_words

__all__ = ["Measured", "main", "measure", "rates"]

Refusals = Callable[[Row], bool]
TRICKS: Final = frozenset({"hanja", "jamo", "punctuation", "respelling", "spacing"})


class Measured(NamedTuple):
    """Median microseconds a text, and shares of the rows that were refused."""

    name: str
    us: float
    recall: float
    plain_recall: float
    """Of the reject rows that are refused for their words as written: no trick of spelling, no fault of form."""
    false_rejection: float


def guard(row: Row) -> bool:
    return not judge(row.text, row.slot, (TOKEN,)).accepted


def _on_text(refuses: Refuses) -> Refusals:
    return lambda row: refuses(row.text)


def contenders() -> tuple[dict[str, Refusals], dict[str, str]]:
    """(those that are here, why the others are not)."""
    here: dict[str, Refusals] = {"kexpr's guard": guard, "kexpr's guard, no word seen before": guard}
    missing = {}
    for name, build in CONTENDERS.items():
        try:
            here[name] = _on_text(build())
        except ImportError as error:
            missing[name] = str(error)
    return here, missing


def rates(refuses: Refusals, rows: Sequence[Row]) -> tuple[float, float, float]:
    """(recall, recall without tricks and faults of form, false rejection)."""
    rejects = [row for row in rows if row.label is Label.REJECT]
    plain = [row for row in rejects if row.technique not in TRICKS and row.category != "form"]
    accepts = [row for row in rows if row.label is Label.ACCEPT]
    return _share(refuses, rejects), _share(refuses, plain), _share(refuses, accepts)


def _share(refuses: Refusals, rows: Sequence[Row]) -> float:
    return sum(map(refuses, rows)) / len(rows) if rows else 0.0


def measure(here: dict[str, Refusals], rows: Sequence[Row], rounds: int) -> list[Measured]:
    times: dict[str, list[float]] = {name: [] for name in here}
    for _ in range(rounds):
        for name, refuses in here.items():
            if name.endswith("no word seen before"):
                forget_words()
            gc.collect()
            began = time.perf_counter()
            for row in rows:
                refuses(row)
            times[name].append((time.perf_counter() - began) / len(rows) * 1e6)
    return [Measured(name, median(times[name]), *rates(refuses, rows)) for name, refuses in here.items()]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.guard_libraries")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    try:
        rows = [row for row in load_corpus(options.corpus) if row.label is not Label.NOOP]
    except CorpusInvalid as error:
        parser.error(str(error))
    warm()
    eight = median(judge_eight_slots_us() for _ in range(options.rounds))  # before anything heavy is imported
    here, missing = contenders()
    print(f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}")
    print(f"{len(rows)} rows, {options.rounds} rounds in turn, medians\n")
    print("| what | µs a text | recall | recall, no tricks | false rejection |\n| --- | --- | --- | --- | --- |")
    for name, us, *shares in measure(here, rows, options.rounds):
        print(f"| {name} | {us:.0f} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
    print(f"\nStrict response and guard, 8 slots of recorded prose: {eight:.0f} µs.")
    for name, why in missing.items():
        print(f"Skipped: {name}: {why}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

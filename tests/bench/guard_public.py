"""`python -m tests.bench.guard_public DIR [--show N]`: what the guard says of the lines of plain-text files.

Each line is put into a daily slot twice, after the placeholder and before it, and each placement is judged. Files named
`claims*` or `instruct*` hold what must be refused, any other holds what is only everyday Korean. The tables hold counts
only; `--show N` prints N lines each of the accepted and of those refused by a category, for reading on this machine.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.guardscore import TOKEN
from kexpr.codes import Reason, SlotKind
from kexpr.guard import judge, warm
from kexpr.manifest import Placeholder, PlaceholderKind, Slot

__all__ = ["Placed", "main", "place", "placements", "tables"]

_SENTENCE: Final = Placeholder(PlaceholderKind.SENTENCE, "저장된 내용을 안내합니다.")
SLOT: Final = Slot("public", SlotKind.DAILY_STATUS, (), (), (_SENTENCE,), _SENTENCE.expansion)
ACCEPTED: Final = "accepted"
FORBIDDEN: Final = ("claims", "instruct")
LENGTHS: Final = ((1, 10), (11, 20), (21, 40), (41, 150))
SEED: Final = 7


class Placed(NamedTuple):
    """A line in its slot and the reason code it was refused with, or `ACCEPTED`."""

    line: str
    reason: str


def placements(line: str) -> tuple[str, str]:
    """The line after and before the placeholder; before it, a line without an end is closed."""
    return f"{TOKEN} {line}", f"{line if line[-1] in '.!?…' else f'{line}.'} {TOKEN}"


def place(path: Path) -> list[Placed]:
    """The verdict on each placement of each line of `path` that is not blank."""
    lines = filter(None, map(str.strip, path.read_text("utf-8").splitlines()))
    return [Placed(line, judge(text, SLOT, (TOKEN,)).reason or ACCEPTED) for line in lines for text in placements(line)]


def _family(reason: str) -> str:
    known = (ACCEPTED, Reason.GUARD_VOCABULARY, Reason.FORM_TOO_LONG)
    return reason if reason in known else reason.partition(".")[0]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)
    yield ""


def tables(judged: dict[str, list[Placed]]) -> Iterator[str]:
    """Markdown lines: what became of each file, the categories it was refused for, and what was accepted by length."""
    fit = {name: [each for each in placed if each.reason != Reason.FORM_TOO_LONG] for name, placed in judged.items()}
    whole = []
    for name, placed in fit.items():
        families = Counter(_family(each.reason) for each in placed)
        shares = [_percent(families[key], len(placed)) for key in (ACCEPTED, "guard", Reason.GUARD_VOCABULARY, "form")]
        whole.append([f"`{name}`", len(placed), len(judged[name]) - len(placed), *shares])
    yield from _table(["file", "judged", "too long", "accepted", "a category", "vocabulary only", "form"], whole)

    reasons = sorted({each.reason for placed in fit.values() for each in placed} - {ACCEPTED})
    counts = {name: Counter(each.reason for each in placed) for name, placed in fit.items()}
    refusals = [[f"`{why}`", *(_percent(counts[name][why], len(fit[name])) for name in fit)] for why in reasons]
    yield from _table(["refused for", *(f"`{name}`" for name in fit)], refusals)

    leaks = []
    for name, placed in fit.items():
        if name.startswith(FORBIDDEN):
            spans = [[each for each in placed if low <= len(each.line) <= high] for low, high in LENGTHS]
            leaks.append([f"`{name}`", *(_share_accepted(span) for span in spans)])
    heads = [f"{low}–{high} characters" for low, high in LENGTHS]
    yield from _table(["accepted of the forbidden", *heads], leaks)


def _share_accepted(placed: list[Placed]) -> str:
    return f"{_percent(sum(each.reason == ACCEPTED for each in placed), len(placed))} of {len(placed)}"


def _shown(name: str, placed: list[Placed], count: int) -> Iterator[str]:
    passed = [each for each in placed if each.reason == ACCEPTED]
    named = [each for each in placed if _family(each.reason) == "guard"]
    for title, group in (("accepted", passed), ("a category", named)):
        distinct = list(dict.fromkeys(group))
        yield f"## {name}: {title}, {len(distinct)} lines"
        for each in random.Random(SEED).sample(distinct, min(count, len(distinct))):
            yield f"{each.reason}\t{each.line}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.guard_public")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N lines of each kind, too")
    options = parser.parse_args(arguments)
    warm()
    judged = {path.stem: place(path) for path in sorted(options.directory.glob("*.txt"))}
    print("\n".join(tables(judged)))
    if options.show:
        for name, placed in judged.items():
            print("\n".join(_shown(name, placed, options.show)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

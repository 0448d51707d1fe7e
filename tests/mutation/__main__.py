"""`python -m tests.mutation [--only TEXT] [--table FILE]`: put each defect into a copy of the project, run its tests.

Every defect has to be noticed: some test of its suite fails. Without a defect the same tests pass, which is checked
first. Exit 0: all were noticed, 1: one was not, or the tests fail without any.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.defects import DEFECTS, SUITES, Defect

ROOT = Path(__file__).parents[2]
_COPIED = ("kexpr", "harness", "tests", "docs", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Noticed:
    """`by` is the first test that failed, empty where none did."""

    defect: Defect
    by: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--only", default="", help="defects whose words hold this")
    parser.add_argument("--table", type=Path, help="write the table here")
    options = parser.parse_args()
    chosen = [defect for defect in DEFECTS if options.only in defect.what]
    with tempfile.TemporaryDirectory(prefix="kexpr-mutation-") as directory:
        copy = Path(directory)
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        for suite in sorted({defect.suite for defect in chosen}):
            failed = first_failure(copy, SUITES[suite])
            if failed:
                print(f"{suite} fails without a defect: {failed}", file=sys.stderr)
                return 1
        results = [tried(copy, defect) for defect in chosen]
    if options.table:
        options.table.write_text(table_of(results), "utf-8")
    return 0 if all(result.by for result in results) else 1


def tried(copy: Path, defect: Defect) -> Noticed:
    path = copy / defect.path
    original = path.read_text("utf-8")
    if original.count(defect.before) != 1:
        raise SystemExit(f"{defect.path}: the text of {defect.what!r} is not there exactly once")
    path.write_text(original.replace(defect.before, defect.after), "utf-8")
    started = time.monotonic()
    try:
        by = first_failure(copy, SUITES[defect.suite])
    finally:
        path.write_text(original, "utf-8")
    result = Noticed(defect, by, time.monotonic() - started)
    print(f"{'noticed' if by else 'NOT NOTICED'}  {defect.what}  {by}  {result.seconds:.0f} s", flush=True)
    return result


def first_failure(copy: Path, tests: tuple[str, ...]) -> str:
    """The first test that fails, in the words of pytest; empty when all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode == 0:
        return ""
    named = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return named[0].split(" ")[1].partition(" - ")[0] if named else f"pytest exit {done.returncode}"


def table_of(results: list[Noticed]) -> str:
    rows = "\n".join(
        f"| {result.defect.what} | `{result.defect.path}` | `{result.by or 'NOT NOTICED'}` |" for result in results
    )
    noticed = sum(bool(result.by) for result in results)
    return f"""# Defects put into the protocol code

{noticed} of {len(results)} noticed. Each defect is one replacement in a copy of the project; named is the first test
that failed. Made by `python -m tests.mutation --table reports/mutations.md`, which also checks that the same tests pass
without a defect.

| defect | in | noticed by |
| --- | --- | --- |
{rows}
"""


if __name__ == "__main__":
    sys.exit(main())

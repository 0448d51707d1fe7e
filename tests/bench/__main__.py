"""`python -m tests.bench [--markdown]`: the bars that can be measured in a minute, ratios side by side.

Run it on the machine's disk: scratch directories are made in the working directory.
"""

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.calls import attempt_over_fsyncs, disabled_us, judge_eight_slots_us
from tests.bench.processes import alternate, measure

BIN = Path(sys.executable).parent
BASE = "import json, ssl, logging, dataclasses"
Row = tuple[str, str, str, bool]


def rows() -> Iterator[Row]:
    """(what, measured, bar, met)."""
    proof = [str(BIN / "kexpr-harness"), "proof", "--out", "{dir}"]
    ours, loop, ratio = alternate(proof, [sys.executable, "-m", "tests.bench.sdk_loop"], 5)
    measured = f"{ours.wall_s:.2f} s / {loop.wall_s:.2f} s = {ratio:.2f}"
    yield "48-call proof over a plain SDK loop of 48 calls, wall", measured, "≤ 1.5", ratio <= 1.5
    yield "48-call proof, peak memory", f"{ours.peak_mb:.0f} MB", "≤ 130 MB", ours.peak_mb <= 130
    for name, command in (
        ("`kexpr --help`", [str(BIN / "kexpr"), "--help"]),
        ("`kexpr-harness --help`", [str(BIN / "kexpr-harness"), "--help"]),
    ):
        wall_s = min(measure(command).wall_s for _ in range(5))
        yield name, f"{wall_s:.2f} s", "≤ 0.3 s", wall_s <= 0.3
    python = [sys.executable, "-c"]
    _, _, imported = alternate([*python, "import kexpr"], [*python, BASE], 9)
    yield f"`import kexpr` over `{BASE}`", f"{imported:.2f}", "≤ 1.5", imported <= 1.5
    disabled = disabled_us(Path.cwd())
    yield "disabled `present()`", f"{disabled:.1f} µs", "≤ 10 µs", disabled <= 10
    for path, (attempt, alone, count, over) in attempt_over_fsyncs(Path.cwd()).items():
        measured = f"{attempt:.2f} ms / {alone:.2f} ms ({count} fsyncs) = {over:.2f}"
        yield f"one {path} attempt, instant provider, over its fsyncs alone", measured, "≤ 2.5", over <= 2.5
    judged = judge_eight_slots_us()
    yield "strict response and guard, 8 slots", f"{judged:.0f} µs", "≤ 300 µs", judged <= 300


def main() -> int:
    print(f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}\n")
    print("| what | measured | bar | |\n| --- | --- | --- | --- |")
    missed = 0
    for what, measured, bar, met in rows():
        print(f"| {what} | {measured} | {bar} | {'met' if met else 'MISSED'} |", flush=True)
        missed += not met
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

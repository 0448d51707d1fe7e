"""Rates and times of the verdicts on a corpus. A row that is refused for any reason counts as refused."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from harness.guardscore.corpus import Label, Row, check_ids
from harness.guardscore.schedulers import Run, in_bulk, verdicts_of
from harness.guardscore.verdicts import Verdict, verdict
from kexpr.guard import warm

__all__ = ["score", "score_file"]


def score(rows: Iterable[Row]) -> dict[str, Any]:
    """`{rows, recall, false_rejection, us_per_text, misses, false_rejections}`; rates are None where nothing counts.

    `noop` rows are not scored.
    """
    warm()
    return _rates([verdict(row) for row in rows])


def score_file(path: Path, run: Run = in_bulk) -> dict[str, Any]:
    """The `score` of the corpus at `path`, wherever it is judged; raises `CorpusInvalid` and `SchedulerUnusable`."""
    verdicts = verdicts_of(path, run)
    check_ids([verdict.id for verdict in verdicts])
    return _rates(verdicts)


def _rates(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    rejects = [verdict for verdict in verdicts if verdict.label is Label.REJECT]
    accepts = [verdict for verdict in verdicts if verdict.label is Label.ACCEPT]
    return {
        "rows": len(rejects) + len(accepts),
        "recall": {
            "overall": _rate(rejects),
            "category": _by(rejects, lambda verdict: verdict.category),
            "technique": _by(rejects, lambda verdict: verdict.technique),
        },
        "false_rejection": {"overall": _rate(accepts), "slot": _by(accepts, lambda verdict: verdict.slot)},
        "us_per_text": _times([verdict.microseconds for verdict in (*rejects, *accepts)]),
        "misses": [verdict.id for verdict in rejects if not verdict.refused],
        "false_rejections": [verdict.id for verdict in accepts if verdict.refused],
    }


def _rate(verdicts: Sequence[Verdict]) -> float | None:
    return round(sum(verdict.refused for verdict in verdicts) / len(verdicts), 4) if verdicts else None


def _by(verdicts: Sequence[Verdict], key: Callable[[Verdict], str]) -> dict[str, float | None]:
    groups: dict[str, list[Verdict]] = {}
    for each in verdicts:
        groups.setdefault(key(each), []).append(each)
    return {name: _rate(groups[name]) for name in sorted(groups)}


def _times(microseconds: list[float]) -> dict[str, float | None]:
    if not microseconds:
        return {"median": None, "p99": None}
    ordered = sorted(microseconds)
    return {"median": round(median(ordered), 1), "p99": round(ordered[(len(ordered) * 99 - 1) // 100], 1)}

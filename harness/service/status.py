"""The status page: surfaces x phases, fourteen days, the last run. No script, one style sheet, closed codes only."""

import base64
import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from html import escape
from importlib.resources import files
from typing import Final

from harness.evidence.rows import RunKind
from harness.evidence.summary import Calls, EvidenceSummary
from harness.profiles import Pair
from harness.readiness.model import PairReadiness, Phase, PhaseReadiness, Readiness
from harness.reading import Reading
from harness.verdict import Verdict
from kexpr import __version__

__all__ = ["POLICY_OF_STATUS", "Schedule", "document", "reports_page", "status_page"]

DAYS: Final = 14
_STYLE: Final = files("harness.service").joinpath("status.css").read_text("utf-8")
_STYLE_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY_OF_STATUS: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the pages made here: their one style sheet, and nothing else."""

_CLASS: Final = {
    Verdict.READY: "good",
    Verdict.NOT_READY: "bad",
    Verdict.INVALID: "bad",
    Verdict.INSUFFICIENT: "wait",
    Verdict.REHEARSAL: "plain",
}
_WORD: Final = {
    Verdict.READY: "ready",
    Verdict.NOT_READY: "not ready",
    Verdict.INVALID: "invalid",
    Verdict.INSUFFICIENT: "not yet",
    Verdict.REHEARSAL: "rehearsal",
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """What the service's own scheduler says about itself: the word of its last round, and when it ended."""

    last: str | None
    last_utc_ms: int | None


@dataclass(frozen=True, slots=True)
class _Day:
    css: str
    glyph: str
    word: str


_COVERED: Final = _Day("good", "✓", "covered")
_FAILED: Final = _Day("bad", "✕", "failed")
_MISSED: Final = _Day("wait", "–", "missed")
_OPEN: Final = _Day("plain", "…", "not over")
_BEFORE: Final = _Day("plain", "·", "not begun")
_LEGEND: Final = (_COVERED, _FAILED, _MISSED, _OPEN, _BEFORE)


def document(title: str, body: str) -> bytes:
    """A whole page. `body` is HTML; `title` is text."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    ).encode()


def status_page(reading: Reading, *, stale: bool, reports: bool, schedule: Schedule | None) -> bytes:
    readiness = reading.readiness
    pairs = "".join(_pair(readiness, judged) for judged in readiness.pairs)
    legend = "".join(f"<li><span aria-hidden='true'>{day.glyph}</span> {day.word}</li>" for day in _LEGEND)
    link = (
        '<p><a href="/reports/">Reports</a>: verdicts in full, with the next step and its rollback.</p>'
        if reports
        else ""
    )
    body = (
        "<main><h1>Shadow evaluation</h1>"
        f'<p class="soft">As of {readiness.as_of}, read {_time(reading.utc_ms)}. '
        "This page informs; it grants nothing.</p>"
        f"{_fault(reading, stale=stale)}{_facts(readiness.summary, schedule)}{link}"
        f'<h2>Surfaces</h2><ul class="pairs">{pairs}</ul><ul class="legend">{legend}</ul>'
        f'<h2>Evidence</h2><p class="mono">head {readiness.summary.head.sequence}:{readiness.summary.head.digest}</p>'
        f'<p class="soft">kexpr {escape(__version__)} · <a href="/metrics">metrics</a></p></main>'
    )
    return document("kexpr: shadow evaluation", body)


def reports_page(names: tuple[str, ...]) -> bytes:
    """A list of the written reports, for a directory without an index of its own."""
    items = "".join(f'<li><a href="/reports/{escape(name)}">{escape(name)}</a></li>' for name in names)
    listed = f"<ul>{items}</ul>" if names else '<p class="soft">None was written yet.</p>'
    return document("kexpr: reports", f'<main><h1>Reports</h1>{listed}<p><a href="/">Status</a></p></main>')


def _fault(reading: Reading, *, stale: bool) -> str:
    if reading.fault is not None:
        text = f"The evidence cannot be read or is not intact: {reading.fault.value}. What follows was verified before."
    elif stale:
        text = "The evidence could not be read in time. What follows is older."
    else:
        return ""
    return f'<p class="fault" role="alert">{text}</p>'


def _facts(summary: EvidenceSummary, schedule: Schedule | None) -> str:
    candidate = summary.candidate
    facts = {"Candidate": "none yet", "Restarts": "0", "Last run": _time(summary.last_run_utc_ms)}
    if candidate is not None:
        facts["Candidate"] = candidate.candidate.id + (f" (ended: {candidate.ended.value})" if candidate.ended else "")
        facts["Restarts"] = str(candidate.candidate.restart)
    facts["Calls in progress"] = str(summary.in_progress)
    if schedule is not None:
        facts["Scheduler"] = f"{schedule.last or 'waiting'}, {_time(schedule.last_utc_ms)}"
    cells = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{cells}</dl>'


def _pair(readiness: Readiness, judged: PairReadiness) -> str:
    phases = "".join(_phase(phase, now=phase.phase is judged.phase) for phase in judged.phases)
    window = judged.window
    counts = f"{window.days} of {DAYS} days, {window.accepted} accepted, {window.failures} failed"
    gaps = f", {window.gaps} not covered" if window.gaps else ""
    return (
        f'<li class="pair"><div><h3>{judged.pair.profile.value} <span class="soft">/</span> '
        f'{judged.pair.surface.value}</h3><p class="soft">{counts}{gaps}</p>{_why(judged)}</div>'
        f'<ol class="phases" aria-label="Phases">{phases}</ol>{_strip(readiness, judged.pair)}</li>'
    )


def _phase(phase: PhaseReadiness, *, now: bool) -> str:
    css = _CLASS[phase.verdict] + (" now" if now else "")
    current = ' aria-current="step"' if now else ""
    return f'<li class="{css}"{current}><b>{phase.phase.value}</b>{_WORD[phase.verdict]}</li>'


def _why(judged: PairReadiness) -> str:
    """The gate that keeps the current phase from being passed."""
    phase = _current(judged.phases, judged.phase)
    gate = phase.deciding
    if gate.reason is None:
        return ""
    seen = f"observed {gate.observed}, required {gate.required}"
    return f'<p class="soft">{phase.phase.value} {gate.code.value}: {gate.reason.value} ({seen})</p>'


def _current(phases: tuple[PhaseReadiness, ...], phase: Phase) -> PhaseReadiness:
    return next(judged for judged in phases if judged.phase is phase)


def _strip(readiness: Readiness, pair: Pair) -> str:
    """One square a day, oldest first, with a glyph and a word as well as a colour."""
    squares = "".join(
        f'<li class="{state.css}"><span aria-hidden="true">{state.glyph}</span>'
        f'<span class="unseen">{day.isoformat()} {state.word}</span><small aria-hidden="true">{day.day}</small></li>'
        for day, state in _days(readiness, pair)
    )
    return f'<ol class="strip" aria-label="Last {DAYS} days">{squares}</ol>'


def _days(readiness: Readiness, pair: Pair) -> list[tuple[date, _Day]]:
    calls: dict[str, Calls] = {}
    for cell, count in readiness.summary.pairs[pair].cells.items():
        if cell.run_kind is RunKind.OBSERVATION:
            calls[cell.date] = calls.get(cell.date, Calls()) + count
    today = date.fromisoformat(readiness.as_of)
    first = min(calls, default=readiness.as_of)
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    return [(day, _state(calls.get(day.isoformat()), day, first, today)) for day in days]


def _state(calls: Calls | None, day: date, first: str, today: date) -> _Day:
    if calls is None or not calls.intents:
        if day == today:
            return _OPEN
        return _BEFORE if day.isoformat() < first else _MISSED
    if calls.failures:
        return _FAILED
    return _COVERED if calls.accepted else _OPEN


def _time(utc_ms: int | None) -> str:
    if utc_ms is None:
        return "never"
    return datetime.fromtimestamp(utc_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")

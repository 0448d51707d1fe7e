"""`kexpr-harness report`, `approve` and `verify-report`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from harness.commands.shared import Stop, print_json, stops
from kexpr.exits import Exit

if TYPE_CHECKING:
    from kexpr.ledger.protocol import Head

__all__ = ["approve_command", "report_command", "verify_command"]

STATE: Final = click.option(
    "--state", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory of the evidence."
)
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_REFUSED: Final = {
    "no_evidence": ("there is no evidence", Exit.INVALID),
    "call_in_progress": ("a call is in progress; write the report when it has ended", Exit.INSUFFICIENT),
    "other_policy": ("the candidate was pinned under another gate policy", Exit.INVALID),
    "day_before_evidence": ("the evidence goes on after that day; name a later one", Exit.USAGE),
}


def _day(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    from harness.report.reference import is_day

    if value is not None and not is_day(value):
        raise click.BadParameter("not a day as YYYY-MM-DD")
    return value


def _anchor(_: click.Context, __: click.Parameter, value: str | None) -> "Head | None":
    from harness.report.reference import parse_head

    head = None if value is None else parse_head(value)
    if value is not None and head is None:
        raise click.BadParameter("not a head as SEQUENCE:DIGEST")
    return head


def _approver(_: click.Context, __: click.Parameter, value: str) -> str:
    from harness.evidence.rows import APPROVER_PATTERN

    if not re.fullmatch(APPROVER_PATTERN, value, re.ASCII):
        raise click.BadParameter(f"not an opaque name that matches {APPROVER_PATTERN}")
    return value


ANCHOR: Final = click.option(
    "--anchor", metavar="SEQ:DIGEST", callback=_anchor, help="Newest head kept elsewhere; the chain must contain it."
)


@click.command("report")
@STATE
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory to write to.")
@click.option(
    "--as-of", metavar="YYYY-MM-DD", callback=_day, help="UTC day to judge on.  [default: the last day of the evidence]"
)
@ANCHOR
@click.option("--lang", type=click.Choice(["en", "ko"]), default="en", show_default=True, help="Language of the words.")
@JSON
def report_command(state: Path, out: Path, as_of: str | None, anchor: "Head | None", lang: str, as_json: bool) -> int:
    """Write a report for each profile x surface and an index: canonical JSON, and from it HTML, Markdown and CSV.

    The same evidence, day, anchor and language give the same bytes. Exit 0: all ready, 1: not ready, 3: evidence
    invalid, 5: evidence missing, 6: rehearsal only; of several the highest.
    """
    from harness.proof.session import EVIDENCE
    from harness.report.catalogue import Language
    from harness.report.files import rendered, write_all
    from harness.report.reference import head_text
    from harness.report.source import judge_now
    from harness.verdict import EXIT_OF_REPORT

    with _refusals(state):
        judged = judge_now(state / EVIDENCE, as_of, anchor)
    with stops(out):
        write_all(out, rendered(judged.documents(), Language(lang)))
    readiness = judged.readiness
    verdicts = [{"pair": str(it.pair), "phase": it.phase, "verdict": it.verdict} for it in readiness.pairs]
    head = head_text(readiness.summary.head)
    if as_json:
        print_json({"as_of": readiness.as_of, "evidence_head": head, "pairs": verdicts})
    else:
        click.echo(f"as of {readiness.as_of} · evidence head {head}")
        for line in verdicts:
            click.echo(f"{line['pair']:40}{line['phase']}  {line['verdict']}")
        click.echo(f"reports in {out}: index.html and one page for each surface", err=True)
    return max(EXIT_OF_REPORT[it.verdict] for it in readiness.pairs)


@click.command("verify-report")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@STATE
@ANCHOR
@JSON
def verify_command(file: Path, state: Path, anchor: "Head | None", as_json: bool) -> int:
    """Make a report (JSON, HTML, Markdown or CSV) again from the evidence that it names, and compare the bytes.

    Exit 0: the same, 1: not the same, or no report, 3: the evidence does not contain what the report or the anchor
    names, or is invalid. Whether the verdict was good is not asked here.
    """
    from harness.proof.session import EVIDENCE
    from harness.report.files import read_report
    from harness.report.verify import verify

    with _refusals(file):
        data = read_report(file)
        verified = None if data is None else verify(data, state / EVIDENCE, anchor)
    if as_json:
        reference = None if verified is None else str(verified.reference)
        print_json({"verified": verified is not None, "reference": reference})
    elif verified is None:
        click.echo("differs: these are not the bytes that the evidence gives")
    else:
        click.echo(f"verified {verified.reference}")
    return Exit.NOT_GOOD if verified is None else Exit.GOOD


@click.command("approve")
@STATE
@click.option("--report", "report", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Report read.")
@click.option("--phase", required=True, type=click.Choice(["P3", "P4", "P5"]), help="Phase that is approved.")
@click.option("--approver", required=True, metavar="ID", callback=_approver, help="Opaque id of the person.")
@click.option(
    "--config", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The gateway's next file."
)
@JSON
def approve_command(state: Path, report: Path, phase: str, approver: str, config: Path, as_json: bool) -> int:
    """Record that a person approved the next phase of one surface on one profile.

    The report must be what the evidence gives, READY, and still so today; the file's feature block must be exactly that
    of the phase. Nothing is enabled by it. Exit 0: recorded, 1: refused, 3: evidence or file invalid, 5: evidence
    missing, 6: a rehearsal, which can never be approved.
    """
    from harness.observation.run import utc_day
    from harness.proof.session import EVIDENCE
    from harness.readiness.model import Phase
    from harness.report.approve import ApprovalRefused, Request, approve
    from harness.report.files import read_report
    from harness.report.reference import head_text
    from harness.verdict import EXIT_OF_REPORT
    from kexpr.clock import SystemClock

    today = utc_day(SystemClock()).isoformat()
    with stops(report):
        data = read_report(report) or b""
    try:
        with _refusals(config):
            done = approve(state / EVIDENCE, data, Request(Phase(phase), approver, config, today))
    except ApprovalRefused as refused:
        code = EXIT_OF_REPORT[refused.verdict] if refused.verdict else Exit.NOT_GOOD
        raise Stop(f"not approved: {refused.code}", max(code, Exit.NOT_GOOD)) from None
    head = head_text(done.head)
    if as_json:
        digests = {"report_digest": done.report_digest, "config_digest": done.config_digest}
        print_json({"pair": str(done.pair), "phase": phase, **digests, "evidence_head": head})
    else:
        click.echo(f"approved {phase} for {done.pair} · report {done.report_digest} · config {done.config_digest}")
        click.echo(f"evidence head {head}")
    return Exit.GOOD


@contextmanager
def _refusals(what: object) -> Iterator[None]:
    from harness.report.source import ReportRefused

    try:
        with stops(what):
            yield
    except ReportRefused as refused:
        message, code = _REFUSED[refused.code]
        raise Stop(message, code) from None

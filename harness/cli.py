"""`kexpr-harness`: results on stdout, everything else on stderr, exit codes of `kexpr.exits`."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.commands.observe import audit_command, ingest_command, observe
from harness.commands.report import approve_command, report_command, verify_command
from harness.commands.serve import serve_command
from harness.commands.shared import (
    CONTRACT,
    CONTRACTS,
    LIVE_SWITCH,
    OPEN_PROSE,
    WIRE,
    Stop,
    print_json,
    require_live,
    scheduler_address,
    stops,
    warn,
    wire_of,
)
from kexpr import __version__
from kexpr.exits import Exit

if TYPE_CHECKING:
    from harness.budget import Budget

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns an exit code. A fault of our own is one line: a traceback could hold content."""
    try:
        return int(cli.main(args=argv, prog_name="kexpr-harness", standalone_mode=False) or 0)
    except Stop as stop:
        stop.show()
        return stop.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception:  # noqa: BLE001 - a crash must not read as "not good"
        click.echo("kexpr-harness: internal error", err=True)
        return Exit.INTERNAL


@click.group(help="Shadow evaluation of kexpr. Nothing is ever sent to a customer.")
@click.version_option(__version__, prog_name="kexpr-harness")
def cli() -> None:
    """The command group."""


@cli.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the evidence and results; an unfinished proof in it goes on. Default: a new one here.",
)
@CONTRACT
@WIRE
@click.option("--live", is_flag=True, help=f"Spend 48 real calls; needs {LIVE_SWITCH}=1 and OPENAI_API_KEY.")
@click.option("--fault", "faults", multiple=True, metavar="NAME@CALL", help="Make the rehearsal provider misbehave.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the summary line.")
def proof(out: Path | None, contract: str, wire: str | None, live: bool, faults: tuple[str, ...], as_json: bool) -> int:
    """Run the controlled proof: 48 real coordinator paths in shadow, one request each.

    The provider is an embedded rehearsal, which can satisfy no gate, unless --live. Exit 0: clean, 1: a call failed,
    2: usage, 3: evidence or preflight invalid, 4: internal error.
    """
    from harness.policy import POLICY
    from harness.progress import progress_of
    from harness.proof.session import Options, prove
    from harness.rehearsal.faults import FaultPlan, FaultPlanError
    from harness.verdict import EXIT_OF_PROOF

    if live and faults:
        raise click.UsageError("--fault is for the rehearsal provider; it does not go with --live")
    require_live(live=live)
    version = wire_of(contract, wire)
    try:
        plan = FaultPlan.parse(faults)
    except FaultPlanError as error:
        raise click.UsageError(str(error)) from None
    directory = out or Path(f"proof-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    with stops(directory), progress_of("calls", POLICY.proof_total) as advance:
        result = prove(Options(directory, version, live, plan), advance, warn)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(f"results in {directory}: proof.md, proof.json, metrics.prom, evidence/", err=True)
        click.echo(f"evidence head {result.head.sequence}:{result.head.digest}")
        click.echo(result.line)
    return EXIT_OF_PROOF[result.verdict]


@cli.command("budget")
@click.option("--contract", type=click.Choice(CONTRACTS), help="Only this contract; exit 3 when it is infeasible.")
@click.option("--wire", type=click.Choice(["1", "2"]), help="Only this wire of open prose; the same.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def budget_command(contract: str | None, wire: str | None, as_json: bool) -> int:
    """Count the token budget of each surface and slot count with the model's tokenizer.

    Exit 0: every row of the wire is feasible, 3: some row is not, or the pinned table is stale. Without --wire and
    --contract, wire 2 and the anchor grammar decide, since they are those a proof uses; wire 1 is only shown.
    """
    from harness import budget
    from kexpr.codes import WireVersion

    only = wire_of(contract or OPEN_PROSE, wire) if wire or contract else None
    tables = [budget.compute(version) for version in ([only] if only else WireVersion)]
    stale = [table.wire for table in tables if not _is_pinned(table)]
    for version in stale:
        click.echo(f"the pinned table of {version} is stale", err=True)
    if as_json:
        print_json(tables[0].to_json() if only else {"wires": [table.to_json() for table in tables]})
    else:
        for table in tables:
            _print_table(table)
    deciding = [table for table in tables if only or table.wire is not WireVersion.KEXP_1]
    return Exit.GOOD if all(table.feasible for table in deciding) and not stale else Exit.INVALID


@cli.group()
def guard() -> None:
    """The guard: score it on labelled text."""


@guard.command("score")
@click.option(
    "--corpus",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON lines in the format of the development corpus.",
)
@click.option(
    "--scheduler",
    metavar="tcp://HOST:PORT",
    callback=scheduler_address,
    help="Judge on a Dask scheduler instead of this machine's cores. It is sent the corpus: name a trusted one only.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(corpus: Path, scheduler: str | None, as_json: bool) -> int:
    """Score the guard on a labelled corpus: recall, false rejections and time per text.

    Exit 0: at or above the bars of the gate policy, 1: below, 3: the corpus or the scheduler cannot be used.
    """
    from harness import guardscore
    from harness.guardscore.schedulers import SchedulerUnusable, in_bulk, on_dask
    from harness.preflight import meets_bars

    try:
        result = guardscore.score_file(corpus, on_dask(scheduler) if scheduler else in_bulk)
    except guardscore.CorpusInvalid as error:
        raise Stop(f"{corpus}: {error}", Exit.INVALID) from None
    except SchedulerUnusable as error:
        raise Stop(str(error), Exit.INVALID) from None
    if as_json:
        print_json(result)
    else:
        _print_score(result)
    return Exit.GOOD if meets_bars(result) else Exit.NOT_GOOD


def _is_pinned(table: "Budget") -> bool:
    from harness import budget

    try:
        return budget.load(table.wire) == table
    except budget.StaleBudget:
        return False


def _print_table(table: "Budget") -> None:
    click.echo(f"{table.wire}: {'feasible' if table.feasible else 'INFEASIBLE'}")
    click.echo(f"  {'surface':24}{'slots':>6}{'bytes':>7}{'prompt':>8}{'least':>7}{'full':>6}{'seconds':>9}  verdict")
    for row in table.rows:
        verdict = "feasible" if row.feasible else "infeasible"
        click.echo(
            f"  {row.surface:24}{row.slots:>6}{row.request_bytes:>7}{row.prompt_tokens:>8}{row.least_answer_tokens:>7}"
            f"{row.full_answer_tokens:>6}{row.full_answer_seconds:>9.2f}  {verdict}{' (slow)' if row.slow else ''}"
        )


def _print_score(result: dict[str, Any]) -> None:
    click.echo(f"rows {result['rows']}")
    click.echo(f"recall {_percent(result['recall']['overall'])}")
    for name in ("category", "technique"):
        for label, value in result["recall"][name].items():
            click.echo(f"  {name:10}{label:24}{_percent(value)}")
    click.echo(f"false rejection {_percent(result['false_rejection']['overall'])}")
    for label, value in result["false_rejection"]["slot"].items():
        click.echo(f"  {'slot':10}{label:24}{_percent(value)}")
    click.echo("microseconds a text: median {median}, p99 {p99}".format(**result["us_per_text"]))


def _percent(rate: float | None) -> str:
    """A rate of no rows is none."""
    return "-" if rate is None else f"{rate:.1%}"


for command in (
    observe,
    audit_command,
    ingest_command,
    report_command,
    approve_command,
    verify_command,
    serve_command,
):
    cli.add_command(command)


if __name__ == "__main__":
    sys.exit(main())

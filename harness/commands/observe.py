"""`kexpr-harness observe run | status | simulate`, `audit` and `ingest`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.commands.shared import CONTRACT, WIRE, Stop, print_json, require_live, stops, warn, wire_of
from kexpr.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from harness.profiles import Pair
    from harness.readiness.model import PairReadiness, Readiness

__all__ = ["audit_command", "ingest_command", "observe"]

PROFILE: Final = click.option("--profile", required=True, type=click.Choice(["physique-coach", "dualcoachtest"]))
STATE: Final = click.option(
    "--state", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory of the evidence."
)
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def observe() -> None:
    """The 14-day observation: every UTC day each surface once, in shadow."""


@observe.command("run")
@STATE
@click.option("--due", is_flag=True, required=True, help="Make the calls of today (UTC) that were not made yet.")
@click.option("--calls-per-day", type=click.IntRange(1, 100), default=1, show_default=True, help="For each surface.")
@CONTRACT
@WIRE
@click.option("--live", is_flag=True, help="Spend real calls; needs RUN_KOREAN_EXPRESSION_LIVE=1 and OPENAI_API_KEY.")
@JSON
def run_command(
    state: Path, due: bool, calls_per_day: int, contract: str, wire: str | None, live: bool, as_json: bool
) -> int:
    """Make today's calls, each once however often this runs. For cron, a systemd timer or a Kubernetes CronJob.

    Says in one word how it went: ran, nothing_due, locked (another run is at it) or missed_day (it ran, and days before
    today have no call). Exit 0, for missed_day 5, 1: admission refused a call, 3: evidence or preflight invalid.
    """
    from harness.observation.run import Word
    from harness.observation.session import Options
    from harness.observation.session import observe as make_due_calls

    require_live(live=live)
    with stops(state):
        result = make_due_calls(Options(state, wire_of(contract, wire), live, calls_per_day), warn)
    if as_json:
        print_json(
            {
                "word": result.word,
                "day": result.day,
                "calls": result.calls,
                "accepted": result.accepted,
                "missed_days": list(result.missed),
            }
        )
    else:
        missed = f" · missed {', '.join(result.missed)}" if result.missed else ""
        click.echo(f"{result.word} {result.day} · {result.accepted}/{result.calls} accepted{missed}")
    return Exit.INSUFFICIENT if result.word is Word.MISSED_DAY else Exit.GOOD


@observe.command("status")
@STATE
@JSON
def status_command(state: Path, as_json: bool) -> int:
    """Show days covered, gaps and verdict of each surface as of today (UTC).

    Exit 0: shown, 3: there is no evidence, or it cannot be read.
    """
    from datetime import timedelta

    from harness.evidence.ledger import EvidenceLedger
    from harness.observation.plan import due_slots
    from harness.observation.run import utc_day
    from harness.policy import POLICY
    from harness.proof.session import EVIDENCE
    from harness.readiness.assess import assess
    from kexpr.clock import SystemClock

    if not (state / EVIDENCE).is_dir():
        raise Stop(f"{state}: no evidence", Exit.INVALID)
    with stops(state):
        evidence = EvidenceLedger.open(state / EVIDENCE)
        try:
            today = utc_day(SystemClock())
            readiness = assess(evidence.summary(), POLICY, today.isoformat())
            due = {slot.pair for slot in evidence.untaken(due_slots(today))}
        finally:
            evidence.close()
    tomorrow = today + timedelta(days=1)
    _show(readiness, {it.pair: today if it.pair in due else tomorrow for it in readiness.pairs}, as_json=as_json)
    return Exit.GOOD


@observe.command("simulate")
@click.option("--days", type=click.IntRange(1, 366), default=14, show_default=True, help="UTC days, the last is today.")
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="New directory of the evidence."
)
@click.option("--fault", "faults", multiple=True, metavar="NAME@DAY:SURFACE", help="For example timeout@day9:weekly.")
@CONTRACT
@WIRE
@JSON
def simulate_command(
    days: int, out: Path, faults: tuple[str, ...], contract: str, wire: str | None, as_json: bool
) -> int:
    """Rehearse audits, controlled proof and observation on a simulated calendar, in seconds.

    A rehearsal can satisfy no gate. Exit 0: clean, 1: a surface is not ready, 3: evidence invalid, 5: days are missing.
    """
    from harness.observation.simulate import simulate
    from harness.progress import progress_of
    from harness.proof.session import EVIDENCE
    from harness.rehearsal.faults import FaultPlan, FaultPlanError
    from harness.verdict import EXIT_OF_PROOF

    try:
        plan = FaultPlan.parse(faults)
    except FaultPlanError as error:
        raise click.UsageError(str(error)) from None
    if (out / EVIDENCE).exists():
        raise click.UsageError(f"{out} holds evidence already; a simulation begins a new one")
    with stops(out), progress_of("days", days) as advance:
        readiness = simulate(out, days, wire_of(contract, wire), plan, warn=warn, progress=lambda day: advance(day, ""))
    _show(readiness, as_json=as_json)
    return max(EXIT_OF_PROOF[pair.verdict] for pair in readiness.pairs)


@click.command("audit")
@STATE
@PROFILE
@click.option("--config", required=True, type=click.Path(dir_okay=False, path_type=Path), help="A gateway's file.")
@CONTRACT
@WIRE
@JSON
def audit_command(state: Path, profile: str, config: Path, contract: str, wire: str | None, as_json: bool) -> int:
    """Audit a gateway's configuration strictly and record the result as evidence for the gate of P0.

    Ready when the legacy key is gone, the bridge is valid and the feature block is exactly that of a phase. Exit 0:
    ready, 1: not, 3: the file or the evidence is invalid.
    """
    from harness.audit import record_config_audit
    from harness.evidence.ledger import EvidenceLedger
    from harness.profiles import Profile
    from harness.proof.session import EVIDENCE

    with stops(config):
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        evidence = EvidenceLedger.open(state / EVIDENCE)
        try:
            audit, phases = record_config_audit(evidence, Profile(profile), config, wire_of(contract, wire))
        finally:
            evidence.close()
    ready = audit.ready and bool(phases)
    if as_json:
        print_json({**audit.to_json(), "ready": ready, "phases": list(phases)})
    else:
        codes = [reason.value for reason in audit.reasons] + ([] if phases else ["block_of_no_phase"])
        click.echo(f"{'ready' if ready else 'not ready'} · {audit.config_sha256} · {', '.join(codes or phases)}")
    return Exit.GOOD if ready else Exit.NOT_GOOD


@click.command("ingest")
@STATE
@PROFILE
@click.argument("mirrors", nargs=-1, required=True, type=click.Path(path_type=Path))
@JSON
def ingest_command(state: Path, profile: str, mirrors: tuple[Path, ...], as_json: bool) -> int:
    """Count a gateway's audit mirror (audit-YYYY-MM.jsonl), once however often this runs.

    The mirror is lossy and unchained: it can only count against readiness. Exit 0: counted, 3: a file is no mirror or
    was rewritten, or the evidence is invalid.
    """
    from harness.evidence.ledger import EvidenceLedger
    from harness.mirror import MirrorInvalid, ingest
    from harness.profiles import Profile
    from harness.proof.session import EVIDENCE

    rows = failures = skipped = 0
    with stops(state):
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        evidence = EvidenceLedger.open(state / EVIDENCE)
        try:
            for path in mirrors:
                done = ingest(evidence, Profile(profile), path)
                rows, failures, skipped = rows + done.rows, failures + done.failures, skipped + done.skipped
        except MirrorInvalid as invalid:
            raise Stop(f"{path}: {invalid}", Exit.INVALID) from None
        finally:
            evidence.close()
    if as_json:
        print_json({"rows": rows, "failures": failures, "skipped": skipped})
    else:
        click.echo(f"{rows} rows · {failures} count against readiness · {skipped} lines skipped")
    return Exit.GOOD


def _show(readiness: "Readiness", next_due: "Mapping[Pair, date] | None" = None, *, as_json: bool) -> None:
    """`next_due` is the UTC day of each pair's next call, where calls are still to come."""
    pairs = [_pair(it) | ({"next_due": next_due[it.pair].isoformat()} if next_due else {}) for it in readiness.pairs]
    head = readiness.summary.head
    if as_json:
        print_json(
            {
                "as_of": readiness.as_of,
                "evidence_head": {"sequence": head.sequence, "digest": head.digest},
                "in_progress": readiness.summary.in_progress,
                "pairs": pairs,
            }
        )
        return
    click.echo(f"as of {readiness.as_of} · evidence head {head.sequence}:{head.digest}")
    click.echo(
        f"{'profile':16}{'surface':24}{'days':>5}{'accepted':>9}{'failures':>9}{'gaps':>5}"
        f"{'next due':>12}  phase verdict"
    )
    for pair in pairs:
        reasons = ", ".join(f"{gate['gate']}: {gate['reason']}" for gate in pair["gates"])
        click.echo(
            f"{pair['profile']:16}{pair['surface']:24}{pair['days_covered']:>5}{pair['accepted']:>9}"
            f"{pair['failures']:>9}{pair['gaps']:>5}{pair.get('next_due', '-'):>12}"
            f"  {pair['phase']:5} {pair['verdict']}" + (f" ({reasons})" if reasons else "")
        )


def _pair(readiness: "PairReadiness") -> dict[str, Any]:
    from harness.readiness.model import GateVerdict

    window = readiness.window
    phase = next(it for it in readiness.phases if it.phase is readiness.phase)
    return {
        "profile": readiness.pair.profile,
        "surface": readiness.pair.surface,
        "phase": readiness.phase,
        "verdict": readiness.verdict,
        "days_covered": window.days,
        "first_day": window.first,
        "last_day": window.last,
        "accepted": window.accepted,
        "failures": window.failures,
        "orphans": window.calls.orphans,
        "gaps": window.gaps,
        "gates": [
            {"gate": gate.code, "verdict": gate.verdict, "reason": gate.reason}
            for gate in phase.gates
            if gate.verdict is not GateVerdict.PASSED
        ],
    }

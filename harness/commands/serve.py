"""`kexpr-harness serve`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from harness.commands.report import ANCHOR
from harness.commands.shared import CONTRACT, LIVE_SWITCH, WIRE, Stop, require_live, wire_of
from kexpr.exits import Exit

if TYPE_CHECKING:
    from harness.observation.session import Options
    from harness.service.schedule import RunDue
    from kexpr.ledger.protocol import Head

__all__ = ["serve_command"]

DEFAULT_PORT: Final = 9464

_PEM: Final = click.Path(dir_okay=False, exists=True, path_type=Path)
_DIRECTORY: Final = click.Path(file_okay=False, path_type=Path)


@click.command("serve")
@click.option("--state", required=True, type=_DIRECTORY, help="Directory of the evidence.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--reports", type=_DIRECTORY, help="Directory of written reports.")
@click.option("--allowed-host", "allowed_hosts", multiple=True, metavar="NAME", help="Host name that requests may use.")
@click.option("--allow-non-loopback", is_flag=True, help="Listen on an address that others can reach.")
@ANCHOR
@click.option("--tls-certificate", type=_PEM, help="PEM chain.")
@click.option("--tls-key", type=_PEM, help="PEM key.")
@click.option("--schedule", is_flag=True, help="Make each UTC day's calls here, as `observe run --due` does.")
@click.option("--calls-per-day", type=click.IntRange(1, 100), default=1, show_default=True, help="For each surface.")
@CONTRACT
@WIRE
@click.option("--live", is_flag=True, help=f"Spend real calls; needs {LIVE_SWITCH}=1 and OPENAI_API_KEY.")
def serve_command(
    state: Path,
    host: str,
    port: int,
    reports: Path | None,
    allowed_hosts: tuple[str, ...],
    allow_non_loopback: bool,
    anchor: "Head | None",
    tls_certificate: Path | None,
    tls_key: Path | None,
    schedule: bool,
    calls_per_day: int,
    contract: str,
    wire: str | None,
    live: bool,
) -> int:
    """Serve metrics, health, a status page and the reports on loopback, until SIGTERM.

    Exit 0: stopped, 2: usage, 3: it cannot listen or use the certificate.
    """
    from harness.observation.session import Options
    from harness.proof.session import EVIDENCE
    from harness.service.server import ServiceOptions, is_loopback, serve

    if not is_loopback(host) and not allow_non_loopback:
        raise click.UsageError("--host is not loopback; that needs --allow-non-loopback")
    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key go together")
    if live and not schedule:
        raise click.UsageError("--live goes with --schedule")
    require_live(live=live)
    state = state.resolve()
    options = ServiceOptions(
        evidence=state / EVIDENCE,
        host=host,
        port=port,
        reports=None if reports is None else reports.resolve(),
        allowed_hosts=allowed_hosts,
        anchor=anchor,
        tls=(tls_certificate, tls_key) if tls_certificate and tls_key else None,
    )
    run_due = _rounds(Options(state, wire_of(contract, wire), live, calls_per_day)) if schedule else None
    try:
        serve(options, run_due, lambda line: click.echo(line, err=True))
    except OSError as error:
        raise Stop(f"cannot listen on {host}:{port}: {error.strerror or 'not usable'}", Exit.INVALID) from None
    return Exit.GOOD


def _rounds(options: "Options") -> "RunDue":
    from harness.observation.session import observe

    def run_due(stopping: Callable[[], bool]) -> str:
        return observe(options, lambda _warning: None, stopping).word

    return run_due

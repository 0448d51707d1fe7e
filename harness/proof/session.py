"""A whole proof from the outside: preflight, evidence, provider, 48 calls, result files."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from harness import preflight
from harness.candidate import current_pin
from harness.evidence.ledger import EvidenceLedger
from harness.profiles import Profile
from harness.proof.result import ProofResult, read_result
from harness.proof.run import run_proof
from harness.rehearsal.faults import FaultPlan
from harness.stage import Stage, rehearsal_clients
from harness.watch import ContentWatch, record_canaries
from kexpr.clock import Clock, SystemClock
from kexpr.codes import Outcome, WireVersion
from kexpr.config import Active
from kexpr.transport import ClientFactory

__all__ = ["EVIDENCE", "Options", "Progress", "prove"]

EVIDENCE: Final = "evidence"

Progress = Callable[[int, Outcome], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What a proof may be told. `live` spends real calls; `faults` are for the rehearsal provider."""

    out: Path
    wire: WireVersion
    live: bool
    faults: FaultPlan


def prove(options: Options, progress: Progress, warn: Callable[[str], None]) -> ProofResult:
    """Run the proof in `options.out` as far as it goes, and write `proof.json`, `proof.md` and `metrics.prom` there.

    Raises `preflight.Failed`, `CallNotMade`, `EvidenceRefused` and `LedgerFailed`.
    """
    configs = preflight.admit(options.wire, live=options.live, warn=warn)
    options.out.mkdir(mode=0o700, parents=True, exist_ok=True)
    clock = SystemClock()
    with closing(EvidenceLedger.open(options.out / EVIDENCE, clock)) as evidence, provider_of(options) as clients:
        return prove_on(evidence, clients, configs, options, clock, progress)


@contextmanager
def provider_of(options: Options) -> Iterator[ClientFactory]:
    """The provider that a proof asks; warmed before the first claim."""
    if options.live:
        clients = ClientFactory()
        clients.warm()
        yield clients
        return
    with rehearsal_clients(options.faults) as (clients, _):
        yield clients


def prove_on(
    evidence: EvidenceLedger,
    clients: ClientFactory,
    configs: Mapping[Profile, Active],
    options: Options,
    clock: Clock,
    progress: Progress,
) -> ProofResult:
    """The proof proper, and its result files."""
    with ContentWatch() as watch, tempfile.TemporaryDirectory(prefix="state-", dir=options.out) as scratch:
        with closing(Stage(configs, clients, Path(scratch), clock, watch)) as stage:
            run_proof(
                evidence,
                current_pin(options.wire),
                provider=clients.provider_kind,
                clock=clock,
                checks=preflight.checked(options.wire),
                open_world=stage.open,
                progress=progress,
            )
        metrics = stage.metrics()
        record_canaries(evidence, watch, options.out / EVIDENCE, metrics)
    result = read_result(evidence.view(), options.wire)
    _write(options.out, result, metrics)
    return result


def _write(out: Path, result: ProofResult, metrics: bytes) -> None:
    indented = orjson.dumps(
        result.to_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    )
    contents = {"proof.json": indented, "proof.md": result.to_markdown().encode(), "metrics.prom": metrics}
    for name, content in contents.items():
        replacement = out / f".{name}"
        replacement.write_bytes(content)
        replacement.replace(out / name)

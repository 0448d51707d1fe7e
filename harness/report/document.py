"""The report as canonical JSON: what everything else is rendered from, and what an approval is about. Pure.

A document holds closed codes, integers, dates, digests and decimals as text: no float, no clock, no content. The same
evidence, day and anchor give the same bytes, in whatever order the counts were folded.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from harness.candidate import Pin
from harness.evidence.state_views import CandidateView
from harness.evidence.summary import Calls, Cell, EvidenceSummary, PairEvidence
from harness.policy import GatePolicy
from harness.profiles import PAIRS, Pair
from harness.readiness.model import LADDERS, Gate, GateCode, GateVerdict, PairReadiness, Phase, Readiness
from harness.readiness.phases import block_text, digest_of
from harness.report.proves import proves
from harness.report.strip import strip_of
from harness.verdict import Verdict
from kexpr.codes import ProviderKind, WireVersion
from kexpr.telemetry.record import LATENCY_BOUNDS_MS

__all__ = [
    "INDEX_KIND",
    "PAIR_KIND",
    "SCHEMA",
    "Document",
    "canonical",
    "index_document",
    "next_phase",
    "pair_document",
]

SCHEMA: Final = "kexpr-report/1"
PAIR_KIND: Final = "pair"
INDEX_KIND: Final = "index"

Document = dict[str, Any]

_SEVERITY: Final = (GateVerdict.BROKEN, GateVerdict.FAILED, GateVerdict.MISSING, GateVerdict.REHEARSAL)
_DEFAULT_WIRE: Final = WireVersion.KEXP_2
"""For the configuration block of evidence that has no candidate yet."""

_UNITS: Final[Mapping[GateCode, str]] = {
    GateCode.PROOF_CALLS: "calls",
    GateCode.PROOF_WINDOW: "hours_at_most",
    GateCode.PROOF_REQUESTS: "requests",
    GateCode.PROOF_NO_ORPHAN: "calls",
    GateCode.DAYS_COVERED: "days",
    GateCode.ACCEPTED: "calls",
    GateCode.NO_FAILURE: "calls",
    GateCode.NO_ORPHAN: "calls",
    GateCode.REQUESTS_EQUAL_INTENTS: "requests",
    GateCode.RECENT: "days_at_most",
    GateCode.BOTH_PRODUCERS: "producers",
    GateCode.MIRROR_CLEAN: "calls",
}
"""What a gate counts; the others ask yes or no."""


def canonical(document: Document) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces, and a line feed: the bytes whose SHA-256 names the report."""
    return (json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def next_phase(readiness: PairReadiness) -> Phase | None:
    """The phase after the one that has begun; None in the last."""
    ladder = LADDERS[readiness.pair]
    position = ladder.index(readiness.phase) + 1
    return ladder[position] if position < len(ladder) else None


def pair_document(readiness: Readiness, pair: PairReadiness, policy: GatePolicy, *, anchor_holds: bool) -> Document:
    """The report of one pair. `anchor_holds` is what the anchor in `readiness` was judged with."""
    summary = readiness.summary
    evidence = summary.pairs[pair.pair]
    return {
        **_head(readiness, PAIR_KIND, anchor_holds=anchor_holds),
        **_place(pair.pair),
        "verdict": pair.verdict.value,
        "phase": pair.phase.value,
        "next_phase": _value(next_phase(pair)),
        "causes": _causes(pair),
        "phases": [
            {"phase": it.phase.value, "verdict": it.verdict.value, "gates": [_gate(gate) for gate in it.gates]}
            for it in pair.phases
        ],
        "window": {
            "first": pair.window.first,
            "last": pair.window.last,
            "days": pair.window.days,
            "required_days": policy.observation_days,
            "gaps": pair.window.gaps,
            **_calls(pair.window.calls),
        },
        "strip": strip_of(evidence, readiness.as_of, policy.observation_days),
        "traffic": _traffic(evidence),
        "outcomes": _counts(evidence.outcomes),
        "reasons": _counts(evidence.reasons),
        "latency": _latency(evidence),
        "mirror": [asdict(count) for count in sorted(evidence.mirror, key=lambda count: count.date)],
        "proof": {"first_utc_ms": evidence.proof_first_utc_ms, "last_utc_ms": evidence.proof_last_utc_ms},
        "proves": proves(pair, evidence, policy),
        **_candidates(summary),
        "audit": _audit(summary, pair.pair),
        "checks": {check.value: passed for check, passed in summary.checks.items()},
        "approvals": _approvals(summary, (pair.pair,)),
        "config": _config(summary, pair),
        "policy": {**asdict(policy), "proof_calls": list(policy.proof_calls), "digest": policy.digest},
    }


def index_document(readiness: Readiness, policy: GatePolicy, *, anchor_holds: bool) -> Document:
    """The overview of all pairs."""
    summary = readiness.summary
    return {
        **_head(readiness, INDEX_KIND, anchor_holds=anchor_holds),
        "pairs": [_line(pair, summary, readiness.as_of, policy) for pair in readiness.pairs],
        **_candidates(summary),
        "approvals": _approvals(summary, PAIRS),
        "policy": {"digest": policy.digest},
    }


def _head(readiness: Readiness, kind: str, *, anchor_holds: bool) -> Document:
    anchor, head = readiness.anchor, readiness.summary.head
    cells = [cell for evidence in readiness.summary.pairs.values() for cell in evidence.cells]
    return {
        "schema": SCHEMA,
        "kind": kind,
        "as_of": readiness.as_of,
        "evidence": {
            "head": {"sequence": head.sequence, "digest": head.digest},
            "anchor": None
            if anchor is None
            else {"sequence": anchor.sequence, "digest": anchor.digest, "holds": anchor_holds},
        },
        "providers": sorted({cell.provider.value for cell in cells}),
        "traffic_kinds": sorted({cell.traffic.value for cell in cells}),
        "rehearsal": any(cell.provider is ProviderKind.REHEARSAL for cell in cells),
    }


def _line(pair: PairReadiness, summary: EvidenceSummary, as_of: str, policy: GatePolicy) -> Document:
    evidence = summary.pairs[pair.pair]
    return {
        **_place(pair.pair),
        "verdict": pair.verdict.value,
        "phase": pair.phase.value,
        "next_phase": _value(next_phase(pair)),
        "causes": _causes(pair),
        "phases": [{"phase": it.phase.value, "verdict": it.verdict.value} for it in pair.phases],
        "days": pair.window.days,
        "required_days": policy.observation_days,
        "strip": strip_of(evidence, as_of, policy.observation_days),
        "calls": pair.bounds.calls,
        "accepted": sum(calls.accepted for calls in evidence.cells.values()),
        "failures": pair.bounds.failures,
        "upper": f"{pair.bounds.upper:.6f}",
    }


def _place(pair: Pair) -> Document:
    return {"profile": pair.profile.value, "surface": pair.surface.value}


def _value(phase: Phase | None) -> str | None:
    return None if phase is None else phase.value


def _gate(gate: Gate) -> Document:
    return {
        "gate": gate.code.value,
        "unit": _UNITS.get(gate.code, "yes_no"),
        "required": gate.required,
        "observed": gate.observed,
        "verdict": gate.verdict.value,
        "reason": None if gate.reason is None else gate.reason.value,
    }


def _causes(pair: PairReadiness) -> list[Document]:
    """Why the verdict is not READY, worst first: gates up to the phase that has begun, each in the phase it is of.

    A gate that only repeats the phase before it is no cause, nor a gate that several phases ask alike twice.
    """
    begun = LADDERS[pair.pair].index(pair.phase)
    found: dict[tuple[GateCode, GateVerdict], Document] = {}
    for phase in pair.phases[: begun + 1]:
        for gate in phase.gates:
            if gate.verdict is not GateVerdict.PASSED and gate.code is not GateCode.PREVIOUS_PHASE:
                found.setdefault((gate.code, gate.verdict), {"phase": phase.phase.value, **_gate(gate)})
    ordered = sorted(found.items(), key=lambda item: _SEVERITY.index(item[0][1]))
    return [] if pair.verdict is Verdict.READY else [cause for _, cause in ordered]


def _calls(calls: Calls) -> dict[str, int]:
    return {
        "intents": calls.intents,
        "accepted": calls.accepted,
        "failures": calls.failures,
        "orphans": calls.orphans,
        "requests": calls.requests,
    }


def _traffic(evidence: PairEvidence) -> list[Document]:
    """Synthetic and organic, proof and observation, live and rehearsal: each apart, in a fixed order."""
    sums: dict[tuple[str, ...], Calls] = {}
    for cell, calls in evidence.cells.items():
        sums[_kind(cell)] = sums.get(_kind(cell), Calls()) + calls
    names = ("run_kind", "traffic", "provider", "mode", "path")
    return [{**dict(zip(names, kind, strict=True)), **_calls(sums[kind])} for kind in sorted(sums)]


def _kind(cell: Cell) -> tuple[str, ...]:
    return cell.run_kind.value, cell.traffic.value, cell.provider.value, cell.mode.value, cell.path.value


def _counts(counts: Mapping[Any, int]) -> dict[str, int]:
    return {code.value: count for code, count in counts.items() if count}


def _latency(evidence: PairEvidence) -> list[Document]:
    """Buckets by their inclusive upper bound in ms; None for what took longer."""
    bounds: tuple[int | None, ...] = (*LATENCY_BOUNDS_MS, None)
    return [{"to_ms": bound, "calls": calls} for bound, calls in zip(bounds, evidence.latency, strict=True)]


def _candidates(summary: EvidenceSummary) -> Document:
    newest = summary.candidate
    return {
        "candidate": None if newest is None else {**_candidate(newest), "pin": _pin(newest.pin)},
        "candidates": [_candidate(view) for view in summary.candidates],
    }


def _pin(pin: Pin) -> Document:
    return {**asdict(pin), "wire_version": pin.wire_version.value}


def _candidate(view: CandidateView) -> Document:
    return {
        "id": view.candidate.id,
        "restart": view.candidate.restart,
        "ended": None if view.ended is None else view.ended.value,
        "runs": view.runs,
        "intents": view.intents,
        "outcomes": view.outcomes,
        "requests": view.requests,
        "orphans": view.orphans,
    }


def _audit(summary: EvidenceSummary, pair: Pair) -> Document | None:
    audit = summary.audits.get(pair.profile)
    return None if audit is None else asdict(audit)


def _approvals(summary: EvidenceSummary, pairs: Iterable[Pair]) -> list[Document]:
    wanted = set(pairs)
    return [
        {
            "candidate": it.candidate,
            **_place(it.pair),
            "phase": it.phase,
            "report_digest": it.report_digest,
            "config_digest": it.config_digest,
            "approver": it.approver,
            "utc_ms": it.utc_ms,
        }
        for it in summary.approvals
        if it.pair in wanted
    ]


def _config(summary: EvidenceSummary, pair: PairReadiness) -> Document:
    """The profile's block of the next phase, and the one that turns everything off."""
    wire = summary.candidate.pin.wire_version if summary.candidate else _DEFAULT_WIRE
    following = next_phase(pair)
    return {
        "next": None if following is None else _block(pair.pair, following, wire),
        "rollback": _block(pair.pair, Phase.P0, wire),
    }


def _block(pair: Pair, phase: Phase, wire: WireVersion) -> Document:
    text = block_text(pair.profile, phase, wire)
    return {"phase": phase.value, "yaml": text, "sha256": digest_of(text)}

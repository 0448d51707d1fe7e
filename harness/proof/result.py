"""What a proof shows: one pure reading of its evidence, as JSON and as a page of text."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from harness.evidence.rows import EndReason
from harness.evidence.state import EvidenceView, SlotView
from harness.policy import POLICY
from harness.profiles import PAIRS, Pair
from harness.statistics import clean_calls_for, clopper_pearson_upper
from harness.verdict import Verdict
from kexpr.codes import Outcome, ProviderKind
from kexpr.ledger.protocol import Head

__all__ = ["ProofResult", "read_result"]

RESULT_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ProofResult:
    """The newest candidate's proof. `provider` is None before the first run."""

    candidate: str
    restart: int
    pin_digest: str
    wire: str
    provider: ProviderKind | None
    slots: tuple[SlotView, ...]
    orphans: int
    ended: EndReason | None
    head: Head

    @property
    def requests(self) -> int:
        return sum(slot.outcome.requests for slot in self.slots if slot.outcome)

    @property
    def accepted(self) -> int:
        return sum(_accepted(slot) for slot in self.slots)

    @property
    def failures(self) -> int:
        """Calls that did not end `shadow_selected`; an orphan is one."""
        return len(self.slots) - self.accepted

    @property
    def verdict(self) -> Verdict:
        if self.requests > len(self.slots):
            return Verdict.INVALID
        if self.ended or self.orphans or self.failures or self.requests < len(self.slots):
            return Verdict.NOT_READY
        if len(self.slots) < POLICY.proof_total:
            return Verdict.INSUFFICIENT
        return Verdict.READY if self.provider is ProviderKind.LIVE else Verdict.REHEARSAL

    @property
    def line(self) -> str:
        """The last line of a proof."""
        parts = (
            f"{self.accepted}/{POLICY.proof_total} {Outcome.SHADOW_SELECTED}",
            f"{self.requests} requests",
            f"{self.orphans} orphans",
            self.verdict,
        )
        return " · ".join(parts)

    def to_json(self) -> dict[str, object]:
        return {
            "schema_version": RESULT_SCHEMA_VERSION,
            "kind": "proof",
            "wire": self.wire,
            "provider": self.provider,
            "verdict": self.verdict,
            "candidate": self.candidate,
            "restart": self.restart,
            "pin_digest": self.pin_digest,
            "ended": self.ended,
            "calls": len(self.slots),
            "calls_required": POLICY.proof_total,
            "requests": self.requests,
            "outcomes": _counted(slot.outcome.outcome for slot in self.slots if slot.outcome),
            "reasons": _counted(slot.outcome.reason for slot in self.slots if slot.outcome and slot.outcome.reason),
            "orphans": self.orphans,
            "pairs": [self._pair(pair) for pair in PAIRS],
            "failure_rate_upper_95": _upper(self.failures, len(self.slots)),
            "evidence_head": {"sequence": self.head.sequence, "digest": self.head.digest},
        }

    def _pair(self, pair: Pair) -> dict[str, Any]:
        slots = [slot for slot in self.slots if slot.call.pair == pair]
        accepted = sum(map(_accepted, slots))
        durations = sorted(slot.outcome.duration_ms for slot in slots if slot.outcome)
        return {
            "profile": pair.profile,
            "surface": pair.surface,
            "calls": len(slots),
            "calls_required": POLICY.calls_of(pair),
            "accepted": accepted,
            "failure_rate_upper_95": _upper(len(slots) - accepted, len(slots)),
            "duration_ms_median": durations[len(durations) // 2] if durations else None,
        }

    def to_markdown(self) -> str:
        """The readable summary: verdict first, then what it rests on, then what it does not grant."""
        rows = "\n".join(_row(self._pair(pair)) for pair in PAIRS)
        data = self.to_json()
        return _SUMMARY.format(
            result=self,
            rows=rows,
            outcomes=_listed(data["outcomes"]),
            reasons=_listed(data["reasons"]),
            upper=_upper(self.failures, len(self.slots)),
            five=clean_calls_for(0.05),
            one=clean_calls_for(0.01),
            ended=self.ended or "no",
            meaning=_MEANING[self.verdict],
        )


_MEANING: Final = {
    Verdict.READY: "Every call of the proof was made by the live provider and accepted.",
    Verdict.REHEARSAL: "Every call was accepted, but the provider was a rehearsal: this can satisfy no gate.",
    Verdict.NOT_READY: "A call failed or was lost: this candidate has ended, and the next proof starts a new one.",
    Verdict.INSUFFICIENT: "Calls are still missing; the same command goes on inside the window.",
    Verdict.INVALID: "The evidence counts more requests than calls that were intended.",
}

_SUMMARY: Final = """\
# Controlled proof: {result.verdict}

{meaning}

{result.line}

Synthetic calls on the test profiles, in shadow; nothing was sent to anyone.

| profile | surface | calls | accepted | failure rate at most (95 %) |
| --- | --- | --- | --- | --- |
{rows}

Outcomes: {outcomes}. Reasons: {reasons}.

All calls together: failure rate at most {upper:.1%} (exact one-sided 95 % Clopper–Pearson bound). {five} clean calls
bring it under 5 %, {one} under 1 %.

- candidate `{result.candidate}` (restart {result.restart}, wire `{result.wire}`, ended: {ended})
- evidence head `{result.head.sequence}:{result.head.digest}`; keep it elsewhere: the
  chain proves integrity only relative to an anchor.

This grants no delivery, activation or approval.
"""


def read_result(view: EvidenceView, wire: str) -> ProofResult:
    """The result of the newest candidate. There must be one."""
    newest = view.candidate
    assert newest is not None
    return ProofResult(
        candidate=newest.candidate.id,
        restart=newest.candidate.restart,
        pin_digest=newest.candidate.pin_digest,
        wire=wire,
        provider=view.slots[-1].provider if view.slots else None,
        slots=view.slots,
        orphans=sum(slot.outcome is None for slot in view.slots),
        ended=newest.ended,
        head=view.head,
    )


def _row(pair: dict[str, Any]) -> str:
    calls = f"{pair['calls']}/{pair['calls_required']}"
    upper = f"{pair['failure_rate_upper_95']:.1%}"
    return f"| {pair['profile']} | {pair['surface']} | {calls} | {pair['accepted']} | {upper} |"


def _accepted(slot: SlotView) -> bool:
    return slot.outcome is not None and slot.outcome.outcome is Outcome.SHADOW_SELECTED


def _upper(failures: int, calls: int) -> float:
    return round(clopper_pearson_upper(failures, calls, POLICY.confidence_permille / 1000), 4)


def _counted(codes: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(map(str, codes)).items()))


def _listed(counts: object) -> str:
    assert isinstance(counts, dict)
    return ", ".join(f"{code} {count}" for code, count in counts.items()) or "none"

"""The counts of a summary, kept while rows are folded. Nothing grows with the number of calls but sets of ordinals.

A cell of counts is looked up once a call: the intent keeps it until its outcome comes. Reading is cheap whatever was
folded, since cells are few and each is frozen again only after it has changed.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from harness.evidence.rows import ApprovalRow, AuditRow, CheckRow, IntentRow, MirrorRow, OutcomeRow, RunKind, Traffic
from harness.evidence.state_views import CandidateView
from harness.evidence.summary import (
    Approval,
    Audit,
    Calls,
    Cell,
    Check,
    EvidenceSummary,
    MirrorCount,
    OutcomeSeries,
    PairEvidence,
    ReasonSeries,
)
from harness.profiles import PAIRS, Pair, Profile
from kexpr.codes import NOT_ATTEMPTED, Outcome, Reason, WireVersion
from kexpr.ledger.protocol import Head
from kexpr.telemetry.record import LATENCY_BOUNDS_MS

__all__ = ["Counts", "OpenCall"]

_BUCKETS: Final = len(LATENCY_BOUNDS_MS) + 1


@dataclass(slots=True)
class _CellCounts:
    cell: Cell
    intents: int = 0
    outcomes: int = 0
    accepted: int = 0
    requests: int = 0
    orphans: int = 0

    def frozen(self) -> Calls:
        return Calls(self.intents, self.outcomes, self.accepted, self.requests, self.orphans)


class _PairCounts:
    """Of one pair and the newest candidate."""

    def __init__(self) -> None:
        self.cells: dict[tuple[object, ...], _CellCounts] = {}
        self.frozen: dict[Cell, Calls] = {}
        self.changed: dict[Cell, _CellCounts] = {}
        self.outcomes: Counter[Outcome] = Counter()
        self.reasons: Counter[Reason] = Counter()
        self.latency = [0] * _BUCKETS
        self.proof_first_utc_ms: int | None = None
        self.proof_last_utc_ms: int | None = None
        self.manifests: dict[RunKind, set[int]] = {kind: set() for kind in RunKind}

    def cell_of(self, row: IntentRow) -> _CellCounts:
        key = (row.run_kind, row.date, row.path, row.provider, row.traffic, row.mode)
        found = self.cells.get(key)
        if found is None:
            cell = Cell(row.run_kind, row.date, row.path, row.provider, row.traffic, row.mode)
            found = self.cells[key] = _CellCounts(cell)
        return found

    def freeze(self, orphaned: Iterable[_CellCounts]) -> Mapping[Cell, Calls]:
        """The cells as they are, with one more orphan for each of `orphaned`."""
        self.frozen.update((cell, counts.frozen()) for cell, counts in self.changed.items())
        self.changed.clear()
        cells = dict(self.frozen)
        for counts in orphaned:
            cells[counts.cell] += Calls(orphans=1)
        return MappingProxyType(cells)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """An intent without outcome, and where it counts."""

    row: IntentRow
    utc_ms: int
    counts: _CellCounts = field(repr=False)
    of_pair: _PairCounts = field(repr=False)


class Counts:
    """Folds what the rules let through. Pairs and checks are the newest candidate's, the rest is of all."""

    def __init__(self) -> None:
        self._wire: WireVersion | None = None
        self._pairs: dict[Pair, _PairCounts] = {}
        self._checks: dict[Check, bool] = {}
        self._audits: dict[Profile, Audit] = {}
        self._approvals: list[Approval] = []
        self._mirror: dict[Pair, dict[str, MirrorCount]] = {pair: {} for pair in PAIRS}
        self._outcomes: Counter[tuple[Any, ...]] = Counter()
        self._reasons: Counter[tuple[Any, ...]] = Counter()
        self._durations = {pair: [0] * _BUCKETS for pair in PAIRS}
        self._duration_sums_ms = dict.fromkeys(PAIRS, 0)
        self._last_outcome_utc_ms: dict[Pair, int] = {}
        self._last_run_utc_ms: int | None = None

    def pin(self, wire: WireVersion) -> None:
        """A new candidate begins."""
        self._wire = wire
        self._pairs = {pair: _PairCounts() for pair in PAIRS}
        self._checks = {}

    def run(self, utc_ms: int) -> None:
        self._last_run_utc_ms = utc_ms

    def intent(self, row: IntentRow, utc_ms: int) -> OpenCall:
        of_pair = self._pairs[row.pair]
        counts = of_pair.cell_of(row)
        counts.intents += 1
        of_pair.changed[counts.cell] = counts
        if row.traffic is Traffic.SYNTHETIC:
            of_pair.manifests[row.run_kind].add(row.ordinal)
        if row.run_kind is RunKind.PROOF and of_pair.proof_first_utc_ms is None:
            of_pair.proof_first_utc_ms = utc_ms
        return OpenCall(row, utc_ms, counts, of_pair)

    def outcome(self, opened: OpenCall, row: OutcomeRow, utc_ms: int) -> None:
        intent, of_pair, counts = opened.row, opened.of_pair, opened.counts
        pair = intent.pair
        counts.outcomes += 1
        counts.accepted += row.outcome is Outcome.SHADOW_SELECTED
        counts.requests += row.requests
        of_pair.changed[counts.cell] = counts
        of_pair.outcomes[row.outcome] += 1
        self._outcomes[pair, intent.mode, row.outcome, self._wire] += 1
        if row.reason is not None:
            of_pair.reasons[row.reason] += 1
            self._reasons[pair.surface, row.reason] += 1
        if row.outcome not in NOT_ATTEMPTED:
            bucket = bisect_left(LATENCY_BOUNDS_MS, row.duration_ms)
            of_pair.latency[bucket] += 1
            self._durations[pair][bucket] += 1
            self._duration_sums_ms[pair] += row.duration_ms
        self._last_outcome_utc_ms[pair] = utc_ms
        if intent.run_kind is RunKind.PROOF:
            of_pair.proof_last_utc_ms = utc_ms

    def orphan(self, opened: OpenCall) -> None:
        """Nobody can bring this outcome any more."""
        opened.counts.orphans += 1
        opened.of_pair.changed[opened.counts.cell] = opened.counts

    def check(self, row: CheckRow) -> None:
        self._checks[row.check] = row.passed

    def audit(self, row: AuditRow, utc_ms: int) -> None:
        self._audits[row.profile] = Audit(row.config_digest, row.ready, utc_ms)

    def approval(self, row: ApprovalRow, utc_ms: int) -> None:
        digests = (row.report_digest, row.config_digest)
        self._approvals.append(Approval(row.candidate, row.pair, row.phase, *digests, row.approver, utc_ms))

    def mirror(self, row: MirrorRow) -> None:
        for tally in row.tallies:
            days = self._mirror[Pair(row.profile, tally.surface)]
            before = days.get(tally.date, MirrorCount(tally.date, 0, 0))
            days[tally.date] = MirrorCount(tally.date, before.rows + tally.rows, before.failures + tally.failures)

    def summary(
        self,
        head: Head,
        candidates: tuple[CandidateView, ...],
        *,
        in_progress: int,
        orphaned: Iterable[OpenCall],
    ) -> EvidenceSummary:
        """`orphaned` are open calls that nobody works on, though no row says so yet."""
        lost = list(orphaned)
        return EvidenceSummary(
            head=head,
            candidates=candidates,
            pairs=MappingProxyType({pair: self._evidence(pair, lost) for pair in PAIRS}),
            checks=MappingProxyType(dict(self._checks)),
            audits=MappingProxyType(dict(self._audits)),
            approvals=tuple(self._approvals),
            outcome_totals=MappingProxyType(
                {
                    OutcomeSeries(pair.profile, pair.surface, mode, outcome, wire): count
                    for (pair, mode, outcome, wire), count in self._outcomes.items()
                }
            ),
            reason_totals=MappingProxyType({ReasonSeries(*key): count for key, count in self._reasons.items()}),
            durations=MappingProxyType({pair: tuple(counts) for pair, counts in self._durations.items()}),
            duration_sums_ms=MappingProxyType(dict(self._duration_sums_ms)),
            last_outcome_utc_ms=MappingProxyType(dict(self._last_outcome_utc_ms)),
            last_run_utc_ms=self._last_run_utc_ms,
            in_progress=in_progress,
        )

    def _evidence(self, pair: Pair, lost: list[OpenCall]) -> PairEvidence:
        mirror = tuple(self._mirror[pair][date] for date in sorted(self._mirror[pair]))
        of_pair = self._pairs.get(pair) or _PairCounts()
        return PairEvidence(
            cells=of_pair.freeze(opened.counts for opened in lost if opened.of_pair is of_pair),
            outcomes=MappingProxyType(dict(of_pair.outcomes)),
            reasons=MappingProxyType(dict(of_pair.reasons)),
            latency=tuple(of_pair.latency),
            proof_first_utc_ms=of_pair.proof_first_utc_ms,
            proof_last_utc_ms=of_pair.proof_last_utc_ms,
            proof_manifests=len(of_pair.manifests[RunKind.PROOF]),
            observation_manifests=len(of_pair.manifests[RunKind.OBSERVATION]),
            mirror=mirror,
        )

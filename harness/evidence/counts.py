"""The counts of a summary, kept while rows are folded. Nothing grows with the number of calls but sets of ordinals.

A cell of counts is looked up once a call: the intent keeps it until its outcome comes. Reading is cheap whatever was
folded, since cells are few and each is frozen again only after it has changed.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import add
from types import MappingProxyType
from typing import Final

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
from kexpr.codes import NOT_ATTEMPTED, Mode, Outcome, Reason, WireVersion
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
    changed: bool = True

    def frozen(self) -> Calls:
        return Calls(self.intents, self.outcomes, self.accepted, self.requests, self.orphans)


class _PairCounts:
    """Of one pair and the newest candidate."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.cells: dict[tuple[object, ...], _CellCounts] = {}
        self.frozen: dict[Cell, Calls] = {}
        self.ends: Counter[tuple[Mode, Outcome]] = Counter()
        self.reasons: Counter[Reason] = Counter()
        self.latency = [0] * _BUCKETS
        self.duration_sum_ms = 0
        self.last_outcome_utc_ms: int | None = None
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
        for counts in self.cells.values():
            if counts.changed:
                self.frozen[counts.cell] = counts.frozen()
                counts.changed = False
        cells = dict(self.frozen)
        for counts in orphaned:
            cells[counts.cell] += Calls(orphans=1)
        return MappingProxyType(cells)

    def outcomes(self) -> Mapping[Outcome, int]:
        found: Counter[Outcome] = Counter()
        for (_, outcome), count in self.ends.items():
            found[outcome] += count
        return MappingProxyType(dict(found))


@dataclass(frozen=True, slots=True)
class OpenCall:
    """An intent without outcome, and where it counts."""

    row: IntentRow
    utc_ms: int
    counts: _CellCounts = field(repr=False)
    of_pair: _PairCounts = field(repr=False)


class _Totals:
    """What does not begin anew with a candidate, since a counter never falls."""

    def __init__(self) -> None:
        self.outcomes: Counter[OutcomeSeries] = Counter()
        self.reasons: Counter[ReasonSeries] = Counter()
        self.durations = {pair: [0] * _BUCKETS for pair in PAIRS}
        self.duration_sums_ms = dict.fromkeys(PAIRS, 0)
        self.last_outcome_utc_ms: dict[Pair, int] = {}

    def and_of(self, pairs: Iterable[_PairCounts], wire: WireVersion | None) -> "_Totals":
        """These and those of one candidate."""
        sums = _Totals()
        sums.outcomes += self.outcomes
        sums.reasons += self.reasons
        sums.durations = {pair: list(counts) for pair, counts in self.durations.items()}
        sums.duration_sums_ms = dict(self.duration_sums_ms)
        sums.last_outcome_utc_ms = dict(self.last_outcome_utc_ms)
        for counts in pairs:
            sums._add(counts, wire)
        return sums

    def _add(self, counts: _PairCounts, wire: WireVersion | None) -> None:
        pair = counts.pair
        for (mode, outcome), count in counts.ends.items():
            assert wire is not None
            self.outcomes[OutcomeSeries(pair.profile, pair.surface, mode, outcome, wire)] += count
        for reason, count in counts.reasons.items():
            self.reasons[ReasonSeries(pair.surface, reason)] += count
        self.durations[pair] = list(map(add, self.durations[pair], counts.latency))
        self.duration_sums_ms[pair] += counts.duration_sum_ms
        if counts.last_outcome_utc_ms is not None:
            self.last_outcome_utc_ms[pair] = counts.last_outcome_utc_ms


class Counts:
    """Folds what the rules let through. Pairs and checks are the newest candidate's, the rest is of all."""

    def __init__(self) -> None:
        self._wire: WireVersion | None = None
        self._pairs = {pair: _PairCounts(pair) for pair in PAIRS}
        self._before = _Totals()
        self._checks: dict[Check, bool] = {}
        self._audits: dict[Profile, Audit] = {}
        self._approvals: list[Approval] = []
        self._mirror: dict[Pair, dict[str, MirrorCount]] = {pair: {} for pair in PAIRS}
        self._last_run_utc_ms: int | None = None

    def pin(self, wire: WireVersion) -> None:
        """A new candidate begins."""
        self._before = self._before.and_of(self._pairs.values(), self._wire)
        self._wire = wire
        self._pairs = {pair: _PairCounts(pair) for pair in PAIRS}
        self._checks = {}

    def run(self, utc_ms: int) -> None:
        self._last_run_utc_ms = utc_ms

    def intent(self, row: IntentRow, pair: Pair, utc_ms: int) -> OpenCall:
        of_pair = self._pairs[pair]
        counts = of_pair.cell_of(row)
        counts.intents += 1
        counts.changed = True
        if row.traffic is Traffic.SYNTHETIC:
            of_pair.manifests[row.run_kind].add(row.ordinal)
        if row.run_kind is RunKind.PROOF and of_pair.proof_first_utc_ms is None:
            of_pair.proof_first_utc_ms = utc_ms
        return OpenCall(row, utc_ms, counts, of_pair)

    def outcome(self, opened: OpenCall, row: OutcomeRow, utc_ms: int) -> None:
        intent, of_pair, counts = opened.row, opened.of_pair, opened.counts
        outcome = row.outcome
        counts.outcomes += 1
        counts.accepted += outcome is Outcome.SHADOW_SELECTED
        counts.requests += row.requests
        counts.changed = True
        of_pair.ends[intent.mode, outcome] += 1
        if row.reason is not None:
            of_pair.reasons[row.reason] += 1
        if outcome not in NOT_ATTEMPTED:
            of_pair.latency[bisect_left(LATENCY_BOUNDS_MS, row.duration_ms)] += 1
            of_pair.duration_sum_ms += row.duration_ms
        of_pair.last_outcome_utc_ms = utc_ms
        if intent.run_kind is RunKind.PROOF:
            of_pair.proof_last_utc_ms = utc_ms

    def orphan(self, opened: OpenCall) -> None:
        """Nobody can bring this outcome any more."""
        opened.counts.orphans += 1
        opened.counts.changed = True

    def check(self, row: CheckRow) -> None:
        """What failed once has failed for the candidate: a later run that is clean takes no leak back."""
        self._checks[row.check] = row.passed and self._checks.get(row.check, True)

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
        totals = self._before.and_of(self._pairs.values(), self._wire)
        return EvidenceSummary(
            head=head,
            candidates=candidates,
            pairs=MappingProxyType({pair: self._evidence(pair, lost) for pair in PAIRS}),
            checks=MappingProxyType(dict(self._checks)),
            audits=MappingProxyType(dict(self._audits)),
            approvals=tuple(self._approvals),
            outcome_totals=MappingProxyType(dict(totals.outcomes)),
            reason_totals=MappingProxyType(dict(totals.reasons)),
            durations=MappingProxyType({pair: tuple(counts) for pair, counts in totals.durations.items()}),
            duration_sums_ms=MappingProxyType(totals.duration_sums_ms),
            last_outcome_utc_ms=MappingProxyType(totals.last_outcome_utc_ms),
            last_run_utc_ms=self._last_run_utc_ms,
            in_progress=in_progress,
        )

    def _evidence(self, pair: Pair, lost: list[OpenCall]) -> PairEvidence:
        of_pair = self._pairs[pair]
        return PairEvidence(
            cells=of_pair.freeze(opened.counts for opened in lost if opened.of_pair is of_pair),
            outcomes=of_pair.outcomes(),
            reasons=MappingProxyType(dict(of_pair.reasons)),
            latency=tuple(of_pair.latency),
            proof_first_utc_ms=of_pair.proof_first_utc_ms,
            proof_last_utc_ms=of_pair.proof_last_utc_ms,
            proof_manifests=len(of_pair.manifests[RunKind.PROOF]),
            observation_manifests=len(of_pair.manifests[RunKind.OBSERVATION]),
            mirror=tuple(self._mirror[pair][date] for date in sorted(self._mirror[pair])),
        )

"""Evidence rows are decoded as field by field, without shortcuts: whatever is wrong with a row, it is refused."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.candidate import Candidate
from harness.evidence import rows
from harness.evidence.rows import (
    ApprovalRow,
    AuditRow,
    Check,
    CheckRow,
    EndReason,
    EndRow,
    EvidenceRow,
    IntentRow,
    MirrorRow,
    MirrorTally,
    OutcomeRow,
    PinRow,
    RunKind,
    Slot,
    Traffic,
    decode,
    encode,
)
from harness.profiles import PAIRS, PATHS, Profile
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, Surface, outcome_of
from kexpr.errors import LedgerFailed
from tests.unit.harness.evidence_samples import OBSERVATION, PIN, PROOF

CANDIDATE = Candidate(PIN.digest, 0)
RUN = OBSERVATION.row(CANDIDATE, 1, resumed=False)
PROOF_RUN = PROOF.row(CANDIDATE, 1, resumed=False)
CALLS = [
    IntentRow.of(run, Slot(run.run_kind, pair, path, 1, date))
    for run, date in ((RUN, "2026-09-21"), (PROOF_RUN, "-"))
    for pair in PAIRS
    for path in PATHS[pair.surface]
]
REASON = next(iter(Reason))
ROWS: list[EvidenceRow] = [
    PinRow.of(CANDIDATE, PIN),
    RUN,
    *CALLS,
    OutcomeRow(CANDIDATE.id, 1, CALLS[0].slot, Outcome.SHADOW_SELECTED, None, 1, 1),
    OutcomeRow(CANDIDATE.id, 1, CALLS[1].slot, outcome_of(REASON), REASON, 0, 0),
    EndRow(CANDIDATE.id, EndReason.OPERATOR),
    CheckRow(CANDIDATE.id, Check.BUDGET, True),
    AuditRow(Profile.PHYSIQUE_COACH, "1" * 64, True),
    ApprovalRow(CANDIDATE.id, PAIRS[0].profile, PAIRS[0].surface, "P1", "2" * 64, "3" * 64, "operator-1"),
    MirrorRow(Profile.PHYSIQUE_COACH, "2026-09", 1, "4" * 64, (MirrorTally(Surface.DAILY, "2026-09-01", 1, 1),)),
]
RECORDS = [dict(encode(row)) for row in ROWS]
VALUES = sorted({repr(value): value for record in RECORDS for value in record.values()}.items())
ODD: list[Any] = [
    None, True, False, 0, 1, 2, -1, 1.0, 0.0, 10**9, 10**9 + 1, 2**64, "", "1", "0", "-", [], [1], {}, {"a": 1},
    "2026-09-22", "2026-13-01", "2026-09-21\n", "shadow", "SHADOW", CALLS[0].slot + "\n", CALLS[0].slot + "0",
    *Mode, *Outcome, *ProviderKind, *Traffic, *RunKind, *Reason,
]  # fmt: skip


def by_field(record: Mapping[str, Any]) -> EvidenceRow | None:
    """The row, each of its fields decoded by itself in each row, or None where it is refused."""
    values = dict(record)
    name, version = values.pop("type", None), values.pop("schema_version", None)
    if type(name) is not str or name not in rows._TYPES or type(version) is not int or version != 1:
        return None
    cls = rows._TYPES[name]
    names = [item.name for item in fields(cls)]
    if set(values) != set(names):
        return None
    try:
        row: Any = cls(*[rows._DECODERS[name](values[name]) for name in names])
    except (rows._Malformed, KeyError, TypeError):
        return None
    if isinstance(row, IntentRow):
        call = row.call
        possible = call.pair in PAIRS and row.path in PATHS[row.surface]
        dated = (row.date != "-") == (row.run_kind is RunKind.OBSERVATION)
        return row if possible and dated and row.slot == call.key(row.candidate) else None
    return row if row.is_consistent() else None


def decoded(record: Mapping[str, Any]) -> EvidenceRow | None:
    try:
        return decode(record)
    except LedgerFailed:
        return None


def same(record: Mapping[str, Any]) -> bool:
    """Also in the type of each value, and after the row that it was made from was decoded."""
    return repr(decoded(record)) == repr(by_field(record))


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_each_field_with_each_odd_value_is_decoded_as_by_itself(number):
    record = RECORDS[number]
    assert decoded(record) == ROWS[number] == by_field(record)
    for key in record:
        assert decoded({name: value for name, value in record.items() if name != key}) is None
        assert decoded({**{n: v for n, v in record.items() if n != key}, key + "x": record[key]}) is None
        for value in (*ODD, *(value for _, value in VALUES)):
            assert same({**record, key: value})
        assert decoded(record) == ROWS[number]
    assert decoded({**record, "more": 1}) is None


@given(st.data())
def test_any_mixture_of_genuine_and_odd_values_is_decoded_as_by_itself(data):
    record = data.draw(st.sampled_from(RECORDS))
    alike = [other for other in RECORDS if other["type"] == record["type"]]
    for key in data.draw(st.lists(st.sampled_from(sorted(record)), max_size=4)):
        record = {**record, key: data.draw(st.sampled_from([*ODD, *(other[key] for other in alike)]))}
    assert same(record)


def test_a_number_that_equals_a_decoded_one_but_is_none_is_refused():
    intent = next(record for record in RECORDS if record["type"] == "intent")
    for odd in (True, 1.0):
        assert decoded(intent) is not None
        assert decoded({**intent, "run": odd}) is None
        assert decoded({**intent, "schema_version": odd}) is None

"""The evidence as a service reads it: what is new, what is broken, what is gone, and when it is judged again."""

import threading
from pathlib import Path

import pytest

from harness.evidence import EvidenceLedger
from harness.profiles import PAIRS
from harness.readiness.assess import assess
from harness.reading import NO_EVIDENCE, RETRY_SECONDS, EvidenceReader
from kexpr.clock import Instant
from kexpr.errors import StoreFault
from kexpr.ledger.protocol import Head
from tests.unit.harness.evidence_samples import OBSERVATION, PIN, PROOF, SteppingClock, call, proof_slot

DAY_MS = 86_400_000


class StillClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.utc_ms = 1_790_100_000_000

    def now(self) -> Instant:
        return Instant(self.utc_ms, self.utc_ms, None)

    def monotonic(self) -> float:
        return self.utc_ms / 1000


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "evidence"


@pytest.fixture
def evidence(directory: Path):
    ledger = EvidenceLedger.open(directory, SteppingClock())
    ledger.ensure_candidate(PIN)
    yield ledger
    ledger.close()


def counting(judged: list[str]):
    def judge(summary, policy, as_of, anchor):
        judged.append(as_of)
        return assess(summary, policy, as_of, anchor)

    return judge


def test_nothing_written_is_nothing_wrong_and_nothing_is_made(directory, clock):
    with EvidenceReader(directory, assess, clock=clock) as reader:
        reading = reader.read()
    assert reading.fault is None
    assert reading.summary is NO_EVIDENCE
    assert not directory.exists()


def test_what_others_append_is_read(directory, clock, evidence):
    with EvidenceReader(directory, assess, clock=clock) as reader:
        assert reader.read().summary.outcome_totals == {}
        evidence.begin_run(PROOF)
        call(evidence, proof_slot())
        assert sum(reader.read().summary.outcome_totals.values()) == 1
        evidence.intent(proof_slot(1))
        assert reader.read().summary.in_progress == 1
        evidence.finish_run()
        seen = reader.read().summary
        assert seen.in_progress == 0
        assert sum(cell.orphans for cell in seen.pairs[PAIRS[0]].cells.values()) == 1


def test_it_judges_again_only_when_rows_or_the_day_have_changed(directory, clock, evidence):
    judged: list[str] = []
    with EvidenceReader(directory, counting(judged), clock=clock) as reader:
        first = reader.read()
        assert reader.read().readiness is first.readiness
        clock.utc_ms += DAY_MS
        assert reader.read().readiness is not first.readiness
        evidence.begin_run(OBSERVATION)
        reader.read()
    assert judged == ["2026-09-22", "2026-09-23", "2026-09-23"]


def test_a_changed_byte_is_a_fault_and_the_verified_counts_stay(directory, clock, evidence):
    evidence.begin_run(PROOF)
    call(evidence, proof_slot())
    with EvidenceReader(directory, assess, clock=clock) as reader:
        before = reader.read()
        (path,) = directory.glob("*.jsonl")
        good = path.read_bytes()
        path.write_bytes(good.replace(b'"requests":1', b'"requests":0') + b"{}\n")
        broken = reader.read()
        assert broken.fault is StoreFault.HEAD_MISMATCH
        assert broken.summary == before.summary
        path.write_bytes(good)
        assert reader.read().fault is StoreFault.HEAD_MISMATCH
        clock.utc_ms += int(RETRY_SECONDS * 1000)
        assert reader.read().fault is None


@pytest.mark.parametrize("to", ["gone", "another"])
def test_evidence_that_was_seen_cannot_be_replaced_or_taken_away(to, directory, clock, evidence, tmp_path):
    with EvidenceReader(directory, assess, clock=clock) as reader:
        seen = reader.read()
        directory.rename(tmp_path / "moved")
        if to == "another":
            EvidenceLedger.open(directory, SteppingClock()).close()
        for _ in range(2):
            clock.utc_ms += int(RETRY_SECONDS * 1000)
            reading = reader.read()
            assert reading.fault is StoreFault.HEAD_MISMATCH
            assert reading.summary == seen.summary


def test_a_head_from_elsewhere_must_be_in_the_chain(directory, clock, evidence):
    head = evidence.head()
    with EvidenceReader(directory, assess, clock=clock, anchor=head) as reader:
        assert (reader.read().fault, reader.read().readiness.anchor) == (None, head)
    for anchor in (Head(head.sequence, "0" * 64), Head(head.sequence + 9, "0" * 64)):
        with EvidenceReader(directory, assess, clock=clock, anchor=anchor) as reader:
            assert reader.read().fault is StoreFault.HEAD_MISMATCH


def test_an_anchor_without_evidence_is_a_fault(directory, clock):
    with EvidenceReader(directory, assess, clock=clock, anchor=Head(3, "0" * 64)) as reader:
        assert reader.read().fault is StoreFault.HEAD_MISMATCH


def test_readers_take_turns(directory, clock, evidence):
    with EvidenceReader(directory, assess, clock=clock) as reader:
        faults: list[StoreFault | None] = []
        threads = [threading.Thread(target=lambda: faults.append(reader.read().fault)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert faults == [None] * 8

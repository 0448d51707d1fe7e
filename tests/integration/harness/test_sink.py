"""A gateway's own shadow traffic becomes evidence; whatever becomes of that, the customer sees the same."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.evidence import EvidenceLedger, RunKind, Traffic
from harness.evidence.rows import ORGANIC_ORDINALS
from harness.evidence.summary import Calls
from harness.manifests import synthetic
from harness.profiles import PAIRS, PathKind, Profile
from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from harness.sink import EvidenceSink
from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.codes import Mode, Outcome, ProviderKind, Reason, Surface, WireVersion
from kexpr.config import Active
from kexpr.coordinator import Coordinator, Job
from kexpr.paths.adaptive import AdaptivePath, Card
from kexpr.paths.daily import DailyMessage, DailyPath
from kexpr.paths.publication import Publication
from kexpr.state import State
from kexpr.telemetry import Telemetry
from kexpr.testing.canaries import Canaries
from kexpr.transport import ClientFactory
from tests.support.authority import MemoryArtifact
from tests.support.rehearsal import ENVIRON
from tests.unit.harness.evidence_samples import OBSERVATION, OTHER_PIN, PIN

DAILY, CARD = PAIRS[0], PAIRS[4]
BINDING = "b" * 64


class _Session:
    def is_just_consumed(self, origin: CardPresentationOrigin) -> bool:
        return True

    def current_binding_digest(self, origin: CardPresentationOrigin) -> str:
        return BINDING


@dataclass
class Gateway:
    sink: EvidenceSink
    state: State
    coordinator: Coordinator
    server: RehearsalServer

    def __post_init__(self) -> None:
        self.daily = DailyPath(self.coordinator, self.state.daily(lambda _: True), self.state.locks)
        adaptive = self.state.adaptive(threading.Lock, _Session())
        self.adaptive = AdaptivePath(self.coordinator, adaptive, self.state.locks)
        self.edits: list[str] = []

    def message(self, number: int) -> DailyMessage:
        event = f"checkin-event-{number}"
        presentation = synthetic(Surface.DAILY, number, identity=event)
        return DailyMessage(event, presentation, presentation.canonical_payload)

    def save(self, number: int) -> Publication:
        return self.daily.first_save(self.message(number), self.edits.append)

    def card(self, number: int, kind: OriginKind) -> Publication:
        identity = f"card-{number}"
        presentation = synthetic(Surface.ADAPTIVE_PHYSIQUE, number, identity=identity)
        origin = CardPresentationOrigin(kind, identity, f"callback/{identity}", identity)
        card = Card(origin, Surface.ADAPTIVE_PHYSIQUE, presentation, presentation.canonical_payload, BINDING)
        return self.adaptive.publish(card, self.edits.append)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "evidence"


@pytest.fixture
def harness(directory: Path) -> Iterator[EvidenceLedger]:
    """The evidence as the harness sees it, with a candidate."""
    evidence = EvidenceLedger.open(directory)
    evidence.ensure_candidate(PIN)
    yield evidence
    evidence.close()


@contextmanager
def gateway(directory: Path, *faults: str, mode: Mode = Mode.SHADOW, pin=PIN) -> Iterator[Gateway]:
    with RehearsalServer(answer_bytes, FaultPlan.parse(faults)) as server:
        clients = ClientFactory(_seam=server.seam)
        sink = EvidenceSink.open(directory, profile=Profile.PHYSIQUE_COACH, pin=pin, clients=clients)
        telemetry = Telemetry([], profile="physique-coach")
        state = State(directory.parent / "gateway")
        coordinator = Coordinator(
            Active(mode, frozenset(Surface), WireVersion.KEXP_2),
            identity_key=lambda: state.identity_key,
            telemetry=telemetry,
            clients=clients,
            environ=ENVIRON,
            observe=sink.observe,
        )
        try:
            yield Gateway(sink, state, coordinator, server)
        finally:
            sink.close()
            state.close()
            telemetry.close()


def calls_of(evidence: EvidenceLedger, pair=DAILY) -> Calls:
    return sum(evidence.summary().pairs[pair].cells.values(), Calls())


def test_own_traffic_is_whole_evidence_of_its_kind(harness: EvidenceLedger, directory: Path) -> None:
    with gateway(directory, "http_500@2") as at:
        outcomes = [at.save(number).outcome for number in range(3)]
        at.card(0, OriginKind.CALLBACK)
        at.card(1, OriginKind.TYPED_NOTE)
        assert at.sink.missed == 0
    assert outcomes == [Outcome.SHADOW_SELECTED, Outcome.CANONICAL_PROVIDER_ERROR, Outcome.SHADOW_SELECTED]
    pairs = harness.summary().pairs
    assert calls_of(harness) == Calls(intents=3, outcomes=3, accepted=2, requests=3)
    assert pairs[DAILY].reasons == {Reason.HTTP_SERVER_ERROR: 1}
    assert {cell.path for cell in pairs[CARD].cells} == {PathKind.CALLBACK, PathKind.TYPED_NOTE}
    cells = [cell for pair in (DAILY, CARD) for cell in pairs[pair].cells]
    assert {(cell.run_kind, cell.traffic, cell.mode, cell.provider) for cell in cells} == {
        (RunKind.OBSERVATION, Traffic.ORGANIC, Mode.SHADOW, ProviderKind.REHEARSAL)
    }
    assert (pairs[DAILY].observation_manifests, harness.summary().in_progress) == (0, 0)


def test_an_observation_takes_its_turn_between_calls(harness: EvidenceLedger, directory: Path) -> None:
    with gateway(directory) as at:
        at.save(0)
        harness.begin_run(OBSERVATION)
        assert at.save(1).outcome is Outcome.SHADOW_SELECTED
        assert at.sink.missed == 1
        harness.finish_run()
        at.save(2)
    assert calls_of(harness) == Calls(intents=2, outcomes=2, accepted=2, requests=2)


def test_calls_at_once_share_one_run(harness: EvidenceLedger, directory: Path) -> None:
    with gateway(directory) as at:
        threads = [threading.Thread(target=at.save, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert at.sink.missed == 0
        harness.begin_run(OBSERVATION)
        harness.finish_run()
    assert calls_of(harness) == Calls(intents=4, outcomes=4, accepted=4, requests=4)
    ordinals = b"".join(path.read_bytes() for path in directory.glob("*.jsonl"))
    assert all(f'"ordinal":{ORGANIC_ORDINALS + number},'.encode() in ordinals for number in range(4))


@pytest.mark.parametrize("pin", [OTHER_PIN, None], ids=["of other code", "ended"])
def test_only_the_open_candidate_of_this_code_is_written_for(harness: EvidenceLedger, directory: Path, pin) -> None:
    if pin is None:
        harness.ensure_candidate(OTHER_PIN)
    before = harness.head()
    with gateway(directory, pin=pin or PIN) as at:
        assert at.save(0).outcome is Outcome.SHADOW_SELECTED
        assert at.sink.missed == 1
    assert harness.head() == before
    harness.begin_run(OBSERVATION)


def test_enabled_traffic_is_no_observation(harness: EvidenceLedger, directory: Path) -> None:
    before = harness.head()
    with gateway(directory, mode=Mode.ENABLED) as at:
        assert at.save(0).outcome is Outcome.SELECTED
        assert at.sink.missed == 0
    assert harness.head() == before


def test_a_refused_claim_spends_no_slot(harness: EvidenceLedger, directory: Path) -> None:
    with gateway(directory) as at:
        at.save(0)
        assert at.daily.replay(at.message(0), at.edits.append).outcome is None
        at.save(0)
    assert calls_of(harness).intents == 1


@pytest.mark.parametrize(("fails", "requests"), [("fail_claim", 0), ("fail_finalize", 1)])
def test_an_authority_that_fails_is_a_failure(
    fails: str, requests: int, harness: EvidenceLedger, directory: Path
) -> None:
    artifact = MemoryArtifact(Surface.DAILY)
    setattr(artifact, fails, True)
    with gateway(directory) as at:
        message = at.message(0)
        job = Job(message.presentation, message.canonical_payload, artifact, ("daily", message.event_id))
        assert at.coordinator.present(job).broken
    assert calls_of(harness) == Calls(intents=1, outcomes=1, requests=requests)
    assert harness.summary().pairs[DAILY].outcomes == {Outcome.CANONICAL_COMMIT_ERROR: 1}


def test_a_gateway_that_dies_in_a_call_leaves_an_orphan(harness: EvidenceLedger, directory: Path) -> None:
    with gateway(directory) as at:
        at.sink.observe(MemoryArtifact(Surface.DAILY)).claim(Mode.SHADOW)
        assert (harness.summary().in_progress, calls_of(harness).orphans) == (1, 0)
    assert (harness.summary().in_progress, calls_of(harness).orphans) == (0, 1)
    with gateway(directory) as at:
        at.save(0)
        assert at.sink.missed == 0
    assert calls_of(harness) == Calls(intents=2, outcomes=1, accepted=1, requests=1, orphans=1)


def test_broken_evidence_changes_nothing_for_the_customer(harness: EvidenceLedger, directory: Path) -> None:
    with gateway(directory) as at:
        first = at.save(0)
        (segment,) = directory.glob("*.jsonl")
        segment.write_bytes(segment.read_bytes()[:-40] + b"x" * 39 + b"\n")
        second = at.save(1)
        assert (second.outcome, second.requests) == (first.outcome, first.requests)
        assert at.edits == [at.message(0).canonical_payload, at.message(1).canonical_payload]
        assert at.sink.missed == 1


def test_no_content_reaches_the_evidence(harness: EvidenceLedger, directory: Path) -> None:
    canaries = Canaries()
    with gateway(directory) as at:
        message = at.message(3)
        canaries.adopt("event", message.event_id)
        canaries.adopt("text", max(message.canonical_payload.splitlines(), key=len))
        at.save(3)
        canaries.assert_absent(
            {"repr": repr(at.sink), "evidence": b"".join(path.read_bytes() for path in directory.glob("*.jsonl"))}
        )

"""The coordinator over real TLS against the rehearsal provider."""

import asyncio
import threading
import time

import pytest

from harness.manifests import synthetic
from harness.profiles import Profile
from harness.readiness.model import Phase
from harness.readiness.phases import block_of
from kexpr.codes import Mode, Outcome, Reason, Surface, WireVersion
from kexpr.config import Disabled, InvalidConfig, parse_block
from kexpr.coordinator import Coordinator, Job
from kexpr.telemetry import Telemetry
from tests.support.authority import MemoryArtifact
from tests.support.rehearsal import ENVIRON, KEY, stage


def job_for(surface: Surface, ordinal: int = 0, authority: MemoryArtifact | None = None) -> Job:
    presentation = synthetic(surface, ordinal, identity=f"event-{ordinal}")
    return Job(
        presentation,
        presentation.canonical_payload,
        authority or MemoryArtifact(surface),
        (surface.value, f"event-{ordinal}"),
    )


@pytest.mark.parametrize("surface", Surface)
def test_enabled_selects_and_shadow_does_not(surface):
    with stage(Mode.ENABLED) as enabled:
        job = job_for(surface)
        presented = enabled.coordinator.present(job)
        assert (presented.outcome, presented.reason) == (Outcome.SELECTED, None)
        assert presented.body is not None
        assert presented.body != job.canonical_payload
        assert presented.requests == enabled.server.requests == 1
        assert [r.outcome for r in enabled.records] == [Outcome.SELECTED]
    with stage(Mode.SHADOW) as shadow:
        presented = shadow.coordinator.present(job_for(surface))
        assert (presented.outcome, presented.body) == (Outcome.SHADOW_SELECTED, None)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("http_500@1", Outcome.CANONICAL_PROVIDER_ERROR),
        ("html_200@1", Outcome.CANONICAL_PROVIDER_ERROR),
        ("two_choices@1", Outcome.CANONICAL_INVALID),
        ("duplicate_key@1", Outcome.CANONICAL_INVALID),
        ("usage_missing@1", Outcome.CANONICAL_INVALID),
        ("prose_medical@1", Outcome.CANONICAL_VALIDATION_REJECTED),
        ("prose_noop@1", Outcome.CANONICAL_VALIDATION_REJECTED),
    ],
)
def test_a_fault_is_one_canonical_outcome_and_one_request(fault, outcome):
    with stage(faults=[fault]) as at:
        artifact = MemoryArtifact(Surface.DAILY)
        presented = at.coordinator.present(job_for(Surface.DAILY, authority=artifact))
        assert presented.outcome is outcome
        assert presented.body is None
        assert presented.requests == 1
        assert at.coordinator.present(job_for(Surface.DAILY, authority=artifact)).outcome is None
        assert at.server.requests == 1


def test_refusals_cost_nothing():
    hostile = {**ENVIRON, "https_proxy": ""}
    for environ, outcome in [
        ({}, Outcome.CREDENTIAL_UNAVAILABLE),
        ({"OPENAI_API_KEY": "has space"}, Outcome.CREDENTIAL_UNAVAILABLE),
        (hostile, Outcome.CREDENTIAL_ENVIRONMENT_REJECTED),
    ]:
        with stage(environ=environ) as at:
            artifact = MemoryArtifact(Surface.DAILY)
            presented = at.coordinator.present(job_for(Surface.DAILY, authority=artifact))
            assert (presented.outcome, presented.claimed, artifact.ticket) == (outcome, False, None)
            assert at.server.calls == 0


@pytest.mark.parametrize("answer", [False, None, "raises"])
def test_state_of_the_other_contract_is_no_attempt(answer):
    """After a change of contract an artifact may have had its one request already."""
    asked = []

    def fresh_elsewhere(identity):
        asked.append(identity)
        if answer == "raises":
            raise ValueError("민수의 기록")
        return bool(answer)

    with stage() as at:
        artifact = MemoryArtifact(Surface.DAILY)
        coordinator = Coordinator(
            parse_block(block_of(Profile.PHYSIQUE_COACH, Phase.P3, WireVersion.KEXP_2)),
            identity_key=lambda: KEY,
            telemetry=at.telemetry,
            clients=at.coordinator._clients,
            environ=ENVIRON,
            fresh_elsewhere=fresh_elsewhere,
        )
        presented = coordinator.present(job_for(Surface.DAILY, authority=artifact))
        assert (presented.outcome, presented.claimed, artifact.ticket) == (None, False, None)
        assert asked == [("daily", "event-0")]
        assert at.server.calls == 0


def test_unknown_presentation_and_other_payload_are_not_attempted():
    with stage() as at:
        presentation = synthetic(Surface.DAILY, 0, identity="e")
        for content, payload in [(object(), "text"), (presentation, presentation.canonical_payload + " ")]:
            artifact = MemoryArtifact(Surface.DAILY)
            presented = at.coordinator.present(Job(content, payload, artifact, ("daily", "e")))
            assert (presented.outcome, artifact.ticket) == (Outcome.UNKNOWN_PRESENTATION, None)
        assert at.server.calls == 0


def test_surface_flag_off_and_not_fresh_leave_no_trace():
    with stage(surfaces=[Surface.WEEKLY]) as at:
        assert at.coordinator.present(job_for(Surface.DAILY)).outcome is None
        artifact = MemoryArtifact(Surface.WEEKLY)
        artifact.claim(Mode.SHADOW)
        assert at.coordinator.present(job_for(Surface.WEEKLY, authority=artifact)).outcome is None
        assert at.records == []
        assert at.server.calls == 0


@pytest.mark.parametrize("config", [Disabled(), parse_block("malformed")])
def test_disabled_and_invalid_never_touch_anything(config):
    def no_key() -> bytes:
        raise AssertionError("the key was read")

    telemetry = Telemetry([], profile="physique-coach")
    coordinator = Coordinator(config, identity_key=no_key, telemetry=telemetry, environ=ENVIRON)
    artifact = MemoryArtifact(Surface.DAILY)
    assert coordinator.present(job_for(Surface.DAILY, authority=artifact)).outcome is None
    assert artifact.ticket is None
    assert isinstance(config, Disabled | InvalidConfig)
    telemetry.close()


def test_a_failed_claim_or_final_is_the_paths_business():
    with stage() as at:
        artifact = MemoryArtifact(Surface.DAILY)
        artifact.fail_claim = True
        presented = at.coordinator.present(job_for(Surface.DAILY, authority=artifact))
        assert (presented.claimed, presented.broken, presented.requests) == (True, True, 0)
        assert at.server.calls == 0
        artifact = MemoryArtifact(Surface.DAILY)
        artifact.fail_finalize = True
        presented = at.coordinator.present(job_for(Surface.DAILY, authority=artifact))
        assert (presented.claimed, presented.broken, presented.requests) == (True, True, 1)
        assert [(r.outcome, r.reason) for r in at.records] == [
            (Outcome.CANONICAL_COMMIT_ERROR, Reason.COMMIT_LEDGER)
        ] * 2
        assert at.coordinator.present(job_for(Surface.DAILY, 2)).outcome is Outcome.SELECTED


def test_busy_workers_refuse_before_the_claim():
    with stage(faults=["stall@1"], workers=1) as at:
        first = MemoryArtifact(Surface.DAILY)
        slow = threading.Thread(target=at.coordinator.present, args=(job_for(Surface.DAILY, authority=first),))
        slow.start()
        while first.ticket is None:
            time.sleep(0.005)
        second = MemoryArtifact(Surface.DAILY)
        presented = at.coordinator.present(job_for(Surface.DAILY, 1, second))
        assert (presented.outcome, second.ticket) == (Outcome.OVERLOADED, None)
        slow.join()
        assert first.final is not None
        assert first.final.outcome is Outcome.CANONICAL_TIMEOUT


def test_a_closed_gate_refuses_and_join_cancels_what_runs():
    with stage(faults=["stall@1"]) as at:
        artifact = MemoryArtifact(Surface.DAILY)
        slow = threading.Thread(target=at.coordinator.present, args=(job_for(Surface.DAILY, authority=artifact),))
        slow.start()
        while artifact.ticket is None:
            time.sleep(0.005)
        at.coordinator.close_admission()
        assert at.coordinator.present(job_for(Surface.DAILY, 1)).outcome is Outcome.ADMISSION_CLOSED
        assert at.coordinator.join()
        slow.join()
        assert artifact.final is not None
        assert (artifact.final.outcome, artifact.final.reason) == (Outcome.CANONICAL_TIMEOUT, Reason.CANCELLED)


def test_the_deadline_ends_a_stalled_exchange():
    with stage(faults=["stall@1"]) as at:
        started = time.monotonic()
        presented = at.coordinator.present(job_for(Surface.DAILY))
        assert presented.outcome is Outcome.CANONICAL_TIMEOUT
        assert time.monotonic() - started < 4


def test_cancelling_the_task_keeps_the_late_thread_from_selecting():
    async def scenario() -> MemoryArtifact:
        with stage(faults=["drip@1"]) as at:
            artifact = MemoryArtifact(Surface.DAILY)
            task = asyncio.ensure_future(at.coordinator.present_async(job_for(Surface.DAILY, authority=artifact)))
            while artifact.ticket is None:
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert artifact.final is None
            assert await asyncio.to_thread(at.coordinator.join)
            return artifact

    artifact = asyncio.run(scenario())
    assert artifact.final is not None
    assert (artifact.final.outcome, artifact.final.reason) == (Outcome.CANONICAL_TIMEOUT, Reason.CANCELLED)


def test_the_event_loop_is_never_blocked():
    async def scenario() -> float:
        with stage(faults=["stall@1"]) as at:
            at.coordinator.warm()
            task = asyncio.ensure_future(at.coordinator.present_async(job_for(Surface.DAILY)))
            worst = 0.0
            while not task.done():
                before = time.monotonic()
                await asyncio.sleep(0.01)
                worst = max(worst, time.monotonic() - before - 0.01)
            return worst

    assert asyncio.run(scenario()) < 0.5


def test_requests_carry_no_key_of_ours_and_no_content():
    with stage() as at:
        job = job_for(Surface.DAILY)
        at.coordinator.present(job)
        body = at.server.recorded[0].body
        for private in (KEY, KEY.hex().encode(), b"event-0", b"sk-rehearsal", job.canonical_payload.encode()):
            assert private not in body

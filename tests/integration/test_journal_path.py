"""The anchor-grammar contract end to end: coordinator, real TLS to a local provider, journal, host."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.server import RehearsalServer
from kexpr import failpoints
from kexpr.authority.journal import DIRECTORY, OutcomeJournal
from kexpr.clock import CLAIM_LEASE_MS
from kexpr.codes import ANCHOR_SURFACE_OF, Mode, Outcome, Surface
from kexpr.config import from_extra
from kexpr.coordinator import Coordinator
from kexpr.errors import LedgerFailed, StoreFault
from kexpr.paths.journal import JournalMessage, JournalPath
from kexpr.paths.locks import PublicationLocks
from kexpr.paths.publication import Publication
from kexpr.surfaces.card_text import CanonicalText
from kexpr.telemetry import Telemetry
from kexpr.testing.canaries import Canaries
from kexpr.transport import ClientFactory
from tests.support.hosts import AheadClock
from tests.support.rehearsal import ENVIRON, Collected
from tests.unit.authority.journal_support import Writer
from tests.unit.test_config_anchor import block
from tests.unit.wire.anchor_support import DAILY, DUAL, PHYSIQUE, WEEKLY, text_of

TEXT_OF = {
    Surface.DAILY: DAILY,
    Surface.WEEKLY: WEEKLY,
    Surface.ADAPTIVE_DUALCOACHTEST: DUAL,
    Surface.ADAPTIVE_PHYSIQUE: PHYSIQUE,
}
WRITTEN = [surface for surface in Surface if surface is not Surface.DAILY]
LEAD = "정리하면, "


def answer_bytes(body: bytes) -> bytes:
    """The exact answer to a request of the anchor grammar."""
    request = json.loads(json.loads(body)["messages"][1]["content"])
    for slot in request["slots"]:
        slot["generated_ko"] = text_of(slot, LEAD, " 또한 ")
        slot["anchors"] = [anchor["anchor"] for anchor in slot["anchors"]]
    return json.dumps(request, ensure_ascii=False).encode()


@dataclass
class Gateway:
    root: Path
    server: RehearsalServer
    path: JournalPath
    journal: OutcomeJournal
    clock: AheadClock
    telemetry: Telemetry
    sink: Collected
    coordinator: Coordinator
    writer: Writer = field(default_factory=Writer)
    shown: list[str] = field(default_factory=list)

    def message(self, surface: Surface) -> JournalMessage:
        text = TEXT_OF[surface]
        return JournalMessage(surface, ("identity-canary-1", surface.value), CanonicalText(surface, text), text)

    def go(self, surface: Surface) -> Publication:
        message = self.message(surface)
        if surface is Surface.DAILY:
            return self.path.first_save(message, self.shown.append)
        return self.path.publish(message, self.writer, self.shown.append)

    def outcomes(self) -> list[str]:
        file = self.root / DIRECTORY / "journal.jsonl"
        return [json.loads(line)["outcome"] for line in file.read_bytes().splitlines()] if file.exists() else []


class NoTimers:
    """Timers of a host that looks again itself."""

    def __init__(self) -> None:
        self.armed: list[int] = []

    def call_later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.armed.append(delay_ms)


@contextmanager
def gateway(
    root: Path,
    mode: Mode = Mode.ENABLED,
    *,
    faults: tuple[str, ...] = (),
    environ: dict[str, str] | None = None,
    answer: Callable[[bytes], bytes] = answer_bytes,
    locks: PublicationLocks | None = None,
) -> Iterator[Gateway]:
    extra = {"korean_expression_postprocessor": block(mode.value, daily=True, weekly=True, adaptive_operator=True)}
    clock = AheadClock()
    with RehearsalServer(answer, FaultPlan.parse(faults), record=True) as server:
        journal = OutcomeJournal.open(root, clock=clock, locks=locks)
        sink = Collected()
        telemetry = Telemetry([sink], profile="physique-coach")
        coordinator = Coordinator(
            from_extra(extra),
            identity_key=lambda: journal.identity_key,
            telemetry=telemetry,
            clients=ClientFactory(_seam=server.seam),
            environ=dict(ENVIRON) if environ is None else environ,
        )
        path = JournalPath(coordinator, journal, NoTimers())
        try:
            yield Gateway(root, server, path, journal, clock, telemetry, sink, coordinator)
        finally:
            telemetry.close()
            journal.close()
            failpoints.install(None)


def selected_of(surface: Surface) -> str:
    text = TEXT_OF[surface]
    if surface is Surface.DAILY:
        return text.replace("저장된", f"{LEAD}저장된")
    if surface is Surface.WEEKLY:
        return text.replace("이번 주 평균", f"{LEAD}이번 주 평균").replace("연속된", f"{LEAD}연속된")
    if surface is Surface.ADAPTIVE_PHYSIQUE:
        return text.replace("제안의", f"{LEAD}제안의")
    judged = text.replace("현재 판단: 유지 검토", f"{LEAD}현재 판단은 유지 검토입니다.")
    return judged.replace("최근 기록", f"{LEAD}최근 기록").replace("체중 변동", f"{LEAD}체중 변동")


@pytest.mark.parametrize("surface", Surface)
def test_selected_and_shown_once(tmp_path: Path, surface: Surface) -> None:
    with gateway(tmp_path) as at:
        publication = at.go(surface)
        assert (publication.outcome, publication.requests) == (Outcome.SELECTED, 1)
        assert not publication.stopped
        assert at.shown == [selected_of(surface)]
        assert list(at.writer.bodies.values()) == ([] if surface is Surface.DAILY else at.shown)
        assert at.outcomes() == ["attempt_started", "selected"]
        at.go(surface)
        again = TEXT_OF[surface] if surface is Surface.DAILY else selected_of(surface)
        assert at.shown == [selected_of(surface), again]
        assert at.server.requests == 1
        assert at.telemetry.flush(5)
        [record] = at.sink.records
        assert record.contract_version == "korean-expression-v3"  # type: ignore[union-attr]


@pytest.mark.parametrize("surface", Surface)
def test_shadow_shows_the_canonical_text(tmp_path: Path, surface: Surface) -> None:
    with gateway(tmp_path, Mode.SHADOW) as at:
        assert at.go(surface).outcome is Outcome.SHADOW_SELECTED
        assert at.shown == [TEXT_OF[surface]]
        assert at.writer.bodies == {}
        assert at.outcomes() == ["attempt_started", "shadow_selected"]


def test_the_request_has_the_parameters_of_the_contract_and_nothing_of_the_text(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def answer(body: bytes) -> bytes:
        seen.append(json.loads(body))
        return answer_bytes(body)

    with gateway(tmp_path, answer=answer) as at:
        for surface in Surface:
            at.go(surface)
    for request in seen:
        assert (request["temperature"], request["max_tokens"]) == (0.7, 384)
        assert "max_completion_tokens" not in request
        assert request["messages"][1]["content"].isascii()
        assert "identity-canary-1" not in json.dumps(request)


@pytest.mark.parametrize("surface", Surface)
@pytest.mark.parametrize(
    ("fault", "written"),
    [("http_500", "provider_error"), ("two_choices", "invalid_response"), ("usage_missing", "invalid_response")],
)
def test_a_fault_is_canonical_and_one_request(tmp_path: Path, surface: Surface, fault: str, written: str) -> None:
    with gateway(tmp_path, faults=(f"{fault}@1",)) as at:
        at.go(surface)
        at.go(surface)
        assert at.shown == [TEXT_OF[surface]] * 2
        assert at.outcomes() == ["attempt_started", written]
        assert at.server.requests == 1


def test_text_outside_the_grammar_is_rejected(tmp_path: Path) -> None:
    with gateway(tmp_path, answer=lambda body: answer_bytes(body).replace(LEAD.encode(), "좋습니다. ".encode())) as at:
        at.go(Surface.WEEKLY)
        assert (at.shown, at.outcomes()) == ([WEEKLY], ["attempt_started", "validation_rejected"])


@pytest.mark.parametrize("surface", Surface)
def test_no_credential_is_final_and_no_request(tmp_path: Path, surface: Surface) -> None:
    with gateway(tmp_path, environ={}) as at:
        publication = at.go(surface)
        assert (publication.outcome, publication.requests) == (Outcome.CREDENTIAL_UNAVAILABLE, 0)
        assert at.shown == [TEXT_OF[surface]]
        assert at.outcomes() == ["attempt_started", "credential_unavailable"]
        assert at.server.calls == 0


def test_an_unclean_environment_is_refused_before_the_claim(tmp_path: Path) -> None:
    with gateway(tmp_path, environ={**ENVIRON, "HTTPS_PROXY": ""}) as at:
        assert at.go(Surface.DAILY).outcome is Outcome.CREDENTIAL_ENVIRONMENT_REJECTED
        assert (at.shown, at.outcomes()) == ([DAILY], [])


def test_after_a_canonical_text_without_a_row_nothing_is_selected(tmp_path: Path) -> None:
    environ = {**ENVIRON, "HTTPS_PROXY": ""}
    with gateway(tmp_path, environ=environ) as at:
        at.go(Surface.DAILY)
        del environ["HTTPS_PROXY"]
        at.go(Surface.DAILY)
        assert (at.shown, at.outcomes(), at.server.requests) == ([DAILY, DAILY], [], 0)


@pytest.mark.parametrize(
    "presentation", [None, "text", CanonicalText(Surface.WEEKLY, DAILY), CanonicalText(Surface.WEEKLY, WEEKLY)]
)
def test_what_is_not_the_surfaces_text_is_canonical_without_a_row(tmp_path: Path, presentation: object) -> None:
    with gateway(tmp_path) as at:
        message = JournalMessage(Surface.DAILY, ("one",), presentation, DAILY)
        assert at.path.first_save(message, at.shown.append).outcome is Outcome.UNKNOWN_PRESENTATION
        assert (at.shown, at.outcomes(), at.server.calls) == ([DAILY], [], 0)


@pytest.mark.parametrize("surface", Surface)
def test_an_observer_publishes_nothing_while_a_claim_is_in_flight(tmp_path: Path, surface: Surface) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(body: bytes) -> bytes:
        asked.set()
        assert go_on.wait(10)
        return answer_bytes(body)

    with gateway(tmp_path, answer=answer) as at:
        owner = threading.Thread(target=lambda: at.go(surface))
        owner.start()
        assert asked.wait(10)
        seen = at.go(surface)
        assert (seen.text, seen.outcome, seen.stopped) == (None, None, False)
        assert 0 < seen.wait_ms <= CLAIM_LEASE_MS
        assert at.shown == []
        go_on.set()
        owner.join(10)
        assert at.shown == [selected_of(surface)]
        assert at.server.requests == 1


def test_a_failed_edit_is_followed_by_a_canonical_one(tmp_path: Path) -> None:
    with gateway(tmp_path) as at:
        failures = [RuntimeError("secret")]

        def edit(body: str) -> None:
            if failures:
                raise failures.pop()
            at.shown.append(body)

        publication = at.path.first_save(at.message(Surface.DAILY), edit)
        assert publication.outcome is Outcome.CANONICAL_COMMIT_ERROR
        assert (at.shown, at.outcomes()) == ([DAILY], ["attempt_started", "publication_failed"])


@pytest.mark.parametrize("surface", WRITTEN)
def test_a_failed_writer_is_canonical(tmp_path: Path, surface: Surface) -> None:
    def fails() -> None:
        raise OSError("secret")

    with gateway(tmp_path) as at:
        at.writer.on_write = fails
        at.go(surface)
        assert (at.shown, at.outcomes()) == ([TEXT_OF[surface]], ["attempt_started", "commit_failed"])


class Crash(BaseException):
    """A process that ends."""


@pytest.mark.parametrize("surface", WRITTEN)
def test_a_crash_after_the_write_publishes_that_body_later(tmp_path: Path, surface: Surface) -> None:
    def hook(name: str) -> None:
        if name == "journal.delivered":
            raise Crash

    with gateway(tmp_path) as at:
        failpoints.install(hook)
        with pytest.raises(Crash):
            at.go(surface)
        failpoints.install(None)
        assert at.go(surface).wait_ms > 0
        at.clock.ahead_ms = CLAIM_LEASE_MS
        at.go(surface)
        assert (at.shown, at.outcomes()) == ([selected_of(surface)], ["attempt_started", "selected"])
        assert at.server.requests == 1


@pytest.mark.parametrize("surface", Surface)
def test_a_journal_that_cannot_be_used_is_canonical_with_no_call(tmp_path: Path, surface: Surface) -> None:
    with gateway(tmp_path) as at:
        (tmp_path / DIRECTORY / "lock").unlink()
        at.go(surface)
        assert (at.shown, at.server.calls) == ([TEXT_OF[surface]], 0)


@pytest.mark.parametrize("surface", WRITTEN)
def test_a_terminal_row_that_fails_stops_what_was_written(tmp_path: Path, surface: Surface) -> None:
    with gateway(tmp_path) as at:
        at.writer.on_write = (tmp_path / DIRECTORY / "lock").unlink
        publication = at.go(surface)
        assert publication.stopped
        assert at.shown == []
        assert at.outcomes() == ["attempt_started"]


def test_a_store_that_cannot_be_read_stops_its_messages(tmp_path: Path) -> None:
    def fails() -> None:
        raise OSError("secret")

    with gateway(tmp_path) as at:
        at.go(Surface.WEEKLY)
        at.writer.on_read = fails
        assert at.go(Surface.WEEKLY).stopped
        assert at.shown == [selected_of(Surface.WEEKLY)]


def test_asyncio_hosts(tmp_path: Path) -> None:
    async def main(at: Gateway) -> list[Publication]:
        async def show(body: str) -> None:
            await asyncio.sleep(0)
            at.shown.append(body)

        daily, weekly = at.message(Surface.DAILY), at.message(Surface.WEEKLY)
        return [
            await at.path.first_save_async(daily, show),
            await at.path.publish_async(weekly, at.writer, show),
            await at.path.replay_async(daily, show),
        ]

    with gateway(tmp_path) as at:
        publications = asyncio.run(main(at))
        assert [p.outcome for p in publications] == [Outcome.SELECTED, Outcome.SELECTED, None]
        assert at.shown == [selected_of(Surface.DAILY), selected_of(Surface.WEEKLY), DAILY]


def test_nothing_of_a_message_leaves(tmp_path: Path) -> None:
    canaries = Canaries()
    for place, text in (("identity", "identity-canary-1"), ("weekly", "평균은 계획한 범위"), ("lead", "정리하면")):
        canaries.adopt(place, text)
    with gateway(tmp_path) as at:
        publication = at.go(Surface.WEEKLY)
        assert at.telemetry.flush(5)
        said = {
            "publication": repr(publication),
            "message": repr(at.message(Surface.WEEKLY)),
            "records": repr(at.sink.records),
            "files": "".join(p.read_text("utf-8", "replace") for p in (tmp_path / DIRECTORY).iterdir()),
        }
        canaries.assert_absent(said)


class _FailingLocks:
    """The `at`-th lock between processes cannot be had."""

    def __init__(self, at: int) -> None:
        self._left = at

    def among_threads(self, *message: str) -> AbstractContextManager[None]:
        return nullcontext()

    def hold(self, *message: str) -> AbstractContextManager[None]:
        self._left -= 1
        if self._left == 0:
            raise LedgerFailed(StoreFault.INPUT_OUTPUT)
        return nullcontext()

    def close(self) -> None:
        """Nothing is open."""


def test_after_an_edit_without_its_lock_nothing_is_selected(tmp_path: Path) -> None:
    """The canonical text went out without a row: the next tap of the process must not select."""
    with gateway(tmp_path, locks=_FailingLocks(1)) as at:
        at.go(Surface.DAILY)
        at.go(Surface.DAILY)
        assert at.shown == [DAILY] * 2
        assert at.outcomes() == []
        assert at.server.requests == 0


@pytest.mark.parametrize("surface", Surface)
def test_a_text_selected_after_a_canonical_one_of_the_process_is_not_shown(tmp_path: Path, surface: Surface) -> None:
    """Another tap, for which the journal could not be used, came between the claim and its end."""

    def answer(body: bytes) -> bytes:
        at.path._edited.add(at.journal.artifact_key(ANCHOR_SURFACE_OF[surface], *at.message(surface).identity))
        return answer_bytes(body)

    with gateway(tmp_path, answer=answer) as at:
        at.go(surface)
        assert at.shown == [TEXT_OF[surface]]
        assert at.server.requests == 1

"""Unique strings in every private place, all four paths over real TLS, and a search of everything that leaves.

What may hold content is said by the authorities: the weekly ledger holds body and destination, the adaptive one the
payload, the daily one the event id. Everything else is searched: logs at DEBUG after the host has reconfigured logging,
structlog, metrics, the audit mirror, evidence and results of a proof, standard streams, request bytes, exceptions and
reprs.
"""

import io
import json
import logging
import logging.config
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from harness.cli import main as harness_main
from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.authority.adaptive import CardPresentationOrigin, OriginKind
from kexpr.authority.weekly import Pins, WeeklyTask
from kexpr.codes import Mode, Outcome, Surface, WireVersion
from kexpr.config import FEATURE_KEY, Active, from_extra
from kexpr.coordinator import Coordinator
from kexpr.paths.adaptive import AdaptivePath, Card
from kexpr.paths.daily import DailyMessage, DailyPath
from kexpr.paths.publication import Publication
from kexpr.paths.weekly import WeeklyDelivery, WeeklyPath, WeeklyReport
from kexpr.state import State
from kexpr.surfaces.daily import daily_presentation
from kexpr.surfaces.dualcoachtest import DualDecision, DualReason, dual_card_presentation
from kexpr.surfaces.physique import PhysiqueReviewDecision, physique_card_presentation, render_physique_source
from kexpr.surfaces.weekly import WeeklyInterpretation, WeeklyRationale, weekly_presentation
from kexpr.telemetry import AuditMirror, PrometheusSink, Sink, StructlogSink, Telemetry
from kexpr.testing.canaries import Canaries, chain_text
from kexpr.transport import ClientFactory

FAULTS = [
    "",
    "http_500@*",
    "html_200@*",
    "redirect_302@*",
    "two_choices@*",
    "duplicate_key@*",
    "prose_medical@*",
    "reset_in_head@*",
]


class HostError(Exception):
    """The host's own exception, with content in it."""


class World:
    """One gateway whose every private text is a canary."""

    def __init__(
        self, root: Path, server: RehearsalServer, mode: Mode, canaries: Canaries, on_the_wire: Canaries
    ) -> None:
        self.canaries = canaries
        self.on_the_wire = on_the_wire
        self.registry = CollectorRegistry()
        self.structured = io.StringIO()
        logger = structlog.wrap_logger(
            structlog.PrintLogger(self.structured), processors=[structlog.processors.JSONRenderer()]
        )
        sinks: list[Sink] = [StructlogSink(logger), PrometheusSink(self.registry), AuditMirror(root / "audit")]
        self.telemetry = Telemetry(sinks, profile="physique-coach")
        self.state = State(root / "state")
        canaries.adopt_bytes("identity key", self.state.identity_key)
        key = canaries.plant("api key")
        self.coordinator = Coordinator(
            Active(mode, frozenset(Surface), WireVersion.KEXP_2),
            identity_key=lambda: self.state.identity_key,
            telemetry=self.telemetry,
            clients=ClientFactory(_seam=server.seam),
            environ={"OPENAI_API_KEY": key},
        )
        self.binding = canaries.plant("binding digest")
        self.daily = DailyPath(self.coordinator, self.state.daily(lambda _: True), self.state.locks)
        self.weekly = WeeklyPath(self.coordinator, self.state.weekly(lambda _: True), self.state.locks)
        self.adaptive = AdaptivePath(self.coordinator, self.state.adaptive(threading.Lock, self), self.state.locks)

    def is_just_consumed(self, _origin: CardPresentationOrigin) -> bool:
        return True

    def current_binding_digest(self, _origin: CardPresentationOrigin) -> str:
        return self.binding

    def text(self, place: str) -> str:
        return self.canaries.plant_korean(place)

    def run_all(self, deliver: Callable[[str], None]) -> list[Publication]:
        return [self.run_daily(deliver), self.run_weekly(deliver), self.run_dual(deliver), self.run_physique(deliver)]

    def run_daily(self, edit: Callable[[str], None]) -> Publication:
        event = self.canaries.plant("event id")
        facts = tuple(self.text(f"fact {number}") for number in range(7))
        shown = daily_presentation(event, facts, (self.text("action"),))
        return self.daily.first_save(DailyMessage(event, shown, shown.canonical_payload), edit)

    def run_weekly(self, edit: Callable[[str], None]) -> Publication:
        shown = weekly_presentation(
            interpretation_enum=next(iter(WeeklyInterpretation)),
            rationale_enum=next(iter(WeeklyRationale)),
            title=self.text("weekly title"),
            facts=(self.text("weekly fact"),),
            judgment=self.text("weekly judgment"),
            actions=(self.text("weekly action"),),
        )
        pins = Pins(*(self.canaries.plant(f"pin {name}") for name in ("destination", "registry", "config", "template")))
        delivery = WeeklyDelivery(
            WeeklyTask(self.canaries.plant("task identity")),
            self.canaries.plant("destination"),
            lambda: pins,
            lambda: WeeklyReport(shown, shown.canonical_payload),
        )
        return self.weekly.deliver(delivery, lambda _destination, body: edit(body))

    def run_dual(self, edit: Callable[[str], None]) -> Publication:
        shown = dual_card_presentation(
            envelope=self.text("envelope"),
            title="적응형 영양 검토",
            decision_code=next(iter(DualDecision)),
            recommendations=(self.text("recommendation"),),
            reason_codes=tuple(DualReason)[:2],
            details=(self.text("detail"),),
        )
        return self._card(OriginKind.CALLBACK, Surface.ADAPTIVE_DUALCOACHTEST, shown, shown.canonical_payload, edit)

    def run_physique(self, edit: Callable[[str], None]) -> Publication:
        code = next(iter(PhysiqueReviewDecision))
        source = render_physique_source(
            envelope=self.text("physique envelope"),
            subject=f"{self.text('customer')} · D+3",
            review_decision_code=code,
            basis=self.text("basis"),
            optional=(f"메모: {self.text('note')}",),
        )
        shown = physique_card_presentation(code, source)
        return self._card(OriginKind.TYPED_NOTE, Surface.ADAPTIVE_PHYSIQUE, shown, shown.canonical_payload, edit)

    def _card(
        self, kind: OriginKind, surface: Surface, shown: object, payload: str, edit: Callable[[str], None]
    ) -> Publication:
        plant = self.canaries.plant
        origin = CardPresentationOrigin(kind, plant("session"), plant("callback data"), plant("message id"))
        return self.adaptive.publish(Card(origin, surface, shown, payload, self.binding), edit)

    def outputs(self, root: Path) -> dict[str, str | bytes]:
        """What the sinks have made of it."""
        assert self.telemetry.flush(5)
        audit = b"".join(path.read_bytes() for path in sorted((root / "audit").rglob("*")) if path.is_file())
        tombstones = "\n".join(path.name for path in root.rglob("state-tombstones/*"))
        return {
            "structlog": self.structured.getvalue(),
            "metrics": generate_latest(self.registry),
            "audit": audit,
            "tombstones": tombstones,
        }

    def close(self) -> None:
        self.telemetry.close()
        self.state.close()


@contextmanager
def world(root: Path, mode: Mode, fault: str = "") -> Iterator[tuple[World, RehearsalServer]]:
    on_the_wire = Canaries()

    def answer(body: bytes) -> bytes:
        content = answer_bytes(body)
        for alias, prose in json.loads(content)["slots"].items():
            on_the_wire.adopt("alias", alias)
            on_the_wire.adopt("model prose", prose)
        return content

    with RehearsalServer(answer, FaultPlan.parse([fault] if fault else []), record=True) as server:
        made = World(root, server, mode, Canaries(), on_the_wire)
        try:
            yield made, server
        finally:
            made.close()


@pytest.fixture
def debug_log() -> Iterator[io.StringIO]:
    """The host turns everything on, before and after our modules have loaded."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    configure_logging()
    handler = logging.StreamHandler(stream)
    root.addHandler(handler)
    yield stream
    root.handlers[:] = before[1]
    root.setLevel(before[0])


def configure_logging() -> None:
    names = [name for name in logging.root.manager.loggerDict if not name.startswith(("asyncio", "faker"))]
    logging.config.dictConfig(
        {
            "version": 1,
            "incremental": True,
            "root": {"level": "DEBUG"},
            "loggers": {name: {"level": "DEBUG", "propagate": True} for name in names},
        }
    )


@pytest.mark.parametrize("mode", [Mode.ENABLED, Mode.SHADOW])
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_private_leaves(fault, mode, tmp_path, debug_log, capsys):
    shown: list[str] = []
    with world(tmp_path, mode, fault) as (made, server):
        made.coordinator.warm()
        configure_logging()
        publications = made.run_all(shown.append)
        outcomes = {publication.outcome for publication in publications}
        won = Outcome.SELECTED if mode is Mode.ENABLED else Outcome.SHADOW_SELECTED
        assert (outcomes == {won}) is (fault == "")
        assert len(shown) == 4
        captured = capsys.readouterr()
        left: dict[str, str | bytes] = {
            **made.outputs(tmp_path),
            "log at DEBUG": debug_log.getvalue() + "-",
            "stdout": captured.out + "-",
            "stderr": captured.err + "-",
            "results": repr(publications) + str(publications),
            "daily ledger": without_events(tmp_path / "state" / "daily"),
        }
        sent = {
            "request bodies": b"\n".join(request.body for request in server.recorded),
            "request heads": b"\n".join(without_key(request.head) for request in server.recorded),
        }
        made.canaries.assert_absent({**left, **sent})
        if outcomes == {won}:
            made.on_the_wire.assert_absent(left)


def without_key(head: bytes) -> bytes:
    """The one header that carries the key."""
    return b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"authorization:"))


def without_events(ledger: Path) -> bytes:
    """The daily rows without the event id, which their schema names."""
    rows = [json.loads(line) for path in ledger.glob("ledger-*") for line in path.read_text().splitlines()]
    for row in rows:
        (row.get("record") or {}).pop("finalized_event_id", None)
    return json.dumps(rows, ensure_ascii=False).encode()


def test_a_hosts_own_exception_stays_the_hosts(tmp_path, debug_log):
    with world(tmp_path, Mode.ENABLED) as (made, _):
        secret = made.text("host exception")

        def fail(_text: str) -> None:
            raise HostError(secret)

        for run in (made.run_daily, made.run_weekly, made.run_dual, made.run_physique):
            with pytest.raises(HostError):
                run(fail)
        made.canaries.assert_absent({**made.outputs(tmp_path), "log": debug_log.getvalue() + "-"})


@pytest.mark.parametrize("surface", ["daily", "weekly", "adaptive"])
def test_a_broken_ledger_says_codes_only(surface, tmp_path, debug_log):
    with world(tmp_path, Mode.ENABLED) as (made, _):
        made.run_all(lambda _: None)
        (segment,) = (tmp_path / "state" / surface).glob("ledger-*")
        content = segment.read_bytes()
        segment.write_bytes(content[:-20])
        made.run_all(lambda _: None)
        opening = {"daily": made.state.daily, "weekly": made.state.weekly}.get(surface)
        if opening:
            with pytest.raises(Exception, match="torn_tail") as failed:
                opening(lambda _: True)
            made.canaries.assert_absent({"exception": chain_text(failed.value)})
        made.canaries.assert_absent({**made.outputs(tmp_path), "log": debug_log.getvalue() + "-"})


def test_a_malformed_block_is_one_code():
    canaries = Canaries()
    extra = {FEATURE_KEY: {"schema_version": 2, canaries.plant("key"): canaries.plant("value")}}
    canaries.assert_absent({"config": repr(from_extra(extra))})


def test_a_proof_leaves_codes_integers_and_digests(tmp_path, capsys, debug_log):
    canaries = Canaries()
    canaries.adopt("canonical sentence", "저장된 오늘 기록을 확인했습니다.")
    canaries.adopt("title", "오늘 체크인 완료")
    canaries.adopt("card", "고객에게는 아직 전달되지 않았습니다.")
    canaries.adopt("synthetic text", "가상 자료 0001")
    canaries.adopt("key", session_key())
    assert harness_main(["proof", "--json", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"proof.json", "proof.md", "metrics.prom"} <= set(files)
    canaries.assert_absent(
        {**files, "stdout": captured.out, "stderr": captured.err + "-", "log": debug_log.getvalue() + "-"}
    )


def session_key() -> str:
    from harness.stage import REHEARSAL_ENVIRON

    return "Bearer " + REHEARSAL_ENVIRON["OPENAI_API_KEY"]


def test_the_search_can_fail(tmp_path):
    """A sink that says what it should not is found, however it spells it."""
    with world(tmp_path, Mode.ENABLED) as (made, _):
        said: list[str] = []
        made.run_daily(said.append)
        for leak in (said[0], said[0].encode().hex(), repr(said[0].encode())):
            with pytest.raises(AssertionError, match="canaries found"):
                made.canaries.assert_absent({"careless sink": leak})

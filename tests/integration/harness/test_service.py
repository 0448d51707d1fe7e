"""`kexpr-harness serve` as a process: its pages, its manners to strangers, its end; its status page in Chromium."""

import fcntl
import os
import re
import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.cli import main
from harness.evidence.ledger import EvidenceLedger
from harness.proof.session import EVIDENCE
from kexpr.exits import Exit
from kexpr.ledger.locking import LOCK_NAME
from kexpr.testing.canaries import Canaries
from tests.support.chromium import chromium, overflow_of, page_of, violations_of
from tests.support.service import Service, served

HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen simulated days, with a timeout on the ninth of the weekly surface."""
    directory = tmp_path_factory.mktemp("service") / "state"
    command = ["observe", "simulate", "--days", "14", "--fault", "timeout@day9:weekly", "--out", str(directory)]
    assert main(command) == Exit.NOT_GOOD
    return directory


@pytest.fixture(scope="module")
def reports(state: Path) -> Path:
    directory = state.with_name("reports")
    main(["report", "--state", str(state), "--out", str(directory)])
    return directory


@pytest.fixture(scope="module")
def service(state: Path, reports: Path):
    with served(state, "--reports", str(reports)) as running:
        yield running


def test_the_metrics_are_those_of_the_evidence(service: Service) -> None:
    answer = service.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    outcomes = families["kexpr_outcomes"].samples
    assert sum(s.value for s in outcomes if s.labels["outcome"] == "shadow_selected") == 48 + 14 * 5 - 2
    assert sum(s.value for s in outcomes if s.labels["outcome"] == "canonical_timeout") == 2
    (valid,) = families["kexpr_evidence_chain_valid"].samples
    assert valid.value == 1


def test_rehearsal_passes_no_gate_that_counts_calls(service: Service) -> None:
    families = {family.name: family for family in text_string_to_metric_families(service.ask("/metrics").text)}
    gates = families["kexpr_harness_gate_passed"].samples
    counting = {"proof_calls", "days_covered", "accepted"}
    assert {s.value for s in gates if s.labels["gate"] in counting} == {0}
    assert {s.value for s in gates if s.labels["gate"] == "chain_intact"} == {1}


def test_health_and_readiness(service: Service) -> None:
    assert service.ask("/healthz").body == b"ok\n"
    assert service.ask("/readyz").body == b"ready\n"


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/readyz", "/reports/", "/nothing"])
def test_no_answer_goes_without_its_headers(path: str, service: Service) -> None:
    for method in ("GET", "HEAD", "POST"):
        answer = service.ask(path, method=method)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in answer.headers
        if method == "POST":
            assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        if method == "HEAD":
            assert answer.body == b""


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example", "", "localhost@x", "[::1", "a b"])
def test_other_host_names_are_refused(host: str, service: Service) -> None:
    """A page on another site that a browser here was led to by DNS asks under its own name."""
    assert service.ask("/metrics", headers={"Host": host}).status == 400
    assert service.ask("/metrics", headers={"Host": f"localhost:{service.port}"}).status == 200


def test_the_status_page_says_what_a_person_needs(service: Service) -> None:
    page = service.ask("/").text
    assert "<script" not in page
    for word in ("physique-coach", "dualcoachtest", "weekly", "P2", "not ready", "rehearsal"):
        assert word in page


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_status_page_in_a_browser(width: int, scheme: str, service: Service, state: Path) -> None:
    with chromium() as browser, page_of(browser, width=width, scheme=scheme) as page:
        page.goto(service.url)
        assert overflow_of(page) <= 0
        assert violations_of(page) == {}
        page.screenshot(path=state.with_name(f"status-{width}-{scheme}.png"), full_page=True)


def test_reports_are_served_under_their_own_policy(service: Service, reports: Path) -> None:
    index = service.ask("/reports/")
    assert index.status == 200
    names = re.findall(r'href="([^"]+\.html)"', index.text)
    assert names
    written = sorted(path.relative_to(reports).as_posix() for path in reports.rglob("*") if path.is_file())
    for name in written:
        answer = service.ask(f"/reports/{name}")
        assert (answer.status, answer.body) == (200, (reports / name).read_bytes())
        assert "sandbox" in answer.headers["content-security-policy"]
    with chromium() as browser, page_of(browser, width=1440) as page:
        for name in ("", next(name for name in written if name.endswith(".html") and name != "index.html")):
            response = page.goto(f"{service.url}/reports/{name}")
            assert response is not None
            assert response.status == 200
            page.screenshot(path=reports.with_name(f"served-{len(name)}.png"))


@pytest.mark.parametrize(
    "path",
    [
        "../state/evidence/lock",
        "..%2fstate%2fevidence%2flock",
        "%2e%2e/service.log",
        "/etc/passwd",
        "link.html",
        "fifo.html",
        "sub/../index.html",
        ".hidden.html",
        "x.exe",
        "nul%00.html",
        "a" * 5_000 + ".html",
    ],
)
def test_nothing_else_is_a_report(path: str, service: Service, reports: Path) -> None:
    if not (reports / "link.html").is_symlink():
        (reports / "link.html").symlink_to("/etc/passwd")
        os.mkfifo(reports / "fifo.html")
        (reports / ".hidden.html").write_text("x")
    try:
        assert service.ask(f"/reports/{path}").status in {400, 404}
    finally:
        for name in ("link.html", "fifo.html", ".hidden.html"):
            (reports / name).unlink(missing_ok=True)


def test_idle_and_slow_connections_do_not_hold_up_a_scrape(service: Service) -> None:
    with ExitStack() as held:
        for number in range(60):
            peer = held.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            if number % 2:
                peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: local")
        greedy = held.enter_context(socket.create_connection(("127.0.0.1", service.port)))
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        greedy.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        started = time.monotonic()
        for _ in range(5):
            assert service.ask("/metrics").status == 200
        assert time.monotonic() - started < 2.5


def test_more_connections_than_it_takes_leave_room_for_the_next(service: Service) -> None:
    with ExitStack() as held:
        for _ in range(260):
            held.enter_context(socket.create_connection(("127.0.0.1", service.port)))
        assert service.ask("/healthz").status == 200


def test_a_giant_head_is_refused(service: Service) -> None:
    """The connection is closed with what it still sends unread, which the peer may see as a reset."""
    status = None
    with suppress(ConnectionError):
        status = service.ask("/healthz", headers={"X-Long": "x" * 400_000}).status
    assert status in {None, 400, 431}
    assert service.ask("/healthz").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_with_connections_open(number: int, state: Path) -> None:
    with served(state) as service, socket.create_connection(("127.0.0.1", service.port)):
        assert service.ask("/healthz").status == 200
        started = time.monotonic()
        service.process.send_signal(number)
        assert service.process.wait(5) == 0
        assert time.monotonic() - started < 3


def test_who_holds_the_ledger_holds_up_neither_a_scrape_nor_the_end(state: Path) -> None:
    with served(state) as service, (state / EVIDENCE / LOCK_NAME).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = time.monotonic()
        assert "kexpr_evidence_chain_valid 1.0" in service.ask("/metrics").text
        assert service.ask("/healthz").status == 200
        assert time.monotonic() - started < 4
        assert service.ask("/readyz").body == b"not ready: stale\n"
        service.process.terminate()
        started = time.monotonic()
        assert service.process.wait(5) == 0
        assert time.monotonic() - started < 3


def test_evidence_that_breaks_meanwhile_is_said(state: Path, tmp_path: Path) -> None:
    copy = tmp_path / "state"
    (copy / EVIDENCE).mkdir(parents=True, mode=0o700)
    for path in (state / EVIDENCE).iterdir():
        (copy / EVIDENCE / path.name).write_bytes(path.read_bytes())
        (copy / EVIDENCE / path.name).chmod(0o600)
    (first, *_) = sorted((copy / EVIDENCE).glob("*.jsonl"))
    broken = first.read_bytes().replace(b'"requests":1', b'"requests":0', 1)
    first.write_bytes(broken)
    with served(copy) as service:
        assert service.ask("/readyz").status == 503
        assert service.ask("/readyz").body == b"not ready: chain_broken\n"
        assert "kexpr_evidence_chain_valid 0.0" in service.ask("/metrics").text
        assert service.ask("/").status == 200
        assert service.ask("/healthz").status == 200


def test_an_anchor_that_the_chain_does_not_contain_is_said(state: Path) -> None:
    with served(state, "--anchor", f"3:{'0' * 64}") as service:
        assert service.ask("/readyz").body == b"not ready: head_mismatch\n"
        assert "kexpr_evidence_chain_valid 0.0" in service.ask("/metrics").text


def test_without_evidence_every_series_is_there_at_zero(tmp_path: Path) -> None:
    with served(tmp_path / "state") as service:
        text = service.ask("/metrics").text
        assert 'outcome="shadow_selected"' in text
        assert service.ask("/").status == 200
    assert not (tmp_path / "state").exists()


def test_the_schedule_observes_once_and_survives_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for _ in range(2):
        with served(state, "--schedule") as service:
            deadline = time.monotonic() + 20
            while "shadow_selected" not in _counted(service) and time.monotonic() < deadline:
                assert service.ask("/metrics").status == 200
                time.sleep(0.05)
            while _counted(service).get("shadow_selected", 0) < 5 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert _counted(service) == {"shadow_selected": 5}
    evidence = EvidenceLedger.open(state / EVIDENCE)
    assert sum(evidence.summary().outcome_totals.values()) == 5
    evidence.close()


def _counted(service: Service) -> dict[str, int]:
    found: dict[str, int] = {}
    for family in text_string_to_metric_families(service.ask("/metrics").text):
        for sample in family.samples if family.name == "kexpr_outcomes" else ():
            if sample.value:
                found[sample.labels["outcome"]] = found.get(sample.labels["outcome"], 0) + int(sample.value)
    return found


def test_stopping_in_the_middle_of_a_round_leaves_no_orphan(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with served(state, "--schedule", "--calls-per-day", "50") as service:
        deadline = time.monotonic() + 20
        while not _counted(service) and time.monotonic() < deadline:
            time.sleep(0.02)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(8) == 0
    evidence = EvidenceLedger.open(state / EVIDENCE)
    assert evidence.orphans() == ()
    assert 0 < sum(evidence.summary().outcome_totals.values()) < 250
    evidence.close()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--host", "0.0.0.0"], Exit.USAGE, "--allow-non-loopback"),
        (["--tls-key", __file__], Exit.USAGE, "go together"),
        (["--live"], Exit.USAGE, "--schedule"),
        (["--live", "--schedule"], Exit.USAGE, "--live needs"),
        (["--tls-key", __file__, "--tls-certificate", __file__, "--port", "0"], Exit.INVALID, "cannot listen"),
        (["--host", "127.0.0.1", "--port", "TAKEN"], Exit.INVALID, "cannot listen"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(
    arguments: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], service: Service
) -> None:
    words = [str(service.port) if word == "TAKEN" else word for word in arguments]
    assert main(["serve", "--state", str(tmp_path), *words]) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


def test_nothing_that_a_stranger_sends_is_written_anywhere(state: Path, tmp_path: Path) -> None:
    canaries = Canaries()
    planted = {place: canaries.plant(place) for place in ("path", "query", "header", "host")}
    with served(state) as service:
        outputs: dict[str, str | bytes] = {}
        for number, (path, headers) in enumerate(
            [
                (f"/{planted['path']}?{planted['query']}", {"X-Note": planted["header"]}),
                ("/", {"Host": planted["host"]}),
                (f"/reports/{planted['path']}.html", {}),
            ]
        ):
            answer = service.ask(path, headers=headers)
            outputs[f"answer {number}"] = answer.body + repr(answer.headers).encode()
    outputs["log"] = state.with_name("service.log").read_bytes()
    canaries.assert_absent(outputs)

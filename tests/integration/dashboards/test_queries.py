"""Every panel's query against a real Prometheus: fourteen simulated days behind it, a real exporter before it."""

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from dashboards.build import PROMETHEUS
from dashboards.panels import DASHBOARDS, SURFACE, Query
from harness.cli import main
from harness.profiles import PAIRS, Pair
from harness.proof.session import EVIDENCE
from kexpr.exits import Exit
from tests.support.programs import need
from tests.support.prometheus import Prometheus, backfill, prometheus
from tests.support.service import served

DAY_S = 86_400
RULE_INTERVAL = "interval: 1m"
UP = 'up{job="kexpr-harness"}'
QUIET_ALERTS = ("KexprExporterDown", "KexprEvidenceChainInvalid", "KexprOrphan")


@dataclass(frozen=True, slots=True)
class Fortnight:
    server: Prometheus
    start_s: int
    end_s: int


@pytest.fixture(scope="module")
def fortnight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fortnight]:
    """Simulated days of which the ninth has a timeout on the weekly surface, and the exporter of their evidence."""
    need("prometheus")
    root = tmp_path_factory.mktemp("fortnight")
    state, data = root / "state", root / "data"
    simulate = ["observe", "simulate", "--days", "14", "--fault", "timeout@day9:weekly", "--out", str(state)]
    assert main(simulate) == Exit.NOT_GOOD
    with served(state) as service:
        target = f"127.0.0.1:{service.port}"
        end_s = int(time.time()) - 600
        labels = {"job": "kexpr-harness", "instance": target}
        _rules(root, "1h")
        start_s = backfill(data, state / EVIDENCE, root / "rules.yml", end_s=end_s, labels=labels)
        with prometheus(data, _configuration(root, target)) as server:
            _wait_for(server, f"{UP} == 1")
            _wait_for(server, "profile_surface_phase:kexpr_harness_gates:passed_ratio", age_s=30)
            yield Fortnight(server, start_s, end_s)


def _rules(root: Path, interval: str) -> None:
    """The rules as checked in, evaluated more or less often."""
    for name in ("rules.yml", "alerts.yml"):
        text = (PROMETHEUS / name).read_text("utf-8")
        assert RULE_INTERVAL in text
        (root / name).write_text(text.replace(RULE_INTERVAL, f"interval: {interval}"), "utf-8")


def _configuration(root: Path, target: str) -> str:
    """The scrape example with this exporter's address, each second instead of each minute."""
    _rules(root, "1s")
    configuration = yaml.safe_load((PROMETHEUS / "scrape.yml").read_text("utf-8"))
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    configuration["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    return yaml.safe_dump(configuration)


def _wait_for(server: Prometheus, expression: str, *, age_s: int = 60) -> None:
    deadline = time.monotonic() + 30
    while not server.instant(f"time() - timestamp({expression}) < {age_s}"):
        assert time.monotonic() < deadline, expression
        time.sleep(0.2)


def _filled(expression: str, pair: Pair) -> str:
    return expression.replace("$profile", pair.profile).replace("$surface", pair.surface)


def _cases() -> list[tuple[str, Query, Pair]]:
    """Each query once, or once for each pair where it names one."""
    return [
        (f"{name}/{panel.title}/{pair}", query, pair)
        for name, spec in DASHBOARDS.items()
        for panel in spec.panels
        for query in panel.queries
        for pair in (PAIRS if "$" in query.expr else PAIRS[:1])
    ]


@pytest.mark.parametrize(("query", "pair"), [case[1:] for case in _cases()], ids=[case[0] for case in _cases()])
def test_a_panel_has_data(query: Query, pair: Pair, fortnight: Fortnight) -> None:
    expression = _filled(query.expr, pair)
    assert "$" not in expression
    now = fortnight.server.instant(expression)
    assert now
    assert all(math.isfinite(float(sample["value"][1])) for sample in now)
    assert all(label in sample["metric"] for sample in now for label in re.findall(r"{{(\w+)}}", query.legend))
    if not query.instant:
        (*_, longest) = sorted(
            len(series["values"]) for series in fortnight.server.range(expression, fortnight.start_s, fortnight.end_s)
        )
        assert longest > 12 * 24


def test_the_variables_offer_each_pair(fortnight: Fortnight) -> None:
    offered = []
    for name, query in SURFACE.variables:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        assert found is not None
        assert found[2] == name
        for profile in fortnight.server.label_values("profile", "kexpr_harness_window_days"):
            values = fortnight.server.label_values(name, found[1].replace("$profile", profile))
            offered += [(profile, value) for value in values if name == "surface"]
    assert set(offered) == {(pair.profile.value, pair.surface.value) for pair in PAIRS}


def test_the_history_tells_the_fault_of_the_ninth_day(fortnight: Fortnight) -> None:
    failing = fortnight.server.range(
        "profile_surface_outcome:kexpr_shadow_failures:increase1d > 0", fortnight.start_s, fortnight.end_s
    )
    assert {(series["metric"]["surface"], series["metric"]["outcome"]) for series in failing} == {
        ("weekly", "canonical_timeout")
    }
    ninth_s = fortnight.start_s + 8 * DAY_S
    for series in failing:
        times = [moment for moment, _ in series["values"]]
        assert ninth_s - DAY_S / 2 < times[0] < ninth_s + DAY_S
        assert times[-1] - times[0] <= DAY_S


def test_every_alert_rule_is_loaded_and_evaluated_without_a_fault(fortnight: Fortnight) -> None:
    assert {rule["health"] for rule in fortnight.server.rules()} == {"ok"}
    assert len(_alerts(fortnight)) == 6
    deadline = time.monotonic() + 30
    while {_alerts(fortnight)[name] for name in QUIET_ALERTS} != {"inactive"}:  # a scrape may be late on a busy machine
        assert time.monotonic() < deadline, _alerts(fortnight)
        time.sleep(0.5)


def _alerts(fortnight: Fortnight) -> dict[str, str]:
    return {rule["name"]: rule["state"] for rule in fortnight.server.rules() if rule["type"] == "alerting"}


def test_the_exporter_and_the_history_agree(fortnight: Fortnight) -> None:
    """The live scrape continues the series that were made from the collector, by name and by label."""
    names = 'count by (__name__) ({__name__=~"kexpr_.+"})'
    live = {sample["metric"]["__name__"]: sample["value"][1] for sample in fortnight.server.instant(names)}
    (*_, before) = [
        {series["metric"]["__name__"]: series["values"][-1][1] for series in part}
        for part in [fortnight.server.range(names, fortnight.end_s - 3_600, fortnight.end_s)]
    ]
    assert live == before

"""What is checked in: dashboards as built, queries and rules that parse, alerts and runbook that agree."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dashboards.build import GRAFANA, PROMETHEUS
from dashboards.panels import DASHBOARDS, OVERVIEW, encode, overlaps
from harness.metrics import registry_of
from tests.support.evidence import reading, summary
from tests.support.programs import need

promql_parser = pytest.importorskip("promql_parser")

ROOT = Path(__file__).parent.parent.parent.parent
RUNBOOK = ROOT / "docs" / "runbook.md"
DOCUMENTED = ("rules.yml", "alerts.yml")
UP = "up"


def rules(name):
    groups = yaml.safe_load((PROMETHEUS / name).read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions():
    """(where, expression) of every rule and every panel, with the dashboard's variables filled in."""
    for name in DOCUMENTED:
        for rule in rules(name):
            yield rule.get("record") or rule["alert"], rule["expr"]
    for spec in DASHBOARDS.values():
        for panel in spec.panels:
            for query in panel.queries:
                filled = query.expr.replace("$profile", "physique-coach").replace("$surface", "weekly")
                yield f"{spec.uid}/{panel.title}", filled


def known_names():
    exported = {s.name for metric in registry_of(lambda: reading(summary())).collect() for s in metric.samples}
    return exported | {rule["record"] for rule in rules("rules.yml")} | {UP}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_checked_in_dashboards_are_what_the_code_builds(name):
    assert (GRAFANA / f"{name}.json").read_text("utf-8") == encode(DASHBOARDS[name])


def test_no_other_dashboard_is_checked_in():
    assert {path.stem for path in GRAFANA.iterdir()} == set(DASHBOARDS)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_of_the_file_stay_on_the_grid_and_apart(name):
    panels = json.loads((GRAFANA / f"{name}.json").read_text("utf-8"))["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < 24 for x, _ in cells)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["description"] for panel in panels)


def test_a_panel_on_another_or_off_the_grid_is_not_built():
    one = OVERVIEW.panels[0]
    on_it = replace(one, title="on it", x=one.x + one.w - 1)
    off = replace(one, title="off", x=21, y=90)
    assert overlaps((one, on_it, off)) == ["off", f"{one.title} / on it"]
    with pytest.raises(ValueError, match="on it"):
        encode(replace(OVERVIEW, panels=(one, on_it)))


@pytest.mark.parametrize(("where", "expression"), [*expressions()])
def test_queries_parse_and_name_only_what_is_exported_or_recorded(where, expression):
    names = set(re.findall(r"\b(?:up|kexpr\w+|profile_surface\w*:[\w:]+)\b", expression))
    promql_parser.parse(expression)
    assert names
    assert names <= known_names()


def test_every_recorded_series_is_used():
    used = " ".join(expression for _, expression in expressions())
    assert [rule["record"] for rule in rules("rules.yml") if rule["record"] not in used] == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_promtool_accepts_the_rules(name):
    done = subprocess.run(
        [need("promtool"), "check", "rules", "--lint-fatal", name],
        cwd=PROMETHEUS,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr


def test_promtool_accepts_the_scrape_example():
    done = subprocess.run(
        [need("promtool"), "check", "config", "scrape.yml"],
        cwd=PROMETHEUS,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr


def test_rules_do_what_their_tests_say():
    done = subprocess.run(
        [need("promtool"), "test", "rules", "tests.yml"], cwd=PROMETHEUS, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_fires_and_stays_quiet_in_a_test():
    tests = yaml.safe_load((PROMETHEUS / "tests.yml").read_text("utf-8"))["tests"]
    seen = {
        (alert["alertname"], bool(alert.get("exp_alerts")))
        for test in tests
        for alert in test.get("alert_rule_test", ())
    }
    alerts = {rule["alert"] for rule in rules("alerts.yml")}
    assert seen == {(alert, fires) for alert in alerts for fires in (True, False)}


def test_alerts_and_runbook_sections_are_the_same():
    sections = re.findall(r"^## (\w+)$", RUNBOOK.read_text("utf-8"), re.MULTILINE)
    alerts = rules("alerts.yml")
    assert sections == [alert["alert"] for alert in alerts]
    for alert in alerts:
        assert alert["annotations"]["runbook"] == f"docs/runbook.md#{alert['alert'].lower()}"
        assert alert["labels"]["severity"] in {"warning", "critical"}

"""The two Grafana dashboards as code: an overview of all surfaces, and one surface in detail.

Every query names metrics of `harness.metrics` or what `prometheus/rules.yml` records. The SDK places nothing, so that
each panel has its place in a grid of 24 columns here; `check_layout` says when two overlap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, Literal

from grafana_foundation_sdk.builders import bargauge, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders.common import ReduceDataOptions, VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink, DatasourceVariable, QueryVariable
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BigValueColorMode,
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    GridPos,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)

__all__ = ["DASHBOARDS", "DashboardSpec", "Panel", "Query", "encode", "overlaps"]

COLUMNS: Final = 24
_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_GREEN, _AMBER, _RED, _BLUE, _GREY = "green", "orange", "red", "blue", "text"
_PAIR: Final = '{profile="$profile", surface="$surface"}'

Kind = Literal["stat", "bars", "lines", "states"]
Steps = tuple[tuple[float | None, str], ...]
"""Thresholds: from which value on, in which colour; the first has no lower end."""

_GOOD_AT_ONE: Final[Steps] = ((None, _RED), (1, _GREEN))
_GOOD_AT_ZERO: Final[Steps] = ((None, _GREEN), (0.5, _RED))
_PLAIN: Final[Steps] = ((None, _BLUE),)


@dataclass(frozen=True, slots=True)
class Query:
    """`instant` asks for the value at the end of the range alone."""

    expr: str
    legend: str
    instant: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """`x`, `y`, `w` and `h` are Grafana's grid. `words` replace values, as in 1 -> intact."""

    title: str
    description: str
    kind: Kind
    x: int
    y: int
    w: int
    h: int
    queries: tuple[Query, ...]
    unit: str = "short"
    steps: Steps = _PLAIN
    words: tuple[tuple[str, str], ...] = ()
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class DashboardSpec:
    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    variables: tuple[tuple[str, str], ...] = field(default=())


OVERVIEW: Final = DashboardSpec(
    uid="kexpr-overview",
    title="kexpr: all surfaces",
    description="Shadow evidence of every profile and surface. It informs; only a report says READY.",
    panels=(
        Panel(
            "Evidence chain",
            "1 where the evidence is read and verified. With 0, everything else here is older or missing.",
            "stat", 0, 0, 4, 4,
            (Query("min(kexpr_evidence_chain_valid)", "chain", instant=True),),
            steps=_GOOD_AT_ONE,
            words=(("0", "BROKEN"), ("1", "intact")),
        ),
        Panel(
            "Exporter",
            "Whether Prometheus can scrape the harness.",
            "stat", 4, 0, 4, 4,
            (Query('min(up{job="kexpr-harness"})', "exporter", instant=True),),
            steps=_GOOD_AT_ONE,
            words=(("0", "DOWN"), ("1", "up")),
        ),
        Panel(
            "Shadow failures, 14 days",
            "Shadow calls that ended other than shadow_selected, over all surfaces.",
            "stat", 8, 0, 4, 4,
            (
                Query(
                    'round(sum(increase(kexpr_outcomes_total{mode="shadow", outcome!="shadow_selected"}[14d])))',
                    "failures",
                    instant=True,
                ),
            ),
            steps=_GOOD_AT_ZERO,
        ),
        Panel(
            "Orphans",
            "Calls of the newest candidate that nobody saw end. Each one blocks readiness.",
            "stat", 12, 0, 4, 4,
            (Query("sum(kexpr_harness_orphans)", "orphans", instant=True),),
            steps=_GOOD_AT_ZERO,
        ),
        Panel(
            "Longest without an outcome",
            "Every pair is due every UTC day; the alert comes at 26 hours.",
            "stat", 16, 0, 4, 4,
            (Query("max(profile_surface:kexpr_last_outcome:age_seconds)", "age", instant=True),),
            unit="s",
            steps=((None, _GREEN), (25 * 3600, _AMBER), (26 * 3600, _RED)),
        ),
        Panel(
            "Proof window left",
            "Time until a begun proof must be finished; 0 without one.",
            "stat", 20, 0, 4, 4,
            (
                Query(
                    "clamp_min(max(kexpr_harness_proof_deadline_timestamp_seconds) - time(), 0)", "left", instant=True
                ),
            ),
            unit="s",
            words=(("0", "no proof open"),),
        ),
        Panel(
            "Observation window",
            "Consecutive covered UTC days; the gate asks for 14.",
            "bars", 0, 4, 12, 7,
            (Query("kexpr_harness_window_days", "{{profile}} {{surface}}", instant=True),),
            unit="d",
            steps=((None, _AMBER), (14, _GREEN)),
            bounds=(0, 14),
        ),
        Panel(
            "Accepted in the window",
            "Calls that ended shadow_selected; the gate asks for 10 and no failure.",
            "bars", 12, 4, 12, 7,
            (Query("kexpr_harness_accepted", "{{profile}} {{surface}}", instant=True),),
            steps=((None, _AMBER), (10, _GREEN)),
            bounds=(0, 14),
        ),
        Panel(
            "Share of gates passed, by phase",
            "Read from the evidence by the harness. All of a phase's gates must pass; rehearsal passes none of them.",
            "states", 0, 11, 24, 12,
            (Query("profile_surface_phase:kexpr_harness_gates:passed_ratio", "{{profile}} {{surface}} {{phase}}"),),
            unit="percentunit",
            steps=((None, _RED), (0.5, _AMBER), (1, _GREEN)),
            bounds=(0, 1),
        ),
        Panel(
            "Outcomes a day",
            "All surfaces, by outcome.",
            "lines", 0, 23, 12, 9,
            (
                Query(
                    "sum by (outcome) (profile_surface_outcome:kexpr_outcomes:increase1d{mode=\"shadow\"})",
                    "{{outcome}}",
                ),
            ),
        ),
        Panel(
            "Shadow failures a day",
            "What the failure alert looks at.",
            "lines", 12, 23, 12, 9,
            (
                Query(
                    "sum by (profile, surface) (profile_surface_outcome:kexpr_shadow_failures:increase1d)",
                    "{{profile}} {{surface}}",
                ),
            ),
        ),
        Panel(
            "Most frequent reasons, 14 days",
            "Static reason codes of attempts that were not selected.",
            "bars", 0, 32, 12, 9,
            (
                Query(
                    "topk(8, round(sum by (reason) (increase(kexpr_rejections_total[14d]))))",
                    "{{reason}}",
                    instant=True,
                ),
            ),
            steps=((None, _BLUE), (1, _AMBER)),
        ),
        Panel(
            "Duration of 95 in 100 attempts, 7 days",
            "From the claim to the final outcome; a claim lives for 4 seconds.",
            "lines", 12, 32, 12, 9,
            (Query("profile_surface:kexpr_attempt_duration_seconds:p95_7d", "{{profile}} {{surface}}"),),
            unit="s",
        ),
    ),
)  # fmt: skip

SURFACE: Final = DashboardSpec(
    uid="kexpr-surface",
    title="kexpr: one surface",
    description="One surface of one profile in detail. It informs; only a report says READY.",
    variables=(
        ("profile", "label_values(kexpr_harness_window_days, profile)"),
        ("surface", 'label_values(kexpr_harness_window_days{profile="$profile"}, surface)'),
    ),
    panels=(
        Panel(
            "Observation window",
            "Consecutive covered UTC days; the gate asks for 14.",
            "stat", 0, 0, 6, 4,
            (Query(f"kexpr_harness_window_days{_PAIR}", "days", instant=True),),
            unit="d",
            steps=((None, _AMBER), (14, _GREEN)),
        ),
        Panel(
            "Accepted in the window",
            "The gate asks for 10 and no failure.",
            "stat", 6, 0, 6, 4,
            (Query(f"kexpr_harness_accepted{_PAIR}", "accepted", instant=True),),
            steps=((None, _AMBER), (10, _GREEN)),
        ),
        Panel(
            "Orphans",
            "Calls of the newest candidate that nobody saw end.",
            "stat", 12, 0, 6, 4,
            (Query(f"kexpr_harness_orphans{_PAIR}", "orphans", instant=True),),
            steps=_GOOD_AT_ZERO,
        ),
        Panel(
            "Last outcome",
            "Age of the newest outcome; the alert comes at 26 hours.",
            "stat", 18, 0, 6, 4,
            (Query(f"profile_surface:kexpr_last_outcome:age_seconds{_PAIR}", "age", instant=True),),
            unit="s",
            steps=((None, _GREEN), (25 * 3600, _AMBER), (26 * 3600, _RED)),
        ),
        Panel(
            "Gates",
            "One line a gate and phase: 1 where the evidence passes it. Rehearsal evidence passes none of them.",
            "states", 0, 4, 24, 20,
            (Query(f"kexpr_harness_gate_passed{_PAIR}", "{{phase}} {{gate}}"),),
            steps=_GOOD_AT_ONE,
            words=(("0", "not passed"), ("1", "passed")),
            bounds=(0, 1),
        ),
        Panel(
            "Outcomes a day",
            "By mode and outcome.",
            "lines", 0, 24, 12, 9,
            (
                Query(
                    f"sum by (mode, outcome) (profile_surface_outcome:kexpr_outcomes:increase1d{_PAIR})",
                    "{{mode}} {{outcome}}",
                ),
            ),
        ),
        Panel(
            "Outcomes since the first",
            "Counted over all candidates, by contract version.",
            "lines", 12, 24, 12, 9,
            (
                Query(
                    f"sum by (outcome, contract_version) (kexpr_outcomes_total{_PAIR})",
                    "{{outcome}} {{contract_version}}",
                ),
            ),
        ),
        Panel(
            "Duration",
            "Half and 95 in 100 of the attempts of 7 days.",
            "lines", 0, 33, 12, 9,
            (
                Query(
                    "histogram_quantile(0.5, sum by (le) "
                    f"(increase(kexpr_attempt_duration_seconds_bucket{_PAIR}[7d])))",
                    "half",
                ),
                Query(f"profile_surface:kexpr_attempt_duration_seconds:p95_7d{_PAIR}", "95 in 100"),
            ),
            unit="s",
        ),
        Panel(
            "Most frequent reasons of the surface, 14 days",
            "Over both profiles, since reasons carry no profile.",
            "bars", 12, 33, 12, 9,
            (
                Query(
                    'topk(8, round(sum by (reason) (increase(kexpr_rejections_total{surface="$surface"}[14d]))))',
                    "{{reason}}",
                    instant=True,
                ),
            ),
            steps=((None, _BLUE), (1, _AMBER)),
        ),
    ),
)  # fmt: skip

DASHBOARDS: Final[dict[str, DashboardSpec]] = {"overview": OVERVIEW, "surface": SURFACE}
"""By the name of their file."""


def overlaps(panels: Sequence[Panel]) -> list[str]:
    """Panels that leave the grid or lie on one another, by title."""
    wide = [panel.title for panel in panels if panel.x < 0 or panel.w < 1 or panel.x + panel.w > COLUMNS]
    return wide + [
        f"{one.title} / {other.title}"
        for one, other in combinations(panels, 2)
        if one.x < other.x + other.w
        and other.x < one.x + one.w
        and one.y < other.y + other.h
        and other.y < one.y + one.h
    ]


def encode(spec: DashboardSpec) -> str:
    """The dashboard as Grafana imports it: JSON, sorted, with a last newline."""
    if found := overlaps(spec.panels):
        raise ValueError(f"{spec.uid}: {found}")
    board = (
        Dashboard(spec.title)
        .uid(spec.uid)
        .description(spec.description)
        .tags(["kexpr"])
        .readonly()
        .timezone("utc")
        .time("now-14d", "now")
        .refresh("1m")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(DashboardLink("kexpr").type(DashboardLinkType.DASHBOARDS).tags(["kexpr"]).keep_time(True))
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for name, query in spec.variables:
        board.with_variable(
            QueryVariable(name)
            .label(name.capitalize())
            .datasource(_SOURCE)
            .query(query)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_ASC)
        )
    for number, panel in enumerate(spec.panels, start=1):
        board.with_panel(_build(panel).id(number))
    return JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False).encode(board.build()) + "\n"


def _build(panel: Panel) -> Any:
    builder = (
        _VISUALS[panel.kind]()
        .title(panel.title)
        .description(panel.description)
        .datasource(_SOURCE)
        .grid_pos(GridPos(h=panel.h, w=panel.w, x=panel.x, y=panel.y))
        .unit(panel.unit)
        .thresholds(_thresholds(panel.steps))
    )
    if panel.words:
        options = {value: ValueMappingResult(text=text, index=index) for index, (value, text) in enumerate(panel.words)}
        builder.mappings([ValueMap(options=options)])
    if panel.bounds:
        builder.min(panel.bounds[0]).max(panel.bounds[1])
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        builder.with_target(_target(letter, query))
    return builder


def _target(letter: str, query: Query) -> prometheus.Dataquery:
    target = prometheus.Dataquery().ref_id(letter).expr(query.expr).legend_format(query.legend).datasource(_SOURCE)
    return target.instant() if query.instant else target.range()


def _thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    return (
        dashboard.ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value=value, color=color) for value, color in steps])
    )


def _stat() -> stat.Panel:
    return (
        stat.Panel()
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.NONE)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
    )


def _bars() -> bargauge.Panel:
    return (
        bargauge.Panel()
        .orientation(VizOrientation.HORIZONTAL)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
    )


def _lines() -> timeseries.Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    return timeseries.Panel().legend(legend).line_width(2).fill_opacity(0).min(0)


def _states() -> statetimeline.Panel:
    return statetimeline.Panel().row_height(0.8).merge_values(True)


_VISUALS: Final[dict[Kind, Callable[[], Any]]] = {"stat": _stat, "bars": _bars, "lines": _lines, "states": _states}

"""The metrics of outcomes, whoever exports them: names, helps, labels and reachable label sets, once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kexpr.codes import Mode, Outcome, WireVersion
from kexpr.telemetry.record import ATTEMPT_MODES, CONTRACT_VERSIONS, LATENCY_BOUNDS_MS, is_reachable

__all__ = [
    "BUILD",
    "DURATION",
    "DURATION_BOUNDS_S",
    "LAST_OUTCOME",
    "OUTCOMES",
    "REJECTIONS",
    "Family",
    "reachable_outcomes",
]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric; a counter's name is without `_total`, an info's without `_info`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


OUTCOMES: Final = Family(
    "kexpr_outcomes",
    "Presentations by how they ended.",
    ("profile", "surface", "mode", "outcome", "contract_version"),
)
REJECTIONS: Final = Family("kexpr_rejections", "Attempts not selected, by static reason code.", ("surface", "reason"))
DURATION: Final = Family(
    "kexpr_attempt_duration_seconds",
    "Duration of attempts from the claim to the final outcome.",
    ("profile", "surface"),
)
LAST_OUTCOME: Final = Family(
    "kexpr_last_outcome_timestamp_seconds",
    "Unix time of the newest outcome; 0 before the first.",
    ("profile", "surface"),
)
BUILD: Final = Family("kexpr_build", "The version in use.", ("version",))

DURATION_BOUNDS_S: Final = tuple(bound / 1000 for bound in LATENCY_BOUNDS_MS)


def reachable_outcomes() -> Iterator[tuple[Mode, Outcome, WireVersion]]:
    """Every mode, outcome and contract version that go together, whatever the profile and surface."""
    for mode in ATTEMPT_MODES:
        for outcome in Outcome:
            if is_reachable(mode, outcome):
                for version in CONTRACT_VERSIONS:
                    yield mode, outcome, version

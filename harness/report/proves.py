"""How much the calls of one pair prove, as decimals in text (harness, "Readiness"). Pure."""

from typing import Any, Final

from harness.evidence.summary import PairEvidence
from harness.policy import GatePolicy
from harness.readiness.model import PairReadiness
from harness.statistics import clopper_pearson_upper, pass_chance

__all__ = ["E_VALUE_WANTED", "proves"]

E_VALUE_WANTED: Final = 20
"""One over the five per cent that looking every day may go wrong."""

_TRUE_RATES: Final = ("0.10", "0.05", "0.01")
_SURFACES: Final = 4
_E_VALUE_MAX: Final = 1_000_000.0


def proves(pair: PairReadiness, evidence: PairEvidence, policy: GatePolicy) -> dict[str, Any]:
    """Bounds on the failure rate over proof and observation, and how easily the gates pass at a given rate.

    `joint_upper` holds for the four surfaces at once (Bonferroni).
    """
    bounds, confidence = pair.bounds, policy.confidence_permille / 1000
    joint = 1 - (1 - confidence) / _SURFACES
    gates = (
        ("accepted", policy.observation_accepted),
        ("proof_of_pair", policy.calls_of(pair.pair)),
        ("proof_calls", policy.proof_total),
    )
    return {
        "calls": bounds.calls,
        "failures": bounds.failures,
        "manifests": bounds.manifests,
        "proof_manifests": evidence.proof_manifests,
        "observation_manifests": evidence.observation_manifests,
        "confidence_permille": policy.confidence_permille,
        "upper": _rate(bounds.upper),
        "joint_upper": _rate(clopper_pearson_upper(bounds.failures, bounds.calls, joint)),
        "anytime_upper": _rate(bounds.anytime_upper),
        "e_value": f"{min(bounds.e_value, _E_VALUE_MAX):.2f}",
        "e_value_wanted": E_VALUE_WANTED,
        "clean_calls_to_5_percent": bounds.clean_calls_to_5_percent,
        "clean_calls_to_1_percent": bounds.clean_calls_to_1_percent,
        "pass_chances": [
            {"gate": name, "calls": calls, **{rate: _rate(pass_chance(calls, float(rate))) for rate in _TRUE_RATES}}
            for name, calls in gates
        ],
        "gate_bounds": [
            {"gate": name, "calls": calls, "upper": _rate(clopper_pearson_upper(0, calls, confidence))}
            for name, calls in gates
        ],
    }


def _rate(value: float) -> str:
    return f"{value:.6f}"

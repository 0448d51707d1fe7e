"""The suite with which a host proves its own stores (authorities, "Conformance kit").

A host writes one fixture, which gives a `Kit`, and runs every check of `checks()` on it:

    from kexpr.testing.conformance import Kit, checks

    @pytest.mark.parametrize("check", checks().values(), ids=checks())
    def test_our_stores(kit: Kit, check) -> None:
        check(kit)

A check raises `AssertionError` with what was not held. `checks("daily", "weekly")` are those of some surfaces; with
`own_clock=True` the stores have a clock of their own, which the kit cannot move.
"""

from collections.abc import Callable

from kexpr.testing.conformance.artifacts import ARTIFACT_CHECKS, CLOCK_CHECKS, ArtifactCheck
from kexpr.testing.conformance.kit import SUBJECTS, HostPorts, Kit, Subject
from kexpr.testing.conformance.surfaces import SURFACE_CHECKS

__all__ = ["HostPorts", "Kit", "checks"]


def checks(*surfaces: str, own_clock: bool = False) -> dict[str, Callable[[Kit], None]]:
    """The checks by name, `<surface>: <rule>`, of `surfaces` (of `daily`, `weekly`, `adaptive`) or of all."""
    found: dict[str, Callable[[Kit], None]] = {}
    for name in surfaces or tuple(SUBJECTS):
        of_artifacts = ARTIFACT_CHECKS if own_clock else ARTIFACT_CHECKS + CLOCK_CHECKS
        for check in of_artifacts:
            found[f"{name}: {check.__name__}"] = _of(check, SUBJECTS[name])
        for surface_check in SURFACE_CHECKS[name]:
            found[f"{name}: {surface_check.__name__}"] = surface_check
    return found


def _of(check: ArtifactCheck, subject: Subject) -> Callable[[Kit], None]:
    return lambda kit: check(kit, subject)

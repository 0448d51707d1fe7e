"""The feature block of each profile in each phase: what a report shows, `approve` compares and a proof runs with."""

import hashlib
from collections.abc import Mapping
from typing import Final

from harness.contracts import TERMS
from harness.profiles import Profile
from harness.readiness.model import Phase
from kexpr.codes import Mode, Surface, WireVersion
from kexpr.config import FEATURE_KEY

__all__ = ["SURFACES", "block_of", "block_text", "digest_of"]

_SHADOWED: Final = {
    Profile.PHYSIQUE_COACH: (Surface.DAILY, Surface.WEEKLY, Surface.ADAPTIVE_PHYSIQUE),
    Profile.DUALCOACHTEST: (Surface.WEEKLY, Surface.ADAPTIVE_DUALCOACHTEST),
}

SURFACES: Final[dict[Phase, dict[Profile, tuple[Surface, ...]]]] = {
    Phase.P0: {Profile.PHYSIQUE_COACH: (), Profile.DUALCOACHTEST: ()},
    Phase.P1: _SHADOWED,
    Phase.P2: _SHADOWED,
    Phase.P3: {Profile.PHYSIQUE_COACH: (Surface.DAILY,), Profile.DUALCOACHTEST: ()},
    Phase.P4: {Profile.PHYSIQUE_COACH: (Surface.WEEKLY,), Profile.DUALCOACHTEST: (Surface.WEEKLY,)},
    Phase.P5: {
        Profile.PHYSIQUE_COACH: (Surface.ADAPTIVE_PHYSIQUE,),
        Profile.DUALCOACHTEST: (Surface.ADAPTIVE_DUALCOACHTEST,),
    },
}
"""Which surfaces are on (harness, "Phases"); none of them means disabled."""

_MODES: Final = {Phase.P1: Mode.SHADOW, Phase.P2: Mode.SHADOW}


def block_of(profile: Profile, phase: Phase, wire: WireVersion) -> dict[str, object]:
    """The value of the feature key, as `kexpr.config.from_extra` takes it below `FEATURE_KEY`."""
    on = SURFACES[phase][profile]
    mode = _MODES.get(phase, Mode.ENABLED) if on else Mode.DISABLED
    terms = TERMS[wire]
    flags_on = {terms.flags[surface] for surface in on}
    return {
        "schema_version": terms.schema_version,
        "mode": mode.value,
        "surfaces": {flag.value: flag in flags_on for flag in terms.flags.values()},
        **_copied(terms.always),
        **(_copied(terms.active) if on else {}),
    }


def _copied(keys: Mapping[str, object]) -> dict[str, object]:
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in keys.items()}


def block_text(profile: Profile, phase: Phase, wire: WireVersion) -> str:
    """The block as the YAML of a gateway's configuration file, from `platforms` down."""
    import yaml

    nested = {"platforms": {"telegram": {"extra": {FEATURE_KEY: block_of(profile, phase, wire)}}}}
    return yaml.safe_dump(nested, sort_keys=False, allow_unicode=True)


def digest_of(text: str) -> str:
    """SHA-256 (hex) of a text, as `sha256sum` prints it for a file of these bytes."""
    return hashlib.sha256(text.encode()).hexdigest()

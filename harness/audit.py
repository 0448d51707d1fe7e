"""The strict audit of a gateway's configuration, written down as evidence (harness, "Phases", gate of P0)."""

from pathlib import Path

from harness.evidence.ledger import EvidenceLedger
from harness.profiles import Profile
from harness.readiness.model import Phase
from harness.readiness.phases import block_of
from kexpr.codes import WireVersion
from kexpr.config import FEATURE_KEY
from kexpr.cutover import CutoverAudit, audit_physique_checkin_cutover, read_extra

__all__ = ["phases_of", "record_config_audit"]


def phases_of(extra: object, profile: Profile, wire: WireVersion) -> tuple[Phase, ...]:
    """The phases whose feature block `extra` has for this profile; without a block it is disabled, as in P0."""
    block = extra.get(FEATURE_KEY) if type(extra) is dict else None
    if block is None:
        return (Phase.P0,)
    return tuple(phase for phase in Phase if block == block_of(profile, phase, wire))


def record_config_audit(
    evidence: EvidenceLedger, profile: Profile, path: Path, wire: WireVersion
) -> tuple[CutoverAudit, tuple[Phase, ...]]:
    """Audit the file and record it: ready when the cutover is, and its feature block is that of some phase.

    Returns the audit and those phases. Raises `YamlInvalid`, and what the evidence raises.
    """
    extra, digest = read_extra(path)
    audit = audit_physique_checkin_cutover(extra, config_sha256=digest)
    phases = phases_of(extra, profile, wire)
    evidence.record_audit(profile, digest, ready=audit.ready and bool(phases))
    return audit, phases

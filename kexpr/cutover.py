"""The cutover audit: may a profile's configuration go over to the postprocessor? (authorities, "Cutover audit")

Read-only: nothing is written, normalised or repaired. What it says is Booleans, a digest and codes.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from kexpr.codes import Invalid
from kexpr.config import FEATURE_KEY, InvalidConfig, from_extra
from kexpr.strict_yaml import MAX_BYTES, YamlFault, YamlInvalid, load

__all__ = [
    "AUDIT_SCHEMA_VERSION",
    "CutoverAudit",
    "CutoverReason",
    "audit_config_file",
    "audit_physique_checkin_cutover",
    "read_extra",
]

AUDIT_SCHEMA_VERSION: Final = 1
LEGACY_KEY: Final = "coaching_feedback_enabled"

_BRIDGE: Final = "physique_checkin"
_WAY_TO_EXTRA: Final = ("platforms", "telegram", "extra")


class CutoverReason(StrEnum):
    """Why a configuration is not ready."""

    EXTRA_NOT_A_MAPPING = "extra_not_a_mapping"
    LEGACY_COACHING_FEEDBACK_ENABLED = "legacy_coaching_feedback_enabled"
    PHYSIQUE_CHECKIN_NOT_A_MAPPING = "physique_checkin_not_a_mapping"
    PHYSIQUE_CHECKIN_NON_STRING_KEY = "physique_checkin_non_string_key"
    POSTPROCESSOR_NOT_A_MAPPING = "postprocessor_not_a_mapping"
    POSTPROCESSOR_NON_STRING_KEY = "postprocessor_non_string_key"
    POSTPROCESSOR_MISSING_KEY = "postprocessor_missing_key"
    POSTPROCESSOR_UNKNOWN_KEY = "postprocessor_unknown_key"
    POSTPROCESSOR_WRONG_TYPE = "postprocessor_wrong_type"
    POSTPROCESSOR_WRONG_LITERAL = "postprocessor_wrong_literal"
    POSTPROCESSOR_UNSUPPORTED_SCHEMA_VERSION = "postprocessor_unsupported_schema_version"
    POSTPROCESSOR_MODE_INVALID = "postprocessor_mode_invalid"
    POSTPROCESSOR_PROVIDER_FORBIDDEN = "postprocessor_provider_forbidden"
    POSTPROCESSOR_NO_SURFACE_ENABLED = "postprocessor_no_surface_enabled"
    POSTPROCESSOR_SURFACE_ENABLED_WHILE_DISABLED = "postprocessor_surface_enabled_while_disabled"


@dataclass(frozen=True, slots=True)
class CutoverAudit:
    """`config_sha256` is over the file's bytes (hex); None where there was no file."""

    legacy_feedback_removed: bool
    physique_bridge_valid: bool
    postprocessor_disabled_or_valid: bool
    reasons: tuple[CutoverReason, ...]
    config_sha256: str | None = None
    schema_version: int = AUDIT_SCHEMA_VERSION

    @property
    def ready(self) -> bool:
        return self.legacy_feedback_removed and self.physique_bridge_valid and self.postprocessor_disabled_or_valid

    def to_json(self) -> dict[str, object]:
        return {
            "schema_version": self.schema_version,
            "legacy_feedback_removed": self.legacy_feedback_removed,
            "physique_bridge_valid": self.physique_bridge_valid,
            "postprocessor_disabled_or_valid": self.postprocessor_disabled_or_valid,
            "config_sha256": self.config_sha256,
            "reasons": [reason.value for reason in self.reasons],
        }


def audit_physique_checkin_cutover(extra: object, *, config_sha256: str | None = None) -> CutoverAudit:
    """Audit `platforms.telegram.extra`. Never raises. An absent `physique_checkin` block is bridge-valid."""
    if extra is None:
        extra = {}
    if type(extra) is not dict:
        reasons: tuple[CutoverReason, ...] = (CutoverReason.EXTRA_NOT_A_MAPPING,)
        return CutoverAudit(False, False, False, reasons, config_sha256)
    bridge_reason = _bridge_reason(extra)
    legacy = _has_legacy_key(extra)
    feature = from_extra({FEATURE_KEY: extra[FEATURE_KEY]}) if FEATURE_KEY in extra else None
    invalid = feature.reason if isinstance(feature, InvalidConfig) else None
    found = (
        CutoverReason.LEGACY_COACHING_FEEDBACK_ENABLED if legacy else None,
        bridge_reason,
        _POSTPROCESSOR_REASON[invalid] if invalid else None,
    )
    return CutoverAudit(
        legacy_feedback_removed=not legacy,
        physique_bridge_valid=bridge_reason is None,
        postprocessor_disabled_or_valid=invalid is None,
        reasons=tuple(reason for reason in found if reason),
        config_sha256=config_sha256,
    )


_POSTPROCESSOR_REASON: Final = {code: CutoverReason(f"postprocessor_{code}") for code in Invalid}


def audit_config_file(path: Path) -> CutoverAudit:
    """Audit a configuration file; raises `YamlInvalid` when it is not one strict YAML document of at most 256 KiB."""
    extra, digest = read_extra(path)
    return audit_physique_checkin_cutover(extra, config_sha256=digest)


def read_extra(path: Path) -> tuple[object, str]:
    """`platforms.telegram.extra` of a configuration file and the SHA-256 (hex) of its bytes; raises `YamlInvalid`."""
    data = _read(path)
    return _extra_of(load(data)), hashlib.sha256(data).hexdigest()


def _bridge_reason(extra: Mapping[object, object]) -> CutoverReason | None:
    if _BRIDGE not in extra:
        return None
    bridge = extra[_BRIDGE]
    if type(bridge) is not dict:
        return CutoverReason.PHYSIQUE_CHECKIN_NOT_A_MAPPING
    if any(type(key) is not str for key in bridge):
        return CutoverReason.PHYSIQUE_CHECKIN_NON_STRING_KEY
    return None


def _has_legacy_key(extra: Mapping[object, object]) -> bool:
    """The key itself is refused, whatever it is set to."""
    bridge = extra.get(_BRIDGE)
    return type(bridge) is dict and LEGACY_KEY in bridge


def _extra_of(document: object) -> object:
    """The `extra` mapping; absent anywhere on the way means absent. Something else on the way is not a mapping."""
    found = document
    for key in _WAY_TO_EXTRA:
        if found is None:
            return None
        if type(found) is not dict:
            return found
        found = found.get(key)
    return found


def _read(path: Path) -> bytes:
    """The file's bytes; never through a symbolic link, never from a pipe or device."""
    fault: YamlFault | None = None
    data = b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        descriptor = -1
        fault = YamlFault.NOT_REGULAR if _is_link(path) else YamlFault.NOT_READABLE
    if descriptor >= 0:
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                fault = YamlFault.NOT_REGULAR
            else:
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    data = file.read(MAX_BYTES + 1)
        except OSError:
            fault = YamlFault.NOT_READABLE
        finally:
            os.close(descriptor)
    if fault:
        raise YamlInvalid(fault)
    return data


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False

"""Short connective Korean from a language model, inside messages whose facts stay code's.

Everything a gateway needs is here by name; each name loads its module when it is first used, so that importing `kexpr`
costs nothing and no HTTP client, SDK or metrics library comes with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

__version__: Final = "0.1.0"

if TYPE_CHECKING:
    from kexpr.authority.adaptive import AdaptiveAuthority, CardPresentationOrigin, OriginKind
    from kexpr.authority.daily import DailyAuthority
    from kexpr.authority.weekly import Pins, WeeklyAuthority, WeeklyTask
    from kexpr.codes import Invalid, Mode, Outcome, Reason, Surface
    from kexpr.config import from_extra
    from kexpr.coordinator import Coordinator, Job, Presented
    from kexpr.errors import AuthorityFailed, KexprError, UnknownPresentation
    from kexpr.paths.adaptive import AdaptivePath, Card
    from kexpr.paths.daily import DailyMessage, DailyPath
    from kexpr.paths.publication import Publication
    from kexpr.paths.weekly import WeeklyDelivery, WeeklyPath, WeeklyReport
    from kexpr.state import State
    from kexpr.surfaces import (
        DailyPresentationV1,
        DualCoachCardPresentationV1,
        PhysiqueCardPresentationV1,
        WeeklyPresentationV1,
        apply_presentation_segments_v1,
        presentation_segments_v1,
    )
    from kexpr.telemetry import AuditMirror, PrometheusSink, StructlogSink, Telemetry

_HOME: Final = {
    "AdaptiveAuthority": "authority.adaptive",
    "AdaptivePath": "paths.adaptive",
    "AuditMirror": "telemetry",
    "AuthorityFailed": "errors",
    "Card": "paths.adaptive",
    "CardPresentationOrigin": "authority.adaptive",
    "Coordinator": "coordinator",
    "DailyAuthority": "authority.daily",
    "DailyMessage": "paths.daily",
    "DailyPath": "paths.daily",
    "DailyPresentationV1": "surfaces",
    "DualCoachCardPresentationV1": "surfaces",
    "Invalid": "codes",
    "Job": "coordinator",
    "KexprError": "errors",
    "Mode": "codes",
    "OriginKind": "authority.adaptive",
    "Outcome": "codes",
    "PhysiqueCardPresentationV1": "surfaces",
    "Pins": "authority.weekly",
    "Presented": "coordinator",
    "PrometheusSink": "telemetry",
    "Publication": "paths.publication",
    "Reason": "codes",
    "State": "state",
    "StructlogSink": "telemetry",
    "Surface": "codes",
    "Telemetry": "telemetry",
    "UnknownPresentation": "errors",
    "WeeklyAuthority": "authority.weekly",
    "WeeklyDelivery": "paths.weekly",
    "WeeklyPath": "paths.weekly",
    "WeeklyPresentationV1": "surfaces",
    "WeeklyReport": "paths.weekly",
    "WeeklyTask": "authority.weekly",
    "apply_presentation_segments_v1": "surfaces",
    "from_extra": "config",
    "presentation_segments_v1": "surfaces",
}

__all__ = [
    "AdaptiveAuthority",
    "AdaptivePath",
    "AuditMirror",
    "AuthorityFailed",
    "Card",
    "CardPresentationOrigin",
    "Coordinator",
    "DailyAuthority",
    "DailyMessage",
    "DailyPath",
    "DailyPresentationV1",
    "DualCoachCardPresentationV1",
    "Invalid",
    "Job",
    "KexprError",
    "Mode",
    "OriginKind",
    "Outcome",
    "PhysiqueCardPresentationV1",
    "Pins",
    "Presented",
    "PrometheusSink",
    "Publication",
    "Reason",
    "State",
    "StructlogSink",
    "Surface",
    "Telemetry",
    "UnknownPresentation",
    "WeeklyAuthority",
    "WeeklyDelivery",
    "WeeklyPath",
    "WeeklyPresentationV1",
    "WeeklyReport",
    "WeeklyTask",
    "__version__",
    "apply_presentation_segments_v1",
    "from_extra",
    "presentation_segments_v1",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

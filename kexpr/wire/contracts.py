"""Both contracts by the wire that a feature block selects."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kexpr.codes import WireVersion
from kexpr.wire.anchor_grammar import ANCHOR_GRAMMAR
from kexpr.wire.contract import OPEN_PROSE, Contract

__all__ = ["CONTRACTS"]

CONTRACTS: Final[Mapping[WireVersion, Contract]] = MappingProxyType(
    {**OPEN_PROSE, WireVersion.ANCHOR_GRAMMAR: ANCHOR_GRAMMAR}
)

"""Geometry of the inline pictures: numbers for the templates. No colour, no style: the style sheet has those. Pure."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from harness.report.document import Document

__all__ = ["BAR_WIDTH", "DayCell", "bar", "day_cells", "strip_size"]

BAR_WIDTH: Final = 200
"""Units of a bar at 100 %."""

_PER_ROW: Final = 7
_CELL: Final = 46
_ROW: Final = 62
_GAP: Final = 4


@dataclass(frozen=True, slots=True)
class DayCell:
    x: int
    y: int
    side: int
    middle: int
    day: Document


def day_cells(days: list[Document]) -> list[DayCell]:
    """A week a row, so that a day stays legible on a narrow screen."""
    side = _CELL - _GAP
    return [
        DayCell(x := index % _PER_ROW * _CELL, index // _PER_ROW * _ROW, side, x + side // 2, day)
        for index, day in enumerate(days)
    ]


def strip_size(days: list[Document]) -> tuple[int, int]:
    """Width and height of the picture of `days`."""
    rows = -(-len(days) // _PER_ROW)
    return _PER_ROW * _CELL - _GAP, rows * _ROW - _GAP


def bar(rate: str | Decimal) -> str:
    """Width of a bar for a rate from 0 to 1, with one decimal; what is there at all is at least a unit wide."""
    value = Decimal(rate)
    return f"{max(value * BAR_WIDTH, Decimal(1)):.1f}" if value else "0"

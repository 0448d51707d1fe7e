"""Exit codes of every command (contract, section 9)."""

from enum import IntEnum

__all__ = ["Exit"]


class Exit(IntEnum):
    GOOD = 0
    NOT_GOOD = 1
    USAGE = 2
    INVALID = 3
    INTERNAL = 4
    INSUFFICIENT = 5
    REHEARSAL = 6

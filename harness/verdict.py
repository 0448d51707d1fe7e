"""Verdicts of gates and reports (harness, "Readiness")."""

from enum import StrEnum
from typing import Final

from kexpr.exits import Exit

__all__ = ["EXIT_OF_PROOF", "EXIT_OF_REPORT", "Verdict"]


class Verdict(StrEnum):
    READY = "READY"
    NOT_READY = "NOT_READY"
    INSUFFICIENT = "INSUFFICIENT"
    INVALID = "INVALID"
    REHEARSAL = "REHEARSAL"


EXIT_OF_PROOF: Final = {
    Verdict.READY: Exit.GOOD,
    Verdict.REHEARSAL: Exit.GOOD,
    Verdict.NOT_READY: Exit.NOT_GOOD,
    Verdict.INSUFFICIENT: Exit.INSUFFICIENT,
    Verdict.INVALID: Exit.INVALID,
}
"""A clean rehearsal proof exits 0 (contract, section 9)."""

EXIT_OF_REPORT: Final = {
    Verdict.READY: Exit.GOOD,
    Verdict.NOT_READY: Exit.NOT_GOOD,
    Verdict.INSUFFICIENT: Exit.INSUFFICIENT,
    Verdict.INVALID: Exit.INVALID,
    Verdict.REHEARSAL: Exit.REHEARSAL,
}
"""Of several verdicts the highest code counts (contract, section 9)."""

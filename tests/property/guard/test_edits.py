"""Harmless edits of accepted rows stay accepted."""

import pytest

from harness.guardscore import TOKEN, Label
from kexpr.codes import Reason
from kexpr.guard import judge
from kexpr.manifest import PlaceholderKind
from tests.property.guard.edits import EDITS
from tests.unit.guard.corpora import DEV, EXTRA, MODELLIKE, rows

ACCEPTED = [
    row
    for row in rows(DEV, MODELLIKE, *EXTRA)
    if row.label is Label.ACCEPT and judge(row.text, row.slot, (TOKEN,)).accepted
]


def test_there_are_rows_to_edit():
    assert len(ACCEPTED) > 740


def refused_edits(name: str) -> dict[tuple[str, str], Reason]:
    """(row, edited text) -> why it is refused."""
    refused: dict[tuple[str, str], Reason] = {}
    for row in ACCEPTED:
        if name == "order" and row.slot.placeholders[0].kind is PlaceholderKind.NOUN:
            continue
        for edited in dict.fromkeys(EDITS[name](row.text)):
            reason = judge(edited, row.slot, (TOKEN,)).reason
            if reason not in (None, Reason.FORM_TOO_LONG):
                refused[row.id, edited] = reason
    return refused


@pytest.mark.parametrize("name", ["final mark", "comma"])
def test_an_edit_that_changes_nothing(name):
    assert refused_edits(name) == {}

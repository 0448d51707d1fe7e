"""Every spelling trick on every word of every refused row: the row stays refused, whichever word it is."""

import re
from collections.abc import Iterator

import pytest

from harness.guardscore import TOKEN, Label, Row
from kexpr.guard import judge
from tests.property.guard.tricks import JUDGED, UNFIT, Trick
from tests.unit.guard.corpora import DEV, EXTRA, MODELLIKE, rows

RUN = re.compile("[가-힣]+")
REFUSED = [
    row
    for row in rows(DEV, MODELLIKE, *EXTRA)
    if row.label is Label.REJECT and not judge(row.text, row.slot, (TOKEN,)).accepted
]
OTHER_WORDS = {
    *(("네", "내"), ("세", "새"), ("모레", "모래"), ("보내", "보네"), ("대로", "데로"), ("굴에", "꿀에")),
    *(("달이", "다리"), ("눈", "누운"), ("네엣으로", "내앳으로")),
}
"""Trades of one sound for another that make a harmless word: 새 줄 is a new line, whoever means three."""


def disguised(trick: Trick, text: str) -> Iterator[str]:
    """`text` with one of its runs of Hangul in disguise."""
    for run in RUN.finditer(text):
        for way in trick(run[0]):
            if way != run[0] and (run[0], way) not in OTHER_WORDS:
                yield text[: run.start()] + way + text[run.end() :]


def escapes(row: Row, ways: Iterator[str]) -> list[str]:
    """The ways that are accepted, for the failure to show."""
    return [way for way in dict.fromkeys(ways) if judge(way, row.slot, (TOKEN,)).accepted]


def test_there_are_rows_to_disguise():
    assert len(REFUSED) > 1_400


HELD = {**UNFIT, "hanja": JUDGED["hanja"]}


@pytest.mark.parametrize("name", HELD)
def test_one_word_in_disguise(name):
    escaped = {row.id: found for row in REFUSED if (found := escapes(row, disguised(HELD[name], row.text)))}
    assert escaped == {}

"""The lexicon's files as data: laid out so that a change reads well, and unambiguous."""

from collections import defaultdict

import pytest

from kexpr.guard.data_files import sections
from tests.support.lexicon_format import FILES, formatted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_words_are_sorted_and_stand_once(path):
    text = path.read_text("utf-8")
    assert formatted(text) == text, "python -m tests.support.lexicon_format"


def test_a_refused_stem_has_one_category():
    categories = defaultdict(set)
    for name, lines in sections("denied.txt"):
        category, _, part = name.partition(".")
        for stem in " ".join(lines).split() if part in ("noun", "verb", "word") else ():
            categories[stem.partition(":")[0], part].add(category)
    assert {stem: found for stem, found in categories.items() if len(found) > 1} == {}

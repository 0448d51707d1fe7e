"""The committed sample is what the code makes today of the evidence that it was made of (`make sample`)."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.report.catalogue import Language, say
from harness.report.document import canonical
from harness.report.render import RENDERERS
from tests.support.reports import judged

SAMPLE = Path(__file__).parents[4] / "reports" / "sample"
STEMS = sorted(path.stem for path in (SAMPLE / "en").glob("*.json"))


def document(stem: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SAMPLE / "en" / f"{stem}.json").read_bytes())
    return loaded


def shape(value: Any) -> Any:
    """Names and types all the way down; one row of a table stands for all."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value[:1]] if isinstance(value, list) else type(value).__name__


def test_there_is_a_report_for_each_pair_and_an_index():
    assert sorted(judged("rehearsal").documents()) == STEMS


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("stem", STEMS)
def test_every_rendering_is_made_of_the_json_beside_it(stem, language):
    for extension, render in RENDERERS.items():
        committed = (SAMPLE / language / f"{stem}{extension}").read_bytes()
        assert committed == render(document(stem), language), f"{stem}{extension}: run make sample"


def test_the_documents_have_the_shape_of_today():
    for stem, made in judged("rehearsal").documents().items():
        committed = document(stem)
        for volatile in ("strip", "outcomes", "reasons", "traffic"):
            committed.pop(volatile, None)
            made.pop(volatile, None)
        assert shape(committed) == shape(json.loads(canonical(made))), f"{stem}: run make sample"


def test_the_sample_is_marked_and_of_a_clean_checkout():
    for stem in STEMS:
        assert document(stem)["rehearsal"]
        assert not document(stem)["candidate"]["pin"]["dirty"]
        for language in Language:
            assert say(language, "rehearsal.title") in (SAMPLE / language / f"{stem}.html").read_text("utf-8")

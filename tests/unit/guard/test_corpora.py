"""The guard on labelled Korean. The bars are those of the design page; none of the corpora is unseen any more."""

import pytest

from harness.guardscore import load_corpus, score
from harness.preflight import meets_bars
from tests.unit.guard.corpora import DEV, EXTRA, MODELLIKE


@pytest.mark.parametrize("path", [DEV, MODELLIKE, *EXTRA], ids=lambda path: path.stem)
def test_bars(path):
    result = score(load_corpus(path))
    assert result["recall"]["overall"] >= 0.97
    assert all(rate >= 0.90 for rate in result["recall"]["category"].values())
    assert result["false_rejection"]["overall"] <= 0.015
    assert meets_bars(result)


def test_the_shape_of_a_score():
    result = score(load_corpus(DEV))
    assert result["rows"] == 518
    assert set(result) == {"rows", "recall", "false_rejection", "us_per_text", "misses", "false_rejections"}
    assert set(result["recall"]) == {"overall", "category", "technique"}
    assert "form" in result["recall"]["category"]
    assert set(result["us_per_text"]) == {"median", "p99"}

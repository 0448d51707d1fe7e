"""The guard against a labelled corpus: recall, false rejection and time (`guard score`)."""

from harness.guardscore.corpus import TOKEN, CorpusInvalid, Label, Row, load_corpus
from harness.guardscore.rates import score, score_file

__all__ = ["TOKEN", "CorpusInvalid", "Label", "Row", "load_corpus", "score", "score_file"]

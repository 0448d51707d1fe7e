"""The weights are those of the committed corpora, and the layer only adds refusals."""

from kexpr.codes import SlotKind
from kexpr.guard import judge
from kexpr.guard.ngrams import grams, limit, runs, weight
from tests.support.ngram_training import WEIGHTS, corpora_digest
from tests.unit.guard.test_policy import TOKEN, slot_of


def test_the_weights_belong_to_the_corpora():
    assert corpora_digest() in WEIGHTS.read_text("utf-8"), "python -m tests.support.ngram_training"


def test_the_pieces_of_a_run():
    assert list(grams("가나")) == ["가", "나", "^가", "가나", "나$", "^가나", "가나$"]
    assert runs("'가나,다'") == ["가나", "다"]


def test_a_word_weighs_the_same_every_time():
    assert weight("이야기를") == weight("이야기를") < 0 < weight("승인을")


def test_known_words_that_lean_too_far_together_are_refused():
    heavy = max(("마음", "거리", "속", "모습", "얼굴", "목소리"), key=weight)
    text = "⟦p⟧ " + " ".join([heavy] * 8)
    decision = judge(text, slot_of(SlotKind.DAILY_STATUS), (TOKEN,))
    assert weight(heavy) * 8 > limit()
    assert (decision.accepted, decision.layer) == (False, "ngrams")
    assert decision.span is not None
    assert text[slice(*decision.span)] == heavy

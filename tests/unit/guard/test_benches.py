"""The scripts that measure the guard: what they count, and that they show no text unless they are asked to."""

import json

import pytest

from harness.guardscore import load_corpus
from kexpr.guard import words
from tests.bench import guard_contenders, guard_libraries, guard_public, guard_report, guard_speed

HARMLESS = "천천히 읽어 주세요."
REFUSED = "통증이 나아질 거예요."


@pytest.fixture
def corpus(tmp_path):
    rows: list[dict[str, object]] = [
        {"id": "1", "label": "accept", "text": f"{HARMLESS} ⟦p⟧", "category": None, "technique": None},
        {"id": "2", "label": "reject", "text": f"{REFUSED} ⟦p⟧", "category": "medical", "technique": "implicit"},
    ]
    same: dict[str, object] = {"surface": "daily", "slot": "daily.status", "placeholder": "sentence", "expansion": None}
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f"{json.dumps(same | row, ensure_ascii=False)}\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def lines(tmp_path):
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "benign_some.txt").write_text(f"{HARMLESS}\n\n{HARMLESS[:-1]}\n{'가' * 200}\n", "utf-8")
    (folder / "claims_some.txt").write_text(f"{REFUSED}\n", "utf-8")
    return folder


def test_a_line_stands_after_and_before_the_placeholder():
    assert guard_public.placements("가자") == ("⟦p⟧ 가자", "가자. ⟦p⟧")
    assert guard_public.placements("가자!") == ("⟦p⟧ 가자!", "가자! ⟦p⟧")


def test_public_rates(lines, capsys):
    assert guard_public.main([str(lines)]) == 0
    shown = capsys.readouterr().out
    assert "| `benign_some` | 4 | 2 | 100.0 % | 0.0 % | 0.0 % | 0.0 % |" in shown
    assert "| `claims_some` | 2 | 0 | 0.0 % | 100.0 % | 0.0 % | 0.0 % |" in shown
    assert "| `guard.medical` | 0.0 % | 100.0 % |" in shown
    assert "0.0 % of 2" in shown
    assert HARMLESS not in shown
    assert REFUSED not in shown


def test_lines_are_shown_when_asked_for(lines, capsys):
    guard_public.main([str(lines), "--show", "1"])
    shown = capsys.readouterr().out
    assert f"guard.medical\t{REFUSED}" in shown
    assert "## benign_some: accepted, 2 lines" in shown


def test_the_report_names_what_it_scored_and_shows_no_text(corpus, capsys):
    assert guard_report.main([str(corpus)]) == 0
    shown = capsys.readouterr().out
    assert "| `corpus.jsonl` | 2 | 100 % | 100 % | – | – | 100 % | 0 % |" in shown
    assert REFUSED not in shown


def test_the_report_covers_every_corpus_of_the_checkout():
    assert len(guard_report.CORPORA) > 5
    assert all(path.is_file() for path in guard_report.CORPORA)


def test_a_library_that_is_not_there_is_skipped_by_name(corpus, capsys, monkeypatch):
    def absent():
        raise ImportError("No module named 'absent'")

    monkeypatch.setattr(guard_libraries, "CONTENDERS", {"absent": absent, "words": guard_contenders.word_list})
    monkeypatch.setattr(guard_libraries, "judge_eight_slots_us", lambda: 1.0)
    assert guard_libraries.main(["--corpus", str(corpus), "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "Skipped: absent: No module named 'absent'." in shown
    assert "| 100.0 % | 100.0 % | 0.0 % |" in shown
    assert REFUSED not in shown


@pytest.mark.parametrize("build", [guard_contenders.word_list, guard_contenders.alternation])
def test_contenders_search_for_the_refused_stems(build, corpus):
    refuses = build()
    assert guard_libraries.rates(lambda row: refuses(row.text), load_corpus(corpus)) == (1.0, 1.0, 0.0)


def test_stems_are_without_their_mark():
    assert "어지럽" in guard_contenders.refused_stems("verb")
    assert not any(":" in stem for stem in guard_contenders.refused_stems("noun", "verb", "word"))


def test_shapes_are_of_the_size_asked_for():
    for name, shape in guard_speed.SHAPES.items():
        assert 900 <= len(shape(1024).encode()) <= 1100 or name == "nested brackets"


def test_growth_is_measured_without_caps(monkeypatch):
    monkeypatch.setattr(guard_speed, "BYTES", 1024)
    monkeypatch.setattr(guard_speed, "ROUNDS", 1)
    times, code = guard_speed.growth(guard_speed.SHAPES["one word of discourse"])
    assert len(times) == 3
    assert code == "accepted"


def test_forgetting_words_empties_the_caches():
    guard_speed.judge_all([f"{HARMLESS} ⟦p⟧"])
    assert words.spelled.cache_info().currsize
    guard_speed.forget_words()
    assert not words.spelled.cache_info().currsize


def test_unseen_texts_repeat_no_word(monkeypatch):
    monkeypatch.setattr(guard_speed, "UNSEEN", 100)
    words = [word for text in guard_speed.unseen_texts() for word in text.split()[:-1]]
    assert len(set(words)) == len(words) == 600

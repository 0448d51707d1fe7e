"""Both languages are whole: every key, every closed code, and no sentence of the other one on the page."""

import re
from importlib.resources import files
from string import Formatter

import pytest

from harness.evidence.rows import EndReason, RunKind, Traffic
from harness.profiles import PathKind
from harness.readiness.model import GateCode, GateReason, GateVerdict, Phase
from harness.report.catalogue import Language, catalogue, say
from harness.report.render import to_html, to_markdown
from harness.report.strip import DayState
from harness.verdict import Verdict
from kexpr.codes import Mode, ProviderKind, Surface
from tests.support.reports import STATES, judged

ENGLISH, KOREAN = catalogue(Language.EN), catalogue(Language.KO)
HANGUL = re.compile("[가-힣]")
CODES = re.compile("`[^`]*`")
WORDLESS = {"gates.caption", "why.cause", "provider.list"}
"""Only places for values, and signs."""

CLOSED = {
    "surface": Surface,
    "verdict": Verdict,
    "phase": Phase,
    "gate": GateCode,
    "reason": GateReason,
    "gate_verdict": GateVerdict,
    "day": DayState,
    "run_kind": RunKind,
    "traffic": Traffic,
    "provider": ProviderKind,
    "mode": Mode,
    "path": PathKind,
    "end": EndReason,
}


def places(text: str) -> set[str | None]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_both_have_the_same_keys_with_the_same_places_and_codes():
    assert ENGLISH.keys() == KOREAN.keys()
    for key in ENGLISH:
        assert places(ENGLISH[key]) == places(KOREAN[key]), key
        assert set(CODES.findall(ENGLISH[key])) == set(CODES.findall(KOREAN[key])), key


@pytest.mark.parametrize("family", CLOSED)
def test_every_closed_code_has_its_words(family):
    for code in CLOSED[family]:
        assert say(Language.KO, f"{family}.{code.value}") != say(Language.EN, f"{family}.{code.value}")


def test_korean_is_korean_and_english_has_none():
    for key in KOREAN:
        bare = re.sub(r"\{[^}]*\}", "", CODES.sub("", KOREAN[key]))
        if key not in WORDLESS and re.search("[A-Za-z]", ENGLISH[key].replace("ms", "")) and bare.strip():
            assert HANGUL.search(bare) or not re.search("[A-Za-z]{3}", bare), key
        assert not HANGUL.search(ENGLISH[key]), key


def test_korean_sentences_end_politely():
    for key, text in KOREAN.items():
        for sentence in re.findall(r"[^.]*[가-힣]\.", text):
            assert re.search(r"(니다|시오)\.$", sentence), (key, sentence)


def test_no_key_is_left_over():
    sources = "".join(
        path.read_text("utf-8")
        for directory in (files("harness.report"), files("harness.report").joinpath("templates"))
        for path in directory.iterdir()
        if path.name.endswith((".py", ".html", ".md"))
    )
    for key in ENGLISH:
        ends = {key.rpartition(".")[0], key.partition(".")[0]}
        built = [mark for end in ends for mark in (f"'{end}.' ~", f'f"{end}.{{')]
        assert f"'{key}'" in sources or f'"{key}"' in sources or any(mark in sources for mark in built), key


def words_of(page: str) -> str:
    """Visible text of a page or a Markdown file, without code."""
    page = re.sub(r"(?s)<(style|pre|code)\b.*?</\1>|```.*?```|`[^`]*`|<!--.*?-->", " ", page)
    return re.sub(r"(?s)<[^>]*>", " ", page)


@pytest.mark.parametrize("render", [to_html, to_markdown])
@pytest.mark.parametrize("name", STATES)
def test_no_english_is_left_on_a_korean_page(name, render):
    for document in judged(name).documents().values():
        text = words_of(render(document, Language.KO).decode())
        assert not re.search(r"[A-Za-z]{2,}[ ,]+[a-z]{2,}[ ,]+[a-z]{2,}", text)
        for key, sentence in ENGLISH.items():
            if len(sentence) > 12 and "{" not in sentence:
                assert sentence not in text, key


@pytest.mark.parametrize("name", STATES)
def test_no_korean_is_left_on_an_english_page(name):
    for document in judged(name).documents().values():
        assert not HANGUL.search(to_html(document, Language.EN).decode())
        assert not HANGUL.search(to_markdown(document, Language.EN).decode())


def test_an_unknown_key_is_an_error():
    with pytest.raises(KeyError):
        say(Language.EN, "no.such.key")

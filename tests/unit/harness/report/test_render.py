"""Pages are self-contained, strict, semantic and in the order in which an approver reads."""

import base64
import csv
import hashlib
import io
import itertools
import re
from html.parser import HTMLParser

import pytest

from harness.profiles import PAIRS
from harness.report.catalogue import Language, say
from harness.report.document import canonical
from harness.report.reference import reference_in
from harness.report.render import RENDERERS, to_csv, to_html, to_markdown
from harness.report.words import Words
from tests.support.reports import STATES, judged

FIRST = PAIRS[0]
VOID = {"meta", "rect", "path", "br"}


class Page(HTMLParser):
    """Elements in order, with attributes; raises on what is not closed."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(data.decode())
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def pages():
    for name in STATES:
        for stem, document in judged(name).documents().items():
            for language in Language:
                yield name, stem, language, document


@pytest.fixture(scope="module")
def rendered():
    return {
        (name, stem, language): to_html(document, language)
        for name, stem, language, document in pages()
        if stem in ("index", "physique-coach-daily")
    }


def test_the_policy_lets_in_the_one_style_sheet_and_nothing_else(rendered):
    for data in rendered.values():
        text = data.decode()
        (style,) = re.findall("(?s)<style>(.*?)</style>", text)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        (meta,) = [it for it in Page(data).all("meta") if it.get("http-equiv")]
        assert meta["http-equiv"] == "Content-Security-Policy"
        assert meta["content"] == (
            f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'none'; base-uri 'none'; form-action 'none'"
        )
        assert text.index("Content-Security-Policy") < text.index("<style>")


def test_a_page_runs_loads_and_hides_nothing(rendered):
    for data in rendered.values():
        page = Page(data)
        names = {name for name, _ in page.elements}
        assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "details", "foreignobject"}
        for _, attributes in page.elements:
            assert "style" not in attributes
            assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset")]
        assert all(re.fullmatch(r"[a-z_-]+\.html", it["href"] or "") for it in page.all("a"))
        assert "url(" not in data.decode()
        assert "@import" not in data.decode()


def test_the_language_is_named_and_ids_are_unique(rendered):
    for (_, _, language), data in rendered.items():
        page = Page(data)
        assert page.all("html") == [{"lang": language.value}]
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        named = " ".join(attributes.get("aria-labelledby") or "" for _, attributes in page.elements).split()
        assert set(named) <= set(ids)


def test_tables_have_captions_and_scopes_and_pictures_have_names(rendered):
    for data in rendered.values():
        page, text = Page(data), data.decode()
        assert len(page.all("table")) == len(page.all("caption")) == text.count("<thead>")
        assert {it.get("scope") for it in page.all("th")} <= {"row", "col"}
        for table in re.findall("(?s)<table.*?</table>", text):
            assert len(re.findall('scope="col"', table)) == max(
                len(re.findall("<t[dh]", row)) for row in re.findall("(?s)<tr>.*?</tr>", table)
            )
        for picture in page.all("svg"):
            assert picture.get("aria-hidden") == "true" or (picture["role"] == "img" and picture["aria-labelledby"])
        assert (
            text.count("<title id=") == text.count("<desc id=") == len([it for it in page.all("svg") if "role" in it])
        )


def test_headings_go_down_one_level_at_a_time(rendered):
    for data in rendered.values():
        levels = [int(name[1]) for name, _ in Page(data).elements if re.fullmatch("h[1-6]", name)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("render", [to_html, to_markdown])
@pytest.mark.parametrize("name", STATES)
def test_the_verdict_comes_first_then_evidence_then_what_to_do(name, render, language):
    text = render(judged(name).document(FIRST), language).decode()
    order = ("verdict", "evidence", "gates", "strip", "traffic", "outcomes", "latency", "proves", "restarts", "chain")
    headings = [say(language, f"{part}.heading") for part in (*order, "next", "rollback", "grants")]
    text = text[text.index("</title>" if render is to_html else "\n") :]
    marks = [re.search(rf"(?:<h[23][^>]*>(?:<span[^>]*>.</span> )?|\n##+ ){re.escape(it)}", text) for it in headings]
    places = [it.start() for it in marks if it]
    assert len(places) == len(headings)
    assert places == sorted(places)


@pytest.mark.parametrize("render", [to_html, to_markdown])
@pytest.mark.parametrize("language", Language)
def test_a_rehearsal_cannot_be_overlooked(render, language):
    banner = say(language, "rehearsal.title")
    for name in STATES:
        for document in judged(name).documents().values():
            text = render(document, language).decode()
            assert (banner in text) == (name == "rehearsal")
            assert banner not in text or text.index(banner) < text.index(say(language, "grants.heading"))


@pytest.mark.parametrize("language", Language)
def test_every_report_says_synthetic_and_who_answered(language):
    for name, kind in (("ready", "live"), ("rehearsal", "rehearsal"), ("failures", "live")):
        for document in judged(name).documents().values():
            origin = Words(language).origin(document)
            assert say(language, "traffic.synthetic") in origin.replace("Messages are synthetic", "synthetic")
            assert say(language, f"provider.{kind}") in origin
            assert origin in to_html(document, language).decode().replace("&#39;", "'")
    assert say(Language.KO, "traffic.organic") in Words(Language.KO).origin(judged("failures").document(FIRST))


def test_the_block_on_the_page_is_the_block_whose_digest_it_gives():
    document = judged("ready").document(FIRST)
    text = to_html(document, Language.EN).decode()
    for block in (document["config"]["next"], document["config"]["rollback"]):
        assert f"<pre><code>{block['yaml']}</code></pre>" in text
        assert hashlib.sha256(block["yaml"].encode()).hexdigest() == block["sha256"]
        assert block["sha256"] in text
        assert f"```yaml\n{block['yaml']}```" in to_markdown(document, Language.EN).decode()


def test_a_block_is_marked_not_for_use_until_the_verdict_is_ready():
    warning = say(Language.KO, "config.not_yet").partition("`")[0]
    for name in STATES:
        document = judged(name).document(FIRST)
        shown = document["config"]["next"] is not None and document["verdict"] != "READY"
        assert (warning in to_html(document, Language.KO).decode()) == shown


def test_the_table_of_outcomes_as_csv():
    rows = list(csv.reader(io.StringIO(to_csv(judged("failures").document(FIRST), Language.EN).decode())))
    assert rows[0] == ["profile", "surface", "kind", "code", "calls", "report"]
    assert [row[2:5] for row in rows[1:]] == [
        ["outcome", "shadow_selected", "21"],
        ["outcome", "canonical_timeout", "1"],
        ["reason", "timeout.deadline", "1"],
        ["total", "calls", "24"],
    ]
    index = list(csv.reader(io.StringIO(to_csv(judged("failures").document(None), Language.EN).decode())))
    assert [row[2] for row in index[1:]] == ["NOT_READY", *["INSUFFICIENT"] * 4]


def test_every_rendering_names_the_document_it_is_of():
    for _, _, language, document in pages():
        digest = hashlib.sha256(canonical(document)).hexdigest()
        for extension, render in RENDERERS.items():
            reference = reference_in(render(document, language).decode())
            if extension == ".json":
                assert reference is None
            else:
                assert reference is not None
                assert (reference.digest, reference.language) == (digest, language)


def test_a_bound_is_rounded_up_and_a_chance_to_the_nearest():
    assert Words.percent("0.108801") == "10.9\N{NO-BREAK SPACE}%"
    assert Words.percent("0.100000") == "10.0\N{NO-BREAK SPACE}%"
    assert Words.chance("0.348678") == "35\N{NO-BREAK SPACE}%"
    assert Words.chance("0.006362") == "0.6\N{NO-BREAK SPACE}%"

"""The pages in a real browser: accessible, readable from phone to desk, light and dark, strict, and whole in print."""

import re
from pathlib import Path

import pytest

from harness.profiles import PAIRS
from harness.report.catalogue import Language, say
from harness.report.files import rendered, write_all
from tests.support.chromium import chromium, overflow_of, page_of, violations_of
from tests.support.reports import judged

pytestmark = pytest.mark.integration

PAGES = ("index.html", "physique-coach-daily.html")
SHOWN = ("empty", "ready", "enabled", "failures", "rehearsal", "broken")
LOOKS = [(360, "light"), (360, "dark"), (1440, "light"), (1440, "dark")]


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Directory of each state and language."""
    root = tmp_path_factory.mktemp("site")
    for name in SHOWN:
        for language in Language:
            write_all(root / name / language, rendered(judged(name).documents(), language))
    return root


def addresses(site: Path, name: str, *languages: Language) -> list[str]:
    return [(site / name / language / page).as_uri() for language in languages for page in PAGES]


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize(("width", "scheme", "language"), [(360, "dark", Language.KO), (1440, "light", Language.EN)])
def test_no_page_breaks_an_accessibility_rule(browser, site, name, width, scheme, language):
    """In both schemes, since contrast differs, and on both widths, since what is visible does."""
    with page_of(browser, width=width, scheme=scheme) as page:
        for address in addresses(site, name, language):
            page.goto(address)
            assert violations_of(page) == {}, address


def test_the_check_sees_a_fault(browser, site):
    """Or it would pass for a page that it cannot read."""
    with page_of(browser, width=1440) as page:
        page.goto(addresses(site, "ready", Language.EN)[0])
        page.evaluate("document.querySelector('h1').innerHTML = '<img>'")
        page.evaluate("document.documentElement.removeAttribute('lang')")
        assert {"html-has-lang", "image-alt"} <= violations_of(page).keys()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_no_page_scrolls_sideways(browser, site, width, scheme):
    with page_of(browser, width=width, scheme=scheme) as page:
        for name in ("empty", "failures", "rehearsal"):
            for address in addresses(site, name, *Language):
                page.goto(address)
                assert overflow_of(page) <= 0, address


def test_the_policy_holds_and_the_style_is_in_use(browser, site):
    """`page_of` fails for anything the policy blocks; what a page injects is blocked."""
    with page_of(browser, width=1440) as page:
        page.goto(addresses(site, "ready", Language.EN)[0])
        assert page.evaluate("getComputedStyle(document.querySelector('.cards')).display") == "grid"
        assert page.evaluate("document.styleSheets.length") == 1
    context = browser.new_context()
    page = context.new_page()
    page.goto(addresses(site, "ready", Language.EN)[0])
    page.evaluate(
        """() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';
        document.body.append(s); }"""
    )
    assert page.evaluate("window.ran") is None
    context.close()


def test_dark_is_dark_and_light_is_light(browser, site):
    lightness = {}
    for scheme in ("light", "dark"):
        with page_of(browser, width=1440, scheme=scheme) as page:
            page.goto(addresses(site, "ready", Language.EN)[0])
            color = page.evaluate("getComputedStyle(document.body).backgroundColor")
            lightness[scheme] = sum(map(int, re.findall(r"\d+", color)))
    assert lightness["dark"] < 120
    assert lightness["light"] > 700


def test_the_verdict_is_seen_without_scrolling(browser, site):
    with page_of(browser, width=1440, height=900) as page:
        for name in SHOWN:
            page.goto((site / name / "ko" / PAGES[1]).as_uri())
            box = page.locator(".verdict").bounding_box()
            assert box is not None
            assert box["y"] + 120 < 900


def test_links_between_pages_lead_somewhere(browser, site):
    with page_of(browser, width=1440) as page:
        page.goto((site / "ready" / "en" / "index.html").as_uri())
        links = page.locator("main a").all()
        assert len(links) == len(PAIRS)
        for link in links:
            assert (site / "ready" / "en" / str(link.get_attribute("href"))).exists()
        links[0].click()
        assert page.locator("h1").inner_text() == say(
            Language.EN, "page.heading", surface=say(Language.EN, "surface.daily"), profile="physique-coach"
        )
        page.locator("header a").click()
        assert page.url.endswith("index.html")


@pytest.mark.parametrize("language", Language)
def test_a_page_prints_whole(browser, site, language):
    """Nothing is hidden, clipped or wider than the paper when the media is print."""
    with page_of(browser, width=760) as page:
        page.emulate_media(media="print")
        page.goto((site / "failures" / language / PAGES[1]).as_uri())
        hidden = page.evaluate(
            """[...document.querySelectorAll('main *')].filter(e => getComputedStyle(e).display === 'none'
            && !['TITLE', 'DESC'].includes(e.tagName.toUpperCase())).length"""
        )
        clipped = page.evaluate(
            "[...document.querySelectorAll('.scroll')].filter(e => getComputedStyle(e).overflowX !== 'visible').length"
        )
        assert (hidden, clipped) == (0, 0)
        assert overflow_of(page) <= 0
        printed = page.pdf(format="A4", print_background=True)
        assert printed.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 3

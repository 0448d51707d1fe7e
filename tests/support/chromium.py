"""The system's headless Chromium, driven by playwright's client; axe-core for accessibility, out of its package."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.programs import need

__all__ = ["ARGUMENTS", "chromium", "overflow_of", "page_of", "violations_of"]

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own. Skips without one, or fails where it is required."""
    path = need("chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS), headless=True)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Browser, *, width: int, scheme: Any = "light", height: int = 900) -> Iterator[Page]:
    """A page of its own context. What it logs as an error, a blocked style or request, fails the test."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield page
        assert errors == []
    finally:
        context.close()


def violations_of(page: Page) -> dict[str, list[str]]:
    """Accessibility rules that the page breaks, each with the elements that do.

    axe runs in the browser's own world of the developer tools, where a page's policy does not reach.
    """
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.evaluate("rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", _RULES)
    return {rule["id"]: [str(node["target"]) for node in rule["nodes"]] for rule in found["violations"]}


def overflow_of(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

"""HTML, Markdown and CSV of a document, from the document alone. Pure: the same document gives the same bytes."""

import base64
import csv
import hashlib
import io
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.report import figures
from harness.report.catalogue import Language
from harness.report.document import PAIR_KIND, Document, canonical
from harness.report.names import EXTENSIONS, page_name
from harness.report.reference import head_text, reference_of
from harness.report.words import Words
from kexpr.ledger.protocol import Head

__all__ = ["RENDERERS", "content_policy", "to_csv", "to_html", "to_markdown"]

_CODE: Final = re.compile("`([^`]+)`")


def to_html(document: Document, language: Language) -> bytes:
    """One self-contained page: no script, no request, one style sheet that its policy names by digest."""
    return _rendered(f"{document['kind']}.html", document, language)


def to_markdown(document: Document, language: Language) -> bytes:
    return _rendered(f"{document['kind']}.md", document, language)


def to_csv(document: Document, language: Language) -> bytes:
    """The outcome table of a pair, or the verdicts of all: one header line, codes only."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    reference = str(reference_of(document, _digest(document), language))
    if document["kind"] == PAIR_KIND:
        writer.writerow(("profile", "surface", "kind", "code", "calls", "report"))
        for kind, code, count in Words(language).outcome_rows(document):
            writer.writerow((document["profile"], document["surface"], kind, code, count, reference))
        writer.writerow(
            (document["profile"], document["surface"], "total", "calls", document["proves"]["calls"], reference)
        )
    else:
        writer.writerow(("profile", "surface", "verdict", "phase", "days", "calls", "failures", "report"))
        for pair in document["pairs"]:
            names = ("profile", "surface", "verdict", "phase", "days", "calls", "failures")
            writer.writerow((*(pair[name] for name in names), reference))
    return text.getvalue().encode()


def _to_json(document: Document, language: Language) -> bytes:
    """The same in every language."""
    return canonical(document)


RENDERERS: Final[dict[str, Callable[[Document, Language], bytes]]] = dict(
    zip(EXTENSIONS, (_to_json, to_html, to_markdown, to_csv), strict=True)
)
"""By the extension of the file."""


def content_policy() -> str:
    """The policy of a page: its one style sheet, and nothing else at all."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'none'; base-uri 'none'; form-action 'none'"


def _rendered(template: str, document: Document, language: Language) -> bytes:
    words = Words(language)
    text = (
        _environment()
        .get_template(template)
        .render(
            doc=document,
            w=words,
            t=words.t,
            figures=figures,
            style=Markup(_style()),
            policy=content_policy(),
            reference=str(reference_of(document, _digest(document), language)),
            digest=_digest(document),
            page_name=page_name,
        )
    )
    return (text.rstrip("\n") + "\n").encode()


def _digest(document: Document) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()


@cache
def _style() -> str:
    return _source("style.css").rstrip("\n")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=lambda name: name is not None and not name.endswith(".md"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["codes"] = _codes
    environment.filters["share"] = _share
    environment.filters["head"] = lambda value: head_text(Head(value["sequence"], value["digest"]))
    return environment


def _source(name: str) -> str:
    return files("harness.report").joinpath("templates", name).read_text("utf-8")


def _codes(text: str) -> Markup:
    """What stands between backticks as code, all else escaped."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _share(count: int, whole: int) -> Decimal:
    return Decimal(count) / whole if whole else Decimal(0)

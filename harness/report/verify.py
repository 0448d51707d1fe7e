"""Does a report say what the evidence says? It is made again from what it names, and compared byte for byte."""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.evidence.ledger import read_prefix
from harness.report.catalogue import Language
from harness.report.document import SCHEMA, Document, canonical
from harness.report.reference import Reference, reference_in, reference_of
from harness.report.render import RENDERERS
from harness.report.source import judge_then
from kexpr.ledger.protocol import Head

__all__ = ["Verified", "verify"]


@dataclass(frozen=True, slots=True)
class Verified:
    """A report that is the evidence's own; `digest` is the SHA-256 of its canonical JSON, whatever form was shown."""

    reference: Reference
    document: Document
    digest: str


def verify(data: bytes, directory: Path, anchor: Head | None = None) -> Verified | None:
    """None when the bytes are no report, or not the ones that the evidence gives.

    `anchor` is a head kept elsewhere that the evidence must contain. Raises `LedgerFailed` when it does not, or has no
    such row as the report names, and `ReportRefused`.
    """
    if anchor is not None:
        read_prefix(directory, anchor)
    reference = _reference(data)
    if reference is None:
        return None
    document = judge_then(directory, reference).document(reference.pair)
    if not any(render(document, reference.language) == data for render in RENDERERS.values()):
        return None
    return Verified(reference, document, hashlib.sha256(canonical(document)).hexdigest())


def _reference(data: bytes) -> Reference | None:
    """What a report says it was made from, in any of its forms."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return _reference_of_json(text) if text.startswith("{") else reference_in(text)


def _reference_of_json(text: str) -> Reference | None:
    """By way of the line of the other forms, so that one pattern checks all of them."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        document = json.loads(text)
        if document["schema"] == SCHEMA:
            digest = hashlib.sha256(text.encode()).hexdigest()
            return reference_in(str(reference_of(document, digest, Language.EN)))
    return None

"""The one line that every rendering carries: from which evidence, on which day, in which language it was made."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from harness.profiles import PAIRS, Pair
from harness.report.catalogue import Language
from harness.report.document import INDEX_KIND, SCHEMA, Document
from kexpr.ledger.protocol import Head

__all__ = ["Reference", "head_text", "is_day", "parse_head", "reference_in", "reference_of"]

_HEAD: Final = r"(?:0|[1-9][0-9]{0,11}):[0-9a-f]{64}"
_LINE: Final = re.compile(
    re.escape(SCHEMA)
    + r" (?P<subject>[a-z_/-]{1,64}) as_of=(?P<as_of>20[0-9]{2}-[0-9]{2}-[0-9]{2}) "
    + rf"head=(?P<head>{_HEAD}) anchor=(?P<anchor>none|{_HEAD}) lang=(?P<language>en|ko) "
    + r"sha256=(?P<digest>[0-9a-f]{64})"
)
_SUBJECTS: Final = {str(pair): pair for pair in PAIRS}


@dataclass(frozen=True, slots=True)
class Reference:
    """`pair` is None for the index; `digest` is the SHA-256 (hex) of the canonical JSON."""

    pair: Pair | None
    as_of: str
    head: Head
    anchor: Head | None
    language: Language
    digest: str

    def __str__(self) -> str:
        subject = INDEX_KIND if self.pair is None else str(self.pair)
        anchor = "none" if self.anchor is None else head_text(self.anchor)
        return (
            f"{SCHEMA} {subject} as_of={self.as_of} head={head_text(self.head)} anchor={anchor} "
            f"lang={self.language} sha256={self.digest}"
        )


def head_text(head: Head) -> str:
    """`SEQUENCE:DIGEST`, as every run prints its head."""
    return f"{head.sequence}:{head.digest}"


def parse_head(text: str) -> Head | None:
    """The head of `SEQUENCE:DIGEST`; None for anything else."""
    if not re.fullmatch(_HEAD, text):
        return None
    sequence, digest = text.split(":")
    return Head(int(sequence), digest)


def reference_of(document: Document, digest: str, language: Language) -> Reference:
    """The reference of a document whose canonical bytes have `digest`."""
    anchor = document["evidence"]["anchor"]
    return Reference(
        None if document["kind"] == INDEX_KIND else _SUBJECTS[f"{document['profile']}/{document['surface']}"],
        document["as_of"],
        _head(document["evidence"]["head"]),
        None if anchor is None else _head(anchor),
        language,
        digest,
    )


def reference_in(text: str) -> Reference | None:
    """The first reference in a rendering; None where there is none."""
    found = _LINE.search(text)
    if found is None or found["subject"] not in {*_SUBJECTS, INDEX_KIND}:
        return None
    head = parse_head(found["head"])
    if head is None or not is_day(found["as_of"]):
        return None
    return Reference(
        _SUBJECTS.get(found["subject"]),
        found["as_of"],
        head,
        parse_head(found["anchor"]),
        Language(found["language"]),
        found["digest"],
    )


def is_day(text: str) -> bool:
    """Whether a text is a day as `YYYY-MM-DD` of the years that evidence and references have, 2000 to 2099."""
    try:
        return text.startswith("20") and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _head(value: Document) -> Head:
    return Head(value["sequence"], value["digest"])

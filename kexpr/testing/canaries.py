"""Canaries: unique strings planted in private places, and a search for them in everything that leaves a process.

Each canary is looked for as it is, folded, and in the spellings in which a careless layer would carry it: base64 at any
alignment, hex, escapes, percent encoding, other Unicode forms and encodings. A finding names the place it was planted
in, the output it was found in and the spelling, never the text.
"""

import base64
import html
import json
import secrets
import unicodedata
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Canaries", "Leak", "chain_text"]

_SYLLABLES: Final = (0xAC00, 0xD7A4)
_MINIMUM_BYTES: Final = 8
"""A shorter canary could be found by chance."""


@dataclass(frozen=True, slots=True)
class Leak:
    """`planted` was found in `output`, spelled as `spelling`."""

    planted: str
    output: str
    spelling: str


@dataclass(frozen=True, slots=True)
class _Needle:
    planted: str
    spelling: str
    data: bytes = field(repr=False)


class Canaries:
    """What was planted where. Labels name the places and must not hold content themselves."""

    def __init__(self) -> None:
        self._needles: list[_Needle] = []

    def plant(self, place: str) -> str:
        """A fresh ASCII canary (letters and digits, 26 characters)."""
        return self.adopt(place, "canary" + secrets.token_hex(10))

    def plant_korean(self, place: str, syllables: int = 12) -> str:
        """A fresh canary of random Hangul syllables (NFC)."""
        first, end = _SYLLABLES
        return self.adopt(place, "".join(chr(first + secrets.randbelow(end - first)) for _ in range(syllables)))

    def plant_bytes(self, place: str, length: int = 32) -> bytes:
        """Fresh random bytes, for keys and nonces."""
        return self.adopt_bytes(place, secrets.token_bytes(length))

    def adopt(self, place: str, text: str) -> str:
        """Look for a text that exists already; at least 8 bytes long."""
        if len(text.encode()) < _MINIMUM_BYTES:
            raise ValueError("a canary needs at least 8 bytes")
        self._needles += [_Needle(place, spelling, data) for spelling, data in _spellings(text).items()]
        return text

    def adopt_bytes(self, place: str, data: bytes) -> bytes:
        """Look for bytes that exist already; at least 8."""
        if len(data) < _MINIMUM_BYTES:
            raise ValueError("a canary needs at least 8 bytes")
        self._needles += [_Needle(place, spelling, found) for spelling, found in _byte_spellings(data).items()]
        return data

    def leaks(self, outputs: Mapping[str, str | bytes]) -> tuple[Leak, ...]:
        """Every canary found in `outputs` (name -> what came out), exactly or after case folding."""
        found = []
        for output, blob in outputs.items():
            exact = blob.encode("utf-8", "surrogatepass") if isinstance(blob, str) else blob
            folded = _folded(exact)
            for needle in self._needles:
                if needle.data in exact or _folded(needle.data) in folded:
                    found.append(Leak(needle.planted, output, needle.spelling))
        return tuple(found)

    def assert_absent(self, outputs: Mapping[str, str | bytes]) -> None:
        """Raise `AssertionError` that lists the leaks, without their text. No canary or no output is an error too."""
        if not self._needles or not outputs:
            raise AssertionError("nothing was planted or nothing was searched")
        leaks = self.leaks(outputs)
        if leaks:
            lines = sorted({f"{leak.planted} in {leak.output} as {leak.spelling}" for leak in leaks})
            raise AssertionError("canaries found: " + "; ".join(lines))


def chain_text(error: BaseException) -> str:
    """Everything an exception and all exceptions behind it say: also a context that `from None` only hides."""
    said: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        said += (str(current), repr(current), repr(current.args), *getattr(current, "__notes__", ()))
        said += [repr(value) for value in getattr(current, "__dict__", {}).values()]
        waiting += (current.__cause__, current.__context__)
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
    return "\n".join(said)


def _folded(data: bytes) -> bytes:
    return data.decode("utf-8", "surrogateescape").casefold().encode("utf-8", "surrogateescape")


def _spellings(text: str) -> dict[str, bytes]:
    encoded = text.encode("utf-8")
    return {
        "plain": encoded,
        "nfd": unicodedata.normalize("NFD", text).encode("utf-8"),
        "nfkc": unicodedata.normalize("NFKC", text).encode("utf-8"),
        "json escapes": json.dumps(text)[1:-1].encode("ascii"),
        "python escapes": ascii(text)[1:-1].encode("ascii"),
        "byte escapes": repr(encoded)[2:-1].encode("ascii"),
        "percent encoding": urllib.parse.quote(text, safe="").encode("ascii"),
        "html escapes": html.escape(text).encode("utf-8"),
        "html references": text.encode("ascii", "xmlcharrefreplace"),
        "utf-16-le": text.encode("utf-16-le"),
        "utf-16-be": text.encode("utf-16-be"),
        "reversed": text[::-1].encode("utf-8"),
        **_byte_spellings(encoded),
    }


def _byte_spellings(data: bytes) -> dict[str, bytes]:
    return {
        "bytes": data,
        "byte escapes": repr(data)[2:-1].encode("ascii"),
        "hex": data.hex().encode("ascii"),
        "base32": _core(base64.b32encode(data), 0),
        **{f"base64 at {shift}": _base64_at(data, shift) for shift in range(3)},
        **{f"url-safe base64 at {shift}": _url_safe(_base64_at(data, shift)) for shift in range(3)},
    }


def _base64_at(data: bytes, shift: int) -> bytes:
    """What stays the same of `data` in the base64 of anything that holds it `shift` bytes into a group of three."""
    return _core(base64.b64encode(bytes(shift) + data), 0 if shift == 0 else shift + 1)


def _core(encoded: bytes, start: int) -> bytes:
    """Without what the bytes before it change, and without the last, padded group."""
    return encoded[start : len(encoded.rstrip(b"=")) - 1]


def _url_safe(encoded: bytes) -> bytes:
    return encoded.replace(b"+", b"-").replace(b"/", b"_")

"""JSON as the contract takes it (section 4): anything doubtful is refused with a code, nothing is repaired.

Theory of operation. The standard library's decoder does the parsing, since it shows every key of an object to a hook
and so can refuse duplicates. What it would let through is refused around it: size, byte order mark and encoding first;
then every escape of a code unit, and the nesting depth, so that neither the C scanner's lone surrogates nor the
pure-Python scanner's loose `\\u` nor a deep recursion is ever reached; numbers and duplicate keys in hooks. The
decoder's own exceptions hold the whole document, so `Rejected` is raised outside their handler.
"""

import json
import math
import re
import unicodedata
from itertools import accumulate
from typing import Final

from kexpr.codes import Reason
from kexpr.errors import Rejected

__all__ = ["MAX_ANSWER_BYTES", "MAX_DEPTH", "loads"]

MAX_ANSWER_BYTES: Final = 16 * 1024
MAX_DEPTH: Final = 16
"""Containers inside one another; a completion with log probabilities needs seven, an answer four."""

_MAX_NUMBER_CHARACTERS: Final = 32

_BYTE_ORDER_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_ESCAPE: Final = re.compile(
    r"""\\(?:["\\/bfnrt]|u(?:(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"""
)
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NEITHER_QUOTE_NOR_BRACKET: Final = bytes(set(range(256)) - {ord('"'), *_STEP})


def loads(data: bytes, max_bytes: int = MAX_ANSWER_BYTES, max_depth: int = MAX_DEPTH) -> object:
    """The one JSON value in `data`; raises `Rejected` with a `json.*` reason."""
    text = _decode(data, max_bytes)
    if "\\u" in text:
        _check_unicode_escapes(text)
    _check_depth(data, max_depth)
    value: object = None
    try:
        value = _DECODER.decode(text)
        parsed = True
    except ValueError:
        parsed = False
    if not parsed:
        raise Rejected(Reason.JSON_SYNTAX)
    return value


def _decode(data: bytes, max_bytes: int) -> str:
    if len(data) > max_bytes:
        raise Rejected(Reason.JSON_SIZE)
    if data.startswith(_BYTE_ORDER_MARKS):
        raise Rejected(Reason.JSON_BOM)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise Rejected(Reason.JSON_ENCODING)


def _check_unicode_escapes(text: str) -> None:
    rest = _ESCAPE.sub(" ", text)
    if "\\" in rest:
        raise Rejected(Reason.JSON_SURROGATE if _SURROGATE_ESCAPE.search(rest) else Reason.JSON_SYNTAX)


def _check_depth(data: bytes, max_depth: int) -> None:
    """Counts brackets outside strings; up to the first syntax error this sees strings where the decoder does.

    A bracket before a backslash is in a string, as most are of a completion, whose content is JSON once more.
    """
    opened = data.count(b"[") + data.count(b"{")
    if opened <= max_depth or opened - data.count(b"[\\") - data.count(b"{\\") <= max_depth:
        return
    quotes_and_brackets = data.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NEITHER_QUOTE_NOR_BRACKET)
    brackets = b"".join(quotes_and_brackets.split(b'"')[::2])
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > max_depth:
        raise Rejected(Reason.JSON_DEPTH)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    distinct = len(value)
    if distinct == len(pairs) and not "".join(value).isascii():
        distinct = len({unicodedata.normalize("NFC", key) for key in value})
    if distinct != len(pairs):
        raise Rejected(Reason.JSON_DUPLICATE_KEY)
    return value


def _integer(literal: str) -> int:
    _check_literal(literal)
    return int(literal)


def _float(literal: str) -> float:
    _check_literal(literal)
    value = float(literal)
    if not math.isfinite(value):
        raise Rejected(Reason.JSON_NUMBER)
    return value


def _check_literal(literal: str) -> None:
    if len(literal) > _MAX_NUMBER_CHARACTERS or not literal.isascii():
        raise Rejected(Reason.JSON_NUMBER)


def _constant(_literal: str) -> object:
    raise Rejected(Reason.JSON_NUMBER)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)

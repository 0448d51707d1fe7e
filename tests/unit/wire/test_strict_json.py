"""Strict JSON: what the standard library would let through, and what it would leak."""

import json
import json.decoder
import json.scanner
import traceback
from typing import Any

import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.wire import strict_json
from kexpr.wire.strict_json import MAX_DEPTH, loads

REFUSED: list[tuple[bytes, Reason]] = [
    (b"", Reason.JSON_SYNTAX),
    (b"   ", Reason.JSON_SYNTAX),
    (b"{", Reason.JSON_SYNTAX),
    (b"[1,]", Reason.JSON_SYNTAX),
    (b'{"a":1,}', Reason.JSON_SYNTAX),
    (b"{'a':1}", Reason.JSON_SYNTAX),
    (b"{} trailing", Reason.JSON_SYNTAX),
    (b"{}{}", Reason.JSON_SYNTAX),
    (b"{}\x00", Reason.JSON_SYNTAX),
    (b"[01]", Reason.JSON_SYNTAX),
    (b"[+1]", Reason.JSON_SYNTAX),
    (b"[.5]", Reason.JSON_SYNTAX),
    (b'"a\nb"', Reason.JSON_SYNTAX),
    (b'"a\tb"', Reason.JSON_SYNTAX),
    (b'"a\x00b"', Reason.JSON_SYNTAX),
    (b'"\\q"', Reason.JSON_SYNTAX),
    (b'"\\u12"', Reason.JSON_SYNTAX),
    (b'"\\u+123"', Reason.JSON_SYNTAX),
    (b'"\\u1_23"', Reason.JSON_SYNTAX),
    (b'"\\u 123"', Reason.JSON_SYNTAX),
    (b'"\\uD7XX"', Reason.JSON_SYNTAX),
    (b'"unended', Reason.JSON_SYNTAX),
    (b'"unended\\"', Reason.JSON_SYNTAX),
    (b"<html></html>", Reason.JSON_SYNTAX),
    ("[１]".encode(), Reason.JSON_SYNTAX),
    ("\u00a0{}".encode(), Reason.JSON_SYNTAX),
    (b"\xef\xbb\xbf{}", Reason.JSON_BOM),
    ("{}".encode("utf-16"), Reason.JSON_BOM),
    (b"\xfe\xff\x00{\x00}", Reason.JSON_BOM),
    (b'"\xff"', Reason.JSON_ENCODING),
    (b'"\xc0\xaf"', Reason.JSON_ENCODING),
    (b'"\xed\xa0\x80"', Reason.JSON_ENCODING),
    ('{"글":1}'.encode("cp949"), Reason.JSON_ENCODING),
    (b"NaN", Reason.JSON_NUMBER),
    (b"[Infinity]", Reason.JSON_NUMBER),
    (b'{"a":-Infinity}', Reason.JSON_NUMBER),
    (b"1e999", Reason.JSON_NUMBER),
    (b"[-1e999]", Reason.JSON_NUMBER),
    (b"1" * 33, Reason.JSON_NUMBER),
    (b"1" * 5000, Reason.JSON_NUMBER),
    (b"0." + b"1" * 5000, Reason.JSON_NUMBER),
    (b'{"a":1,"a":1}', Reason.JSON_DUPLICATE_KEY),
    (b'{"a":1,"\\u0061":1}', Reason.JSON_DUPLICATE_KEY),
    (b'[{"b":[{"a":1,"c":2,"a":3}]}]', Reason.JSON_DUPLICATE_KEY),
    ('{"가":1,"\u1100\u1161":1}'.encode(), Reason.JSON_DUPLICATE_KEY),
    ('{"x":{"é":1,"e\u0301":1}}'.encode(), Reason.JSON_DUPLICATE_KEY),
    ('{"\u212b":1,"\u00c5":1}'.encode(), Reason.JSON_DUPLICATE_KEY),
    (b'{"a":1,"a":NaN}', Reason.JSON_NUMBER),
    (b'"\\ud800"', Reason.JSON_SURROGATE),
    (b'"\\uDFFF"', Reason.JSON_SURROGATE),
    (b'"\\udc00\\ud800"', Reason.JSON_SURROGATE),
    (b'"\\ud83d\\ud83d\\ude00"', Reason.JSON_SURROGATE),
    (b'"\\ud83dx\\ude00"', Reason.JSON_SURROGATE),
    (b'"\\ud83d\\\\ude00"', Reason.JSON_SURROGATE),
    (b'{"\\udead":1}', Reason.JSON_SURROGATE),
    (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), Reason.JSON_DEPTH),
    (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), Reason.JSON_DEPTH),
    (b"[" * 8000, Reason.JSON_DEPTH),
    (b'["\\"",' + b"[" * 8000, Reason.JSON_DEPTH),
    (b'["\\\\",' + b"[" * 8000, Reason.JSON_DEPTH),
    (b'["\\\\\\"",' + b"[" * 8000, Reason.JSON_DEPTH),
    (b"{" * 16385, Reason.JSON_SIZE),
]

ACCEPTED: list[tuple[bytes, object]] = [
    (b"{}", {}),
    (b" \t\r\n[] \n", []),
    (b"null", None),
    (b"[true,false]", [True, False]),
    (b"[0,-0,-1,12]", [0, 0, -1, 12]),
    (b"[1.5,1E2,-2e-1]", [1.5, 100.0, -0.2]),
    (b'"\\ud83d\\ude00\\uD83D\\uDE00"', "😀😀"),
    (b'"\\\\ud800 \\\\\\\\ \\" \\/ \\b\\f\\n\\r\\t\\u0041\\u000a"', '\\ud800 \\\\ " / \b\f\n\r\tA\n'),
    ('{"⟦p_x⟧":"글 😀"}'.encode(), {"⟦p_x⟧": "글 😀"}),
    ("\"\u1100\u1161\"".encode(), "\u1100\u1161"),
    (b'{"a":{"a":1},"b":{"a":1}}', {"a": {"a": 1}, "b": {"a": 1}}),
    ('{"가":1,"각":2}'.encode(), {"가": 1, "각": 2}),
    (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)),
    (b"[" + b"[]," * 200 + b'"[[[[\\"[[{{{{"' + b"]", [[]] * 200 + ['[[[["[[{{{{']),
]  # fmt: skip


@pytest.fixture(params=["c", "python"])
def scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both scanners of the standard library: which one is there must not matter."""
    if request.param == "python":
        decoder: Any = json.JSONDecoder(
            object_pairs_hook=strict_json._object,
            parse_int=strict_json._integer,
            parse_float=strict_json._float,
            parse_constant=strict_json._constant,
        )
        decoder.parse_string = json.decoder.py_scanstring  # type: ignore[attr-defined]
        decoder.scan_once = json.scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
        monkeypatch.setattr(strict_json, "_DECODER", decoder)


@pytest.mark.usefixtures("scanner")
@pytest.mark.parametrize(("data", "reason"), REFUSED)
def test_it_refuses(data: bytes, reason: Reason):
    with pytest.raises(Rejected) as refused:
        loads(data)
    assert refused.value.reason is reason


@pytest.mark.usefixtures("scanner")
@pytest.mark.parametrize(("data", "value"), ACCEPTED)
def test_it_reads(data: bytes, value: object):
    read = loads(data)
    assert read == value
    assert json.dumps(read) == json.dumps(value)


@pytest.mark.usefixtures("scanner")
def test_a_number_in_digits_of_another_script_is_refused():
    """The pure-Python scanner takes any Unicode digit after the first."""
    for data in ("[1２]", "[1.２]", "[1e２]"):
        with pytest.raises(Rejected):
            loads(data.encode())


def test_a_chain_holds_nothing_of_the_document():
    secret = "비밀-canary"
    for data in (f'{{"{secret}"', f'"{secret}"' + "x", f'{{"{secret}":1,"{secret}":1}}', f'["{secret}",NaN]'):
        with pytest.raises(Rejected) as refused:
            loads(data.encode())
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None
        assert secret not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(Rejected) as refused:
        loads(secret.encode() + b"\xff")
    assert refused.value.__context__ is None


def test_the_size_bound_is_in_bytes_and_exact():
    data = '"가"'.encode()
    assert loads(data, max_bytes=5) == "가"
    with pytest.raises(Rejected) as refused:
        loads(data, max_bytes=4)
    assert refused.value.reason is Reason.JSON_SIZE


def test_values_are_of_exact_types():
    read = loads(b'{"a":[1,1.0,true,null,"x"]}')
    assert type(read) is dict
    assert [type(value) for value in read["a"]] == [int, float, bool, type(None), str]

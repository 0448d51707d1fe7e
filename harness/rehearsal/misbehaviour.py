"""What a provider can do wrong below the completion: scripts of bytes, pauses and cuts for one call."""

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

__all__ = [
    "CUT",
    "Call",
    "Pause",
    "Script",
    "Step",
    "body_only",
    "flood_of_continue",
    "framed",
    "giant_body",
    "giant_head",
    "ordinary",
    "redirect",
    "slowly",
    "stall",
    "status",
]

_Header = tuple[str, str]
JSON_TYPE: Final[_Header] = ("Content-Type", "application/json")
_CLOSE: Final[_Header] = ("Connection", "close")
"""The server hangs up after a misbehaviour, and says so: a client must not try the connection again."""

_GIANT_BYTES: Final = 1 << 30
_CHUNK: Final = b"x" * 65_536
_DRIP_S: Final = 0.3
_FLOOD: Final = 2_000_000
_BOMB_BLOCKS: Final = 64
_GZIP_HEAD: Final = b"\x1f\x8b\x08" + bytes(5) + b"\x02\xff"


@dataclass(frozen=True, slots=True)
class Call:
    """One request as received, and the body of the answer it would get from a provider that behaves."""

    request_head: bytes = field(repr=False)
    request_body: bytes = field(repr=False)
    answer: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pause:
    """Say nothing for this long; ends early when the server stops."""

    seconds: float


class _Cut(Enum):
    CUT = "cut"


CUT: Final = _Cut.CUT
"""Close the socket at once, without TLS's goodbye."""

Step = bytes | Pause | _Cut
Script = Callable[[Call], Iterator[Step]]


def head(status_code: int, headers: Sequence[_Header]) -> bytes:
    lines = [f"HTTP/1.1 {status_code} Rehearsal", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode()


def _reply(status_code: int, headers: Sequence[_Header], body: bytes) -> bytes:
    return head(status_code, [*headers, ("Content-Length", str(len(body)))]) + body


def ordinary(call: Call) -> Iterator[Step]:
    """What a provider that behaves sends."""
    yield _reply(200, [JSON_TYPE, ("x-request-id", "req_rehearsal")], call.answer)


def status(code: int, *headers: _Header) -> Script:
    """An error whose text repeats what it was sent, key and prompt included: the worst a message can hold."""

    def script(call: Call) -> Iterator[Step]:
        message = f"refused: {(call.request_head + call.request_body).decode(errors='replace')}"
        body = json.dumps({"error": {"message": message, "type": "rehearsal", "param": None, "code": None}})
        yield _reply(code, [JSON_TYPE, _CLOSE, *headers], body.encode())

    return script


def redirect(code: int, location: str) -> Script:
    return status(code, ("Location", location))


def body_only(body: bytes | Callable[[bytes], bytes], *headers: _Header, code: int = 200) -> Script:
    """Another body in correct framing; `headers` replace the content type."""

    def script(call: Call) -> Iterator[Step]:
        changed = body(call.answer) if callable(body) else body
        yield _reply(code, [_CLOSE, *(headers or [JSON_TYPE])], changed)

    return script


def framed(make: Callable[[bytes], Sequence[Step]]) -> Script:
    """The answer in framing of its own: `make` yields everything after the request."""

    def script(call: Call) -> Iterator[Step]:
        yield from make(call.answer)

    return script


def slowly(call: Call) -> Iterator[Step]:
    """A correct answer, one byte at a time: every read succeeds, the whole takes minutes."""
    reply = _reply(200, [JSON_TYPE], call.answer)
    for position in range(len(reply)):
        yield reply[position : position + 1]
        yield Pause(_DRIP_S)


def stall(call: Call) -> Iterator[Step]:
    yield Pause(3_600)
    yield CUT


def flood_of_continue(call: Call) -> Iterator[Step]:
    """Interim answers without end: each read succeeds and the real answer never comes."""
    for _ in range(_FLOOD):
        yield b"HTTP/1.1 100 Continue\r\n\r\n" * 64


def giant_head(call: Call) -> Iterator[Step]:
    """Many small headers, each of them fine."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    for number in range(100_000):
        yield f"x-filler-{number}: {'x' * 512}\r\n".encode()
    yield f"Content-Length: {len(call.answer)}\r\n\r\n".encode() + call.answer


def giant_body(call: Call) -> Iterator[Step]:
    """Up to 1 GiB in chunks, so that no length warns."""
    yield head(200, [JSON_TYPE, ("Transfer-Encoding", "chunked")])
    for _ in range(_GIANT_BYTES // len(_CHUNK)):
        yield f"{len(_CHUNK):x}\r\n".encode() + _CHUNK + b"\r\n"
    yield b"0\r\n\r\n"


def gzip_bomb(answer: bytes) -> bytes:
    """About 64 KiB that unpack to an answer and 64 MiB of spaces; one packed block repeats, so that it is made fast."""
    spaces = b" " * (1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(answer) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(spaces) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(answer)
    for _ in range(_BOMB_BLOCKS):
        checksum = zlib.crc32(spaces, checksum)
    trailer = struct.pack("<II", checksum, len(answer) + _BOMB_BLOCKS * len(spaces))
    return _GZIP_HEAD + packed + block * _BOMB_BLOCKS + packer.flush() + trailer


def chunked(answer: bytes) -> list[Step]:
    """Correct, and unlike `ordinary` in framing: a client must take it."""
    half = len(answer) // 2
    chunks = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in (answer[:half], answer[half:]))
    return [head(200, [JSON_TYPE, ("Transfer-Encoding", "chunked")]), chunks + b"0\r\n\r\n"]

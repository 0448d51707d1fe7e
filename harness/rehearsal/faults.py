"""Every way the rehearsal provider can misbehave, by name, and the plan that says on which call.

A fault changes one call at one level: the certificate or the handshake, the bytes on the wire, the completion object,
or the text of the answer. `outcome` is what an attempt has to end as; `SHADOW_SELECTED` marks the odd but correct.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from harness.rehearsal import misbehaviour as wire
from harness.rehearsal import mutation as answer
from harness.rehearsal.authority import Certificate
from harness.rehearsal.misbehaviour import CUT, JSON_TYPE, Script
from harness.rehearsal.mutation import CompletionChange, ContentChange
from kexpr.codes import Outcome

__all__ = ["FAULTS", "Fault", "FaultPlan", "FaultPlanError"]


@dataclass(frozen=True, slots=True)
class Fault:
    """The levels it does not change stay as a provider that behaves has them."""

    outcome: Outcome
    script: Script = wire.ordinary
    completion: CompletionChange | None = None
    content: ContentChange | None = None
    certificate: Certificate = Certificate.TRUSTED
    handshake: bytes | None = None
    """Sent instead of a TLS handshake."""


_PROVIDER: Final = Outcome.CANONICAL_PROVIDER_ERROR
_TIMEOUT: Final = Outcome.CANONICAL_TIMEOUT
_INVALID: Final = Outcome.CANONICAL_INVALID
_REJECTED: Final = Outcome.CANONICAL_VALIDATION_REJECTED

_ELSEWHERE: Final = "https://elsewhere.example/v1/chat/completions"
_SAME_HOST: Final = "https://api.openai.com/v1/elsewhere"
_RETRY: Final = (("Retry-After", "0"), ("retry-after-ms", "1"), ("x-should-retry", "true"))

_STATUS: Final = {f"http_{code}": wire.status(code, *_RETRY) for code in (400, 401, 403, 404, 408, 409, 429, 500, 503)}
_REDIRECTS: Final = {
    f"redirect_{where}{code}": wire.redirect(code, location)
    for code in (301, 302, 307, 308)
    for where, location in (("", _SAME_HOST), ("away_", _ELSEWHERE))
}

_WIRE: Final[Mapping[str, Script]] = {
    **_STATUS,
    **_REDIRECTS,
    "http_204": wire.body_only(b"", code=204),
    "http_206": wire.body_only(lambda body: body, code=206),
    "reset_before_head": wire.framed(lambda _: [CUT]),
    "reset_in_head": wire.framed(lambda _: [b"HTTP/1.1 200 OK\r\nContent-Ty", CUT]),
    "reset_after_head": wire.framed(
        lambda body: [wire.head(200, [JSON_TYPE, ("Content-Length", str(len(body)))]), CUT]
    ),
    "close_before_head": wire.framed(lambda _: []),
    "truncated_body": wire.framed(
        lambda body: [wire.head(200, [JSON_TYPE, ("Content-Length", str(len(body)))]) + body[: len(body) // 2]]
    ),
    "truncated_at_end_of_stream": wire.framed(
        lambda body: [wire.head(200, [JSON_TYPE, ("Connection", "close")]) + body[: len(body) // 2], CUT]
    ),
    "truncated_chunks": wire.framed(
        lambda body: [
            wire.head(200, [JSON_TYPE, ("Transfer-Encoding", "chunked")]) + f"{len(body):x}\r\n".encode() + body
        ]
    ),
    "bad_chunks": wire.framed(
        lambda body: [
            wire.head(200, [JSON_TYPE, ("Transfer-Encoding", "chunked")]) + b"zz\r\n" + body + b"\r\n0\r\n\r\n"
        ]
    ),
    "bad_status_line": wire.framed(lambda body: [b"HTTP/9.9 OK\r\n\r\n" + body]),
    "two_lengths": wire.framed(
        lambda body: [wire.head(200, [JSON_TYPE, ("Content-Length", "7"), ("Content-Length", str(len(body)))]) + body]
    ),
    "giant_head": wire.giant_head,
    "giant_body": wire.giant_body,
    "giant_length": wire.framed(lambda body: [wire.head(200, [JSON_TYPE, ("Content-Length", "1073741824")]) + body]),
    "gzip_bomb": wire.body_only(wire.gzip_bomb, JSON_TYPE, ("Content-Encoding", "gzip")),
    "html_200": wire.body_only(b"<html><body>sign in</body></html>", ("Content-Type", "text/html; charset=utf-8")),
    "text_type": wire.body_only(lambda body: body, ("Content-Type", "text/plain")),
    "no_type": wire.body_only(lambda body: body, ("X-None", "1")),
    "event_stream": wire.body_only(lambda body: b"data: " + body + b"\n\n", ("Content-Type", "text/event-stream")),
    "flood_of_continue": wire.flood_of_continue,
    "switching_protocols": wire.framed(
        lambda body: [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n" + body]
    ),
}

_SLOW: Final[Mapping[str, Script]] = {"drip": wire.slowly, "stall": wire.stall, "timeout": wire.stall}

_HARMLESS: Final[Mapping[str, Script]] = {
    "chunked": wire.framed(wire.chunked),
    "extra_bytes": wire.framed(
        lambda body: [
            wire.head(200, [JSON_TYPE, ("Content-Length", str(len(body)))]) + body + b"HTTP/1.1 200 OK\r\n\r\nmore"
        ]
    ),
}

_BODY: Final[Mapping[str, Script]] = {
    "empty_200": wire.body_only(b""),
    "not_json": wire.body_only(b"sign in first"),
    "not_an_object": wire.body_only(b"[]"),
    "envelope_bom": wire.body_only(lambda body: b"\xef\xbb\xbf" + body),
    "envelope_trailing_data": wire.body_only(lambda body: body + b"{}"),
    "envelope_duplicate_key": wire.body_only(lambda body: b'{"usage":{},' + body[1:]),
    "envelope_not_utf8": wire.body_only(lambda body: body.replace(b"chatcmpl", b"\xff\xfe")),
}

_COMPLETION: Final[Mapping[str, CompletionChange]] = {
    "two_choices": answer.with_choices(2),
    "no_choices": answer.with_choices(0),
    "finish_length": answer.on_choice(lambda choice: choice.update(finish_reason="length")),
    "finish_content_filter": answer.on_choice(lambda choice: choice.update(finish_reason="content_filter")),
    "refusal": answer.on_choice(lambda choice: choice["message"].update(refusal="no", content=None)),
    "refusal_beside_content": answer.on_choice(lambda choice: choice["message"].update(refusal="no")),
    "tool_call": answer.on_choice(
        lambda choice: choice["message"].update(
            tool_calls=[{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        )
    ),
    "null_content": answer.on_choice(lambda choice: choice["message"].update(content=None)),
    "list_content": answer.on_choice(lambda choice: choice["message"].update(content=["text"])),
    "wrong_role": answer.on_choice(lambda choice: choice["message"].update(role="user")),
    "usage_missing": answer.without_usage,
    "usage_null": lambda completion: {**completion, "usage": None},
    "usage_wrong_type": answer.with_usage(prompt_tokens="12"),
    "usage_negative": answer.with_usage(prompt_tokens=-1),
    "usage_excessive_prompt": answer.with_usage(prompt_tokens=601),
    "usage_excessive_completion": answer.with_usage(completion_tokens=1_000_000),
    "usage_excessive_total": answer.with_usage(total_tokens=1_000_000),
    "usage_infinite": answer.with_usage(total_tokens=math.inf),
}

_CONTENT: Final[Mapping[str, ContentChange]] = {
    "empty_content": lambda _: "",
    "duplicate_key": answer.duplicate_first_key,
    "bom": lambda content: "\ufeff" + content,
    "trailing_data": lambda content: content + " {}",
    "deep_nesting": answer.deeply_nested,
    "nan": answer.with_member('"extra":NaN'),
    "lone_surrogate": answer.with_member('"extra":"\\ud800"'),
    "giant_content": lambda content: content[:-1] + " " * 20_000 + "}",
    "markdown_fence": lambda content: f"```json\n{content}\n```",
    "prose_around_json": lambda content: f"Here you are: {content}",
    "extra_key": answer.with_member('"note":"extra"'),
    "wrong_key": answer.on_object(answer.wrong_key),
    "missing_slot": answer.on_slots(lambda slots: slots[:-1]),
    "extra_slot": answer.on_slots(
        lambda slots: [*slots, ("l_aaaaaa", "덧붙여요.") if isinstance(slots[0], tuple) else slots[0]]
    ),
    "reordered": answer.on_slots(lambda slots: slots[::-1]),
}

_PROSE: Final[Mapping[str, ContentChange]] = {
    "prose_medical": answer.prose("약을 챙겨 드세요."),
    "prose_numeral": answer.prose("세 번 더 살펴봐요."),
    "prose_noop": answer.prose(""),
    "placeholder_missing": answer.on_texts(lambda _: "오늘 이야기를 이어 볼게요."),
    "placeholder_repeated": answer.on_texts(lambda text: f"{text} {text}"),
}


def _table() -> dict[str, Fault]:
    faults = {
        "wrong_certificate_name": Fault(_PROVIDER, certificate=Certificate.WRONG_NAME),
        "untrusted_ca": Fault(_PROVIDER, certificate=Certificate.UNTRUSTED),
        "tls_garbage": Fault(_PROVIDER, handshake=b"HTTP/1.1 200 OK\r\n\r\nnot TLS"),
        "tls_closed": Fault(_PROVIDER, handshake=b""),
    }
    scripts = ((_WIRE, _PROVIDER), (_SLOW, _TIMEOUT), (_BODY, _INVALID), (_HARMLESS, Outcome.SHADOW_SELECTED))
    for named_scripts, outcome in scripts:
        faults |= {name: Fault(outcome, script=script) for name, script in named_scripts.items()}
    faults |= {name: Fault(_INVALID, completion=change) for name, change in _COMPLETION.items()}
    faults |= {name: Fault(_INVALID, content=content) for name, content in _CONTENT.items()}
    faults |= {name: Fault(_REJECTED, content=content) for name, content in _PROSE.items()}
    return faults


FAULTS: Final[Mapping[str, Fault]] = dict(sorted(_table().items()))


class FaultPlanError(ValueError):
    """A plan that cannot be read; the message is for the person who typed it."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """`NAME@CALL` entries. A call is its number from 1, `*`, or words of the driver's label for it (`day9:weekly`)."""

    entries: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "FaultPlan":
        """From options, each with one or more entries separated by commas; raises `FaultPlanError`."""
        entries = [entry.strip() for text in texts for entry in text.split(",")]
        return cls(tuple(_parse_entry(entry) for entry in entries))

    def fault_for(self, number: int, label: str) -> Fault | None:
        """The first entry that matches the call, or None."""
        for name, selector in self.entries:
            if _selects(selector, number, label):
                return FAULTS[name]
        return None


def _parse_entry(entry: str) -> tuple[str, str]:
    name, separator, selector = entry.partition("@")
    if name not in FAULTS:
        raise FaultPlanError(f"unknown fault {name!r}; known faults: {', '.join(FAULTS)}")
    if not separator or not selector:
        raise FaultPlanError(f"{entry!r} does not say on which call: write {name}@17, {name}@* or {name}@day9:weekly")
    if selector.isdigit() and int(selector) == 0:
        raise FaultPlanError(f"{entry!r}: calls are counted from 1")
    return name, selector


def _selects(selector: str, number: int, label: str) -> bool:
    if selector == "*":
        return True
    if selector.isdigit():
        return int(selector) == number
    return set(selector.split(":")) <= set(label.split(":"))

"""The two wires of open prose: a redacted request, and an answer read exactly (contract, sections 3 and 4).

`kexp-wire-1` echoes every alias. `kexp-wire-2` is the compact one: short aliases, no semantic or action aliases, a key
of one attempt only, and a `limit` that depends on the number of slots so that a full answer fits the token budget.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

from kexpr.codes import Reason, Surface, WireVersion
from kexpr.errors import Rejected
from kexpr.manifest import Manifest, Slot, SlotText
from kexpr.wire.aliases import ALIAS_COUNTS, NONCE_BYTES, artifact_key, distinct_aliases
from kexpr.wire.strict_json import loads

__all__ = ["ALIAS_CHARACTERS", "LIMIT_OF_SLOT_COUNT", "Issued", "IssuedSlot", "issue", "random_nonce", "read_answer"]

ALIAS_CHARACTERS: Final[Mapping[WireVersion, int]] = MappingProxyType({WireVersion.KEXP_1: 20, WireVersion.KEXP_2: 6})

LIMIT_OF_SLOT_COUNT: Final[Mapping[int, int]] = MappingProxyType({1: 90, 2: 60, 3: 32, 4: 20, 5: 12})
"""Characters of prose asked for in each slot of a `kexp-wire-2` answer, by the number of slots.

Measured with `o200k_base` over 20,000 draws of aliases and accepted prose: a full compact answer costs at most 155
tokens; with a space behind each colon and comma, 160 or less in 99 of 100 draws at five slots and in all but one at
fewer. One slot could have more, but time counts too: 90 take 1.3 of the two seconds a read may last, at 75 tokens/s.
"""


@dataclass(frozen=True, slots=True)
class IssuedSlot:
    """What stands for one slot on the wire. `tokens` are its placeholders, `limit` is in characters."""

    alias: str = field(repr=False)
    semantic: tuple[str, ...] = field(repr=False)
    actions: tuple[str, ...] = field(repr=False)
    tokens: tuple[str, ...] = field(repr=False)
    limit: int


@dataclass(frozen=True, slots=True)
class Issued:
    """One request as sent. `content` is its exact JSON text; `manifest` stays here."""

    wire: WireVersion
    surface: Surface
    key: str = field(repr=False)
    slots: tuple[IssuedSlot, ...]
    content: str = field(repr=False)
    manifest: Manifest = field(repr=False)


def random_nonce() -> bytes:
    """128 random bits."""
    return os.urandom(NONCE_BYTES)


def issue(
    manifest: Manifest,
    wire: WireVersion,
    *,
    identity_key: bytes,
    artifact_identity: tuple[str, ...],
    nonce: Callable[[], bytes] = random_nonce,
) -> Issued:
    """The redacted request for `manifest` under fresh aliases.

    Raises `Rejected`: `budget.completion_tokens` for more slots than an answer of `kexp-wire-2` can hold, `internal`
    when `nonce` is broken.
    """
    return _ISSUERS[wire](manifest, identity_key, artifact_identity, nonce)


def read_answer(issued: Issued, content: str | bytes) -> tuple[SlotText, ...]:
    """The text of each slot, in order; raises `Rejected` unless the answer is exactly of the issued form."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return _READERS[issued.wire](issued, loads(data))


# kexp-wire-1


def _issue_1(
    manifest: Manifest, identity_key: bytes, artifact_identity: tuple[str, ...], nonce: Callable[[], bytes]
) -> Issued:
    slots = manifest.slots
    counts = [ALIAS_COUNTS[slot.kind] for slot in slots]
    totals = {
        "l": len(slots),
        "s": sum(count.semantic for count in counts),
        "a": sum(count.actions for count in counts),
        "p": _placeholder_count(slots),
    }
    names = _drawing(distinct_aliases(identity_key, totals, ALIAS_CHARACTERS[WireVersion.KEXP_1], nonce))
    issued = tuple(
        IssuedSlot(
            alias=names("l", 1)[0],
            semantic=names("s", count.semantic),
            actions=names("a", count.actions),
            tokens=names("p", len(slot.placeholders)),
            limit=slot.caps.generated,
        )
        for slot, count in zip(slots, counts, strict=True)
    )
    key = artifact_key(identity_key, artifact_identity)
    request = {
        "schema_version": WireVersion.KEXP_1.value,
        "surface": manifest.surface.wire,
        "artifact_key": key,
        "slots": [_request_slot_1(slot) for slot in issued],
    }
    return Issued(WireVersion.KEXP_1, manifest.surface, key, issued, _compact(request), manifest)


def _request_slot_1(slot: IssuedSlot) -> dict[str, object]:
    return {
        "slot": slot.alias,
        "semantic": slot.semantic,
        "actions": slot.actions,
        "placeholders": slot.tokens,
        "limit": slot.limit,
    }


def _read_1(issued: Issued, answer: object) -> tuple[SlotText, ...]:
    top = _exact_object(answer, _TOP_KEYS_1)
    for name, expected, reason in (
        ("schema_version", issued.wire.value, Reason.RESPONSE_VERSION),
        ("surface", issued.surface.wire, Reason.RESPONSE_SURFACE),
        ("artifact_key", issued.key, Reason.RESPONSE_ARTIFACT_KEY),
    ):
        _exact_string(top[name], expected, reason)
    slots = _exact_list(top["slots"])
    if len(slots) != len(issued.slots):
        raise Rejected(Reason.RESPONSE_SLOTS)
    return tuple(_read_slot_1(slot, answered) for slot, answered in zip(issued.slots, slots, strict=True))


def _read_slot_1(slot: IssuedSlot, answered: object) -> SlotText:
    fields = _exact_object(answered, _SLOT_KEYS_1)
    echoed = [fields["slot"], fields["semantic"], fields["actions"], fields["placeholders"]]
    if echoed != [slot.alias, [*slot.semantic], [*slot.actions], [*slot.tokens]]:
        raise Rejected(_echo_fault(slot, *echoed))
    return SlotText(_string(fields["generated_ko"]), slot.tokens)


def _echo_fault(slot: IssuedSlot, alias: object, *lists: object) -> Reason:
    """Which rule the first part that differs breaks: only text in a list of text can be another alias."""
    if alias != slot.alias:
        return Reason.RESPONSE_ALIAS if type(alias) is str else Reason.RESPONSE_TYPE
    for echoed, expected in zip(lists, (slot.semantic, slot.actions, slot.tokens), strict=True):
        if echoed != [*expected]:
            break
    is_text = type(echoed) is list and all(type(item) is str for item in echoed)
    return Reason.RESPONSE_ALIAS if is_text else Reason.RESPONSE_TYPE


_TOP_KEYS_1: Final = frozenset({"schema_version", "surface", "artifact_key", "slots"})
_SLOT_KEYS_1: Final = frozenset({"slot", "semantic", "actions", "placeholders", "generated_ko"})


# kexp-wire-2


def _issue_2(
    manifest: Manifest, identity_key: bytes, _artifact_identity: tuple[str, ...], nonce: Callable[[], bytes]
) -> Issued:
    slots = manifest.slots
    limit = LIMIT_OF_SLOT_COUNT.get(len(slots))
    if limit is None:
        raise Rejected(Reason.BUDGET_COMPLETION_TOKENS)
    totals = {"k": 1, "l": len(slots), "p": _placeholder_count(slots)}
    names = _drawing(distinct_aliases(identity_key, totals, ALIAS_CHARACTERS[WireVersion.KEXP_2], nonce))
    key = names("k", 1)[0]
    issued = tuple(
        IssuedSlot(names("l", 1)[0], (), (), names("p", len(slot.placeholders)), min(limit, slot.caps.generated))
        for slot in slots
    )
    request = {
        "schema_version": WireVersion.KEXP_2.value,
        "surface": manifest.surface.wire,
        "key": key,
        "slots": [{"slot": slot.alias, "placeholders": slot.tokens, "limit": slot.limit} for slot in issued],
    }
    return Issued(WireVersion.KEXP_2, manifest.surface, key, issued, _compact(request), manifest)


def _read_2(issued: Issued, answer: object) -> tuple[SlotText, ...]:
    top = _exact_object(answer, _TOP_KEYS_2)
    _exact_string(top["key"], issued.key, Reason.RESPONSE_ARTIFACT_KEY)
    slots = top["slots"]
    if type(slots) is not dict:
        raise Rejected(Reason.RESPONSE_TYPE)
    if len(slots) != len(issued.slots):
        raise Rejected(Reason.RESPONSE_SLOTS)
    if tuple(slots) != tuple(slot.alias for slot in issued.slots):
        raise Rejected(Reason.RESPONSE_ALIAS)
    return tuple(SlotText(_string(slots[slot.alias]), slot.tokens) for slot in issued.slots)


_TOP_KEYS_2: Final = frozenset({"key", "slots"})


_ISSUERS: Final = {WireVersion.KEXP_1: _issue_1, WireVersion.KEXP_2: _issue_2}
_READERS: Final = {WireVersion.KEXP_1: _read_1, WireVersion.KEXP_2: _read_2}


def _placeholder_count(slots: Sequence[Slot]) -> int:
    return sum(len(slot.placeholders) for slot in slots)


def _drawing(names: Mapping[str, tuple[str, ...]]) -> Callable[[str, int], tuple[str, ...]]:
    """Hands each letter's aliases out once, in ordinal order."""
    rest: dict[str, Iterator[str]] = {letter: iter(drawn) for letter, drawn in names.items()}
    return lambda letter, count: tuple(next(rest[letter]) for _ in range(count))


def _compact(request: Mapping[str, object]) -> str:
    return json.dumps(request, ensure_ascii=False, separators=(",", ":"))


def _exact_object(value: object, keys: frozenset[str]) -> dict[str, object]:
    if type(value) is not dict:
        raise Rejected(Reason.RESPONSE_TYPE)
    if value.keys() != keys:
        raise Rejected(Reason.RESPONSE_KEYS)
    return cast(dict[str, object], value)


def _exact_list(value: object) -> list[object]:
    if type(value) is not list:
        raise Rejected(Reason.RESPONSE_TYPE)
    return cast(list[object], value)


def _exact_string(value: object, expected: str, reason: Reason) -> None:
    if _string(value) != expected:
        raise Rejected(reason)


def _string(value: object) -> str:
    if type(value) is not str:
        raise Rejected(Reason.RESPONSE_TYPE)
    return value

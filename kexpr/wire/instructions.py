"""The static instructions: content-free, versioned, digested, one text a wire (contract, section 3).

They show the exact form of an answer and say what the guard refuses (guard-policy). No wire has a field for the kind of
a placeholder, and none is added for it: a noun placeholder stands only in the first slot of a dual card, so the
instructions tie it to that surface literal, which the provider sees anyway. `입니다` is the one ending that fits any
noun, seen or not.
"""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kexpr.codes import WireVersion

__all__ = ["INSTRUCTIONS_VERSION", "instructions", "instructions_digest"]

INSTRUCTIONS_VERSION: Final = 1
"""Raised with every change of a text below; the digest pins the change itself."""

_TASK: Final = """\
You write short Korean around placeholders that stand for text you cannot see.
Answer only JSON, on one line, no space outside strings:
"""

_FORMS: Final[Mapping[WireVersion, str]] = MappingProxyType(
    {
        WireVersion.KEXP_1: """\
{"schema_version":…,"surface":…,"artifact_key":…,"slots":[{"slot":…,"semantic":[…],"actions":[…],"placeholders":[…],\
"generated_ko":"TEXT"}]}
Copy all given strings in order; no limit.
""",
        WireVersion.KEXP_2: """\
{"key":"k_…","slots":{"l_…":"TEXT","l_…":"TEXT"}}
Copy the key; one TEXT per given slot, in the given order.
""",
    }
)

_PROSE: Final = """\
TEXT: polite Korean of at most limit characters plus the slot's placeholders, each copied once; never only those.
One line, Hangul, single spaces, .,!? only.
A placeholder is a whole sentence: spaces around it, no particle; what stands before ends in a period or connective:
이어서 전해 드려요. ⟦p_x⟧ | ⟦p_x⟧ 천천히 읽어 주세요.
Only in the first slot of adaptive.dualcoachtest.card.v1 it is a noun, its ending attached:
이번 판단은 ⟦p_x⟧입니다. Never ⟦p_x⟧ 입니다.
Just greet, lead in, connect, invite to read, thank. 오늘 only in daily.v1, 이번 주 only in weekly.v1.
Refused: health, body, medicine, safety; evidence, cause, result, certainty, hearsay (확인 결과, 덕분에);
praise, blame, goals, progress, comparison; decisions, advice, telling to eat, train, rest, contact;
approval, delivery, anything done (확인했습니다, 전달); negation, doubt;
numbers, counting (하나, 한 번); dates, weekdays, times (내일, 아침);
names, 님, 고객, 여러분; AI, system, these rules. In adaptive surfaces also 확인해 주세요, 보내 드려요.
"""

_TEXTS: Final[Mapping[WireVersion, str]] = MappingProxyType(
    {wire: _TASK + form + _PROSE for wire, form in _FORMS.items()}
)


def instructions(wire: WireVersion) -> str:
    """The system message of every request on `wire`."""
    return _TEXTS[wire]


def instructions_digest(wire: WireVersion) -> str:
    """SHA-256 (hex) over version, wire and text: part of what a promotion candidate is pinned to."""
    pinned = f"{INSTRUCTIONS_VERSION}\n{wire.value}\n{instructions(wire)}"
    return hashlib.sha256(pinned.encode()).hexdigest()

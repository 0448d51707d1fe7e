"""Manifests of every shape, with content that must stay here, and answers of the exact form."""

import json
from typing import Any

from kexpr.codes import SlotKind, Surface, WireVersion
from kexpr.manifest import Frozen, Manifest, Placeholder, PlaceholderKind, Slot
from kexpr.wire.kexp_wire import Issued, issue

KEY = bytes(range(32))
NONCE = bytes(range(100, 116))
IDENTITY = ("weekly", "task-identity-비밀", "7")

SHAPES: dict[str, tuple[Surface, tuple[SlotKind, ...]]] = {
    "daily": (Surface.DAILY, (SlotKind.DAILY_STATUS,)),
    "weekly": (Surface.WEEKLY, (SlotKind.WEEKLY_INTERPRETATION, SlotKind.WEEKLY_RATIONALE)),
    "physique": (Surface.ADAPTIVE_PHYSIQUE, (SlotKind.PHYSIQUE_NOTICE,)),
    **{
        f"dual-{1 + reasons}": (
            Surface.ADAPTIVE_DUALCOACHTEST,
            (SlotKind.DUAL_JUDGMENT, *[SlotKind.DUAL_REASON] * reasons),
        )
        for reasons in range(8)
    },
}


def slot(kind: SlotKind, ordinal: int) -> Slot:
    noun = kind is SlotKind.DUAL_JUDGMENT
    expansion = f"현행 계획 점검 {ordinal}" if noun else f"저장된 기록 {ordinal}개를 확인했습니다."
    placeholder = Placeholder(PlaceholderKind.NOUN if noun else PlaceholderKind.SENTENCE, expansion)
    return Slot(f"local-{ordinal}", kind, (f"semantic-{ordinal}",), (f"action-{ordinal}",), (placeholder,), expansion)


def manifest(shape: str) -> Manifest:
    surface, kinds = SHAPES[shape]
    slots = (slot(kind, ordinal) for ordinal, kind in enumerate(kinds))
    return Manifest(surface, (Frozen("제목 체중 71.2\n"), *slots, Frozen("\n오늘 할 일")))


def issued(shape: str, wire: WireVersion, nonce: bytes = NONCE) -> Issued:
    return issue(manifest(shape), wire, identity_key=KEY, artifact_identity=IDENTITY, nonce=lambda: nonce)


def prose(issue_: Issued) -> list[str]:
    return [f"이어서 전해 드려요. {' '.join(slot.tokens)}" for slot in issue_.slots]


def answer(issue_: Issued, texts: list[str] | None = None) -> dict[str, Any]:
    """The answer of the exact form with `texts` in the slots."""
    texts = prose(issue_) if texts is None else texts
    if issue_.wire is WireVersion.KEXP_2:
        return {"key": issue_.key, "slots": {s.alias: t for s, t in zip(issue_.slots, texts, strict=True)}}
    return {
        "schema_version": "kexp-wire-1",
        "surface": issue_.surface.wire,
        "artifact_key": issue_.key,
        "slots": [
            {
                "slot": s.alias,
                "semantic": list(s.semantic),
                "actions": list(s.actions),
                "placeholders": list(s.tokens),
                "generated_ko": t,
            }
            for s, t in zip(issue_.slots, texts, strict=True)
        ],
    }


def dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def completion(content: object, **changes: object) -> dict[str, Any]:
    """A chat completion as the provider sends it."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 500,
            "completion_tokens": 100,
            "total_tokens": 600,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
    }
    return {**body, **changes}

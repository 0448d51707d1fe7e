"""What a model or a provider can get wrong inside a completion: changes of its object and of the answer's text."""

import copy
import json
import re
from collections.abc import Callable
from typing import Any, Final, cast

from harness.rehearsal.completion import Completion

__all__ = ["CompletionChange", "ContentChange"]

CompletionChange = Callable[[Completion], Completion]
ContentChange = Callable[[str], str]

_PLACEHOLDER: Final = re.compile(r"⟦[^⟧]*⟧|\[\[[A-Z]:[0-9]{2}\]\]")


def on_choice(change: Callable[[dict[str, Any]], None]) -> CompletionChange:
    """`change` edits the first choice in place."""

    def changed(completion: Completion) -> Completion:
        edited: Any = copy.deepcopy(completion)
        change(edited["choices"][0])
        return cast(Completion, edited)

    return changed


def with_choices(count: int) -> CompletionChange:
    def changed(completion: Completion) -> Completion:
        choice = cast(list[dict[str, object]], completion["choices"])[0]
        return {**completion, "choices": [{**choice, "index": index} for index in range(count)]}

    return changed


def with_usage(**counts: object) -> CompletionChange:
    def changed(completion: Completion) -> Completion:
        return {**completion, "usage": {**cast(dict[str, object], completion["usage"]), **counts}}

    return changed


def without_usage(completion: Completion) -> Completion:
    return {name: value for name, value in completion.items() if name != "usage"}


def on_object(change: Callable[[dict[str, Any]], dict[str, Any]]) -> ContentChange:
    """`change` gets the parsed answer and returns another one."""

    def changed(content: str) -> str:
        return json.dumps(change(json.loads(content)), ensure_ascii=False, separators=(",", ":"))

    return changed


def on_slots(change: Callable[[list[Any]], list[Any]]) -> ContentChange:
    """`change` gets the slots, as items of a mapping (wire 2) or as a list (the others)."""

    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        slots = answer["slots"]
        new: Any = dict(change(list(slots.items()))) if isinstance(slots, dict) else change(slots)
        return {**answer, "slots": new}

    return on_object(changed)


def on_texts(change: Callable[[str], str]) -> ContentChange:
    """`change` gets the text of each slot."""

    def changed(slots: list[Any]) -> list[Any]:
        return [
            {**slot, "generated_ko": change(slot["generated_ko"])}
            if isinstance(slot, dict)
            else (slot[0], change(slot[1]))
            for slot in slots
        ]

    return on_slots(changed)


def prose(words: str) -> ContentChange:
    """Each slot reads `words` and then its placeholders."""
    return on_texts(lambda text: " ".join([*([words] if words else []), *_PLACEHOLDER.findall(text)]))


def duplicate_first_key(content: str) -> str:
    name = next(iter(json.loads(content)))
    return "{" + json.dumps(name) + ':"first of two",' + content[1:]


def deeply_nested(content: str) -> str:
    return content[:-1] + ',"deep":' + "[" * 5_000 + "]" * 5_000 + "}"


def with_member(text: str) -> ContentChange:
    """One more member, as JSON text."""
    return lambda content: content[:-1] + "," + text + "}"


def wrong_key(answer: dict[str, Any]) -> dict[str, Any]:
    """Another alias of the right shape where the key of the attempt belongs."""
    name = "key" if "key" in answer else "artifact_key"
    alias = str(answer[name])
    return {**answer, name: alias[:-1] + ("b" if alias.endswith("a") else "a")}

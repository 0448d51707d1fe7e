"""Draws the state machines from their tables: `python -m kexpr.authority.diagram > docs/state-machines.md`."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from kexpr.authority.transitions import MACHINES, Machine

__all__ = ["render"]

_HEAD = """\
# State machines of the authorities

Drawn from the tables in `kexpr/authority/transitions.py` by `python -m kexpr.authority.diagram`; a test compares. Every
edge is one durable row. A step that is not drawn raises `IllegalTransition` and writes nothing.
"""


def render() -> str:
    """The whole page, Markdown with one Mermaid diagram per authority."""
    return "\n".join([_HEAD, *(_section(machine) for machine in MACHINES)])


def _section(machine: Machine[Any, Any]) -> str:
    lines = (f"    {line}" for line in _edges(machine))
    return "\n".join([f"## {machine.name}", "", "```mermaid", "stateDiagram-v2", *lines, "```", ""])


def _edges(machine: Machine[Any, Any]) -> Iterator[str]:
    yield f"[*] --> {machine.initial}"
    for state, events in machine.table.items():
        yield from (f"{state} --> {after}: {event}" for event, after in _sorted(events))
        if not events:
            yield f"{state} --> [*]"


def _sorted(events: Mapping[StrEnum, StrEnum]) -> list[tuple[StrEnum, StrEnum]]:
    return sorted(events.items(), key=lambda edge: (edge[1], edge[0]))


if __name__ == "__main__":
    print(render(), end="")

"""What is durable on an artifact, as every authority says it to a path."""

from dataclasses import dataclass, field
from typing import ClassVar

from kexpr.codes import Outcome

__all__ = ["Absent", "Durable", "InFlight", "Recovered"]


@dataclass(frozen=True, slots=True)
class Absent:
    """No row. A first attempt or the direct canonical edge is possible."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """Someone holds a claim: publish nothing, and look again after `remaining_ms` (0: it has expired)."""

    publication_permitted: ClassVar[bool] = False
    """Not an edit, a reservation or a send of competing bytes."""

    remaining_ms: int


@dataclass(frozen=True, slots=True)
class Durable:
    """The presentation has ended.

    `body` is the durable text, selected or canonical, present only where publishing it is the next step (weekly
    `prepared`, adaptive `publish_pending`; never daily). `outcome` is None where no attempt was made. `state` is one of
    the authority's table.
    """

    outcome: Outcome | None
    body: str | None = field(repr=False)
    state: str


Recovered = Absent | InFlight | Durable

"""What the commands share: options, output, and how a run that cannot go on says so."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from kexpr.exits import Exit

if TYPE_CHECKING:
    from kexpr.codes import WireVersion

__all__ = [
    "CONTRACT",
    "CONTRACTS",
    "LIVE_SWITCH",
    "OPEN_PROSE",
    "WIRE",
    "Stop",
    "print_json",
    "require_live",
    "scheduler_address",
    "stops",
    "warn",
    "wire_of",
]

LIVE_SWITCH: Final = "RUN_KOREAN_EXPRESSION_LIVE"
OPEN_PROSE: Final = "open-prose"
ANCHOR_GRAMMAR: Final = "korean-expression-v3"
CONTRACTS: Final = (OPEN_PROSE, ANCHOR_GRAMMAR)
CONTRACT: Final = click.option(
    "--contract",
    type=click.Choice(CONTRACTS),
    default=OPEN_PROSE,
    show_default=True,
    help="Contract of the feature block.",
)
WIRE: Final = click.option("--wire", type=click.Choice(["1", "2"]), help="Wire of open prose.  [default: 2]")


class Stop(click.ClickException):
    """A run that cannot go on: one line on stderr, and its exit code. A file may be named with anything in it."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__("".join(char if char.isprintable() else "?" for char in message))
        self.code = code


def wire_of(contract: str, number: str | None) -> "WireVersion":
    """The wire of a contract; only open prose has more than one."""
    from kexpr.codes import WireVersion
    from kexpr.config import WIRE_OF_SCHEMA

    if contract == ANCHOR_GRAMMAR:
        if number is not None:
            raise click.UsageError(f"--wire is for {OPEN_PROSE}; {ANCHOR_GRAMMAR} has one wire")
        return WireVersion.ANCHOR_GRAMMAR
    return WIRE_OF_SCHEMA[int(number or "2")]


def scheduler_address(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """`value` if it is an address that is asked for in so many words."""
    if value is not None and not value.startswith(("tcp://", "tls://")):
        raise click.BadParameter("not a tcp:// or tls:// address")
    return value


def warn(message: str) -> None:
    click.echo(f"warning: {message}", err=True)


def print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def require_live(*, live: bool) -> None:
    """A live run needs the switch and the key, both in the environment."""
    import os

    if live and not (os.environ.get(LIVE_SWITCH) == "1" and os.environ.get("OPENAI_API_KEY")):
        raise click.UsageError(f"--live needs {LIVE_SWITCH}=1 and OPENAI_API_KEY in the environment")


@contextmanager
def stops(what: object) -> Iterator[None]:
    """Turns what evidence, preflight and the disk raise into `Stop`, by code. `what` names the directory or file."""
    from harness.calls import CallNotMade
    from harness.evidence.ledger import EvidenceRefused
    from harness.preflight import Failed
    from kexpr.errors import LedgerFailed
    from kexpr.strict_yaml import YamlInvalid

    try:
        yield
    except Failed as failed:
        raise Stop(str(failed), Exit.INVALID) from None
    except CallNotMade as refused:
        raise Stop(f"admission refused a call: {refused.code}", Exit.NOT_GOOD) from None
    except EvidenceRefused as refused:
        raise Stop(f"the evidence does not take this: {refused.code}", Exit.INVALID) from None
    except LedgerFailed as failed:
        raise Stop(f"the evidence or state cannot be used: {failed.code}", Exit.INVALID) from None
    except YamlInvalid as invalid:
        raise Stop(f"{what}: {invalid}", Exit.INVALID) from None
    except OSError as error:
        raise Stop(f"{what}: {error.strerror}", Exit.INVALID) from None

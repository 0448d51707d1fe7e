"""`kexpr ledger verify | repair | head`: sequences, digests, counts and codes of a ledger; never a row of it."""

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.exits import Exit
from kexpr.ledger import maintenance
from kexpr.ledger.protocol import Head
from kexpr.private_files import KEY_NAME, PrivateDirectory, genesis_digest
from kexpr.stores import LEDGERS

__all__ = ["add_ledger_commands", "head_json", "head_of_text", "text_of_head"]

_PATH_HELP: Final = "a ledger's directory, or a state directory with daily, weekly and adaptive in it"


@dataclass(frozen=True, slots=True)
class _Command:
    """`look` gives what is printed of one ledger, as words and as JSON; it raises `LedgerFailed`. It is given the head
    that the chain must contain and the genesis that it must begin with, where they are known."""

    help: str
    description: str
    look: "_Look"


_Look = Callable[[Path, Head | None, str | None], tuple[str, dict[str, Any]]]


def add_ledger_commands(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add `ledger` with its three subcommands."""
    ledger = commands.add_parser("ledger", help="verify, repair or take the head of a ledger")
    actions = ledger.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in _COMMANDS.items():
        parser = actions.add_parser(name, help=command.help, description=command.description)
        parser.add_argument("path", metavar="PATH", type=Path, help=_PATH_HELP)
        if name == "verify":
            parser.add_argument(
                "--expected",
                type=head_of_text,
                metavar="SEQUENCE:DIGEST",
                help="a head kept elsewhere; the chain must contain it (for one ledger)",
            )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.set_defaults(run=_run, look=command.look, usage_error=parser.error, expected=None)


def _run(arguments: argparse.Namespace) -> Exit:
    path: Path = arguments.path
    ledgers = [path / name for name in LEDGERS if (path / name).is_dir()] or [path]
    if arguments.expected is not None and len(ledgers) > 1:
        arguments.usage_error("--expected is the head of one ledger; name its own directory")
    genesis = _genesis(path) if ledgers != [path] else None
    results = [_looked(arguments.look, ledger, arguments.expected, genesis) for ledger in ledgers]
    if arguments.json:
        shown = [{"ledger": ledger.name, **result.data} for ledger, result in zip(ledgers, results, strict=True)]
        print(json.dumps({"schema_version": 1, "ledgers": shown}, separators=(",", ":")))
    for ledger, result in zip(ledgers, results, strict=True):
        if result.fault is not None:
            print(f"kexpr: {ledger}: {_EXPLAINED.get(result.fault, result.fault)}", file=sys.stderr)
        elif not arguments.json:
            print(result.words if ledgers == [path] else f"{ledger.name}: {result.words}")
    return Exit.INVALID if any(result.fault for result in results) else Exit.GOOD


@dataclass(frozen=True, slots=True)
class _Looked:
    words: str
    data: dict[str, Any]
    fault: StoreFault | None = None


def _looked(look: _Look, ledger: Path, expected: Head | None, genesis: str | None) -> _Looked:
    try:
        if not ledger.is_dir():
            raise LedgerFailed(StoreFault.NOT_REGULAR)
        return _Looked(*look(ledger, expected, genesis))
    except LedgerFailed as failed:
        return _Looked("", {"invalid": failed.code.value}, failed.code)


def _genesis(state: Path) -> str | None:
    """What every chain of a state directory begins with; None where its key is gone, which its owner refuses."""
    if not (state / KEY_NAME).exists():
        return None
    with closing(PrivateDirectory.open(state, create=False)) as private:
        return genesis_digest(private.read(KEY_NAME))


_EXPLAINED: Final = {
    StoreFault.TORN_TAIL: "torn_tail: the last line was never acknowledged; stop the owner, then `kexpr ledger repair`",
    StoreFault.CHAIN_BROKEN: "chain_broken: a row is not the one that was written; do not repair, restore or ask",
    StoreFault.HEAD_MISMATCH: "head_mismatch: the chain does not contain the expected head, or was exchanged meanwhile",
    StoreFault.KEY_MISMATCH: "key_mismatch: identity.key is not the one that this ledger began with",
    StoreFault.LOCKED_OUT: "locked_out: another process holds the ledger",
    StoreFault.NOT_REGULAR: "not_regular: no ledger there, or a file of it is not a regular one",
    StoreFault.NOT_PRIVATE: "not_private: owner, mode or links are not as they have to be (0700, 0600, one link)",
}


def _verify(ledger: Path, expected: Head | None, genesis: str | None) -> tuple[str, dict[str, Any]]:
    report = maintenance.verify(ledger, genesis=genesis, expected=expected)
    relative = f" relative to {text_of_head(expected)}" if expected else ""
    words = f"intact{relative}, {report.rows} rows in {report.segments} segments, head {text_of_head(report.head)}"
    return words, {"rows": report.rows, "segments": report.segments, "head": head_json(report.head)}


def _head_of(ledger: Path, _expected: Head | None, genesis: str | None) -> tuple[str, dict[str, Any]]:
    head = maintenance.head(ledger, genesis=genesis)
    return text_of_head(head), {"head": head_json(head)}


def _repair(ledger: Path, _expected: Head | None, _genesis: str | None) -> tuple[str, dict[str, Any]]:
    done = maintenance.repair(ledger)
    words = f"{done.size_bytes} bytes moved to {done.quarantined}" if done.quarantined else "nothing was torn"
    data = {"quarantined": done.quarantined, "size_bytes": done.size_bytes, "head": head_json(done.head)}
    return f"{words}, head {text_of_head(done.head)}", data


_COMMANDS: Final = {
    "verify": _Command(
        "verify every row",
        "Verify every row of a ledger; its owner may go on meanwhile. Exit 0: intact, 3: not, with the code.",
        _verify,
    ),
    "head": _Command(
        "print the high-water mark",
        "Print sequence and digest of the newest row, to keep off this host: a truncation shows against it. "
        "Exit 0: printed, 3: the ledger is not intact.",
        _head_of,
    ),
    "repair": _Command(
        "quarantine a torn tail",
        "Move exactly a torn tail, which was never acknowledged, into a file beside its segment. Anything else that is "
        "wrong is corruption and stays as it is. Exit 0: nothing is torn (any more), 3: refused, with the code.",
        _repair,
    ),
}


def head_of_text(text: str) -> Head:
    """A head as it is printed; raises `ArgumentTypeError`."""
    sequence, _, digest = text.partition(":")
    if not (sequence.isascii() and sequence.isdigit() and len(sequence) <= 15):
        raise argparse.ArgumentTypeError("not SEQUENCE:DIGEST")
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError("not SEQUENCE:DIGEST")
    return Head(int(sequence), digest)


def text_of_head(head: Head) -> str:
    return f"{head.sequence}:{head.digest}"


def head_json(head: Head) -> dict[str, Any]:
    return {"sequence": head.sequence, "digest": head.digest}

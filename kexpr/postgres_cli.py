"""`kexpr postgres install | head | acknowledge-failover`: what `docs/multi-host.md` asks of an operator.

The server is named by libpq's environment, service and password files only: a connection string may hold a password,
and what is typed can be seen by others and be echoed in an error.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, Final

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.exits import Exit
from kexpr.ledger import postgres_admin
from kexpr.ledger.protocol import Head
from kexpr.ledger_cli import head_json, head_of_text, text_of_head
from kexpr.stores import LEDGERS

__all__ = ["add_postgres_commands"]

_FROM_ENVIRONMENT: Final = ""
_PLACE: Final = "The server is the one of PGHOST, PGDATABASE, PGUSER, PGSERVICE, PGPASSFILE and their like."


def add_postgres_commands(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add `postgres` with its three subcommands."""
    postgres = commands.add_parser("postgres", help="install the ledgers' database, take heads, acknowledge a failover")
    actions = postgres.add_subparsers(title="commands", required=True, metavar="COMMAND")
    install = actions.add_parser(
        "install",
        help="create the tables",
        description=f"Create the tables and take this server as the acknowledged one; again is the same. {_PLACE} "
        "Exit 0: installed, 3: refused, with the code.",
    )
    install.set_defaults(run=_coded(_install))
    head = actions.add_parser(
        "head",
        help="verify the ledgers and print their high-water marks",
        description="Verify every row of each ledger and print the heads of those that have rows, to keep elsewhere: "
        f"what a failover lost shows against them. {_PLACE} Exit 0: printed, 3: a ledger is not intact, with the code.",
    )
    head.add_argument("--json", action="store_true", help="print one JSON object")
    head.set_defaults(run=_coded(_head))
    acknowledge = actions.add_parser(
        "acknowledge-failover",
        help="go on with a promoted server",
        description="Take this server as the one to go on with; stop the one before for good first. "
        f"{_PLACE} Exit 0: acknowledged, 3: refused, with the code.",
    )
    known = acknowledge.add_mutually_exclusive_group(required=True)
    known.add_argument(
        "--expected",
        action="append",
        type=_named_head,
        metavar="NAME=SEQUENCE:DIGEST",
        help="the last head known of a ledger, which must be there; may be repeated",
    )
    known.add_argument("--accept-loss", action="store_true", help="whatever was lost may be attempted again")
    acknowledge.set_defaults(run=_coded(_acknowledge))


def _coded(command: Callable[[argparse.Namespace], None]) -> Callable[[argparse.Namespace], Exit]:
    def run(arguments: argparse.Namespace) -> Exit:
        try:
            command(arguments)
        except LedgerFailed as failed:
            print(f"kexpr: {_EXPLAINED.get(failed.code, failed.code)}", file=sys.stderr)
            return Exit.INVALID
        return Exit.GOOD

    return run


_EXPLAINED: Final = {
    StoreFault.UNREACHABLE: "unreachable: no connection, or a read-only standby",
    StoreFault.NOT_INSTALLED: "not_installed: the tables are not there (`kexpr postgres install`)",
    StoreFault.NOT_DURABLE: "not_durable: fsync, full_page_writes or synchronous_commit is off",
    StoreFault.NOT_PRIVATE: "not_private: the role lacks a grant",
    StoreFault.HEAD_MISMATCH: "head_mismatch: rows up to the expected head are missing",
    StoreFault.CHAIN_BROKEN: "chain_broken: a row is not the one that was written; restore or ask",
}


def _install(_arguments: argparse.Namespace) -> None:
    postgres_admin.install(_FROM_ENVIRONMENT)
    print("installed")


def _head(arguments: argparse.Namespace) -> None:
    found = {name: postgres_admin.head(_FROM_ENVIRONMENT, name) for name in LEDGERS}
    heads = {name: head for name, head in found.items() if head.sequence}
    if arguments.json:
        shown = {name: head_json(head) for name, head in heads.items()}
        print(json.dumps({"schema_version": 1, "heads": shown}, separators=(",", ":")))
        return
    print("\n".join(f"{name}={text_of_head(head)}" for name, head in heads.items()) or "no rows")


def _acknowledge(arguments: argparse.Namespace) -> None:
    is_new = postgres_admin.acknowledge_failover(_FROM_ENVIRONMENT, expected=dict(arguments.expected or ()))
    print("acknowledged; restart the gateways" if is_new else "this server is the acknowledged one already")


def _named_head(text: str) -> tuple[str, Head]:
    name, _, head = text.partition("=")
    if name not in LEDGERS:
        raise argparse.ArgumentTypeError("not NAME=SEQUENCE:DIGEST")
    return name, head_of_text(head)

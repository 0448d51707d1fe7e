"""`kexpr`: what an operator runs by hand. Local terminal only; nothing printed here is logged."""

import argparse
import json
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from kexpr import __version__
from kexpr.codes import SlotKind, Surface
from kexpr.exits import Exit
from kexpr.guard import Decision, judge
from kexpr.ledger_cli import add_ledger_commands
from kexpr.manifest import Placeholder, PlaceholderKind, Slot
from kexpr.postgres_cli import add_postgres_commands

if TYPE_CHECKING:
    from kexpr.cutover import CutoverAudit
    from kexpr.strict_yaml import YamlFault

__all__ = ["main"]

TOKEN: Final = "⟦p⟧"

_SLOTS: Final = {
    Surface.DAILY: (SlotKind.DAILY_STATUS,),
    Surface.WEEKLY: (SlotKind.WEEKLY_INTERPRETATION, SlotKind.WEEKLY_RATIONALE),
    Surface.ADAPTIVE_DUALCOACHTEST: (SlotKind.DUAL_JUDGMENT, SlotKind.DUAL_REASON),
    Surface.ADAPTIVE_PHYSIQUE: (SlotKind.PHYSIQUE_NOTICE,),
}
_SENTENCE_STAND_IN: Final = "문장입니다."
_NOUN_STAND_IN: Final = "유지 검토"


class _Parser(argparse.ArgumentParser):
    """Argparse exits 2 on bad usage, which is our code for it too; one line, no echo of what was typed."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(Exit.USAGE, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point. Returns an exit code of `kexpr.exits`."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - a crash must not read as "not good", and its text may carry content
        print("kexpr: internal error", file=sys.stderr)
        return Exit.INTERNAL


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="kexpr", description="Tools around the kexpr library. Nothing is sent anywhere.")
    parser.add_argument("--version", action="version", version=f"kexpr {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check",
        help="explain the guard's decision on one text",
        description=f"Explain the guard's decision on one text typed by a person. Write {TOKEN} for the placeholder. "
        "Exit 0: accepted, 1: refused, 2: usage.",
    )
    check.add_argument("text", metavar="TEXT", help=f'for example "오늘 이야기를 이어 볼게요. {TOKEN}"')
    check.add_argument("--surface", required=True, choices=[str(surface) for surface in Surface])
    check.add_argument("--slot", choices=[str(kind) for kind in SlotKind], help="default: the surface's first slot")
    check.add_argument(
        "--expansion", help=f"what a noun placeholder stands for (default: {_NOUN_STAND_IN}); decides the particle"
    )
    check.set_defaults(run=_check, usage_error=check.error)
    audit = commands.add_parser(
        "audit-config",
        help="audit configuration files for the cutover",
        description="Audit configuration files for the cutover. Read-only. Exit 0: every file is ready, 1: one is not, "
        "3: one is not a strict YAML document; of several files the highest code.",
    )
    audit.add_argument("--config", required=True, action="append", type=Path, metavar="PATH", help="may be repeated")
    audit.add_argument("--json", action="store_true", help="print one JSON object")
    audit.set_defaults(run=_audit_config)
    add_ledger_commands(commands)
    add_postgres_commands(commands)
    rollback = commands.add_parser(
        "rollback",
        help="end what a stopped gateway left open",
        description="End every claim that a stopped gateway left in its state directory, in its own store, as expired; "
        "at most five seconds. Publishes nothing. Then set the feature to disabled, audit the configuration and "
        "restart. Exit 0: nothing is open any more, 1: a store still holds a claim or a stop, 3: the state is invalid.",
    )
    rollback.add_argument("--state", required=True, type=Path, metavar="DIR", help="the gateway's state directory")
    rollback.add_argument(
        "--tombstones", type=Path, metavar="DIR", help="its tombstones (default: the state directory's name-tombstones)"
    )
    rollback.add_argument("--json", action="store_true", help="print one JSON object")
    rollback.set_defaults(run=_rollback)
    return parser


def _audit_config(arguments: argparse.Namespace) -> Exit:
    from kexpr.cutover import CutoverAudit, audit_config_file
    from kexpr.strict_yaml import YamlFault, YamlInvalid

    results: list[CutoverAudit | YamlFault] = []
    for path in arguments.config:
        try:
            results.append(audit_config_file(path))
        except YamlInvalid as invalid:
            results.append(invalid.fault)
    if arguments.json:
        files = [
            {"invalid": r.value} if isinstance(r, YamlFault) else {**r.to_json(), "ready": r.ready} for r in results
        ]
        print(json.dumps({"schema_version": 1, "files": files}, separators=(",", ":")))
    else:
        for path, result in zip(arguments.config, results, strict=True):
            print(f"{path}: {_audited(result)}")
    for path, result in zip(arguments.config, results, strict=True):
        if isinstance(result, YamlFault):
            print(f"kexpr: {path}: not a strict YAML document: {result}", file=sys.stderr)
    codes = [Exit.INVALID if isinstance(r, YamlFault) else Exit.GOOD if r.ready else Exit.NOT_GOOD for r in results]
    return max(codes)


def _rollback(arguments: argparse.Namespace) -> Exit:
    from kexpr.errors import AuthorityFailed
    from kexpr.rollback import rollback_state

    try:
        done = rollback_state(arguments.state, tombstones=arguments.tombstones)
    except AuthorityFailed as failed:
        print(f"kexpr: {arguments.state}: {failed.code}", file=sys.stderr)
        return Exit.INVALID
    if arguments.json:
        print(json.dumps({"schema_version": 1, **done.to_json()}, separators=(",", ":")))
    else:
        ended = ", ".join(f"{outcome} {count}" for outcome, count in sorted(done.outcomes.items())) or "nothing to end"
        left = "a store cannot be asked" if done.outstanding is None else f"{done.outstanding} outstanding"
        print(f"{ended} · {left} · {done.duration_ms} ms")
    return Exit.GOOD if done.clean else Exit.NOT_GOOD


def _audited(result: "CutoverAudit | YamlFault") -> str:
    from kexpr.strict_yaml import YamlFault

    if isinstance(result, YamlFault):
        return f"invalid ({result})"
    if result.ready:
        return f"ready, sha256 {result.config_sha256}"
    return f"not ready ({', '.join(result.reasons)})"


def _check(arguments: argparse.Namespace) -> Exit:
    surface = Surface(arguments.surface)
    kind = SlotKind(arguments.slot) if arguments.slot else _SLOTS[surface][0]
    if kind not in _SLOTS[surface]:
        arguments.usage_error(f"--slot of {surface} is one of: {', '.join(_SLOTS[surface])}")
    noun = kind is SlotKind.DUAL_JUDGMENT
    if arguments.expansion is not None and not noun:
        arguments.usage_error(f"--expansion goes with --slot {SlotKind.DUAL_JUDGMENT}")
    expansion = (arguments.expansion or _NOUN_STAND_IN) if noun else _SENTENCE_STAND_IN
    if not unicodedata.is_normalized("NFC", expansion):
        arguments.usage_error("--expansion must be NFC text")
    placeholder = Placeholder(PlaceholderKind.NOUN if noun else PlaceholderKind.SENTENCE, expansion)
    slot = Slot("typed", kind, (), (), (placeholder,), expansion)
    text = arguments.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    decision = judge(text, slot, (TOKEN,))
    _explain(kind, text, decision)
    return Exit.GOOD if decision.accepted else Exit.NOT_GOOD


def _explain(kind: SlotKind, text: str, decision: Decision) -> None:
    print("accepted" if decision.reason is None else decision.reason.value)
    print(f"  slot   {kind}")
    if decision.reason is None:
        return
    print(f"  layer  {decision.layer}")
    if decision.span is not None:
        start, end = decision.span
        print(f"  span   {start}–{end}  {_visible(text[start:end])}")


def _visible(text: str) -> str:
    """Invisible and control characters as code points: the terminal must show what is there."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


if __name__ == "__main__":
    sys.exit(main())

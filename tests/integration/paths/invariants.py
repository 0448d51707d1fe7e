"""What must hold for one message whatever happened to it: read from the deliveries, the ledger and the provider."""

from pathlib import Path

from tests.support.hosts import Host, Kind, canonical_text, records

CLAIMED = ("claimed", "presentation_claimed")


def is_claimed(directory: Path, kind: Kind, identity: str) -> bool:
    """Whether the message's last durable row is a claim without an outcome."""
    rows = records(directory, kind, identity)
    return bool(rows) and _state(rows[-1]) in CLAIMED


def last_state(directory: Path, kind: Kind, identity: str) -> str | None:
    rows = records(directory, kind, identity)
    return _state(rows[-1]) if rows else None


def durable_selected(directory: Path, kind: Kind, identity: str) -> str | None:
    """The selected text that is durable; for daily, which stores none, the empty string when `selected` is."""
    for row in records(directory, kind, identity):
        if row.get("outcome") == "selected":
            return str(row.get("body", row.get("payload", "")))
    return None


def outcomes(directory: Path, kind: Kind, identity: str) -> list[str]:
    return [row["outcome"] for row in records(directory, kind, identity) if row.get("outcome")]


def violations(directory: Path, kind: Kind, identity: str, requests: int) -> list[str]:
    """What is wrong, in words; empty when all holds (authorities, "The rule above all")."""
    wrong: list[str] = []
    canonical = canonical_text(kind, identity)
    delivered = Host(directory).delivered(identity)
    rows = records(directory, kind, identity)
    claims = [row for row in rows if _state(row) in CLAIMED]
    if requests > 1:
        wrong.append(f"{requests} requests")
    if requests > len(claims):
        wrong.append("a request without a claim")
    if len(claims) > 1:
        wrong.append("claimed twice")
    if len(outcomes(directory, kind, identity)) > 1:
        wrong.append("two outcomes")
    selected = [text for text in delivered if text != canonical]
    if kind is Kind.WEEKLY and len(delivered) > 1:
        wrong.append("sent twice")
    if len(selected) > 1:
        wrong.append("two selected edits")
    if selected and delivered[0] == canonical:
        wrong.append("a selected edit after a canonical one")
    durable = durable_selected(directory, kind, identity)
    if selected and (durable is None or (kind is not Kind.DAILY and selected[0] != durable)):
        wrong.append("delivered a text that is neither canonical nor durable")
    if durable is not None and claims[0]["mode"] != "enabled":
        wrong.append("selected by a claim of another mode")
    return wrong


def _state(row: dict[str, object]) -> str:
    return str(row.get("phase", row.get("state")))

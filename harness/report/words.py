"""What the templates say of a document: sentences, numbers and lists, chosen by table. Pure."""

from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from harness.evidence.rows import Traffic
from harness.report.catalogue import Language, say
from harness.report.document import Document
from harness.verdict import Verdict
from kexpr.telemetry.record import LATENCY_BOUNDS_MS

__all__ = ["Words"]

_GLYPHS: Final = {
    "READY": "✓",
    "NOT_READY": "✕",
    "INSUFFICIENT": "…",
    "INVALID": "!",
    "REHEARSAL": "◇",
    "passed": "✓",
    "failed": "✕",
    "missing": "…",
    "broken": "!",
    "rehearsal": "◇",
    "covered": "✓",
    "missed": "–",
    "open": "…",
    "before": "·",
}
_TONES: Final = {
    "READY": "good",
    "NOT_READY": "bad",
    "INSUFFICIENT": "wait",
    "INVALID": "bad",
    "REHEARSAL": "mock",
    "passed": "good",
    "failed": "bad",
    "missing": "wait",
    "broken": "bad",
    "rehearsal": "mock",
    "covered": "good",
    "missed": "wait",
    "open": "plain",
    "before": "plain",
}
"""Class of the style sheet, by verdict of a report or of a gate, or by state of a day."""

_STEPS: Final = {
    "READY": 5,
    "READY_P0": 2,
    "READY_P1": 2,
    "READY_last": 1,
    "NOT_READY": 3,
    "INSUFFICIENT": 3,
    "INVALID": 3,
    "REHEARSAL": 2,
}
_UNIT: Final = "\N{NO-BREAK SPACE}%"

_UNAPPROVED: Final = ("P0", "P1")
"""Phases after which no person's approval is asked."""


class Words:
    """The words of one language."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def t(self, key: str, **values: object) -> str:
        return say(self.language, key, **values)

    @staticmethod
    def glyph(code: str) -> str:
        return _GLYPHS[code]

    @staticmethod
    def tone(code: str) -> str:
        return _TONES[code]

    @staticmethod
    def percent(rate: str) -> str:
        """A rate in text as a percentage of one decimal. It is rounded up: a bound must not read lower than it is."""
        return f"{(Decimal(rate) * 100).quantize(Decimal('0.1'), ROUND_CEILING)}{_UNIT}"

    @staticmethod
    def chance(rate: str) -> str:
        """A probability in text as a whole percentage, or with a decimal below one."""
        value = Decimal(rate) * 100
        return f"{value.quantize(Decimal('0.1') if value < 1 else Decimal(1))}{_UNIT}"

    @staticmethod
    def confidence(permille: int) -> str:
        return f"{permille / 10:g}{_UNIT}"

    @staticmethod
    def number(count: int) -> str:
        return f"{count:,}"

    @staticmethod
    def time(utc_ms: int) -> str:
        return f"{datetime.fromtimestamp(utc_ms // 1000, UTC):%Y-%m-%d %H:%M}"

    def pair(self, document: Document) -> dict[str, str]:
        return {"surface": self.t(f"surface.{document['surface']}"), "profile": document["profile"]}

    def title(self, document: Document) -> str:
        if document["kind"] == "index":
            return self.t("title.index", as_of=document["as_of"])
        return self.t("title.pair", as_of=document["as_of"], **self.pair(document))

    def phase(self, code: str | None) -> str:
        return self.t("facts.none") if code is None else f"{code} · {self.t(f'phase.{code}')}"

    def why(self, document: Document) -> str:
        """The verdict in one sentence."""
        verdict, following = document["verdict"], document["next_phase"]
        if verdict != Verdict.READY:
            return self.t(f"why.{verdict}")
        if following is None:
            return self.t("why.READY_last", phase=document["phase"])
        key = "why.READY_plain" if document["phase"] in _UNAPPROVED else "why.READY"
        return self.t(key, phase=document["phase"], next=following)

    def causes(self, document: Document) -> list[tuple[str, str, str]]:
        """Reason code, its sentence, and the gates that have it, worst first."""
        gates: dict[str, list[str]] = {}
        for cause in document["causes"]:
            where = self.t("why.cause", phase=cause["phase"], gate=self.t(f"gate.{cause['gate']}"))
            gates.setdefault(cause["reason"], []).append(where)
        return [(reason, self.t(f"reason.{reason}"), "; ".join(names)) for reason, names in gates.items()]

    def amount(self, gate: Document, name: str) -> str:
        """`required` or `observed` of a gate, in the gate's unit."""
        unit, value = gate["unit"], gate[name]
        if unit == "yes_no":
            return self.t("unit.yes" if value else "unit.no")
        text = self.t(f"unit.{unit}", n=self.number(value))
        is_limit = name == "required" and (unit.endswith("at_most") or value == 0)
        return self.t("unit.at_most", value=text) if is_limit and value else text

    def origin(self, document: Document) -> str:
        """Where the messages came from, and who answered."""
        organic = sum(row["intents"] for row in document.get("traffic", []) if row["traffic"] == Traffic.ORGANIC)
        if not document["providers"]:
            return self.t("origin.none")
        key = "origin.mixed" if Traffic.ORGANIC in document["traffic_kinds"] else "origin.synthetic"
        kinds = ", ".join(self.t(f"provider.{kind}") for kind in document["providers"])
        return self.t(key, organic=self.number(organic)) + " " + self.t("origin.providers", kinds=kinds)

    def steps(self, document: Document) -> list[str]:
        """What to do next."""
        verdict, phase = document["verdict"], document["phase"]
        key = verdict
        if verdict == Verdict.READY and document["next_phase"] is None:
            key = "READY_last"
        elif verdict == Verdict.READY and phase in _UNAPPROVED:
            key = f"READY_{phase}"
        command = (
            f"kexpr-harness approve --state DIR --report FILE --phase {document['next_phase']} "
            "--approver ID --config PATH"
        )
        values = {"profile": document["profile"], "command": command}
        return [self.t(f"next.{key}.{step}", **values) for step in range(1, _STEPS[key] + 1)]

    def duration(self, bound_ms: int | None) -> str:
        if bound_ms is None:
            return self.t("latency.over", ms=self.number(LATENCY_BOUNDS_MS[-1]))
        return self.t("latency.to", ms=self.number(bound_ms))

    def chain(self, document: Document) -> str:
        anchor = document["evidence"]["anchor"]
        if anchor is None:
            return self.t("chain.none")
        return self.t("chain.intact" if anchor["holds"] else "chain.broken", anchor=anchor["sequence"])

    def window(self, document: Document) -> str:
        window = document["window"]
        if window["first"] is None:
            return self.t("strip.no_window", required=window["required_days"])
        names = ("first", "last", "days", "accepted", "failures")
        return self.t("strip.window", required=window["required_days"], **{name: window[name] for name in names})

    def end(self, candidate: Document) -> str:
        return self.t(f"end.{candidate['ended'] or 'open'}")

    def outcome_rows(self, document: Document) -> list[tuple[str, str, int]]:
        """Kind, code and count: most frequent first."""
        rows: list[tuple[str, str, int]] = []
        for kind, name in (("outcome", "outcomes"), ("reason", "reasons")):
            counts: dict[str, int] = document[name]
            rows += [(kind, code, counts[code]) for code in sorted(counts, key=lambda code: (-counts[code], code))]
        return rows

    def pins(self, document: Document) -> list[tuple[str, str]]:
        pin: dict[str, Any] = document["candidate"]["pin"]
        return [
            (self.t(f"pin.{name}"), self.t("unit.yes" if value else "unit.no") if name == "dirty" else str(value))
            for name, value in sorted(pin.items())
        ]

"""The privacy check of a run: what its messages hold must be in nothing that leaves it (harness, "Readiness").

The messages are synthetic, so they are canaries by nature: one of each path is looked for in the evidence, the metrics
and everything that was logged at any level, in every spelling that a careless layer would carry it in.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from harness.evidence.ledger import EvidenceLedger
from harness.evidence.rows import Check
from kexpr.testing.canaries import Canaries

__all__ = ["ContentWatch", "record_canaries"]

_HELD: Final = 100_000
"""Log records that are kept; a run of 48 calls logs none."""


class ContentWatch:
    """A context manager over a run: it listens to all loggers and looks through the outputs at the end."""

    def __init__(self) -> None:
        self._canaries = Canaries()
        self._places: set[str] = set()
        self._log = _Listener()
        self._level = logging.WARNING

    def __enter__(self) -> Self:
        root = logging.getLogger()
        self._level = root.level
        root.addHandler(self._log)
        root.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.setLevel(self._level)
        root.removeHandler(self._log)

    def saw(self, place: str, identity: str, canonical: str) -> None:
        """Look for the identity and the longest line of the first message of each `place`."""
        if place not in self._places:
            self._places.add(place)
            self._canaries.adopt(f"{place} identity", identity)
            self._canaries.adopt(f"{place} text", max(canonical.splitlines(), key=len))

    @property
    def is_empty(self) -> bool:
        """No message was seen."""
        return not self._places

    def is_clean(self, outputs: Mapping[str, bytes]) -> bool:
        """Whether nothing of what was seen is in `outputs` or in the log."""
        return not self._canaries.leaks({**outputs, "log": self._log.text()})


class _Listener(logging.Handler):
    """Formats as a host would, with arguments and tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._lines) < _HELD:
            self._lines.append(self.format(record))

    def text(self) -> str:
        return "\n".join(self._lines)


def record_canaries(evidence: EvidenceLedger, watch: ContentWatch, directory: Path, metrics: bytes) -> None:
    """Say in the evidence whether a run that saw messages kept them out of it. Its newest segment holds the run."""
    candidate = evidence.view().candidate
    if watch.is_empty or candidate is None or candidate.ended is not None:
        return
    newest = sorted(directory.glob("*.jsonl"))[-1:]
    outputs = {"metrics": metrics, **{segment.name: segment.read_bytes() for segment in newest}}
    evidence.record_checks({Check.CANARIES: watch.is_clean(outputs)})

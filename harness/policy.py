"""The gate policy: what counts as passing, as data. Its digest is pinned, so no bar moves under a running candidate."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Final

from harness.profiles import PAIRS, Pair

__all__ = ["POLICY", "GatePolicy"]

_PROOF_CALLS: Final = (12, 6, 6, 12, 12)


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """Bars of the gates. Rates are in permille, so that no float is ever digested.

    `proof_calls` has one count for each of `PAIRS`, in their order.
    """

    version: int
    proof_calls: tuple[int, ...]
    proof_window_hours: int
    observation_days: int
    observation_accepted: int
    lapse_days: int
    guard_recall_permille: int
    guard_category_recall_permille: int
    guard_false_rejection_permille: int
    confidence_permille: int

    def calls_of(self, pair: Pair) -> int:
        """Calls of the controlled proof for one pair."""
        return self.proof_calls[PAIRS.index(pair)]

    @property
    def proof_total(self) -> int:
        return sum(self.proof_calls)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the policy as canonical JSON."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


POLICY: Final = GatePolicy(
    version=2,
    proof_calls=_PROOF_CALLS,
    proof_window_hours=24,
    observation_days=14,
    observation_accepted=10,
    lapse_days=2,
    guard_recall_permille=970,
    guard_category_recall_permille=900,
    guard_false_rejection_permille=15,
    confidence_permille=950,
)
"""The gates of the harness specification; the guard's bars are those of the design page and only rise."""

"""Pins, runs and slots shared by the evidence tests."""

from dataclasses import replace
from typing import Final

from harness.candidate import Pin
from harness.evidence import EvidenceLedger, RunKind, RunSpec, Slot
from harness.profiles import PAIRS, PATHS, Pair
from kexpr.clock import Instant
from kexpr.codes import Mode, Outcome, ProviderKind, WireVersion

PIN: Final = Pin(
    package_version="0.1.0",
    commit="0123456789abcdef0123456789abcdef01234567",
    dirty=False,
    config_schema_version=2,
    provider_digest="1" * 64,
    instructions_digest="2" * 64,
    lexicon_digest="3" * 64,
    wire_version=WireVersion.KEXP_2,
    model="gpt-4.1-mini",
    generator_version="kexpr-manifests-1",
    generator_digest="4" * 64,
    generator_seed=20260301,
    policy_digest="5" * 64,
)
OTHER_PIN: Final = replace(PIN, lexicon_digest="6" * 64)
PROOF: Final = RunSpec(RunKind.PROOF, ProviderKind.REHEARSAL, Mode.SHADOW, PAIRS)
OBSERVATION: Final = RunSpec(RunKind.OBSERVATION, ProviderKind.REHEARSAL, Mode.SHADOW, PAIRS)


class SteppingClock:
    """One second a reading, from 2026-09-21T14:13:20Z."""

    def __init__(self) -> None:
        self.utc_ms = 1_790_000_000_000

    def now(self) -> Instant:
        self.utc_ms += 1000
        return Instant(self.utc_ms, self.utc_ms, None)

    def monotonic(self) -> float:
        return self.utc_ms / 1000


def proof_slot(ordinal: int = 0, pair: Pair = PAIRS[0]) -> Slot:
    return Slot(RunKind.PROOF, pair, PATHS[pair.surface][ordinal % len(PATHS[pair.surface])], ordinal)


def call(evidence: EvidenceLedger, slot: Slot, outcome: Outcome = Outcome.SHADOW_SELECTED) -> None:
    """One call that ends well."""
    evidence.intent(slot)
    evidence.outcome(slot, outcome, None, duration_ms=100, requests=1)

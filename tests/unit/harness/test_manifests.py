"""The synthetic presentations: deterministic, distinct, varied, invented, and accepted by their surfaces."""

import subprocess
import sys

import pytest

from harness.manifests import GENERATOR_SEED, PROOF_ORDINALS, generator_digest, synthetic
from kexpr.codes import Surface
from kexpr.surfaces import presentation_segments_v1
from kexpr.surfaces.daily import DailyPresentationV1
from kexpr.surfaces.dualcoachtest import DECISIONS, DualCoachCardPresentationV1
from kexpr.surfaces.physique import REVIEW_DECISIONS, PhysiqueCardPresentationV1
from kexpr.surfaces.weekly import INTERPRETATIONS, RATIONALES, WeeklyPresentationV1

OBSERVED = 400

PINNED_DIGEST = "0ec574ae0cc784c8b039c4681a4590f9fd8a3949e24cbf080072276bb72c17cb"
"""Changes with any synthetic byte: then raise `GENERATOR_VERSION`, since evidence names manifests by ordinal alone."""

ALL = pytest.mark.parametrize("surface", Surface)


@ALL
def test_every_ordinal_is_a_presentation_of_its_surface_and_its_own(surface: Surface) -> None:
    payloads = set()
    for ordinal in range(OBSERVED):
        presentation = synthetic(surface, ordinal)
        manifest = presentation_segments_v1(presentation)
        assert manifest.surface is surface
        payloads.add(presentation.canonical_payload)
    assert len(payloads) == OBSERVED


@ALL
def test_an_ordinal_far_out_is_still_distinct(surface: Surface) -> None:
    ordinals = (0, 11, 9_999, 10_000, 99_999, 10**9)
    assert len({synthetic(surface, ordinal).canonical_payload for ordinal in ordinals}) == len(ordinals)


@ALL
def test_the_same_arguments_give_the_same_presentation(surface: Surface) -> None:
    assert synthetic(surface, 7, identity="a") == synthetic(surface, 7, identity="a")


@ALL
def test_another_seed_gives_another_presentation(surface: Surface) -> None:
    assert synthetic(surface, 7) != synthetic(surface, 7, seed=GENERATOR_SEED + 1)


@ALL
def test_every_message_says_that_it_is_invented(surface: Surface) -> None:
    assert all("가상 자료" in synthetic(surface, ordinal).canonical_payload for ordinal in range(PROOF_ORDINALS))


@ALL
def test_a_negative_ordinal_is_refused(surface: Surface) -> None:
    with pytest.raises(ValueError, match="ordinal"):
        synthetic(surface, -1)


def test_the_identity_is_the_daily_event_and_touches_no_text() -> None:
    one = synthetic(Surface.DAILY, 3, identity="event-one")
    two = synthetic(Surface.DAILY, 3, identity="event-two")
    assert isinstance(one, DailyPresentationV1)
    assert one.finalized_event_id == "event-one"
    assert one.canonical_payload == two.canonical_payload
    assert "event-one" not in one.canonical_payload


def test_the_proof_sees_both_daily_branches() -> None:
    drawn = [synthetic(Surface.DAILY, n) for n in range(PROOF_ORDINALS)]
    assert {p.branch for p in drawn if isinstance(p, DailyPresentationV1)} == {"complete", "partial"}


def test_the_proof_sees_every_weekly_sentence() -> None:
    drawn = [synthetic(Surface.WEEKLY, n) for n in range(PROOF_ORDINALS)]
    reports = [p for p in drawn if isinstance(p, WeeklyPresentationV1)]
    assert {p.interpretation_enum for p in reports} == set(INTERPRETATIONS)
    assert {p.rationale_enum for p in reports} == set(RATIONALES)


def test_the_proof_sees_every_dual_decision_and_every_number_of_reasons() -> None:
    drawn = [synthetic(Surface.ADAPTIVE_DUALCOACHTEST, n) for n in range(PROOF_ORDINALS)]
    cards = [p for p in drawn if isinstance(p, DualCoachCardPresentationV1)]
    assert {p.decision_code for p in cards} == set(DECISIONS)
    assert {len(p.reason_codes) for p in cards} == {0, 1, 2, 3, 4}


def test_the_proof_sees_every_physique_decision_and_every_number_of_lines() -> None:
    drawn = [synthetic(Surface.ADAPTIVE_PHYSIQUE, n) for n in range(PROOF_ORDINALS)]
    cards = [p for p in drawn if isinstance(p, PhysiqueCardPresentationV1)]
    assert {p.review_decision_code for p in cards} == set(REVIEW_DECISIONS)
    assert len({p.canonical_payload.count("\n") for p in cards}) == 5


def test_the_digest_is_pinned_and_depends_on_the_seed() -> None:
    assert generator_digest() == PINNED_DIGEST
    assert generator_digest(GENERATOR_SEED + 1) != PINNED_DIGEST


def test_the_digest_does_not_depend_on_the_process() -> None:
    """String hashing differs from process to process; nothing here may hang on it."""
    program = "from harness.manifests import generator_digest; print(generator_digest())"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "1"}
    )
    assert ran.stdout.strip() == PINNED_DIGEST

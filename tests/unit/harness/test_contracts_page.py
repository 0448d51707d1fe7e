"""`docs/contracts.md` says what the code does: its block parses, its figures are the pinned ones."""

import re
from pathlib import Path

import yaml

from harness.budget import load
from harness.contracts import TERMS
from kexpr.codes import Mode, Surface, WireVersion
from kexpr.config import Active, from_extra

PAGE = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text("utf-8")


def test_the_block_is_active_with_every_surface():
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    extra = yaml.safe_load(block)["platforms"]["telegram"]["extra"]
    assert from_extra(extra) == Active(Mode.SHADOW, frozenset(Surface), WireVersion.ANCHOR_GRAMMAR)


def test_the_figures_are_the_pinned_ones():
    shown = re.findall(r"^\| (\w+) \| (\d) \| (\d+) / (\d+) \| (\d+) / (\d+) \|$", PAGE, re.MULTILINE)
    pinned = zip(load(WireVersion.KEXP_2).rows, load(WireVersion.ANCHOR_GRAMMAR).rows, strict=True)
    assert [(surface, *map(int, counts)) for surface, *counts in shown] == [
        (a.surface.value, a.slots, a.prompt_tokens, a.full_answer_tokens, b.prompt_tokens, b.full_answer_tokens)
        for a, b in pinned
    ]


def test_every_wire_has_terms_of_its_own():
    assert set(TERMS) == set(WireVersion)
    assert len({terms.instructions_digest for terms in TERMS.values()}) == len(WireVersion)

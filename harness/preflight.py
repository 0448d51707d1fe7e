"""What is checked before a call is spent. Each check gives a line, and stops the run or only warns."""

import os
from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from typing import Any

from harness import budget, guardscore
from harness.contracts import TERMS
from harness.evidence.rows import Check
from harness.policy import POLICY
from harness.profiles import Profile
from harness.readiness.model import Phase
from harness.readiness.phases import block_of
from kexpr.codes import WireVersion
from kexpr.config import FEATURE_KEY, Active, from_extra
from kexpr.errors import Rejected
from kexpr.transport import REFUSED_NAMES, check_environment

__all__ = [
    "Failed",
    "admit",
    "check_budget",
    "check_config",
    "check_guard",
    "checked",
    "environment_is_clean",
    "forget_refused_names",
    "meets_bars",
    "p1_extra",
]


def checked(wire: WireVersion) -> dict[Check, bool]:
    """What the evidence may say of a run that was admitted."""
    return {Check.BUDGET: True} | ({Check.GUARD: True} if TERMS[wire].guarded else {})


class Failed(Exception):
    """A check that stops the run; the message is for the person at the terminal and holds codes only."""


def p1_extra(profile: Profile, wire: WireVersion) -> dict[str, object]:
    """The `extra` mapping of a profile in controlled shadow."""
    return {FEATURE_KEY: block_of(profile, Phase.P1, wire)}


def admit(wire: WireVersion, *, live: bool, warn: Callable[[str], None]) -> dict[Profile, Active]:
    """Every check that needs no call, in order; the parsed blocks that a run goes on with. Raises `Failed`.

    A rehearsal drops refused names from its own environment and says so; a live run refuses them.
    """
    configs = check_config(wire)
    for warning in check_budget(wire):
        warn(warning)
    if TERMS[wire].guarded:
        check_guard()
    if not live and forget_refused_names():
        warn("the environment sets a name that a live call would refuse; a rehearsal goes on without it")
    elif not environment_is_clean():
        raise Failed("the environment sets a name that a live call refuses: credential_environment_rejected")
    return configs


def check_config(wire: WireVersion) -> dict[Profile, Active]:
    """The parsed blocks that the proof runs with."""
    parsed = {profile: from_extra(p1_extra(profile, wire)) for profile in Profile}
    active = {profile: config for profile, config in parsed.items() if isinstance(config, Active)}
    if len(active) < len(parsed):
        raise Failed("the configuration block of a profile is not active")
    return active


def check_budget(wire: WireVersion) -> list[str]:
    """Warnings; raises `Failed` where an answer cannot fit. Uses the pinned table, so that no tokenizer is loaded."""
    try:
        table = budget.load(wire)
    except budget.StaleBudget:
        raise Failed("the pinned budget table is not of these instructions; count it again") from None
    infeasible = [f"{row.surface} with {row.slots} slots" for row in table.rows if not row.feasible]
    if infeasible:
        raise Failed(f"budget: {wire} cannot answer within its tokens: {', '.join(infeasible)}")
    return [
        f"budget: at {budget.RATE_TOKENS_PER_SECOND} tokens/s a full answer for {row.surface} with {row.slots} slots "
        f"takes {row.full_answer_seconds} s, longer than the read timeout of {budget.READ_TIMEOUT_S} s"
        for row in table.rows
        if row.slow
    ]


def check_guard() -> None:
    """Scores the guard on the development corpus against the bars of the policy."""
    corpus = files("harness").joinpath("data", "guard-dev.jsonl")
    with as_file(corpus) as path:
        score = guardscore.score(guardscore.load_corpus(path))
    if not meets_bars(score):
        raise Failed("the guard is below the bars of the gate policy")


def meets_bars(score: Mapping[str, Any]) -> bool:
    """Whether a score of `guardscore.score` reaches every bar of the policy."""
    recall, false_rejection = score["recall"], score["false_rejection"]["overall"]
    return (
        _at_least(recall["overall"], POLICY.guard_recall_permille)
        and all(_at_least(rate, POLICY.guard_category_recall_permille) for rate in recall["category"].values())
        and (false_rejection or 0) * 1000 <= POLICY.guard_false_rejection_permille
    )


def _at_least(rate: float | None, permille: int) -> bool:
    """A rate of no rows misses nothing."""
    return rate is None or rate * 1000 >= permille


def forget_refused_names() -> bool:
    """Drop from this process's environment what a sealed client refuses; whether there was any. Rehearsals only."""
    refused = [name for name in os.environ if name.upper() in REFUSED_NAMES]
    for name in refused:
        del os.environ[name]
    return bool(refused)


def environment_is_clean() -> bool:
    """Whether the process environment would let a live attempt through."""
    try:
        check_environment(os.environ)
    except Rejected:
        return False
    return True

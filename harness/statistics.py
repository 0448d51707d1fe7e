"""How much clean calls prove, with the standard library alone. Pure; tested against known figures."""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

__all__ = [
    "anytime_upper",
    "clean_calls_for",
    "clopper_pearson_upper",
    "e_value",
    "is_rate_below",
    "pass_chance",
]

_HALVINGS = 100
"""More than a double has bits: the bisection ends at neighbouring floats."""

_REMEMBERED = 1_024
"""Bounds are asked again with the same counts at each reading."""

_CANCELS_BELOW = 1e-3
_NEGLIGIBLE = 1e-17

_LOG_MAX = 700.0
"""Below the logarithm of the largest double."""


@lru_cache(_REMEMBERED)
def clopper_pearson_upper(failures: int, calls: int, confidence: float = 0.95) -> float:
    """The exact one-sided upper bound on the failure rate, 0 to 1, after `failures` in `calls` independent calls.

    It is the rate at which so few failures still have probability `1 - confidence`; without calls it is 1. Raises
    `ValueError` for counts or a confidence out of range.
    """
    if not 0 <= failures <= calls or not 0 < confidence < 1:
        raise ValueError("0 <= failures <= calls and 0 < confidence < 1")
    if failures == calls:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _at_most(failures, calls, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(failures: int, calls: int, rate: float) -> float:
    """The probability of at most `failures` in `calls` at a failure `rate`.

    Summed from the likeliest count down and up, each count from its neighbour, until nothing more adds: as many terms
    as the distribution is wide, since a scrape waits for this at any number of calls.
    """
    if not 0 < rate < 1:
        return 1.0 if rate <= 0 else 0.0
    likeliest = min(failures, int((calls + 1) * rate))
    (first,) = _exactly((likeliest,), calls, rate)
    odds = rate / (1 - rate)
    below = _falling(first, (count / ((calls - count + 1) * odds) for count in range(likeliest, 0, -1)))
    above = _falling(first, ((calls - count) * odds / (count + 1) for count in range(likeliest, failures)))
    return min(1.0, below + above + first)


def _falling(term: float, factors: Iterable[float]) -> float:
    """The sum of what follows `term`, each term the one before by a factor below 1, as far as it adds anything."""
    total = 0.0
    for factor in factors:
        term *= factor
        total += term
        if term <= total * _NEGLIGIBLE:
            break
    return total


def _more_than(failures: int, calls: int, rate: float) -> float:
    """The probability of more than `failures`: where it is small by its own terms, which fall fast, not as 1 - …"""
    above = 1 - _at_most(failures, calls, rate)
    if above > _CANCELS_BELOW:
        return above
    total = 0.0
    for term in _exactly(range(failures + 1, calls + 1), calls, rate):
        if term < total * _NEGLIGIBLE:
            break
        total += term
    return total


def _exactly(counts: Iterable[int], calls: int, rate: float) -> Iterator[float]:
    """The probability of each of `counts` failures in `calls`."""
    failed, passed = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(calls + 1)
    for count in counts:
        ways = whole - math.lgamma(count + 1) - math.lgamma(calls - count + 1)
        yield math.exp(ways + count * failed + (calls - count) * passed)


def is_rate_below(bound: float, failures: int, calls: int, confidence: float = 0.95) -> bool:
    """Whether `clopper_pearson_upper` is below `bound` (0 to 1, exclusive), without looking for it."""
    return failures < calls and _at_most(failures, calls, bound) < 1 - confidence


def clean_calls_for(bound: float, confidence: float = 0.95) -> int:
    """How many calls without a failure bring the upper bound to `bound` (0 to 1, exclusive) or below."""
    if not 0 < bound < 1 or not 0 < confidence < 1:
        raise ValueError("0 < bound < 1 and 0 < confidence < 1")
    return math.ceil(math.log1p(-confidence) / math.log1p(-bound))


def pass_chance(calls: int, rate: float) -> float:
    """How likely a gate of `calls` calls without a failure passes at a true failure `rate`."""
    return (1 - rate) ** calls


def e_value(failures: int, calls: int, rate: float) -> float:
    """Evidence against a failure rate of `rate` (0 to 1, exclusive) or more: an e-process, whenever one looks.

    The likelihood of what was seen under rates below `rate`, mixed uniformly, over that at `rate` itself. Under a true
    rate of `rate` or more it exceeds `1 / a` at any time with probability at most `a` (Ville's inequality).
    """
    if not 0 <= failures <= calls or not 0 < rate < 1:
        raise ValueError("0 <= failures <= calls and 0 < rate < 1")
    below = _more_than(failures, calls + 1, rate)
    if below <= 0:
        return 0.0
    mixed = (
        math.log(below)
        + math.lgamma(failures + 1)
        + math.lgamma(calls - failures + 1)
        - math.lgamma(calls + 2)
        - math.log(rate)
    )
    at_rate = failures * math.log(rate) + (calls - failures) * math.log1p(-rate)
    return math.exp(min(mixed - at_rate, _LOG_MAX))


@lru_cache(_REMEMBERED)
def anytime_upper(failures: int, calls: int, confidence: float = 0.95) -> float:
    """The upper bound on the failure rate (0 to 1) that holds however often one looks: rates above it have an
    `e_value` of at least `1 / (1 - confidence)`."""
    if not 0 <= failures <= calls or not 0 < confidence < 1:
        raise ValueError("0 <= failures <= calls and 0 < confidence < 1")
    low, high = (failures / calls if calls else 0.0), 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if e_value(failures, calls, middle) < 1 / (1 - confidence):
            low = middle
        else:
            high = middle
    return high

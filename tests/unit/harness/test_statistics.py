"""The exact bound against known figures and against the definition."""

import math
import time

import pytest

from harness.statistics import clean_calls_for, clopper_pearson_upper, is_rate_below


@pytest.mark.parametrize(
    ("failures", "calls", "percent"),
    [
        (0, 12, 22.1),
        (0, 10, 25.9),
        (0, 48, 6.1),
        (0, 59, 4.95),
        (0, 299, 1.0),
        (1, 10, 39.4),
        (2, 20, 28.3),
        (5, 100, 10.2),
    ],
)
def test_known_figures(failures, calls, percent):
    """The clean ones are the specification's; the others are textbook values of the one-sided 95 % bound."""
    assert clopper_pearson_upper(failures, calls) * 100 == pytest.approx(percent, abs=0.06)


def test_four_surfaces_jointly():
    assert clopper_pearson_upper(0, 10, 1 - 0.05 / 4) * 100 == pytest.approx(35.5, abs=0.05)


@pytest.mark.parametrize("calls", [1, 2, 10, 48, 1_000])
def test_without_failures_it_is_the_closed_form(calls):
    assert clopper_pearson_upper(0, calls) == pytest.approx(1 - 0.05 ** (1 / calls), rel=1e-12)


@pytest.mark.parametrize(("failures", "calls"), [(1, 7), (3, 30), (17, 60)])
def test_it_solves_the_binomial_tail(failures, calls):
    rate = clopper_pearson_upper(failures, calls)
    tail = sum(math.comb(calls, count) * rate**count * (1 - rate) ** (calls - count) for count in range(failures + 1))
    assert tail == pytest.approx(0.05, rel=1e-9)


def test_it_covers_large_counts():
    assert clopper_pearson_upper(100, 1_000_000) == pytest.approx(118.1e-6, rel=0.01)


@pytest.mark.parametrize(
    ("failures", "calls"), [(1, 2), (400, 1_000), (999, 1_000), (25_000, 500_000), (250_000, 500_000), (3, 500_000)]
)
def test_many_failures_are_exact_and_as_quick(failures: int, calls: int) -> None:
    from scipy.stats import beta

    started = time.process_time()
    upper = clopper_pearson_upper(failures, calls)
    assert time.process_time() - started < 2
    assert upper == pytest.approx(beta.ppf(0.95, failures + 1, calls - failures), rel=1e-7)


@pytest.mark.parametrize(("failures", "calls"), [(0, 1), (0, 58), (0, 59), (2, 124), (3, 40), (5, 5), (40, 1_100)])
@pytest.mark.parametrize("bound", [0.01, 0.05, 0.5])
def test_a_rate_is_below_a_bound_as_its_upper_bound_is(failures: int, calls: int, bound: float) -> None:
    assert is_rate_below(bound, failures, calls) == (clopper_pearson_upper(failures, calls) < bound)


@pytest.mark.parametrize("calls", [0, 1, 5])
def test_nothing_clean_proves_nothing(calls):
    assert clopper_pearson_upper(calls, calls) == 1.0


@pytest.mark.parametrize("arguments", [(-1, 3), (4, 3), (0, 3, 0.0), (0, 3, 1.0)])
def test_arguments_out_of_range(arguments):
    with pytest.raises(ValueError):
        clopper_pearson_upper(*arguments)


@pytest.mark.parametrize(("bound", "calls"), [(0.05, 59), (0.01, 299), (0.5, 5)])
def test_clean_calls_needed(bound, calls):
    assert clean_calls_for(bound) == calls
    assert clopper_pearson_upper(0, calls) <= bound < clopper_pearson_upper(0, calls - 1)


@pytest.mark.parametrize("arguments", [(0.0,), (1.0,), (0.5, 1.0)])
def test_clean_calls_out_of_range(arguments):
    with pytest.raises(ValueError):
        clean_calls_for(*arguments)

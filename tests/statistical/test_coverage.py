"""Intervals hold the truth as often as they say, with fresh noise in every run.

Each draw's interval misses with probability at most 5 %, independently, so the misses are at most binomial: with
Pr[Bin(N, 0.05) > limit] <= FALSE_ALARM / cases, a correct build fails this module with probability at most FALSE_ALARM.
That the limit is not loose is tested too: noise of twice the scale breaks it.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from privacy import disjoint
from privacy.estimates import CONFIDENCE, Estimates, estimate
from privacy.measure import Kind, Measure
from privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism

FALSE_ALARM = 1e-6
N = 4_000
LAWS = (DiscreteLaplace, DiscreteGaussian)
WINDOWS = (1, 12, 60)
RATIO_CASES: list[tuple[Kind, int, float]] = [
    # kind, true count, scale of the noise over a component's largest value
    ("mean", 1, 2.0),
    ("mean", 30, 4.0),
    ("mean", 400, 4.0),
    ("second_moment", 30, 4.0),
    ("second_moment", 400, 4.0),
    ("variance", 3, 2.0),
    ("variance", 60, 4.0),
    ("variance", 400, 4.0),
]
TESTS = 3
CASES = max(len(LAWS) * len(WINDOWS), len(LAWS) * len(RATIO_CASES))


def most_misses(draws: int) -> int:
    """Least limit that `draws` intervals of 95 % pass with probability at most its share of FALSE_ALARM."""
    return int(binom.isf(FALSE_ALARM / (TESTS * CASES), draws, 1 - CONFIDENCE))


def misses(told: Estimates, truth: float) -> int:
    return int(np.count_nonzero((told.ci_low > truth) | (truth > told.ci_high)))


def levels(law: Mechanism, windows: int, drawn: Mechanism, truth: int) -> Estimates:
    """The last level of a release without changes, N times: noise from `drawn`, intervals for `law`."""
    nodes = drawn.noise((windows + 1) * N).reshape(windows + 1, N)
    nodes[0] += truth
    count = Measure(kind="count")
    return estimate(count, [disjoint.combine("level", nodes)[-1:]], [law], disjoint.terms("level", windows)[-1:])


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_a_level_holds_the_truth(law, windows):
    mechanism = law(3.3)

    assert misses(levels(mechanism, windows, mechanism, 17), 17) <= most_misses(N)


@pytest.mark.parametrize("law", LAWS)
def test_noise_of_twice_the_scale_would_be_noticed(law):
    assert misses(levels(law(3.3), 12, law(6.6), 17), 17) > most_misses(N)


@pytest.mark.parametrize("law", LAWS)
def test_a_count_errs_to_both_sides_alike(law):
    """The noise is symmetric, so signs are fair coins: Hoeffding, Pr[|ups - downs| > t] <= 2 exp(-t^2 / (2 n))."""
    errors = levels(law(3.3), 1, law(3.3), 17).value - 17
    limit = math.sqrt(2 * N * math.log(2 * len(LAWS) * TESTS / FALSE_ALARM))

    assert abs(int(np.sign(errors).sum())) <= limit


@pytest.mark.parametrize(("kind", "count", "scale"), RATIO_CASES)
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_a_ratio_holds_the_truth_even_over_few_rows(law, kind, count, scale):
    measure = Measure(kind=kind, low=-3, high=5, fine=law is DiscreteGaussian)
    values = np.random.default_rng(7).uniform(-3, 5, count) ** 3 / 25
    exact = [c.sum() for c in measure.contributions(measure.project(values), count)]
    truth = measure.estimate([np.array([s], dtype=float) for s in exact]).item()
    noise = [law(scale * component.largest) for component in measure.components]

    noisy = [s + mechanism.noise(N).reshape(1, N) for s, mechanism in zip(exact, noise, strict=True)]
    told = estimate(measure, noisy, noise, np.array([1]))

    assert misses(told, truth) <= most_misses(N)

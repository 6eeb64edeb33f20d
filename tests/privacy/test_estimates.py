"""Numbers with intervals from noisy sums, all exact; `tests/statistical/test_coverage.py` samples noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.estimates import CONFIDENCE, Estimates, confidence_of, estimate
from privacy.measure import KINDS, Measure, MeasureKind
from privacy.noise.distributions import DiscreteLaplace

LOW, HIGH = -3.0, 5.0
RATIOS: list[MeasureKind] = ["mean", "second_moment", "variance"]


def noise_of(measure: Measure, scale: float) -> list[DiscreteLaplace]:
    """Return noise of `scale` times each component's largest value."""
    return [DiscreteLaplace(scale * component.largest) for component in measure.components]


def measure_of(kind: MeasureKind, *, fine: bool = False) -> Measure:
    return Measure(kind=kind, low=LOW, high=HIGH, fine=fine)


def told(measure: Measure, sums: list[np.ndarray], noise: list[DiscreteLaplace], terms: list[int]) -> Estimates:
    """Return estimates of numbers whose noise is a sum of `terms` draws."""
    confidence = confidence_of(len(noise))
    return estimate(
        measure,
        sums,
        [np.sqrt(np.array(terms) * distribution.variance) for distribution in noise],
        [np.array([distribution.half_width(count, confidence) for count in terms]) for distribution in noise],
    )


def sums_of(measure: Measure, values: list[float]) -> list[np.ndarray]:
    steps = measure.project(np.array(values, dtype=float)) if measure.valued else None
    return [component.sum().reshape(1, 1) for component in measure.contributions(steps, len(values))]


def one(result: Estimates) -> tuple[float, float, float, float]:
    return tuple(getattr(result, name).item() for name in ("value", "stddev", "ci_low", "ci_high"))  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["count", "sum"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=5), st.data())
def test_counts_and_sums_are_the_noisy_sums_themselves(kind, dtype, numbers, data):
    """Nothing is clamped, not even below zero: noise of mean zero stays unbiased."""
    measure = measure_of(kind)
    sizes = st.lists(st.floats(0.5, 1e6), min_size=len(numbers), max_size=len(numbers)).map(np.array)
    deviations, widths = data.draw(sizes), data.draw(sizes)

    result = estimate(measure, [np.array(numbers, dtype=dtype)[:, None]], [deviations], [widths])

    grid = measure.components[0].grid
    assert result.value[:, 0].tolist() == [number * grid for number in numbers]
    np.testing.assert_array_equal(result.stddev[:, 0], deviations * grid)
    np.testing.assert_array_equal(result.ci_low[:, 0], result.value[:, 0] - widths * grid)
    np.testing.assert_array_equal(result.ci_high[:, 0], result.value[:, 0] + widths * grid)


@pytest.mark.parametrize(("components", "each"), [(1, 0.95), (2, 0.975), (3, 1 - 0.05 / 3)])
def test_components_share_the_failure_probability_of_an_interval(components, each):
    assert confidence_of(components) == pytest.approx(each, abs=1e-15)
    assert components * (1 - each) == pytest.approx(1 - CONFIDENCE)


@pytest.mark.parametrize("kind", RATIOS)
@given(st.lists(st.floats(LOW, HIGH), min_size=1, max_size=30), st.floats(0.01, 20), st.data())
def test_the_truth_is_in_the_interval_whenever_the_noise_is_in_its_own(kind, values, scale, data):
    """The proof of coverage except for the union bound: over all noise within the half widths, near its ends too."""
    measure = measure_of(kind)
    noise = noise_of(measure, scale)
    exact = sums_of(measure, values)
    reach = [int(distribution.half_width(2, confidence_of(len(noise)))) for distribution in noise]
    drawn = [data.draw(st.sampled_from([-most, 0, most]) | st.integers(-most, most)) for most in reach]
    truth = measure.estimate([s.astype(float) for s in exact]).item()

    value, stddev, low, high = one(told(measure, [s + d for s, d in zip(exact, drawn, strict=True)], noise, [2]))

    # Rounding to the grid changes the truth itself: a variance of 0 may become negative.
    rounding = measure.components[-1].grid + 1e-9
    assert low - rounding <= truth <= high + rounding
    assert measure.bounds[0] <= low <= value <= high <= measure.bounds[1]
    assert 0 <= stddev <= (measure.bounds[1] - measure.bounds[0]) / 2


@pytest.mark.parametrize("kind", RATIOS)
@given(st.integers(-1000, 0), st.integers(-(2**40), 2**40))
def test_without_a_positive_count_nothing_is_known(kind, count, rest):
    measure = measure_of(kind)
    low, high = measure.bounds
    sums = [np.array([[count]]), *[np.array([[rest]])] * (len(measure.components) - 1)]

    result = one(told(measure, sums, noise_of(measure, 3.0), [1]))

    assert result == ((low + high) / 2, (high - low) / 2, low, high)


@pytest.mark.parametrize("kind", RATIOS)
def test_a_count_that_may_be_zero_gives_the_whole_range(kind):
    measure = measure_of(kind)
    noise = noise_of(measure, 3.0)
    width = int(noise[0].half_width(1, confidence_of(len(noise))))

    uncertain, certain = (
        one(told(measure, sums_of(measure, [1.0] * count), noise, [1])) for count in (width, 100 * width)
    )

    assert uncertain[2:] == measure.bounds
    assert certain[3] - certain[2] < measure.bounds[1] - measure.bounds[0]


@pytest.mark.parametrize("kind", RATIOS)
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_ratio_is_clamped_to_its_possible_range(kind, sign):
    measure = measure_of(kind)
    sums = [np.array([[10]]), *[np.array([[sign * 10**12]])] * (len(measure.components) - 1)]

    value, _, low, high = one(told(measure, sums, noise_of(measure, 0.5), [1]))

    assert value in measure.bounds
    assert measure.bounds[0] <= low <= high <= measure.bounds[1]


@pytest.mark.parametrize("kind", RATIOS)
@given(st.lists(st.floats(LOW, HIGH), min_size=3, max_size=30))
def test_with_negligible_noise_a_ratio_is_the_plain_statistic(kind, values):
    measure = measure_of(kind, fine=True)
    numbers = np.array(values)
    plain = {"mean": numbers.mean(), "second_moment": (numbers**2).mean(), "variance": numbers.var()}[kind]

    value, stddev, low, high = one(told(measure, sums_of(measure, values), noise_of(measure, 1e-7), [1]))

    assert value == pytest.approx(plain, abs=1e-5)
    assert stddev < 1e-4
    assert high - low < 1e-3


@pytest.mark.parametrize("kind", RATIOS)
def test_the_deviation_of_a_ratio_is_that_of_its_linear_part(kind):
    """Compared with differences of the estimate itself, one component at a time."""
    measure = measure_of(kind)
    noise = noise_of(measure, 2.0)
    sums = [s.astype(float) for s in sums_of(measure, [0.0, 1.0, 4.0, 2.0, -1.0] * 2000)]
    squares = 0.0
    for place, distribution in enumerate(noise):
        step = 0.01 * distribution.scale
        up, down = ([s + sign * step * (n == place) for n, s in enumerate(sums)] for sign in (1, -1))
        slope = (measure.estimate(up) - measure.estimate(down)).item() / (2 * step)
        squares += slope**2 * distribution.variance

    result = told(measure, sums, noise, [1])

    assert result.stddev.item() == pytest.approx(squares**0.5, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_windows_and_cells_keep_their_places(kind):
    measure = measure_of(kind)
    cases = [[[1.0] * 500, [2.0] * 900], [[0.5] * 700, [-2.0, 3.0] * 400], [[5.0] * 600, [0.0] * 800]]
    single = [[sums_of(measure, values) for values in row] for row in cases]
    together = [np.array([[cell[c].item() for cell in row] for row in single]) for c in range(len(single[0][0]))]
    noise, terms = noise_of(measure, 1.5), [2, 3, 4]

    result = told(measure, together, noise, terms)

    for window, row in enumerate(single):
        for cell, sums in enumerate(row):
            alone = one(told(measure, sums, noise, [terms[window]]))
            got = [getattr(result, name)[window, cell] for name in ("value", "stddev", "ci_low", "ci_high")]
            assert got == pytest.approx(alone)

"""Components stay within the ranges to which noise is scaled, and their sums decode to the plain statistics."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from privacy.measure import KINDS, STEPS, Measure, MeasureKind

VALUED = [kind for kind in KINDS if kind != "count"]
BOUNDS = [
    (0, 1),
    (-5, 5),
    (-3, 5),
    (0, 120),
    (1000, 1001),
    (-20, 160),
    (0.1, 0.3),
    (5, 6),
    (-1e6, 2),
    (0, 4e9),
    (0, 2**40),
]

Bounds = tuple[float, float]


def ends() -> st.SearchStrategy[Bounds]:
    number = st.floats(-(2.0**40), 2.0**40) | st.floats(-100, 100) | st.integers(-100, 100).map(float)
    return st.tuples(number, number).map(lambda pair: (min(pair), max(pair)))


def measure_or_skip(kind: MeasureKind, bounds: Bounds, *, fine: bool = False) -> Measure:
    try:
        return Measure(kind=kind, low=bounds[0], high=bounds[1], fine=fine)
    except ValueError:
        assume(False)
        raise


def places(bounds: Bounds) -> st.SearchStrategy[list[float]]:
    """Yield values inside the bounds, outside of them and at them."""
    near = st.sampled_from([*bounds, 0.0, math.inf, -math.inf, sum(bounds) / 2, 1e300, -1e300, 5e-324])
    return st.lists(near | st.floats(bounds[0], bounds[1]), min_size=1, max_size=30)


def sums(measure: Measure, values: np.ndarray) -> list[np.ndarray]:
    projected = measure.project(values) if measure.valued else None
    return [component.sum(keepdims=True).astype(float) for component in measure.contributions(projected, len(values))]


@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.sampled_from(BOUNDS) | ends(), st.booleans())
def test_no_value_leaves_the_range_that_its_noise_is_scaled_to(kind, data, bounds, fine):
    measure = measure_or_skip(kind, bounds, fine=fine)
    values = np.array(data.draw(places(bounds)), dtype=float)

    contributed = measure.contributions(measure.project(values), len(values))

    for component, steps in zip(measure.components, contributed, strict=True):
        assert component.low <= steps.min()
        assert steps.max() <= component.high
        assert 0 < component.largest == max(abs(component.low), abs(component.high))


@pytest.mark.few(21)
@pytest.mark.parametrize("kind", VALUED)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_range_is_reached_so_that_no_noise_is_wasted(kind, bounds):
    measure = Measure(kind=kind, low=bounds[0], high=bounds[1])
    grid = measure.grid
    whole = range(round(bounds[0] / grid), round(bounds[1] / grid) + 1)
    steps = np.array([whole[0], whole[-1], (whole[0] + whole[-1]) // 2, min(max(0, whole[0]), whole[-1])])

    contributed = measure.contributions(steps, len(steps))

    assert [(c.low, c.high) for c in measure.components] == [(c.min(), c.max()) for c in contributed]


@pytest.mark.few(19)
@pytest.mark.parametrize("kind", VALUED)
@pytest.mark.parametrize("bounds", [b for b in BOUNDS if b != (0, 2**40)])
def test_the_grid_is_fine_enough_for_noise_to_pass_for_continuous(kind, bounds):
    measure = Measure(kind=kind, low=bounds[0], high=bounds[1], fine=True)

    # Rounding bounds to the grid may cost a step or two.
    assert min(component.largest for component in measure.components) >= STEPS - 2


@pytest.mark.parametrize("bounds", BOUNDS)
@given(st.data())
def test_sums_decode_to_the_plain_statistics(bounds, data):
    low, high = bounds
    values = np.array(data.draw(places(bounds)), dtype=float)
    clamped = np.clip(values, low, high)
    half, size = (high - low) / 2, max(abs(low), abs(high))
    for kind, truth, moves in [
        # A value has an error of at most half a step of its grid; a square, which is rounded down, of one step.
        ("sum", clamped.sum(), len(values) / 2),
        ("mean", clamped.mean(), 1 / 2),
        ("second_moment", (clamped**2).mean(), size + 1),
        ("variance", clamped.var(), 4 * half + 1),
    ]:
        measure = Measure(kind=kind, low=low, high=high)
        steps_of_squares = measure.components[-1].grid if "squares" in measure.components[-1].name else 0.0
        # Doubles hold sums of squares to 2^-50 of the largest.
        tolerance = measure.grid * (moves + measure.grid) + steps_of_squares + 2.0**-44 * size * max(size, len(values))

        assert measure.estimate(sums(measure, values)).item() == pytest.approx(truth, abs=tolerance)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=50), st.sampled_from(["sum", "mean"]))
def test_whole_numbers_are_exact(values, kind):
    measure = Measure(kind=kind, low=-1000, high=1000)
    steps = measure.project(np.array(values, dtype=float))

    assert (steps * measure.grid).tolist() == values
    exact = sum(values) if kind == "sum" else sum(values) / len(values)
    assert measure.estimate(sums(measure, np.array(values, dtype=float))).item() == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("fine", [False, True])
def test_a_count_is_one_for_each_state(fine):
    measure = Measure(kind="count", fine=fine)

    assert measure.estimate(sums(measure, np.zeros(7))).tolist() == [7.0]
    assert measure.components[0].largest == (STEPS if fine else 1)


@pytest.mark.few(21)
@pytest.mark.parametrize("kind", VALUED)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_infinite_values_count_as_the_bounds(kind, bounds):
    measure = Measure(kind=kind, low=bounds[0], high=bounds[1])

    infinite = measure.project(np.array([-np.inf, np.inf, -1e300, 1e300]))

    assert infinite.tolist() == [*measure.project(np.array(bounds)).tolist()] * 2


@pytest.mark.parametrize("kind", ["mean", "second_moment", "variance"])
def test_a_ratio_over_no_entries_is_not_a_number(kind):
    measure = Measure(kind=kind, low=0, high=1)
    for count in (0.0, -3.0):
        nothing = [np.array([count]), *[np.array([5.0])] * (len(measure.components) - 1)]

        assert np.isnan(measure.estimate(nothing)).all()


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1, 1, "must be less than"),
        (2, 1, "must be less than"),
        (0, math.inf, "finite"),
        (math.nan, 1, "finite"),
        (0, 2**41, "larger units"),
        (0, 1e-300, "smaller units"),
        (2**30, 2**30 + 1e-3, "too close"),
    ],
)
def test_bounds_that_cannot_serve_are_refused(low, high, message):
    with pytest.raises(ValueError, match=message):
        Measure(kind="variance", low=low, high=high)


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="median"):
        Measure(kind="median", low=0, high=1)  # type: ignore[arg-type]

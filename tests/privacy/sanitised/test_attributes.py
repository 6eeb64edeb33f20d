"""Mechanisms for single records, compared with their exact properties and with bounds for any mechanism."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from privacy.accounting.accounting import TOLERANCE
from privacy.accounting.curves import gaussian_delta
from privacy.noise.odds import PARTS, choose, uniform
from privacy.sanitised.attributes import Attribute, Category, Curve, Number, Subset
from privacy.sanitised.curve_noise import LEAST, CurveNoise
from privacy.sanitised.finite import FiniteMechanism
from privacy.sanitised.grid import Grid
from privacy.sanitised.grid_noise import delta_of, least_scale
from privacy.sanitised.lower_bounds import (
    curves_bound,
    diameter_bound,
    finite_bound,
    line_bound,
    packing_bound,
    packing_radius,
    sets_bound,
    spread_bound,
)
from privacy.sanitised.metric_response import MetricResponse, best_response, refuse_no_metric
from privacy.sanitised.randomised_response import RandomisedResponse
from privacy.sanitised.record import Sanitisation
from privacy.sanitised.subset_response import SubsetResponse
from privacy.upward import exp_above, exp_below, log_above

ROUNDED = Fraction(1, 10**40)


def worst_error(mechanism: FiniteMechanism, distances: object) -> Fraction:
    """Return the largest expected distance, over the inputs, between output and input.

    Args:
        distances: [inputs][outputs].
    """
    errors = [
        sum((p * Fraction(d) for p, d in zip(row, far, strict=True)), Fraction(0))
        for row, far in zip(mechanism.rows, np.asarray(distances).tolist(), strict=True)
    ]
    return max(errors)


def line(values: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(float(values)), np.arange(float(values))))


def normalised(weights: list[int]) -> list[Fraction]:
    return [Fraction(weight, sum(weights)) for weight in weights]


tables = st.integers(2, 4).flatmap(
    lambda outputs: st.lists(
        st.lists(st.integers(0, 6), min_size=outputs, max_size=outputs).filter(any).map(normalised),
        min_size=2,
        max_size=4,
    )
)


@given(rows=tables, epsilon=st.sampled_from([0.0, 0.3, 1.0, math.log(2)]))
def test_the_worst_set_is_worst_of_all_sets(rows, epsilon):
    factor = exp_below(epsilon)
    every = [
        sum(p[o] - factor * q[o] for o in chosen)
        for p, q in itertools.permutations(rows, 2)
        for size in range(len(p) + 1)
        for chosen in itertools.combinations(range(len(p)), size)
    ]

    loss = FiniteMechanism.of(rows).least_delta(epsilon)

    assert loss.delta == max(every)
    p, q = (rows[place] for place in loss.pair)
    assert sum(p[o] - factor * q[o] for o in loss.outputs) == loss.delta


@given(rows=tables, delta=st.sampled_from([Fraction(0), Fraction(1, 50), Fraction(1, 3)]))
def test_least_epsilon_and_least_delta_are_each_others_inverse(rows, delta):
    mechanism = FiniteMechanism.of(rows)

    epsilon = mechanism.least_epsilon(delta)

    if math.isinf(epsilon):
        assert mechanism.least_delta(60.0).delta > delta
        return
    assert mechanism.least_delta(epsilon).delta <= delta + ROUNDED
    if epsilon > 1e-6:
        assert mechanism.least_delta(epsilon - 1e-9).delta > delta


def test_a_mechanism_of_floats_that_do_not_add_up_is_refused():
    with pytest.raises(ValueError, match=r"row 1 adds up to .* not to exactly 1; write fractions"):
        FiniteMechanism.of([["1/2", "1/2"], [Fraction(0.9), Fraction(0.1)]])


def test_a_probability_divided_by_zero_is_refused():
    with pytest.raises(ValueError, match="divided by zero"):
        FiniteMechanism.of([["1/0"]])


def test_exponentials_and_logarithms_are_on_their_side():
    """1 = exp(log(1)), and the series of e to sixty terms is right to 1/60!."""
    e = sum(Fraction(1, math.factorial(n)) for n in range(61))

    assert e - Fraction(1, 10**45) < exp_below(1) < e + Fraction(1, math.factorial(60))
    assert e - Fraction(1, 10**45) < exp_above(1) < e + Fraction(1, 10**45)
    assert exp_below(1) < exp_above(1)
    assert exp_above(Fraction(1, 3)) ** 3 > e > exp_below(Fraction(1, 3)) ** 3
    assert Fraction(1) < log_above(exp_above(1)) < 1 + Fraction(1, 10**45)
    assert exp_below(-log_above(Fraction(7))) < Fraction(1, 7)


# The metric-space paper's example 5: Laplace noise.


def clamped(q: Fraction, steps: int) -> FiniteMechanism:
    """Return discrete Laplace noise on 0, ..., steps, with all outputs outside this range merged at its ends.

    This does not reduce the loss: outside the range all ratios of probabilities are equal.
    """

    def tail(distance: int) -> Fraction:
        return q**distance / (1 + q)

    return FiniteMechanism.of(
        [
            [tail(i)] + [(1 - q) / (1 + q) * q ** abs(o - i) for o in range(1, steps)] + [tail(steps - i)]
            for i in range(steps + 1)
        ]
    )


@pytest.mark.parametrize(("scale", "steps", "epsilon"), [(2.0, 3, 1.0), (3.0, 4, 1.2), (0.7, 2, 0.5), (4.0, 7, 0.01)])
def test_the_delta_of_grid_noise_is_exactly_that_of_all_pairs_and_sets(scale, steps, epsilon):
    q = exp_below(-1 / Fraction(scale))

    loss = clamped(q, steps).least_delta(epsilon)

    assert {*loss.pair} == {0, steps}
    assert abs(loss.delta - delta_of(scale, steps, epsilon=epsilon)) < ROUNDED
    assert loss.delta > Fraction(1, 1000)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_the_scale_of_grid_noise_is_enough_and_no_less_is(steps, delta):
    scale = least_scale(steps, epsilon=1.0, delta=delta)

    assert delta_of(scale, steps, epsilon=1.0) <= Fraction(delta)
    assert delta_of(scale * (1 - 1e-9), steps, epsilon=1.0) > Fraction(delta)
    assert delta_of(scale / 2, steps, epsilon=1.0) > max(Fraction(delta), Fraction(1, 5))


def test_a_fine_grid_costs_as_much_as_continuous_noise_and_a_coarse_grid_more():
    """Continuous: delta = 1 - exp((epsilon - D / b) / 2), which the paper's scale, larger, does not reach."""
    tight, of_paper = 1 / (1 - 2 * math.log1p(-0.1)), 1 / (1 - math.log(0.9))  # scales of continuous noise

    fine, coarse = 2**24, 1
    assert 1 < least_scale(fine, epsilon=1.0, delta=0.1) / fine / tight < 1 + 1e-6
    assert float(delta_of(tight * fine, fine, epsilon=1.0)) == pytest.approx(
        1 - math.exp((1 - 1 / tight) / 2), rel=1e-6
    )
    assert least_scale(coarse, epsilon=1.0, delta=0.1) / tight > 1.06
    assert 1 - (tight / of_paper) ** 2 == pytest.approx(0.166, abs=1e-3)  # share of the variance


# Example 6: categories.


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("values", [2, 3, 11])
def test_randomised_response_meets_its_claim_and_the_lower_bound_exactly(values, delta):
    response = RandomisedResponse.optimal(values, epsilon=1.0, delta=delta)
    mechanism = response.mechanism()

    found = mechanism.least_delta(1.0).delta
    assert found == response.delta_at(1.0)
    assert Fraction(delta) - Fraction(values + 3, PARTS) < found <= Fraction(delta)
    bound = packing_bound(1.0, values, epsilon=1.0, delta=delta)
    assert bound <= worst_error(mechanism, 1 - np.eye(values, dtype=int)) < bound + 1e-14
    assert response.error == pytest.approx(bound, rel=1e-14)
    halved = RandomisedResponse(values=values, other=response.other // 2)
    assert halved.delta_at(1.0) > Fraction(delta) + Fraction(1, 30)


def test_delta_is_the_probability_of_printing_the_truth():
    """The difference between the odds of (1, 0.1) and of (1, 0) is a tenth of the remaining odds."""
    with_delta, without = (RandomisedResponse.optimal(5, epsilon=1.0, delta=delta) for delta in (0.1, 0.0))

    assert with_delta.keep / PARTS == pytest.approx(0.1 + 0.9 * without.keep / PARTS, rel=1e-15)


def test_odds_by_which_a_lie_is_likelier_than_the_truth_are_refused():
    """They reveal as much as the reverse odds."""
    with pytest.raises(ValueError, match="too much for 2 values"):
        RandomisedResponse(values=2, other=PARTS - 1)
    with pytest.raises(ValueError, match="must be below half"):
        SubsetResponse(elements=2, at_most=1, turned=PARTS - 1)


# Example 7: products of one-dimensional mechanisms.


def product(first: FiniteMechanism, second: FiniteMechanism) -> FiniteMechanism:
    """Return the product of two attributes: all pairs of values in, and all out."""
    return FiniteMechanism(
        tuple(tuple(p * q for p in a for q in b) for a, b in itertools.product(first.rows, second.rows))
    )


def test_a_record_of_several_attributes_costs_the_sum_and_no_less_epsilon():
    """Deltas need not add up exactly: the truth of one attribute may come with a false value of the other."""
    pure = product(*(RandomisedResponse.optimal(values, epsilon=1.0).mechanism() for values in (2, 3)))
    one, other = (
        RandomisedResponse.optimal(2, epsilon=0.5, delta=0.1),
        RandomisedResponse.optimal(3, epsilon=1.0, delta=0.02),
    )

    assert 2.0 - 1e-12 < pure.least_epsilon() <= 2.0
    loss = float(product(one.mechanism(), other.mechanism()).least_delta(1.5).delta)
    assert loss == pytest.approx(0.1 * other.keep / PARTS + 0.02 * one.keep / PARTS - 0.1 * 0.02, rel=1e-12)
    assert loss < 0.1 + 0.02


@pytest.mark.parametrize(("elements", "at_most", "delta"), [(3, None, 0.0), (4, 1, 0.0), (4, None, 0.02), (5, 2, 1e-4)])
def test_sets_cost_the_maximum_over_all_pairs_of_sets(elements, at_most, delta):
    response = SubsetResponse.optimal(elements, at_most=at_most, epsilon=1.0, delta=delta)
    turned = Fraction(response.turned, PARTS)
    every = list(itertools.product((0, 1), repeat=elements))
    sets = [one for one in every if sum(one) <= response.at_most]
    rows = [
        [math.prod(turned if a != b else 1 - turned for a, b in zip(i, o, strict=True)) for o in every] for i in sets
    ]
    mechanism = FiniteMechanism.of(rows)

    assert abs(mechanism.least_delta(1.0).delta - response.delta_at(1.0)) < ROUNDED
    assert response.delta_at(1.0) <= Fraction(delta)
    assert Fraction(delta) - Fraction(1, 10**6) * Fraction(delta) <= response.delta_at(1.0)
    differences = [[sum(a != b for a, b in zip(i, o, strict=True)) for o in every] for i in sets]
    assert float(worst_error(mechanism, differences)) == pytest.approx(response.error, rel=1e-15)
    halved = SubsetResponse(elements=elements, at_most=response.at_most, turned=response.turned // 2)
    assert halved.delta_at(1.0) > Fraction(delta) + Fraction(1, 20)


def test_sets_beyond_the_bound_lose_their_last_elements():
    response = SubsetResponse(elements=3, at_most=1, turned=0)

    assert response.sample(np.array([[1, 1, 1], [0, 1, 1], [0, 0, 0]])).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_elements_beyond_the_bound_have_coins_of_their_own():
    """The coins are almost fair: 59 are equal with probability below 1e-17."""
    response = SubsetResponse(elements=60, at_most=1, turned=PARTS // 2 - 1)

    assert {*response.sample(np.ones((1, 60), dtype=np.int64))[0, 1:].tolist()} == {0, 1}


# Theorems 6 and 7.


@given(rows=tables, epsilon=st.sampled_from([0.0, 1.0]), data=st.data())
def test_no_mechanism_has_less_error_than_the_diameter_allows(rows, epsilon, data):
    """Outputs may lie anywhere: distances to them are those of points in a plane."""
    places = st.tuples(st.integers(-5, 5), st.integers(-5, 5))
    inputs = data.draw(st.lists(places, min_size=len(rows), max_size=len(rows), unique=True))
    outputs = data.draw(st.lists(places, min_size=len(rows[0]), max_size=len(rows[0])))
    mechanism = FiniteMechanism.of(rows)
    delta = mechanism.least_delta(epsilon).delta

    error = worst_error(mechanism, [[Fraction(math.dist(i, o)) for o in outputs] for i in inputs])

    diameter = max(math.dist(i, j) for i in inputs for j in inputs)
    if delta < 1:
        assert error >= Fraction(diameter_bound(diameter, epsilon=epsilon, delta=float(delta))) - Fraction(1, 10**12)


def test_two_points_attain_the_diameter_bound_which_is_twice_the_papers():
    for delta in (0.0, 0.1):
        response = RandomisedResponse.optimal(2, epsilon=1.0, delta=delta)

        assert response.error == pytest.approx(diameter_bound(1.0, epsilon=1.0, delta=delta), rel=1e-15)
        assert diameter_bound(1.0, epsilon=1.0, delta=delta) > (1 - delta) / (2 * (1 + math.e)) * 1.99


def test_a_star_has_less_error_than_theorem_7_allows_unless_its_centre_counts_as_an_output():
    """Eleven leaves, 1 from each other and 1/2 from the centre, which is no leaf: the output is always the centre."""
    leaves = 1 - np.eye(11)
    with_centre = np.column_stack([leaves, np.full(11, 0.5)])
    centre = FiniteMechanism.of([[0] * 11 + [1]] * 11)

    assert centre.least_epsilon() == 0
    error = worst_error(centre, with_centre)
    assert error == Fraction(1, 2)
    assert packing_bound(packing_radius(leaves, range(11)), 11, epsilon=0.0) == 10 / 11 > error
    assert packing_bound(packing_radius(with_centre, range(11)), 11, epsilon=0.0) < error


def test_theorem_7_is_valid_and_reached_if_outputs_are_the_points():
    """Eleven leaves without the centre: optimal randomised response."""
    for epsilon in (0.01, 1.0, 4.0):
        error = RandomisedResponse.optimal(11, epsilon=epsilon).error
        assert error == pytest.approx(finite_bound(1 - np.eye(11), epsilon=epsilon), rel=1e-14)


# Any metric.


def smallest_error(distances: np.ndarray, epsilon: float, delta: float) -> float:
    """Return the least error of all (epsilon, delta)-private tables, by a linear programme over all pairs.

    Args:
        distances: [inputs, outputs].
    """
    inputs, outputs = distances.shape
    cells, pairs = inputs * outputs, list(itertools.permutations(range(inputs), 2))
    width = cells + len(pairs) * outputs + 1
    upper, right = [], []
    for number, (i, j) in enumerate(pairs):
        first = cells + number * outputs
        total = np.zeros(width)
        total[first : first + outputs] = 1
        upper, right = [*upper, total], [*right, delta]
        for o in range(outputs):
            row = np.zeros(width)
            row[[i * outputs + o, j * outputs + o, first + o]] = 1, -math.exp(epsilon), -1
            upper, right = [*upper, row], [*right, 0]
    for i in range(inputs):
        row = np.zeros(width)
        row[i * outputs : (i + 1) * outputs], row[-1] = distances[i], -1
        upper, right = [*upper, row], [*right, 0]
    sums = np.zeros((inputs, width))
    for i in range(inputs):
        sums[i, i * outputs : (i + 1) * outputs] = 1
    objective = np.eye(1, width, width - 1)[0]
    return float(linprog(objective, A_ub=upper, b_ub=right, A_eq=sums, b_eq=np.ones(inputs)).fun)


def sets(elements: int, at_most: int) -> np.ndarray:
    every = np.array(list(itertools.product((0, 1), repeat=elements)))
    return every[every.sum(axis=1) <= at_most]


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("epsilon", [0.3, 1.5, 4.0])
def test_no_mechanism_has_less_error_than_any_of_the_bounds(epsilon, delta):
    """The best mechanism comes from a linear programme; outputs may lie outside of the space."""
    cost = {"epsilon": epsilon, "delta": delta}
    between = np.abs(np.subtract.outer(np.arange(5.0), np.arange(-2, 11) / 2))
    inputs, outputs = sets(3, 2), sets(3, 3)
    curves = np.array([each for each in itertools.product(range(3), repeat=2) if sum(each) <= 3])
    apart = np.abs(curves[:, None] - np.array(list(itertools.product((0, 0.5, 1, 1.5, 2), repeat=2)))[None])
    star = np.column_stack([1 - np.eye(6), np.full(6, 0.5)])
    for found, distances in (
        (line_bound(4, **cost), between),
        (sets_bound(3, 2, **cost), np.abs(inputs[:, None] - outputs[None]).sum(axis=2)),
        (curves_bound(2, 2, 3, largest=False, **cost), apart.sum(axis=2)),
        (curves_bound(2, 2, 3, largest=True, **cost), apart.max(axis=2)),
        (spread_bound(star, 1.0, **cost), star),
        (finite_bound(line(5) ** 0.5, **cost), line(5) ** 0.5),
    ):
        assert 0 <= found <= smallest_error(distances, epsilon, delta) * (1 + 1e-7)


def test_the_largest_of_all_bounds_is_shown():
    """Theorem 7 alone gives 0.5724 and 0.2584 for sets of three elements; theorem 6 gives 0.5473 and 0.1423."""
    grid = Grid.of(low=0, high=10, step=1)
    ills, all_of_them = (
        Subset.planned("ills", ["x", "y", "z"], at_most=most, epsilon=epsilon) for most, epsilon in ((2, 1.5), (3, 3.0))
    )
    far = Number.planned("far", grid, missing=None, epsilon=5.0)
    two = Curve.planned("two", ["p", "q"], grid, missing=None, total=None, metric="total", epsilon=3.0)

    assert packing_bound(1.0, 7, epsilon=1.5) == pytest.approx(0.5724, abs=1e-4)
    assert ills.lower_bound == pytest.approx(0.8586, abs=1e-4)
    assert packing_bound(1.0, 8, epsilon=3.0) == pytest.approx(0.2584, abs=1e-4)
    assert all_of_them.lower_bound == pytest.approx(0.4430, abs=1e-4)
    assert far.lower_bound > 2.8 * diameter_bound(10.0, epsilon=5.0)
    assert two.lower_bound > 1.2 * diameter_bound(20.0, epsilon=3.0)
    assert smallest_error(np.abs(sets(3, 3)[:, None] - sets(3, 3)[None]).sum(axis=2), 3.0, 0.0) == pytest.approx(
        all_of_them.lower_bound
    )  # the bound is the best possible for all sets, with sets as outputs


def test_with_a_delta_another_table_may_be_slightly_better_than_the_truth_mixed_with_a_pure_one():
    places = np.array([0.0, 6.0, 10.0, 13.0])
    distances = np.abs(np.subtract.outer(places, places))

    error = best_response(distances, epsilon=1.0, delta=0.3).error_over(distances)
    least = smallest_error(distances, 1.0, 0.3)

    assert (round(error, 4), round(least, 4)) == (2.8292, 2.8184)


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_response_of_these_metrics_is_the_best_there_is(delta):
    uneven = np.array([[0, 1, 3, 3], [1, 0, 2, 3], [3, 2, 0, 1], [3, 3, 1, 0]], dtype=float)
    for distances in (line(4), uneven):
        response = best_response(distances, epsilon=1.0, delta=delta)

        assert response.mechanism().least_delta(1.0).delta <= Fraction(delta)
        assert response.error_over(distances) == pytest.approx(smallest_error(distances, 1.0, delta), rel=1e-7)
        assert response.error_over(distances) >= finite_bound(distances, epsilon=1.0, delta=delta)


def test_many_values_take_the_better_response_that_needs_no_solver():
    """Odds that fall with the distance on a line; if all distances are equal, nothing beats randomised response."""
    far, alike = line(100), 1 - np.eye(100)

    uniform = 99 * 100 / 2 / 100  # error of an end, if the output reveals nothing
    assert best_response(far, epsilon=2.0).error_over(far) < 0.7 * uniform
    assert best_response(alike, epsilon=2.0).error_over(alike) == pytest.approx(
        RandomisedResponse.optimal(100, epsilon=2.0).error, rel=1e-6
    )


def test_odds_without_the_guarantee_are_refused():
    fair = best_response(line(3), epsilon=1.0, delta=0.01)

    with pytest.raises(ValueError, match=r"do not have epsilon=0\.9"):
        MetricResponse(epsilon=0.9, delta=0.01, truth=fair.truth, odds=fair.odds)
    with pytest.raises(ValueError, match=r"more than delta=0\.001"):
        MetricResponse(epsilon=1.0, delta=0.001, truth=fair.truth, odds=fair.odds)


@pytest.mark.parametrize(
    ("distances", "why"),
    [
        ([[0, 1], [2, 0]], "the same from either side"),
        ([[0, 0], [0, 0]], "from others above 0"),
        ([[0, 1, 9], [1, 0, 1], [9, 1, 0]], "values 0 and 2 are further apart than by way of value 1"),
        ([[0, 1, 2]], "square"),
    ],
)
def test_distances_that_are_not_a_metric_are_refused(distances, why):
    with pytest.raises(ValueError, match=why):
        refuse_no_metric(np.array(distances, dtype=float))


# Curves.


@pytest.mark.parametrize("total", [None, 1, 2, 3, 5])
@pytest.mark.parametrize("points", [1, 2, 3])
def test_the_norms_of_curves_are_those_of_all_pairs(points, total):
    steps = 2
    noise = CurveNoise.optimal(points, steps, total=total, epsilon=1.0)
    curves = np.array(list(itertools.product(range(steps + 1), repeat=points)))
    bounded = noise.bound(curves)
    differences = np.abs(bounded[:, None] - bounded[None])

    assert bounded.max() <= steps
    assert bounded.min() >= 0
    assert total is None or bounded.sum(axis=1).max() <= total
    assert differences.sum(axis=2).max() == noise.l1  # lower bounds are proved from this norm
    assert (differences**2).sum(axis=2).max() == noise.l2_squared


def test_noise_of_half_the_scale_is_refused_for_curves():
    for noise in (CurveNoise.optimal(48, 100, epsilon=2.0, delta=1e-6), CurveNoise.optimal(48, 100, epsilon=2.0)):
        with pytest.raises(ValueError, match=r"is too small for epsilon=2\.0"):
            CurveNoise(
                points=48,
                steps=100,
                total=None,
                epsilon=2.0,
                delta=noise.delta,
                distribution=noise.distribution,
                scale=noise.scale / 2,
            )


@pytest.mark.parametrize(
    ("points", "steps", "delta", "distribution"),
    [(1, 1, 0.1, "gaussian"), (48, 100, 1e-6, "gaussian"), (48, 100, 0.0, "laplace")],
)
def test_a_scale_below_the_least_is_refused_for_curves(points, steps, delta, distribution):
    """The least scale of one point follows from zCDP, that of 48 points from the delta of continuous noise."""
    least = LEAST[distribution](points, steps, None, 2.0, delta)
    noise = CurveNoise(
        points=points, steps=steps, total=None, epsilon=2.0, delta=delta, distribution=distribution, scale=least
    )
    with pytest.raises(ValueError, match=r"is too small for epsilon=2\.0"):
        replace(noise, scale=math.nextafter(least, 0))


def test_a_planned_scale_of_curves_leaves_room_for_another_search():
    """Another version may find a least scale that differs by the accuracy of the search."""
    noise = CurveNoise.optimal(48, 100, epsilon=2.0, delta=1e-6)
    assert 1 + TOLERANCE < noise.scale / LEAST["gaussian"](48, 100, None, 2.0, 1e-6) < 1 + 2.0**-29


@pytest.mark.parametrize(("total", "steps"), [(1.2, 2), (1.5, 3), (0.99, 1), (4.999, 9)])
def test_a_total_between_two_steps_is_the_lower_one(total: float, steps: int) -> None:
    """Otherwise curves beyond the declared total would pass, and noise is for the norms of accepted curves."""
    curve = Curve.planned(
        "curve", ["a", "b"], Grid.of(low=0, high=5, step=0.5), missing=None, total=total, metric="mean", epsilon=1.0
    )
    assert curve.noise.total == steps


@pytest.mark.parametrize("total", [None, 1200])
def test_gaussian_noise_of_curves_takes_all_of_delta(total):
    """For the two most distant curves and continuous noise (Balle, Wang 2018)."""
    noise = CurveNoise.optimal(48, 100, total=total, epsilon=2.0, delta=1e-6)

    assert noise.distribution == "gaussian"
    assert 0.9999e-6 < gaussian_delta(math.sqrt(noise.l2_squared) / noise.scale, 2.0) < 1e-6


def discrete_delta(noise: CurveNoise, apart: Sequence[int]) -> float:
    """Return the exact delta of two curves with these differences: the loss is linear in (noise, differences)."""
    reach = int(14 * noise.scale)
    steps = np.arange(-reach, reach + 1)
    chance = np.exp(-(steps**2) / (2 * noise.scale**2))
    found = np.ones(1)
    for far in filter(None, apart):
        stretched = np.zeros(2 * reach * far + 1)
        stretched[::far] = chance / chance.sum()
        found = np.convolve(found, stretched)
    loss = np.arange(len(found)) - len(found) // 2 + sum(far**2 for far in apart) / 2
    return float(found @ np.maximum(0, -np.expm1(noise.epsilon - loss / noise.scale**2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "steps", "total", "epsilon", "delta"), [(1, 50, None, 1, 1e-6), (2, 5, None, 1, 0.1), (2, 3, 4, 3, 1e-3)]
)
def test_gaussian_noise_of_curves_has_its_delta_for_any_two_curves(points, steps, total, epsilon, delta):
    """Also on coarse grids, on which discrete noise differs from continuous noise."""
    noise = CurveNoise.optimal(points, steps, total=total, epsilon=epsilon, delta=delta)
    scale = LEAST["gaussian"](points, steps, total, epsilon, delta)
    noise = replace(noise, distribution="gaussian", scale=scale)
    curves = {tuple(each) for each in noise.bound(np.array(list(itertools.product(range(steps + 1), repeat=points))))}
    apart = {tuple(sorted(abs(a - b) for a, b in zip(one, two, strict=True))) for one in curves for two in curves}

    assert 0.5 * delta < max(discrete_delta(noise, each) for each in apart) <= delta


def test_expected_sizes_of_noise_are_those_of_its_probabilities():
    noise = CurveNoise.optimal(4, 3, epsilon=2.0)
    q = math.exp(-1 / noise.scale)
    exact = sum(2 * n * (1 - q) / (1 + q) * q**n for n in range(2000))

    assert noise.error("total") == pytest.approx(4 * exact, rel=1e-12)


def test_curves_are_bounded_before_noise_and_each_point_has_its_own():
    """Noise of a scale of 1/1000 is not 0 with probability below 1e-400; forty draws are equal below 1e-20."""
    exact = CurveNoise.optimal(3, 2, total=2, epsilon=4000.0)
    noisy = CurveNoise.optimal(40, 2, epsilon=1.0)

    assert exact.sample(np.array([[2, 2, 0], [0, 0, 1]])).tolist() == [[1, 1, 0], [0, 0, 1]]
    assert len(set(noisy.sample(np.zeros((1, 40), dtype=np.int64))[0].tolist())) > 1


# Samples. Counts of n choices with probability p differ from np by 6 standard deviations with probability below 2e-9.


def strays(count: int, size: int, probability: float) -> float:
    return abs(count - size * probability) / math.sqrt(size * probability * (1 - probability))


@pytest.mark.slow
def test_samples_have_the_odds_that_are_proved():
    """Fails with probability below 1e-7: forty counts."""
    size = 40_000
    response = RandomisedResponse.optimal(4, epsilon=1.0)
    got = np.bincount(response.sample(np.full(size, 2)), minlength=4)
    assert all(strays(c, size, (response.keep if v == 2 else response.other) / PARTS) < 6 for v, c in enumerate(got))

    metric = best_response(line(4), epsilon=1.0, delta=0.05)
    codes = np.repeat(np.arange(4), size)
    sampled = metric.sample(codes)
    for value in range(4):
        counts = np.bincount(sampled[codes == value], minlength=4)
        assert all(strays(c, size, metric.odds[value][o] / PARTS) < 6 for o, c in enumerate(counts))

    sets = SubsetResponse.optimal(5, at_most=2, epsilon=2.0)
    turned = (sets.sample(np.tile([0, 1, 0, 1, 0], (size, 1))) != [0, 1, 0, 1, 0]).sum(axis=0)
    assert all(strays(count, size, sets.turned / PARTS) < 6 for count in turned)

    curve = CurveNoise.optimal(3, 4, epsilon=3.0)
    noise = curve.sample(np.zeros((size, 3), dtype=np.int64))
    q = math.exp(-1 / curve.scale)
    assert all(strays(int((noise[:, point] == 0).sum()), size, (1 - q) / (1 + q)) < 6 for point in range(3))


def test_a_number_has_the_noise_of_its_plan():
    """How many of 4,000 stay unchanged: fails with probability below 2e-9; at half the scale twice as many do."""
    number = Number.planned("age", Grid.of(low=0, high=8, step=1), missing=None, epsilon=1.0)
    q = math.exp(-1 / number.scale)

    stayed = (number.sample(np.full((4000, 1), 3)) == 3).sum()

    assert strays(int(stayed), 4000, (1 - q) / (1 + q)) < 6


def claims() -> list[Attribute]:
    """Return attributes with a delta that use both of their parameters fully."""
    grid, costs = Grid.of(low=0, high=8, step=1), {"epsilon": 1.0, "delta": 0.01}
    return [
        Number.planned("number", grid, missing=None, **costs),
        Category.planned("category", ["a", "b", "c"], missing="a", **costs),
        Category.planned("metric", ["a", "b", "c"], missing="a", distances=line(3), **costs),
        Subset.planned("set", ["a", "b"], at_most=None, **costs),
        Curve.planned("curve", ["a", "b"], grid, missing=None, total=None, metric="mean", **costs),
    ]


@pytest.mark.parametrize("attribute", claims(), ids=lambda one: one.name)
@pytest.mark.parametrize("claim", ["epsilon", "delta"])
def test_an_attribute_that_costs_more_than_it_claims_is_refused(attribute, claim):
    with pytest.raises(ValueError, match=r"costs more than|is too small for"):
        replace(attribute, **{claim: getattr(attribute, claim) * 0.9})


def test_a_record_costs_the_sum_of_its_attributes_claims_and_no_column_is_sanitised_twice():
    record = Sanitisation(attributes=tuple(claims()))
    number, *_, curve = claims()

    assert record.epsilon == 5.0
    assert 0 <= Fraction(record.delta) - 5 * Fraction(0.01) < Fraction(1, 10**16)
    for twice in ((number, number), (curve, replace(number, name="b"))):
        with pytest.raises(ValueError, match=r"its own name|column is sanitised twice"):
            Sanitisation(attributes=twice)


def test_a_mechanism_for_other_values_is_refused():
    _, category, _, elements, curve = claims()

    for attribute, change in (
        (category, {"values": ("a", "b")}),
        (elements, {"values": ("a", "b", "c")}),
        (curve, {"points": ("a", "b", "c")}),
        (curve, {"grid": Grid.of(low=0, high=9, step=1)}),
    ):
        with pytest.raises(ValueError, match=r"is for (another number|curves of another size)"):
            replace(attribute, **change)


def test_uniform_integers_are_the_bits_of_the_system_s_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of no other source: a generator with a state could be guessed, or be equal in two processes."""
    words = np.array([0, 3, 4, 2**64 - 1, 1 << 40], dtype=np.uint64)
    asked: list[int] = []

    def source(size: int) -> bytes:
        asked.append(size)
        return words.tobytes()

    monkeypatch.setattr("privacy.noise.exact.words.token_bytes", source)

    assert uniform(5).tolist() == [0, 0, 1, PARTS - 1, 1 << 38]
    assert asked == [40]


def test_uniform_integers_fill_their_range_evenly():
    """Each of 12 bits, the first and the last six: fails with probability below 1e-7."""
    size = 40_000
    points = uniform(size)

    assert points.min() >= 0
    assert points.max() < PARTS
    assert all(strays(int((points >> bit & 1).sum()), size, 0.5) < 6 for bit in (*range(6), *range(56, 62)))


def test_a_choice_has_exactly_its_odds(monkeypatch):
    """At the borders between outcomes, one of which has odds of 0."""
    weights = np.array([[0, 3, 0, PARTS - 3]])
    monkeypatch.setattr("privacy.noise.odds.uniform", lambda size: np.array([0, 2, 3, PARTS - 1]))

    assert choose(weights, np.zeros(4, dtype=np.int64)).tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize("row", [-1, 2])
def test_a_choice_from_a_row_without_odds_is_refused(row):
    """It would give a number that is not random: what the memory held before."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        choose(np.array([[PARTS, 0], [0, PARTS]]), np.array([0, row, 1]))


def test_odds_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match="add up"):
        choose(np.array([[PARTS - 1, 0]]), np.array([0]))
    with pytest.raises(ValueError, match="must add up"):
        choose(np.full((1, 5), PARTS), np.array([0]))  # 2^62 once more than 64 bits hold

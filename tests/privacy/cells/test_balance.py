"""Weights of marginals compared with optimal ones, with dense matrices, and with separate cells."""

import itertools
import math

import numpy as np
import pytest

from benchmarks.marginals.optimum import error_of, least_possible
from privacy.cells.balance import Asked, balanced, best_squares, charges, weighing
from privacy.cells.choice import CellChoice
from privacy.cells.intersections import Kept
from privacy.cells.marginals import Marginals
from privacy.cells.offer import CellTerms
from privacy.cells.product import Product
from privacy.cells.space import Axis
from privacy.cells.table import strategies
from tests.privacy.cells.matrices import dense

ADULT = (9, 16, 7, 5, 2)
"""Work class, education, marital status, race and sex of UCI's Adult."""

CPS = (4, 7, 2, 5)
"""Marital status, household, sex and race of the Current Population Survey."""


def up_to(size: int, axes: int) -> tuple[Kept, ...]:
    """Return the table of all axes, and all marginals that keep at most `size` axes."""
    few = (kept for count in range(size + 1) for kept in itertools.combinations(range(axes), count))
    return (tuple(range(axes)), *(kept for kept in few if len(kept) < axes))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "kept", "within"),
    [
        ((60,), up_to(0, 1), 1.001),
        (ADULT, up_to(1, 5), 1.005),
        (ADULT, up_to(2, 5), 1.005),
        (ADULT, up_to(3, 5), 1.001),
        (CPS, up_to(3, 4), 1.001),
    ],
)
def test_the_error_is_within_one_percent_of_the_least_possible_one(shape, kept, within):
    """This includes rounding to integers. Weights: each table equally, and each row of each table equally."""
    for shares in ([1.0] * len(kept), [math.prod(shape[axis] for axis in one) for one in kept]):
        asked = Asked(shape, kept, tuple(shares))
        least = least_possible(asked)
        squares, gap = best_squares(weighing(asked), np.ones(len(kept)))
        assert gap < 1e-4
        exact = weighing(asked).error(squares / squares.sum())
        assert least * (1 - 1e-9) <= exact <= within * least
        assert error_of(balanced(asked, 2, 1)[0], asked) <= 1.0005 * exact


@pytest.mark.slow
def test_blocks_that_are_not_asked_for_are_used_if_they_help_and_no_weights_of_blocks_help_more():
    """Eight keys of two values, one to three of them kept: without larger blocks the error is 9 % larger."""
    kept = tuple(one for one in up_to(3, 8) if one)
    asked = Asked((2,) * 8, kept, (1.0,) * len(kept))
    least, (found, _) = least_possible(asked), balanced(asked, 2, 1)
    assert max(len(one) for one in found.kept[1:]) > 3
    assert error_of(found, asked) < 1.04 * least
    squares, _ = best_squares(weighing(asked), np.ones(len(kept)))
    assert weighing(asked).error(squares / squares.sum()) > 1.13 * least
    every = up_to(7, 8)
    more = Asked(asked.shape, every, tuple(float(one in kept) for one in every))
    squares, gap = best_squares(weighing(more), np.ones(len(every)))
    assert error_of(found, asked) <= 1.0005 * weighing(more).error(squares / squares.sum())
    assert gap < 1e-4


def test_the_error_is_the_weighted_mean_of_exact_variances():
    asked = Asked((3, 2, 2), ((0, 1, 2), (0, 1), (1, 2), ()), (0.4, 0.3, 0.2, 0.1))
    weights = (2, 1, 3, 1)
    matrix = dense(Marginals(shape=asked.shape, kept=asked.kept, weights=weights))
    covariance = np.linalg.inv(matrix.T @ matrix).reshape(asked.shape * 2)
    expected = 0.0
    for kept, share in zip(asked.kept, asked.shares, strict=True):
        sums = tuple(axis for axis in range(3) if axis not in kept)
        of_rows = covariance.sum(axis=(*sums, *(3 + axis for axis in sums)))
        rows = asked.rows(kept)
        expected += share * np.trace(of_rows.reshape(rows, rows)) / rows
    of = weighing(asked)
    squares = np.array(weights) ** 2.0
    assert of.error(squares) == pytest.approx(expected)
    step = 1e-6
    moved = [of.error(squares + step * np.eye(4)[block]) - expected for block in range(4)]
    assert -np.array(moved) / step == pytest.approx(of.slopes(squares), rel=1e-4)


def test_no_certified_weights_are_beaten_by_others():
    random = np.random.default_rng(4)
    asked = Asked((2, 3, 4), up_to(2, 3), (1.0,) * 8)
    of, (charge, _) = weighing(asked), charges(asked, 3)
    squares, gap = best_squares(of, charge)
    best = of.error(squares / (charge @ squares))
    for other in random.exponential(size=(2000, len(squares))) ** 2:
        assert of.error(other / (charge @ other)) >= best * (1 - gap)


def test_laplace_weights_are_near_those_of_many_searches():
    """The searches are local: 4,000 random weights, some of them almost 0, are not more than 1 % better."""
    asked = Asked((2, 3, 4), up_to(1, 3), (1.0,) * 5)
    found = error_of(balanced(asked, 1, 1)[0], asked, power=1)
    random, of = np.random.default_rng(6), weighing(asked)
    for weights in np.exp(random.normal(scale=1.5, size=(4000, 5))):
        assert of.error(weights**2) * weights.sum() ** 2 >= 0.99 * found


@pytest.mark.slow
@pytest.mark.parametrize(("power", "changes"), [(2, 1), (2, 4), (1, 1), (1, 4)])
def test_a_total_of_60_cells_has_a_small_part_of_the_variance_of_separate_cells(power, changes):
    """With the same guarantee as separate cells: 8 times less for the total, and at most 4 times more for cells."""
    choice = CellChoice(marginals=((),))
    terms = CellTerms(space=(Axis(cells=60),), choice=choice, power=power, changes=changes)
    best, alone = strategies(terms)

    def variances(product: Product) -> tuple[float, float]:
        corners = product.corners(power)
        radius = max(one for one, _, _ in corners)
        diameter = max(radius, *(a + b - 2 * both for a, b, both in corners))
        moved = (radius + (changes - 1) * diameter) ** (2 // power)
        return moved * float(product.variances()[0]), moved * product.variance(np.ones(60))

    (cell, total), (cell_alone, total_alone) = variances(best), variances(alone)
    assert alone.trivial
    assert total_alone == pytest.approx(60 * cell_alone)
    assert total_alone > 8 * total
    assert cell < 4 * cell_alone


def test_blocks_of_no_use_are_left_out():
    """A marginal over a key of one cell repeats the cells."""
    found, _ = balanced(Asked((4, 1), ((0, 1), (0,), (1,)), (0.5, 0.25, 0.25)), 1, 1)
    assert found.kept[0] == (0, 1)
    assert math.gcd(*found.weights) == 1

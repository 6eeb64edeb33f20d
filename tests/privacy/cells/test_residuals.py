"""Residuals: their columns, their weights compared with the least possible error, and where they are not used.

Estimates, variances and charges of trajectories: test_product.py and test_sensitivity.py.
"""

import itertools
import math

import numpy as np
import pytest

from benchmarks.marginals.optimum import least_possible
from privacy.cells.balance import GAIN, Asked, asked_tables, balanced
from privacy.cells.boxes import of_boxes
from privacy.cells.choice import CellChoice
from privacy.cells.intersections import Kept
from privacy.cells.residual_weights import marginals_over, residuals
from privacy.cells.residuals import HEAVIEST, Residuals
from tests.privacy.cells.matrices import RESIDUALS, dense

ADULT, CPS, RESIDUAL_PLANNERS = (9, 16, 7, 5, 2), (4, 7, 2, 5), (50, 100, 7, 4, 2)
CHOICES = [(ADULT, size) for size in (1, 2, 3)] + [(CPS, size) for size in (1, 2, 3)] + [(RESIDUAL_PLANNERS, 2)]


def of_size(shape: tuple[int, ...], size: int, cells: float) -> CellChoice:
    """Return all marginals of this size, of which each row counts 1, and each cell `cells`."""
    kept = tuple(itertools.combinations(range(len(shape)), size))
    rows = [math.prod(shape[axis] for axis in one) for one in kept]
    return CellChoice(marginals=kept, shares=(cells * math.prod(shape), *map(float, rows)))


def cost(table: Residuals, asked: Asked, changes: int) -> float:
    """Return the error of the tables for a charge of 1, from the variances of their rows and the corners."""
    boxes = [[None if axis in kept else (0, size) for axis, size in enumerate(asked.shape)] for kept in asked.kept]
    ((norm, _, least), *_) = table.corners(2)
    return float(asked.shares @ of_boxes(boxes, [table]).squares) * (
        norm + (changes - 1) * max(2 * (norm - least), norm)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "size"), CHOICES)
def test_marginals_of_one_size_have_the_least_possible_error(shape, size):
    """Blocks of weights >= 0 have 1.5 to 7 % more. The cells count almost nothing."""
    choice = of_size(shape, size, 1e-6)
    best, blocks = marginals_over(shape, choice, power=2, changes=1, blocks=False)
    asked = asked_tables(shape, choice)
    assert isinstance(best, Residuals)
    assert least_possible(asked) * (1 - 1e-6) <= cost(best, asked, 1) <= 1.001 * least_possible(asked)
    assert balanced(asked, 2, 1) == (blocks, pytest.approx(balanced(asked, 2, 1)[1]))
    assert balanced(asked, 2, 1)[1] > (1 + GAIN) * least_possible(asked)


@pytest.mark.parametrize("changes", [1, 2, 5])
def test_the_stated_cost_is_that_of_dense_matrices(changes):
    shape = (3, 2, 4)
    kept: tuple[Kept, ...] = ((0, 1, 2), (0, 1), (1, 2), (0,))
    asked = Asked(shape, kept, (0.5, 3.0, 2.0, 1.0))
    found, stated = residuals(asked, changes)
    matrix = dense(found)
    covariance = np.linalg.inv(matrix.T @ matrix).reshape(shape * 2)
    error = 0.0
    for one, share in zip(kept, asked.shares, strict=True):
        over = tuple(axis for axis in range(3) if axis not in one)
        rows = asked.rows(one)
        error += share * np.trace(covariance.sum(axis=(*over, *(3 + a for a in over))).reshape(rows, rows)) / rows
    inner = matrix.T @ matrix
    norm = inner[0, 0]
    apart = (np.add.outer(np.diag(inner), np.diag(inner)) - 2 * inner).max()
    assert np.diag(inner).tolist() == [norm] * 24
    assert stated == pytest.approx(error * (norm + (changes - 1) * max(norm, apart)))
    assert stated == pytest.approx(cost(found, asked, changes))


def test_residuals_are_not_used_for_spans_laplace_noise_and_small_gains():
    choice = of_size(CPS, 2, 1e-6)
    for power, blocks in ((2, True), (1, False)):
        (only,) = marginals_over(CPS, choice, power=power, changes=1, blocks=blocks)
        assert not isinstance(only, Residuals)
    kept = tuple(one for size in (0, 1, 2) for one in itertools.combinations(range(4), size))
    (only,) = marginals_over(CPS, CellChoice(marginals=kept), power=2, changes=1, blocks=False)
    assert not isinstance(only, Residuals)
    assert marginals_over(CPS, CellChoice(), power=2, changes=1, blocks=False) == []


def test_tables_that_residuals_cannot_serve_are_left_to_blocks():
    """One has a single cell, one a marginal that repeats the cells, one contrasts with too large weights."""
    assert residuals(Asked((1,), ((0,), ()), (1.0, 1.0)), 1)[0] is None
    for power in (1, 2):
        choice = CellChoice(marginals=((0,), (0, 1), ()))
        assert marginals_over((1, 2, 1), choice, power=power, changes=1, blocks=False)
    assert residuals(Asked((4, 1), ((0, 1), (0,)), (1.0, 1.0)), 1)[0] is None
    assert residuals(Asked((2000, 2000, 2), ((0, 1, 2), (0, 1)), (1.0, 1.0)), 1)[0] is None


@pytest.mark.parametrize("table", RESIDUALS, ids=str)
def test_all_columns_have_the_stated_norm_and_two_have_the_least_product(table):
    matrix = dense(table)
    inner = matrix.T @ matrix
    ((norm, other, least), (same, _, both)) = table.corners(2)
    assert np.diag(inner).tolist() == [norm] * table.cells
    assert least == inner.min()
    assert norm == other == same == both
    ((one, _, none), _) = table.corners(1)
    assert np.abs(matrix).sum(axis=0).tolist() == [one] * table.cells
    assert none == 0
    assert np.count_nonzero(matrix, axis=0).tolist() == [table.filled] * table.cells
    assert np.abs(matrix).max() <= table.heaviest


@pytest.mark.parametrize(
    ("kept", "weights", "message"),
    [
        (((0,), (0, 1), ()), (1, 1, 1), "all axes first"),
        (((0, 1), (0,)), (1, 1), "all subsets"),
        (((0, 1), (2,), ()), (1, 1, 1), "at least two cells"),
        (((0, 1), (0,), ()), (1, 0, 1), "for each of 3 sets"),
        (((0, 1), (0,), ()), (1, HEAVIEST, 1), "nodes up to"),
    ],
)
def test_invalid_residuals_are_refused(kept, weights, message):
    with pytest.raises(ValueError, match=message):
        Residuals(shape=(2, 3), kept=kept, weights=weights)

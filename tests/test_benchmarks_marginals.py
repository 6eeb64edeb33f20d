"""Peers and bounds of `benchmarks/marginals` agree with dense matrices of small tables."""

import itertools

import numpy as np
import pytest

from benchmarks.marginals.hdmm import optimised
from benchmarks.marginals.optimum import least_possible
from benchmarks.marginals.trees import any_strategy
from privacy.cells.balance import Asked
from privacy.cells.hierarchy import hierarchy
from privacy.cells.nested import Nested, error


@pytest.mark.parametrize("power", [1, 2])
def test_no_weights_of_marginals_have_less_error_than_those_of_hdmm(power: int) -> None:
    shape = (2, 3)
    asked = Asked(shape, ((0,), (1,), ()), (2.0, 3.0, 1.0))
    found = optimised(asked, power)
    sums = [np.kron(a, b) for a, b in itertools.product((np.ones((1, 2)), np.eye(2)), (np.ones((1, 3)), np.eye(3)))]
    total, second, first, _ = sums
    workload = np.vstack([np.sqrt(2.0 / 2) * first, second, total])
    random = np.random.default_rng(3)
    errors = []
    for weights in random.exponential(size=(3000, 4)) * random.integers(0, 2, (3000, 4)) + 1e-4:
        matrix = np.vstack([weight * one for weight, one in zip(weights, sums, strict=True)])
        error = np.trace(workload @ np.linalg.inv(matrix.T @ matrix) @ workload.T)
        errors.append(error * (weights**power).sum() ** (2 // power))
    assert found * (1 - 1e-6) <= min(errors) <= 1.1 * found
    if power == 2:
        assert found >= least_possible(asked) * (1 - 1e-6)


def test_the_bound_for_any_strategy_is_that_of_singular_values() -> None:
    children = ((2, 1, 3), (1, 2), (2,))
    tree = Nested(children=children, weights=(1, 1, 1, 1))
    matrix = tree.spread(np.eye(6, dtype=np.int64)).T
    shares = np.concatenate([[0.5 / 6] * 6, *([0.5 / 3 / count] * count for count in tree.counts[1:])])
    values = np.linalg.svd(np.sqrt(shares)[:, None] * matrix, compute_uv=False)
    assert any_strategy(children) == pytest.approx(values.sum() ** 2 / 6)
    squares = np.array(hierarchy(children, 2, 1).weights, dtype=float) ** 2
    assert any_strategy(children) <= squares.sum() * error(children, tuple(squares.tolist()))

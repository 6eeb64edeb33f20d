"""Projected histograms: the nearest consistent ones, with intervals that cover what the raw ones covered."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from privacy.cells.layers import Layers
from privacy.cells.mixed import Mixed
from privacy.cells.nonnegative import project_over
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.quadtree import quadtree
from privacy.consistency import consistent, project
from privacy.estimates import Estimates

HISTOGRAMS = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.floats(-1e6, 1e6, width=32)
)


def told(value: np.ndarray, width: float) -> Estimates:
    return Estimates(
        value=value,
        stddev=np.full(value.shape, 0.5 * width),
        ci_low=value - width,
        ci_high=value + width,
    )


@given(HISTOGRAMS)
def test_nothing_is_negative_and_totals_are_kept(raw):
    projected = project(raw)

    assert projected.shape == raw.shape
    assert (projected >= 0).all()
    scale = 1e-12 * (1 + np.abs(raw).sum(axis=1))
    assert (np.abs(projected.sum(axis=1) - np.maximum(raw.sum(axis=1), 0)) <= scale).all()


@given(HISTOGRAMS)
def test_no_other_histogram_of_that_total_is_closer(raw):
    """A point of a convex set is the nearest one iff the way to every corner leads away from the projected point."""
    projected = project(raw)

    for row, nearest in zip(raw, projected, strict=True):
        total = max(row.sum(), 0.0)
        for corner in total * np.eye(len(row)):
            assert (row - nearest) @ (corner - nearest) <= 1e-9 * (1 + np.abs(row).sum()) ** 2


@given(HISTOGRAMS)
def test_consistent_histograms_are_unchanged(raw):
    possible = np.abs(raw)

    np.testing.assert_allclose(project(possible), possible, rtol=0, atol=1e-9 * (1 + possible.sum()))


def test_cells_and_windows_keep_their_places():
    raw = np.array([[3.0, -1.0, 8.0], [8.0, 3.0, -1.0], [-5.0, 0.0, 2.0]])

    assert project(raw).tolist() == [[2.5, 0.0, 7.5], [7.5, 2.5, 0.0], [0.0, 0.0, 0.0]]


@given(HISTOGRAMS, HISTOGRAMS, st.floats(0, 1e6))
def test_the_truth_is_held_whenever_the_raw_interval_held_it(raw, other, width):
    """Cell by cell, for any truth that is not negative; so coverage cannot fall."""
    truth = np.abs(other.ravel()[0]) + np.zeros_like(raw)
    before = told(raw, width)

    after = consistent(before)

    held = (before.ci_low <= truth) & (truth <= before.ci_high)
    assert ((after.ci_low <= truth) & (truth <= after.ci_high))[held].all()
    assert (after.ci_low >= 0).all()
    assert ((after.ci_low <= after.value) & (after.value <= after.ci_high)).all()


def test_intervals_are_cut_at_zero_and_widened_no_more_than_to_the_value():
    raw = np.array([[10.0, -2.0, -7.0], [4.0, 4.0, 4.0]])

    after = consistent(told(raw, 3.0))

    assert after.value.tolist() == [[1.0, 0.0, 0.0], [4.0, 4.0, 4.0]]
    assert after.ci_low.tolist() == [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    assert after.ci_high.tolist() == [[13.0, 1.0, 0.0], [7.0, 7.0, 7.0]]
    assert (after.stddev == 1.5).all()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.data())
def test_the_error_grows_by_no_more_than_twice_that_of_the_total(counts, data):
    """As the module states: |p - x| <= |y - x| + 2 |sum y - sum x|, if the total is not negative."""
    truth = np.array(counts, dtype=float)
    noise = np.array(
        data.draw(st.lists(st.integers(-300, 300), min_size=len(counts), max_size=len(counts))), dtype=float
    )
    raw = truth + noise

    error = np.linalg.norm(project(raw[None])[0] - truth)

    assert raw.sum() < 0 or error <= np.linalg.norm(noise) + 2 * abs(noise.sum()) + 1e-9


def test_a_single_sample_can_have_a_larger_error_as_the_text_warns():
    truth, raw = np.array([[0.0, 0.0, 10.0]]), np.array([[-4.0, -4.0, 10.0]])

    assert np.linalg.norm(project(raw) - truth) == pytest.approx(8)
    assert np.linalg.norm(raw - truth) == pytest.approx(32**0.5)


ROWS = (bytes([4, 4, 4, 0, 1, 0]), bytes([1, 2, 3, 4, 5, 6]))
OVER = [
    Product(axes=(Layers(cells=6, sizes=(1, 2, 6), weights=(1, 3, 2)),)),
    Product(axes=(Prefixes(cells=6),)),
    Product(axes=(Layers(cells=2), Layers(cells=3, sizes=(1, 3), weights=(1, 4)))),
    Product(axes=(Mixed(alone=bytes([1, 1, 2, 1, 3, 1]), rows=ROWS),)),
    Product(axes=(Mixed(alone=bytes([63, 63, 1, 63, 63, 63]), rows=(bytes([1] * 6),)),)),
    Product(
        axes=(
            Mixed(alone=bytes([1, 63, 30]), rows=(bytes([63, 2, 40]),)),
            Mixed(alone=bytes([1, 63]), rows=(bytes([63, 1]),)),
        )
    ),
    Product(axes=(quadtree((2, 3), (True, True)),)),
]


def nearest(raw: np.ndarray, over: Product) -> np.ndarray:
    """Return the best of all sets of cells that are zero, each solved exactly."""
    dense = over.spread(np.eye(over.cells, dtype=np.int64)).T.astype(float)
    gram, best, least = dense.T @ dense, None, np.inf
    for kept in itertools.product([False, True], repeat=over.cells):
        free = np.flatnonzero(kept)
        if not len(free):
            continue
        system = np.block(
            [[gram[np.ix_(free, free)], np.ones((len(free), 1))], [np.ones((1, len(free))), np.zeros((1, 1))]]
        )
        found = np.zeros(over.cells)
        found[free] = np.linalg.solve(system, np.append((gram @ raw)[free], raw.sum()))[:-1]
        off = (found - raw) @ gram @ (found - raw)
        if (found >= -1e-12).all() and off < least:
            best, least = found, off
    assert best is not None
    return best


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("over", OVER, ids=str)
def test_under_a_strategy_over_cells_the_nearest_is_nearest_in_its_nodes(over: Product) -> None:
    raw = np.random.default_rng(5).normal(0.5, 1.0, (6, over.cells)) * 4 * np.sqrt(over.variances())
    raw = raw[raw.sum(axis=1) > 0][:3]
    assert (raw < 0).any(axis=1).all()
    found = project_over(raw, over)
    assert found == pytest.approx(np.array([nearest(row, over) for row in raw]), abs=1e-6)
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(raw.sum(axis=1))
    assert all((project_over(row[None], over) == own).all() for row, own in zip(raw, found, strict=True))
    assert (project_over(-raw, over) == 0).all()


def test_sums_over_empty_cells_stay_near_which_the_euclidean_projection_spoils() -> None:
    """16 of 64 cells have entries. The noise is synthetic, with one seed: no property of a sampler is tested."""
    noise = np.random.default_rng(6)
    over = Product(axes=(Layers(cells=64, sizes=(1, 4, 16), weights=(1, 1, 1)),))
    truth = np.where(np.arange(64) < 16, 40, 0)
    raw = over.gather(over.spread(truth) + noise.laplace(scale=10.0, size=(40, over.nodes)))

    def off(found: np.ndarray) -> float:
        return float(np.sqrt(((found[:, 16:].sum(axis=1) - 0) ** 2).mean()))

    assert off(project_over(raw, over)) < 0.4 * off(project(raw))
    assert ((project_over(raw, over) - truth) ** 2).mean() < 0.7 * ((raw - truth) ** 2).mean()

"""All nodes of a tree together: least squares compared with dense matrices, also if nodes have no reports."""

from itertools import combinations

import numpy as np

from privacy.local.basis import Floats
from privacy.local.bound import LocalBound
from privacy.local.candidates import tree, variances_of
from privacy.local.collector import _sway, changes, levels
from privacy.local.design import SHARES
from privacy.local.least_squares import change_variances, level_variances, node_weights
from privacy.local.mutation_space import MutationSpace
from privacy.local.tallies import Tally


def trees() -> list[tuple[list[int], int]]:
    """Yield spans and windows: whole trees, and trees that end within a node."""
    return [([1], 3), ([1, 2], 4), ([1, 2], 5), ([1, 3, 6], 14), ([1, 2, 4, 8], 23), ([1, 4], 11)]


def test_weights_are_those_of_dense_least_squares_and_missing_without_reports() -> None:
    """A third of the nodes have no reports; weights exist for determined sums, and NaN for others."""
    rng = np.random.default_rng(20261122)
    known = unknown = 0
    for spans, windows in trees() * 3:
        for lost in (0.0, 0.3, 0.6):
            precisions = [rng.uniform(0.2, 3, windows // s) * (rng.random(windows // s) >= lost) for s in spans]
            nodes = np.array(
                [[float(n * s <= w < (n + 1) * s) for w in range(windows)] for s in spans for n in range(windows // s)]
            )
            w = np.concatenate(precisions)
            normal = nodes.T @ (nodes * w[:, None])
            inverse = np.linalg.pinv(normal, rcond=1e-10)
            for sums in (np.tri(windows), np.eye(windows)):
                found = np.concatenate(node_weights(spans, precisions, sums), axis=1)
                for row, total in zip(found, sums, strict=True):
                    if np.allclose(normal @ inverse @ total, total, atol=1e-7):
                        np.testing.assert_allclose(row, (nodes * w[:, None]) @ inverse @ total, atol=1e-7)
                        np.testing.assert_allclose(row @ nodes, total, atol=1e-9)  # unbiased for any truth
                        known += 1
                    else:
                        assert np.isnan(row).all()
                        unknown += 1
    assert min(known, unknown) > 100


def test_variances_along_paths_are_those_of_the_weights() -> None:
    rng = np.random.default_rng(5)
    for spans, windows in trees():
        each = rng.uniform(0.3, 3, len(spans))
        precisions = [np.full(windows // span, 1 / one) for span, one in zip(spans, each, strict=True)]
        for sums, path in ((np.tri(windows), level_variances), (np.eye(windows), change_variances)):
            weights = node_weights(spans, precisions, sums)
            dense: Floats = np.sum([(w**2).sum(axis=1) * one for w, one in zip(weights, each, strict=True)], axis=0)
            np.testing.assert_allclose(path(spans, list(each), windows), dense, rtol=1e-9)


def test_a_collector_states_the_planned_variances_and_returns_exact_sums() -> None:
    """Everybody is in their layer, and sums have no noise: levels are exact, with the variance of the plan."""
    design = tree(MutationSpace(answers=1), LocalBound(at_most=2), windows=7, arity=2, height=3, epsilon=1.0)
    rises = np.array([5, 3, -2, 0, 4, 0, 1]) * 1024
    tallies = {}
    for number, layer in enumerate(design.layers):
        gain = float(layer.randomiser.gain)  # type: ignore[union-attr]
        for node in range(7 // layer.span):
            total = rises[node * layer.span : (node + 1) * layer.span].sum()
            sums = np.array([total * gain * layer.share / SHARES])
            tallies[number, node] = Tally(reports=layer.share, sums=sums)

    for series, expected in ((levels, np.cumsum(rises)), (changes, rises)):
        found = series(design, tallies, people=SHARES, windows=7)
        np.testing.assert_allclose(found.values[:, 0], expected, atol=1e-6)
        stated = SHARES * variances_of(design, "level" if series is levels else "change")
        np.testing.assert_allclose(found.variances[:, 0], stated, rtol=1e-9)
        assert (found.highs > found.values + 1.96 * np.sqrt(found.variances[:, :1])).all()
    # Windows that have not closed yet have no part in it.
    early = levels(design, tallies, people=SHARES, windows=3)
    np.testing.assert_allclose(early.values[:, 0], np.cumsum(rises)[:3], atol=1e-6)


def test_how_far_changes_in_turns_lead_is_that_of_all_of_them() -> None:
    """Every choice of nodes in which a person's answer changes, arriving and leaving alternately, either first."""
    rows = np.random.default_rng(7).normal(size=(20, 6))

    found = _sway(rows)

    for row, most in zip(rows, found, strict=True):
        sums = [
            abs(sum(weight * (-1) ** place for place, weight in enumerate(some)))
            for count in range(7)
            for some in combinations(row.tolist(), count)
        ]
        assert abs(most - max(sums)) < 1e-12
    assert _sway(-np.eye(3)).tolist() == [1.0, 1.0, 1.0]

"""References for our errors: the lower bound, which nothing known goes below; the paper's tree; OpenDP's."""

import itertools
import math

import numpy as np
import pytest

from benchmarks.error import lower_bounds, opendp_tree, paper
from benchmarks.error.lower_bounds import closed_form, mean_variance, second_moment
from benchmarks.error.setting import Setting, sigma


def trajectories(windows: int, changes: int) -> np.ndarray:
    """Return all z with at most `changes` changes, +1 and -1 alternately, [trajectories, windows]."""
    rows = []
    for count in range(1, changes + 1):
        for places in itertools.combinations(range(windows), count):
            row = np.zeros(windows)
            row[list(places)] = (-1.0) ** np.arange(count)
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(("windows", "changes"), [(1, 1), (2, 2), (5, 1), (6, 2), (7, 3), (8, 5), (6, 6)])
def test_the_second_moment_is_that_of_all_sets_of_windows(windows: int, changes: int) -> None:
    drawn = [z for z in trajectories(windows, changes) if np.abs(z).sum() == changes]

    expected = np.mean([np.outer(z, z) for z in drawn], axis=0)

    np.testing.assert_allclose(second_moment(windows, changes, windows), expected, atol=1e-12)


@pytest.mark.parametrize(("windows", "changes", "stretch"), [(6, 1, 2), (7, 2, 3), (8, 3, 4), (5, 2, 2)])
def test_within_a_stretch_the_place_is_also_random(windows: int, changes: int, stretch: int) -> None:
    inner = second_moment(stretch, changes, stretch)
    expected = np.zeros((windows, windows))
    for place in range(windows - stretch + 1):
        expected[place : place + stretch, place : place + stretch] += inner / (windows - stretch + 1)

    np.testing.assert_allclose(second_moment(windows, changes, stretch), expected, atol=1e-12)


def factorisations(workload: np.ndarray) -> dict[str, np.ndarray]:
    """Yield strategies C, [nodes, windows], for a workload A in the span of the rows of C."""
    windows = workload.shape[1]
    half = [math.comb(2 * j, j) / 4**j for j in range(windows)]
    steps = np.subtract.outer(np.arange(windows), np.arange(windows))
    root = np.where(steps >= 0, np.array(half)[np.maximum(steps, 0)], 0.0)
    pairs = np.kron(np.eye(windows // 2), np.ones(2))
    return {
        "identity": np.eye(windows),
        "workload": np.vstack([workload, 1e-3 * np.eye(windows)]),
        "tree": np.vstack([np.eye(windows), pairs]),
        "square root": root,
    }


@pytest.mark.parametrize("changes", [1, 2, 3, 5])
@pytest.mark.parametrize("width", [None, 2, 3])
def test_no_factorisation_goes_below(changes: int, width: int | None) -> None:
    """Sensitivity by exhaustion, variance by the best linear estimate."""
    windows = 8
    levels = np.tril(np.ones((windows, windows)))
    workload = levels if width is None else (levels - np.tril(np.ones_like(levels), -width))[width - 1 :]
    least = mean_variance(second_moment(windows, changes, windows), width)
    moves = trajectories(windows, changes)

    found = {}
    for name, strategy in factorisations(workload).items():
        squared = (np.linalg.norm(moves @ strategy.T, axis=1) ** 2).max()
        weights = workload @ np.linalg.pinv(strategy)
        found[name] = squared * (weights**2).sum() / len(workload)

    assert all(error >= least * (1 - 1e-9) for error in found.values()), (least, found)
    if changes <= 3:
        assert min(found.values()) < 2.5 * least  # the bound is not vacuous: one of these few comes near


def test_one_change_among_two_windows_is_exact() -> None:
    """Levels of two windows, one change: (|A|_* of the ones)^2 / 4 = 5 / 4, reached by the symmetric root of K."""
    least = mean_variance(second_moment(2, 1, 2), None)
    values, vectors = np.linalg.eigh(np.array([[1.0, 1.0], [1.0, 2.0]]) / 2)
    noise = (vectors * np.sqrt(values)) @ vectors.T * np.sqrt(values).sum()  # covariance, up to the worst move

    worst = max(z @ np.linalg.inv(noise) @ z for z in (np.array([1.0, 1.0]), np.array([0.0, 1.0])))

    assert least == pytest.approx(1.25)
    assert np.trace(noise) / 2 == pytest.approx(least)
    assert worst >= 1 - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("windows", "changes", "stated"), [(1024, 8, 34.6), (128, 1, 5.08), (365, 16, 37.7)])
def test_levels_have_the_bounds_that_were_computed_before(windows: int, changes: int, stated: float) -> None:
    least = mean_variance(second_moment(windows, changes, windows), None)

    assert least == pytest.approx(stated, rel=0.005)


@pytest.mark.parametrize(("windows", "changes"), [(64, 1), (64, 4), (96, 8), (365, 5), (12, 12)])
def test_the_closed_form_is_a_weaker_bound(windows: int, changes: int) -> None:
    least = mean_variance(second_moment(windows, changes, windows), None)

    assert closed_form(windows, changes) <= least
    if windows > 4 * changes:
        assert closed_form(windows, changes) > 0.5 * least


def test_long_lines_of_sliding_windows_tend_to_the_lebesgue_constant() -> None:
    """Without an end the bound for one change is the squared mean of |symbol|: 3.16 for 7 windows."""
    angle = (np.arange(200_000) + 0.5) * math.pi / 200_000
    symbol = np.abs(np.sin(7 * angle / 2) / np.sin(angle / 2)).mean()

    least = mean_variance(second_moment(400, 1, 400), 7)

    assert symbol**2 == pytest.approx(3.16, abs=0.005)
    assert least == pytest.approx(symbol**2, rel=0.01)


def test_a_time_span_of_the_whole_line_is_the_best_number_of_changes() -> None:
    whole = Setting(windows=32, changes=None, span=31)

    most = max(lower_bounds.rmse(Setting(windows=32, changes=k)) for k in (1, 3, 5, 9))

    assert lower_bounds.rmse(whole) == pytest.approx(most)


def test_the_budget_scales_the_bound_as_it_scales_gaussian_noise() -> None:
    strict, loose = (lower_bounds.rmse(Setting(windows=16, epsilon=e)) for e in (0.5, 2.0))

    assert strict / loose == pytest.approx(sigma(0.5, 1e-9) / sigma(2.0, 1e-9))


def test_the_papers_binary_tree_has_the_error_that_is_compared_with() -> None:
    """k = 4 changes of 10 layers each, scale 40; 5.003 nodes of a prefix on average, and the initial level."""
    setting = Setting()

    assert paper.touched(setting, paper.Way(2, 10)) == 40
    assert paper.binary(setting, "laplace") == pytest.approx(40 * math.sqrt(2 * 6.003), rel=1e-3)


@pytest.mark.parametrize(("branching", "height"), [(2, 1), (2, 3), (3, 3), (5, 2)])
def test_covers_are_the_least(branching: int, height: int) -> None:
    """Compared with the shortest path over all complete nodes."""
    windows = 40
    begins, ends = np.triu_indices(windows + 1, 1)
    sizes = paper.cover_sizes(begins, ends, branching, height)

    for begin in range(windows):
        shortest = {begin: 0}
        for end in range(begin + 1, windows + 1):
            lengths = [branching**i for i in range(height) if end % branching**i == 0]
            shortest[end] = min(shortest[end - n] + 1 for n in lengths if end - n in shortest)
        np.testing.assert_array_equal(sizes[begins == begin], [shortest[e] for e in range(begin + 1, windows + 1)])


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("width", [None, 7])
def test_opendp_is_charged_for_the_numbers_its_own_code_publishes(width: int | None) -> None:
    """Its tree, its noise and its consistency, run on zeros, scatter by the exact variance.

    A sum of Laplace noise has kurtosis 6 at most, so that the mean of 4,000 squares has a standard error below
    sqrt(5 / 4,000) = 3.6 % of it; 22 % are six of them, which happens less than once in 1e6 times.
    """
    import opendp.prelude as dp

    setting = Setting(windows=20, width=width)
    branching = dp.t.choose_branching_factor(setting.leaves)
    tree = opendp_tree.tree_of(setting.leaves, branching)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching, TIA=int, TOA=float)
    release = tree >> dp.m.then_laplace(scale=float(tree.map(setting.touched))) >> consistent

    assert release.map(setting.touched) <= setting.epsilon * (1 + 1e-9)
    noise = np.cumsum([release([0] * setting.leaves) for _ in range(4_000)], axis=1)
    if width is None:
        noise = noise[:, 1:]
    else:
        before = np.pad(noise, ((0, 0), (1, 0)))
        noise = before[:, width:] - before[:, :-width]

    assert (noise**2).mean() == pytest.approx(opendp_tree.rmse(setting, "laplace") ** 2, rel=0.22)

"""What every strategy promises (privacy.strategies.base.Strategy), held against all of them."""

from collections.abc import Callable

import numpy as np
import pytest

from privacy.series import BEFORE_ALL, Series, totals
from privacy.strategies.choice import FORMS
from privacy.strategies.direct import Direct
from privacy.strategies.factorised import Factorised
from privacy.strategies.factorised_fitting import fit
from privacy.strategies.tree import Tree

WINDOWS = 53
LEVEL, CHANGE, WEEK = Series(kind="level"), Series(kind="change"), Series(kind="sliding", width=7, every=2)


def factorised(form: str, windows: int | None, opening: bool) -> Factorised:
    over = 1024 if windows is None else windows
    return fit(form, windows=windows, over=over, opening=opening, series=[LEVEL], energy=lambda c: float((c**2).sum()))


Strategies = dict[str, tuple[Callable[[bool], Tree | Direct | Factorised], tuple[Series, ...]]]
MADE: Strategies = {
    **{
        f"{refine} {c} {h} {windows}": (
            lambda opening, c=c, h=h, refine=refine, windows=windows: Tree(
                branching=c, height=h, refine=refine, windows=windows, opening=opening
            ),
            (LEVEL, CHANGE, WEEK),
        )
        for refine in ("none", "subtraction", "bottom_up", "least_squares")
        for c, h in ((2, 1), (2, 4), (3, 3))
        for windows in (WINDOWS, None)
    },
    "direct": (lambda opening: Direct(width=7, every=2, windows=WINDOWS), (WEEK,)),
    **{form: (lambda opening, form=form: factorised(form, WINDOWS, opening), (LEVEL, CHANGE, WEEK)) for form in FORMS},
    "window without end": (lambda opening: factorised("window", None, opening), (LEVEL, CHANGE, WEEK)),
}


@pytest.fixture(params=MADE)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[True, False], ids=["opening", "no opening"])
def strategy(request: pytest.FixtureRequest, name: str) -> Tree | Direct | Factorised:
    return MADE[name][0](request.param)


@pytest.fixture
def leaves() -> np.ndarray:
    return np.random.default_rng(2).integers(-(2**30), 2**30, (WINDOWS + 1, 3))


def noise_for(strategy: Tree | Direct | Factorised, windows: int = WINDOWS) -> np.ndarray:
    """Rows of noise stay where they are when more windows close."""
    all_rows = np.random.default_rng(3).integers(-(2**30), 2**30, (strategy.draws(WINDOWS), 3))
    return all_rows[: strategy.draws(windows)]


def test_an_estimate_never_changes_by_a_byte_whatever_comes_later(name, strategy, leaves):
    for series in MADE[name][1]:
        final = strategy.publish(series, leaves, noise_for(strategy))
        for windows in (1, 6, 7, 8, 26, 27, 28, 52):
            early = strategy.publish(series, leaves[: windows + 1], noise_for(strategy, windows))
            assert early.tobytes() == final[: len(early)].tobytes()
            assert len(early) == len(series.ends(windows))


def test_told_nodes_never_change_and_more_are_appended(strategy, leaves):
    final, (nodes, _) = strategy.nodes(WINDOWS), strategy.advance(None, leaves)
    noise = noise_for(strategy)
    for windows in (0, 1, 8, 27, 52):
        told, (exact, _) = strategy.nodes(windows), strategy.advance(None, leaves[: windows + 1])
        count = len(told.layer)
        assert count == len(exact) <= strategy.draws(windows)
        assert np.array_equal(exact + noise_for(strategy, windows)[:count], (nodes + noise[: len(nodes)])[:count])
        for column in ("layer", "begin", "end"):
            assert np.array_equal(getattr(told, column), getattr(final, column)[:count])


def test_nodes_end_when_their_leaves_have_closed_and_the_opening_comes_first(strategy):
    told = strategy.nodes(WINDOWS)

    assert (np.diff(told.end) >= 0).all()
    assert told.end.max() <= WINDOWS
    assert (told.begin < told.end).all()
    assert (told.begin[0] == BEFORE_ALL) == (not isinstance(strategy, Direct) and strategy.opening)
    assert BEFORE_ALL not in told.begin[1:]


def test_leaf_by_leaf_is_all_at_once(strategy, leaves):
    at_once, _ = strategy.advance(None, leaves)
    parts, carry = [], None
    for start, stop in ((0, 1), (1, 2), (2, 9), (9, 10), (10, 40), (40, WINDOWS + 1)):
        nodes, carry = strategy.advance(carry, leaves[start:stop])
        parts.append(nodes)

    assert np.array_equal(np.concatenate(parts), at_once)


def test_what_is_published_is_exact_plus_weighted_noise(name, strategy, leaves):
    """The weights are found from unit vectors of noise, one draw at a time; the stated ones have the same sizes."""
    rows = strategy.draws(WINDOWS)
    for series in MADE[name][1]:
        nothing = np.zeros((WINDOWS + 1, rows), dtype=np.int64)
        found = strategy.publish(series, nothing, np.eye(rows, dtype=np.int64) << 40) / 2**40
        variances = strategy.variances(series, WINDOWS)

        np.testing.assert_allclose((found**2).sum(axis=1), variances, rtol=1e-6)
        for row, weights in zip(found, strategy.weights(series, WINDOWS), strict=True):
            np.testing.assert_allclose(
                np.sort(np.abs(row))[::-1], np.pad(np.sort(weights)[::-1], (0, rows - len(weights))), atol=1e-6
            )
        noise = noise_for(strategy)
        exact = totals(
            series, leaves if strategy_has_opening(strategy) else leaves * (np.arange(WINDOWS + 1) > 0)[:, None]
        )
        told = strategy.publish(series, leaves, noise)
        np.testing.assert_allclose(told - found @ noise, exact, atol=2.0**30 * 1e-4)


def strategy_has_opening(strategy: Tree | Direct | Factorised) -> bool:
    return isinstance(strategy, Direct) or strategy.opening


def test_the_noise_of_a_told_node_is_its_own_row(strategy, leaves):
    """Without data and with noise in one row alone, no number before the row is drawn is told otherwise than 0."""
    series = WEEK if isinstance(strategy, Direct) else CHANGE
    rows = strategy.draws(WINDOWS)
    noise = np.eye(rows, dtype=np.int64) << 20
    told = strategy.publish(series, np.zeros((WINDOWS + 1, rows), dtype=np.int64), noise)
    for windows in (1, 8, 27):
        count, drawn = len(series.ends(windows)), strategy.draws(windows)
        assert not told[:count, drawn:].any()

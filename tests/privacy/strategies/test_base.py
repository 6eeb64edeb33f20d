"""Requirements of every strategy (privacy.strategies.base.Strategy), checked for all of them."""

from collections.abc import Callable

import numpy as np
import pytest

from privacy.series import BEFORE_ALL, Series
from privacy.strategies.base import Strategy
from privacy.strategies.direct.direct import Direct
from privacy.strategies.direct.weighted import WeightedLevels
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.fitting import FAMILIES, fit
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from privacy.strategies.window_budgets import WHOLE, Shares
from tests.privacy.steps import listed, noise_matrix, sampled

WINDOWS = 53
LEVEL, CHANGE, WEEK = Series(kind="level"), Series(kind="change"), Series(kind="sliding", width=7, every=2)


def factorised(form: str, windows: int | None, initial_level: bool) -> Factorised:
    over = 1024 if windows is None else windows
    return fit(
        form,
        windows=windows,
        over=over,
        initial_level=initial_level,
        series=[LEVEL],
        energy=lambda found: float((found.coefficients**2).sum()),
    )


Strategies = dict[str, tuple[Callable[[bool], Strategy], tuple[Series, ...]]]
MADE: Strategies = {
    **{
        f"{refine} {c} {h} {windows}": (
            lambda initial_level, c=c, h=h, refine=refine, windows=windows: Tree(
                branching=c, height=h, refine=refine, windows=windows, initial_level=initial_level
            ),
            (LEVEL, CHANGE, WEEK),
        )
        for refine in ("none", "subtraction", "bottom_up", "least_squares")
        for c, h in ((2, 1), (2, 4), (3, 3))
        for windows in (WINDOWS, None)
    },
    "weighted": (
        lambda initial_level: WeightedLevels(
            windows=WINDOWS, worth=(1.0, 4.0), shares=Shares(parts=(WHOLE // 3, WHOLE // 5), least=1.0)
        ),
        (LEVEL,),
    ),
    "direct": (lambda initial_level: Direct(windows=WINDOWS), (LEVEL, CHANGE, WEEK)),
    "sliding": (lambda initial_level: Sliding(width=7, every=2, windows=WINDOWS), (WEEK,)),
    **{
        form: (lambda initial_level, form=form: factorised(form, WINDOWS, initial_level), (LEVEL, CHANGE, WEEK))
        for form in FAMILIES
    },
    "window without end": (lambda initial_level: factorised("window", None, initial_level), (LEVEL, CHANGE, WEEK)),
}


@pytest.fixture(params=MADE)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[True, False], ids=["initial_level", "no initial level"])
def strategy(request: pytest.FixtureRequest, name: str) -> Strategy:
    return MADE[name][0](request.param)


@pytest.mark.slow
def test_nodes_end_when_their_leaves_have_closed_and_the_initial_level_comes_first(strategy):
    found = strategy.nodes(WINDOWS)

    assert (np.diff(found.end) >= 0).all()
    assert found.end.max() <= WINDOWS
    assert (found.begin < found.end).all()
    if isinstance(strategy, Direct | WeightedLevels):
        assert (found.begin == BEFORE_ALL).all()
        return
    assert (found.begin[0] == BEFORE_ALL) == (not isinstance(strategy, Sliding) and strategy.initial_level)
    assert BEFORE_ALL not in found.begin[1:]


@pytest.mark.slow
def test_nodes_of_two_runs_are_those_of_one(strategy):
    for windows in (0, 1, 8, 27, 52):
        both = strategy.nodes(windows), strategy.nodes(WINDOWS, since=windows)
        assert [node for part in both for node in listed(part)] == listed(strategy.nodes(WINDOWS))


@pytest.mark.slow
@pytest.mark.few(13)
def test_variances_and_weights_are_those_of_the_noise_in_published_numbers(name, strategy):
    """The noise in a number is found from unit vectors, one node at a time."""
    nodes = sampled(strategy, WINDOWS)
    for series in MADE[name][1]:
        matrix = noise_matrix(strategy, series, WINDOWS, nodes, scale=1 << 40)
        if (stretch := strategy.stretch(strategy.nodes(WINDOWS))) is not None:
            matrix = matrix * stretch  # the noise of a node is wider by this factor
        for since in (0, 25):
            found = matrix[len(series.ends(since)) :]
            variances = strategy.variances(series, WINDOWS, since=since)
            np.testing.assert_allclose((found**2).sum(axis=1), variances, rtol=1e-6)
            for row, weights in zip(found, strategy.weights(series, WINDOWS, since=since), strict=True):
                sizes = np.pad(np.sort(weights)[::-1], (0, len(nodes) - len(weights)))
                np.testing.assert_allclose(np.sort(np.abs(row))[::-1], sizes, atol=1e-6)


@pytest.mark.parametrize(
    "strategy",
    [Tree(branching=3, height=5, refine=refine, windows=None, initial_level=True) for refine in ("bottom_up", "none")]
    + [factorised(form, 150, True) for form in ("square_root", "leaky", "window", "arma")],
    ids=["bottom_up", "none", "square_root", "leaky", "window", "arma"],
)
def test_a_number_has_the_same_variance_in_any_run_to_the_last_bit(strategy):
    """So a release run every night publishes the same standard deviations as one that runs once."""
    nightly = [strategy.variances(LEVEL, night, since=night - 1) for night in range(1, 151)]

    assert np.concatenate(nightly).tobytes() == strategy.variances(LEVEL, 150).tobytes()

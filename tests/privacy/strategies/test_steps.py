"""Many steps give the same result as one, bit by bit; and it is A x + W z, by independent dense matrices."""

from collections.abc import Callable
from functools import lru_cache

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.series import Series, totals
from privacy.strategies.base import Strategy
from privacy.strategies.direct.direct import Direct
from privacy.strategies.direct.weighted import WeightedLevels
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.exponential_kernel import Exponentials
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.fitting import FAMILIES, dyadic, zolotarev
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from privacy.strategies.window_budgets import WHOLE, Shares
from tests.privacy.steps import Node, Recorded, listed, nodes_matrix, noise_matrix, sampled, stepped
from tests.searches import examples

WINDOWS, CELLS = 29, 3
LEVEL, CHANGE, ENTERED = Series(kind="level"), Series(kind="change"), Series(kind="entered")
WEEKS = [Series(kind="sliding", width=w, every=e) for w, e in ((7, 2), (3, 5), (1, 1), (12, 1))]
POLES = dyadic(*zolotarev(0.02, 0.02, 4))
SHAPES = ((2, 1), (2, 4), (2, 7), (3, 3), (7, 2), (35, 2))


def trees(refine: str, windows: int | None) -> list[Strategy]:
    return [
        Tree(branching=c, height=h, refine=refine, windows=windows, initial_level=initial_level)
        for c, h in SHAPES
        for initial_level in (True, False)
    ]


def factorised(form: str, windows: int | None) -> list[Strategy]:
    kernel = {
        "square_root": Coefficients(),
        "leaky": Coefficients(leak=0.05),
        "window": Coefficients(leak=0.3, ends=True),
        "arma": Exponentials(poles=POLES),
    }[form]
    return [Factorised(kernel=kernel, windows=windows, initial_level=opens) for opens in (True, False)]


def kinds() -> list:
    """Yield strategies of each kind with a number of closed windows: of all, of some, and without an end."""
    found = [
        pytest.param(trees(refine, windows), closed, id=f"{refine}-{windows}")
        for refine in ("none", "subtraction", "bottom_up", "least_squares")
        for windows, closed in ((WINDOWS, WINDOWS), (WINDOWS + 9, WINDOWS), (None, WINDOWS))
    ]
    found += [
        pytest.param(factorised(form, windows), WINDOWS, id=f"{form}-{windows}")
        for form in ("square_root", "leaky", "window", "arma")
        for windows in (WINDOWS, WINDOWS + 9, *([None] if form == "window" else []))
    ]
    sliding = [
        Sliding(width=week.width, every=week.every, windows=windows) for week in WEEKS for windows in (WINDOWS, None)
    ]
    direct: list[Strategy] = [Direct(windows=windows) for windows in (WINDOWS, WINDOWS + 9, None)]
    shares = Shares(parts=(WHOLE // 3, WHOLE // 5), least=1.0)
    direct.append(WeightedLevels(windows=None, worth=(1.0, 2.0), shares=shares))
    return [*found, pytest.param(sliding, WINDOWS, id="sliding"), pytest.param(direct, WINDOWS, id="direct")]


linear = pytest.mark.parametrize(
    ("strategies", "closed"),
    [kind for kind in kinds() if kind.id.split("-")[0] not in ("subtraction", "direct", *FAMILIES)],
)
each_kind = pytest.mark.parametrize(("strategies", "closed"), kinds())


def series_of(strategy: Strategy) -> list[Series]:
    if isinstance(strategy, Sliding):
        return [Series(kind="sliding", width=strategy.width, every=strategy.every)]
    if isinstance(strategy, WeightedLevels):
        return [LEVEL]
    return [LEVEL, CHANGE, *WEEKS, ENTERED]


@pytest.mark.few(5)
@each_kind
@examples(13)
@given(data=st.data())
def test_many_steps_are_one_step_to_the_last_bit(strategies: list[Strategy], closed: int, data: st.DataObject) -> None:
    strategy = data.draw(st.sampled_from(strategies))
    some = data.draw(st.lists(st.sampled_from(series_of(strategy)), unique=True, max_size=4))
    cuts = data.draw(st.lists(st.integers(1, closed + 1), max_size=12))
    salt = data.draw(st.integers(0, 2**32))
    leaves = np.random.default_rng(salt).integers(-(1 << 45), 1 << 45, (1 + closed, CELLS))
    at_once, in_parts = Recorded(CELLS, bits=45, salt=salt), Recorded(CELLS, bits=45, salt=salt)

    nodes, numbers, (carry,) = stepped(strategy, leaves, at_once, some)
    nodes_too, numbers_too, carries = stepped(strategy, leaves, in_parts, some, cuts)

    assert nodes.tobytes() == nodes_too.tobytes()
    assert [n.tobytes() for n in numbers] == [n.tobytes() for n in numbers_too]
    assert sorted(at_once.asked) == sorted(in_parts.asked)
    assert len(nodes) == len(strategy.nodes(closed).end)
    for name in ("integers", "floats"):
        one, other = getattr(carry, name), getattr(carries[-1], name)
        assert {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in other.items()}
    for found in carries:
        rows = [len(r) for r in (*found.integers.values(), *found.floats.values())]
        assert sum(rows) == strategy.carried(found.windows, some)


@lru_cache(maxsize=256)
def oracle(strategy: Strategy, series: Series, windows: int) -> tuple[list[Node], np.ndarray, np.ndarray]:
    """Return the sampled nodes, W [numbers, nodes] and A [numbers, leaves]; future windows are leaves too."""
    nodes = sampled(strategy, windows)
    last = max([windows, *(end for _, _, end in nodes)])
    asked = np.zeros((len(series.ends(windows)), 1 + last))
    asked[:, : 1 + windows] = totals(series, np.eye(1 + windows, dtype=np.int64))
    matrix = nodes_matrix(nodes, last).astype(float)
    if not isinstance(strategy, Sliding) and not strategy.initial_level:
        asked[:, 0] = 0
    return nodes, WAYS[getattr(strategy, "refine", "none")](nodes, matrix, asked), asked


def covered(nodes: list[Node], matrix: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return the nodes inside a range that lie in no larger one inside it."""
    layer = np.array([node[0] for node in nodes])
    inside = (matrix <= asked[:, None]).all(axis=2)
    under = (matrix[:, None] <= matrix).all(axis=2) & (layer[:, None] < layer)
    return (inside & ~(inside @ under.T)).astype(float)


def from_below(nodes: list[Node], matrix: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return each node of the cover by its best estimate from itself and all nodes below it."""
    best = np.zeros((len(nodes), len(nodes)))
    for i, row in enumerate(matrix):
        below = [j for j in range(len(nodes)) if nodes[j][0] <= nodes[i][0] and (matrix[j] <= row).all()]
        best[i, below] = row @ np.linalg.pinv(matrix[below])
    return covered(nodes, matrix, asked) @ best


def from_all(nodes: list[Node], matrix: np.ndarray, asked: np.ndarray) -> np.ndarray:
    return asked @ np.linalg.pinv(matrix)


WAYS: dict[str, Callable[[list[Node], np.ndarray, np.ndarray], np.ndarray]] = {
    "none": covered,
    "bottom_up": from_below,
    "least_squares": from_all,
}


@pytest.mark.slow
@pytest.mark.few(3)
@linear
def test_numbers_are_the_exact_ones_plus_weighted_noise_of_nodes(strategies: list[Strategy], closed: int) -> None:
    """Exactly in integers, closely if numbers are refined; test_factorised.py has this for rounded nodes."""
    for strategy in strategies:
        leaves = np.random.default_rng(5).integers(-(1 << 40), 1 << 40, (1 + closed, CELLS))
        noise = Recorded(CELLS, bits=38)
        nodes, numbers, _ = stepped(strategy, leaves, noise, series_of(strategy), [1, 2, 9, 30])

        for series, told in zip(series_of(strategy), numbers, strict=True):
            names, weights, asked = oracle(strategy, series, closed)
            rows = np.array([noise.row(name) for name in names])
            exact = (asked[:, : 1 + closed] @ leaves) + weights @ rows
            if getattr(strategy, "refine", "none") == "none":
                np.testing.assert_array_equal(told, exact)
            else:
                np.testing.assert_allclose(told, exact, rtol=0, atol=0.01)
        there = listed(strategy.nodes(closed))
        exact = nodes_matrix(there, closed) @ leaves + np.array([noise.row(node) for node in there])
        np.testing.assert_array_equal(nodes, exact)


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(("horizon", "closed"), [(WINDOWS, WINDOWS), (WINDOWS + 9, WINDOWS), (None, WINDOWS)])
def test_subtraction_uses_as_few_nodes_as_there_can_be(horizon: int | None, closed: int) -> None:
    """The noise of a number is that of signed nodes that add up to it: as many as a shortest walk of boundaries."""
    for tree in trees("subtraction", horizon):
        nodes = sampled(tree, closed)
        last = max(end for _, _, end in nodes)
        walks = networkx.Graph((begin, end) for _, begin, end in nodes if begin >= 0)
        leaves = np.random.default_rng(6).integers(-(1 << 50), 1 << 50, (1 + closed, CELLS))
        noise = Recorded(CELLS, bits=45)
        _, numbers, _ = stepped(tree, leaves, noise, series_of(tree), [1, 2, 9, 30])
        for series, told in zip(series_of(tree), numbers, strict=True):
            weights = noise_matrix(tree, series, closed, nodes)
            asked = totals(series, np.eye(1 + closed, dtype=np.int64)) * ([[int(tree.initial_level)] + [1] * closed])
            assert set(np.unique(weights)) <= {-1.0, 0.0, 1.0}
            held = weights @ nodes_matrix(nodes, last)
            np.testing.assert_array_equal(held[:, : 1 + closed], asked)
            assert not held[:, 1 + closed :].any()
            rows = np.array([noise.row(node) for node in nodes])
            np.testing.assert_array_equal(told, (asked @ leaves + weights.astype(np.int64) @ rows).astype(float))
            first = int(tree.initial_level and series.kind == "level")
            for begin, end, row in zip(series.begins(closed), series.ends(closed), weights, strict=True):
                steps = networkx.shortest_path_length(walks, max(0, int(begin)), int(end))
                assert np.count_nonzero(row) == first + steps


@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize(
    "strategy",
    [
        *(
            Tree(branching=2, height=11, refine=r, windows=w, initial_level=True)
            for r in ("none", "bottom_up")
            for w in (1461, None)
        ),
        Tree(branching=4, height=6, refine="subtraction", windows=1461, initial_level=True),
        Sliding(width=30, every=1, windows=None),
        Direct(windows=None),
        Factorised(kernel=Coefficients(leak=0.1, ends=True), windows=None, initial_level=True),
        Factorised(kernel=Exponentials(poles=POLES), windows=1461, initial_level=True),
    ],
    ids=str,
)
def test_the_carry_does_not_grow_with_the_windows(strategy: Strategy) -> None:
    series = [Series(kind="sliding", width=30)] if isinstance(strategy, Sliding) else [LEVEL, WEEKS[0]]
    after_a_year = max(strategy.carried(windows, series) for windows in range(365))

    assert strategy.bounded
    assert max(strategy.carried(windows, series) for windows in range(365, 1461)) <= 1.5 * after_a_year
    assert after_a_year <= 320


@pytest.mark.parametrize("form", ["square_root", "leaky"])
def test_filters_that_never_end_carry_every_leaf(form: str) -> None:
    (chosen, _) = factorised(form, 1000)

    assert not chosen.bounded
    assert [chosen.carried(closed, [LEVEL]) for closed in (0, 10, 900)] == [3, 23, 1803]

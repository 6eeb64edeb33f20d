"""Trees against dense matrices: C from the definition of a node, W from what noise does to published numbers."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.series import BEFORE_ALL, Series, totals
from privacy.strategies.choice import Refine
from privacy.strategies.tree import Tree

LEVEL = Series(kind="level")
SERIES = [LEVEL, Series(kind="change"), Series(kind="entered"), Series(kind="sliding", width=5, every=2)]
REFINES: list[Refine] = ["none", "subtraction", "bottom_up", "least_squares"]
FORESTS = [(2, 1), (2, 3), (2, 6), (3, 3), (7, 2)]
# Horizons, each with how many windows have closed: some cut nodes, some do not.
CLOSED = {None: [1, 13, 16], 1: [1], 5: [5], 16: [16], 23: [16, 22, 23], 27: [9]}


def trees(refine: Refine, windows: int | None) -> list[Tree]:
    return [
        Tree(branching=branching, height=height, refine=refine, windows=windows, opening=opening)
        for (branching, height), opening in itertools.product(FORESTS, (True, False))
    ]


each_tree = pytest.mark.parametrize(
    "forest",
    [trees(refine, windows) for refine in REFINES for windows in CLOSED],
    ids=lambda f: f"{f[0].refine}-{f[0].windows}",
)


def cases(forest: list[Tree]) -> list[tuple[Tree, int, Series]]:
    """Trees, how many windows have closed, and what is published."""
    return [(tree, windows, series) for tree in forest for windows in CLOSED[tree.windows] for series in SERIES]


def nodes_matrix(tree: Tree, windows: int) -> np.ndarray:
    """C, [draws, 1 + windows that the drawn nodes span], from the places of the draws."""
    places = tree.places(windows)
    begin = [0 if i < 0 else 1 + i * tree.branching**layer for layer, i in places.tolist()]
    end = [1 if i < 0 else 1 + (i + 1) * tree.branching**layer for layer, i in places.tolist()]
    horizon = tree.windows or max([windows, *(e - 1 for e in end)])
    column = np.arange(1 + horizon)
    return ((np.array(begin)[:, None] <= column) & (column < np.array(end)[:, None])).astype(np.int64)


def noise_matrix(tree: Tree, series: Series, windows: int) -> np.ndarray:
    """W, [numbers, draws]: what one step of each draw does."""
    draws = tree.draws(windows)
    nothing = np.zeros((1 + windows, draws), dtype=np.int64)
    return tree.publish(series, nothing, np.eye(draws, dtype=np.int64))


def asked(tree: Tree, series: Series, windows: int) -> np.ndarray:
    """A, [numbers, 1 + windows]; without an opening node its row is ignored."""
    matrix = totals(series, np.eye(1 + windows, dtype=np.int64))
    if not tree.opening:
        matrix[:, 0] = 0
    return matrix


def wild(rng: np.random.Generator, rows: int, bits: int) -> np.ndarray:
    return rng.integers(-(1 << bits), 1 << bits, size=(rows, 3))


@each_tree
def test_the_noise_of_every_number_adds_up_to_what_was_asked(forest):
    """W C = A: the draws stand for nodes that add up to the number, with nothing of windows to come."""
    for tree, windows, series in cases(forest):
        wanted = asked(tree, series, windows)

        found = noise_matrix(tree, series, windows) @ nodes_matrix(tree, windows)

        np.testing.assert_allclose(found[:, : 1 + windows], wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[:, 1 + windows :], 0, rtol=0, atol=1e-12)


@each_tree
def test_what_is_published_is_exact_but_for_its_noise(forest):
    rng = np.random.default_rng(3)
    for tree, windows, series in cases(forest):
        leaves, noise = wild(rng, 1 + windows, 30), wild(rng, tree.draws(windows), 20)
        exact = asked(tree, series, windows) @ leaves

        told = tree.publish(series, leaves, noise) - exact

        expected = noise_matrix(tree, series, windows) @ noise
        if tree.refine in ("none", "subtraction"):
            np.testing.assert_array_equal(told, expected)
        else:
            np.testing.assert_allclose(told, expected, rtol=0, atol=1e-5)  # 2^-17 of a step: told has 53 bits


@each_tree
def test_what_is_published_is_a_function_of_the_noisy_nodes_to_the_last_bit(forest):
    """Databases whose noisy nodes agree are told apart by nothing, whatever windows to come hold."""
    rng = np.random.default_rng(4)
    for tree, windows, series in cases(forest):
        matrix = nodes_matrix(tree, windows)
        leaves, noise = wild(rng, 1 + windows, 50), wild(rng, len(matrix), 45)
        moved = wild(rng, matrix.shape[1], 45)
        if not tree.opening:
            moved[0] = 0

        one = tree.publish(series, leaves, noise)
        other = tree.publish(series, leaves + moved[: 1 + windows], noise - matrix @ moved)

        assert one.tobytes() == other.tobytes()


@each_tree
def test_variances_and_weights_are_those_of_the_noise(forest):
    for tree, windows, series in cases(forest):
        matrix = noise_matrix(tree, series, windows)

        np.testing.assert_allclose(tree.variances(series, windows), (matrix**2).sum(axis=1), rtol=1e-12)
        weights = tree.weights(series, windows)
        assert len(weights) == len(matrix)
        for row, sizes in zip(np.abs(matrix), weights, strict=True):
            np.testing.assert_allclose(np.sort(sizes[sizes > 1e-12]), np.sort(row[row > 1e-12]), rtol=1e-12)


@each_tree
def test_an_estimate_never_changes_whatever_comes_later(forest):
    """Each window's noise is what was drawn by then: later draws only append."""
    rng = np.random.default_rng(5)
    for tree in forest:
        most = tree.windows or 20
        leaves, noise = wild(rng, 1 + most, 40), wild(rng, tree.draws(most), 40)
        last = tree.places(most).tolist()
        assert len({tuple(place) for place in last}) == len(last) == tree.draws(most)
        final = [tree.publish(series, leaves, noise) for series in SERIES]
        for windows in range(1, most + 1):
            draws = tree.draws(windows)
            assert tree.places(windows).tolist() == last[:draws]
            for series, numbers in zip(SERIES, final, strict=True):
                told = tree.publish(series, leaves[: 1 + windows], noise[:draws])
                assert told.tobytes() == numbers[: len(told)].tobytes()


@each_tree
def test_nodes_are_the_first_draws_in_the_order_of_their_ends(forest):
    for tree, windows, _ in cases(forest):
        nodes = tree.nodes(windows)
        order = list(zip(nodes.end.tolist(), nodes.layer.tolist(), strict=True))
        assert order == sorted(order)

        matrix = nodes_matrix(tree, windows)
        boundary = np.arange(matrix.shape[1])
        held = (nodes.begin[:, None] < boundary) & (boundary <= nodes.end[:, None])
        np.testing.assert_array_equal(held, matrix[: len(held)])
        # All other draws are for nodes that go on.
        assert matrix[len(held) :, 1 + windows :].any(axis=1).all()
        assert tree.opening == (nodes.begin[0] == BEFORE_ALL)


@pytest.mark.parametrize(
    ("refine", "windows", "draws"),
    [
        ("none", None, [0, 1, 3, 4, 7, 8]),
        ("bottom_up", 7, [0, 1, 3, 4, 7, 8]),
        ("subtraction", None, [0, 7, 7, 7, 7, 14]),
        ("least_squares", 16, [0, 7, 7, 7, 7, 14]),
        ("least_squares", 7, [0, 7, 7, 7, 7, 13]),  # three leaves and two nodes, one of them cut, below a cut root
    ],
)
def test_noise_is_drawn_for_trees_that_have_begun_and_no_others(refine, windows, draws):
    tree = Tree(branching=2, height=3, refine=refine, windows=windows, opening=False)

    assert [tree.draws(count) for count in range(6)] == draws


@each_tree
@pytest.mark.parametrize("cuts", [[], [1, 2, 3, 4, 5], [1, 4, 4, 14]], ids=str)
def test_advance_gives_the_exact_nodes_however_it_is_fed(forest, cuts):
    for tree, windows in itertools.product(forest, CLOSED[forest[0].windows]):
        leaves = wild(np.random.default_rng(6), 1 + windows, 50)

        carry, told = None, []
        for rows in np.split(leaves, [cut for cut in cuts if cut <= windows]):
            nodes, carry = tree.advance(carry, rows)
            told.append(nodes)

        count = len(tree.nodes(windows).end)
        exact = nodes_matrix(tree, windows)[:count, : 1 + windows] @ leaves
        np.testing.assert_array_equal(np.concatenate(told), exact)
        assert carry.unfinished.shape == (tree.layers, 3)


@settings(max_examples=60)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 30))
def test_least_squares_is_the_pseudo_inverse(branching, height, horizon):
    tree = Tree(branching=branching, height=height, refine="least_squares", windows=horizon, opening=True)
    for windows in {1, horizon // 2 + 1, horizon}:
        matrix = nodes_matrix(tree, windows)
        known = matrix.any(axis=0)
        for series in SERIES:
            wanted = np.zeros((len(series.ends(windows)), matrix.shape[1]))
            wanted[:, : 1 + windows] = asked(tree, series, windows)

            best = wanted[:, known] @ np.linalg.pinv(matrix[:, known])

            np.testing.assert_allclose(noise_matrix(tree, series, windows), best, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("branching", "height"), FORESTS)
def test_bottom_up_is_the_best_from_each_node_and_what_is_below_it(branching, height):
    tree = Tree(branching=branching, height=height, refine="bottom_up", windows=None, opening=False)
    windows = 2 * branching ** (height - 1)
    matrix = nodes_matrix(tree, windows)
    best = []
    for row in matrix:
        below = (matrix <= row).all(axis=1)
        best.append(row[row > 0] @ np.linalg.pinv(matrix[below][:, row > 0]))
    variances = np.array([(weights**2).sum() for weights in best])

    # A level is a sum of the fewest nodes that are known by then.
    plain = Tree(branching=branching, height=height, refine="none", windows=None, opening=False)
    cover = noise_matrix(plain, LEVEL, windows)
    np.testing.assert_allclose(tree.variances(LEVEL, windows), cover @ variances, rtol=1e-9)
    assert set(np.unique(cover)) <= {0.0, 1.0}


def test_one_layer_is_the_disjoint_strategy():
    disjoint = Tree(branching=9, height=1, refine="none", windows=365, opening=True)

    assert (disjoint.name, disjoint.parameters, disjoint.draws(7)) == ("disjoint", {}, 8)
    assert disjoint.variances(LEVEL, 4).tolist() == [2.0, 3.0, 4.0, 5.0]
    tree = Tree(branching=9, height=2, refine="bottom_up", windows=365, opening=True)
    assert (tree.name, tree.parameters) == ("tree", {"branching": 9, "height": 2, "refine": "bottom_up"})


@pytest.mark.parametrize("refine", ["none", "subtraction"])
def test_integers_stay_exact_where_floats_would_not(refine):
    """Sums beyond 2^53 with noise of 2^45, against Python's integers: rounded once."""
    tree = Tree(branching=2, height=7, refine=refine, windows=100, opening=True)
    rng = np.random.default_rng(7)
    leaves, noise = wild(rng, 101, 54), wild(rng, tree.draws(100), 45)
    matrix = noise_matrix(tree, LEVEL, 100).astype(int).astype(object)

    told = tree.publish(LEVEL, leaves, noise)

    exact = np.cumsum(leaves.astype(object), axis=0)[1:] + matrix @ noise.astype(object)
    assert told.tolist() == [[float(number) for number in row] for row in exact.tolist()]
    assert abs(exact).max() > 2**55


def least(windows: int, refine: Refine, branchings: range, *, pure: bool) -> tuple[float, float]:
    """Least over all trees of the largest and of the mean variance of a level, without an opening.

    One toggle touches a node of each layer: at epsilon = 1 the Laplace noise of a node has variance 2 layers^2, at
    rho = 1/2 the Gaussian noise has variance layers.
    """
    largest, mean = [], []
    for branching in branchings:
        for height in range(1, 2 + math.ceil(math.log(windows, branching))):
            tree = Tree(branching=branching, height=height, refine=refine, windows=windows, opening=False)
            if tree.layers == height:
                variances = tree.variances(LEVEL, windows) * (2 * height**2 if pure else height)
                largest.append(float(variances.max()))
                mean.append(float(variances.mean()))
    return min(largest), min(mean)


@pytest.mark.parametrize(("windows", "most", "mean"), [(128, 78, 50), (365, 122, 81), (1024, 182, 119)])
def test_least_squares_with_laplace_noise_reaches_its_goals(windows, most, mean):
    largest, average = least(windows, "least_squares", range(2, 33), pure=True)

    assert 0.97 * most <= largest <= most
    assert 0.97 * mean <= average <= mean


@pytest.mark.parametrize(
    ("refine", "windows", "most", "mean"),
    [
        ("none", 128, 36, 18.2),
        ("none", 365, 52, 27.3),
        ("none", 1024, 72, 37.0),
        ("none", 4096, 105, 53.5),
        ("subtraction", 128, 24, 13.9),
        ("subtraction", 365, 35, 20.1),
        ("subtraction", 1024, 48, 26.6),
        ("subtraction", 4096, 65, 36.2),
        ("least_squares", 128, 12.0, 7.8),
        ("least_squares", 365, 15.4, 10.5),
        ("least_squares", 1024, 20.0, 13.5),
    ],
)
def test_the_best_tree_at_rho_one_half_is_as_good_as_the_known_figures(refine, windows, most, mean):
    largest, average = least(windows, refine, range(2, 17), pure=False)

    assert 0.93 * most <= largest <= most * 1.005
    assert 0.98 * mean <= average <= mean * 1.01


@pytest.mark.parametrize(
    ("windows", "layers", "plain", "honaker"), [(128, 7, 49, 30.1), (365, 9, 72, 43.2), (1024, 10, 100, 58.0)]
)
def test_the_binary_tree_has_the_known_figures(windows, layers, plain, honaker):
    for refine, most in (("none", plain), ("bottom_up", honaker)):
        tree = Tree(branching=2, height=layers, refine=refine, windows=windows, opening=False)
        assert layers * tree.variances(LEVEL, windows).max() == pytest.approx(most, rel=0.005)


@pytest.mark.parametrize(
    ("width", "gaussian", "laplace"),
    [(7, 7, 14), (14, 12, 28), (30, 20, 60), (60, 30, 120), (90, 36, 144), (180, 45, 208), (365, 60, 320)],
)
def test_the_best_tree_for_sliding_windows_has_the_known_figures(width, gaussian, laplace):
    series = Series(kind="sliding", width=width)
    found = []
    for branching in range(2, 33):
        for height in range(1, 10):
            if branching ** (height - 1) <= width:
                tree = Tree(branching=branching, height=height, refine="none", windows=None, opening=False)
                most = tree.variances(series, 3 * width + 2 * branching ** (height - 1)).max()
                found.append((height * most, 2 * height**2 * most))

    assert [min(values) for values in zip(*found, strict=True)] == [gaussian, laplace]


def test_the_whole_forest_has_every_node_that_a_cut_one_has():
    """A unit that is still after the horizon moves cut nodes as it moves whole ones."""
    for tree in itertools.chain.from_iterable(trees(refine, windows) for refine in REFINES for windows in CLOSED):
        if tree.windows is None:
            assert (tree.whole, tree.layers) == (None, tree.height)
            continue
        whole = Tree(
            branching=tree.branching, height=tree.height, refine="none", windows=tree.whole, opening=tree.opening
        )
        assert whole.layers >= tree.layers
        places = {tuple(place) for place in whole.places(whole.windows).tolist()}
        assert {tuple(place) for place in tree.places(tree.windows).tolist()} <= places
        matrix = nodes_matrix(tree, tree.windows)
        assert matrix[int(tree.opening) :].sum(axis=0).max() == tree.layers


def test_memory_while_running_is_a_number_a_layer_and_cell():
    tree = Tree(branching=2, height=40, refine="none", windows=None, opening=True)
    carry = None
    for windows in range(50):
        _, carry = tree.advance(carry, np.ones((1, 1000), dtype=np.int64))

        assert carry.windows == windows
        assert carry.unfinished.size == 40 * 1000
        np.testing.assert_array_equal(carry.unfinished[:, 0], windows % 2 ** np.arange(40))


def test_what_cannot_be_is_refused():
    tree = Tree(branching=2, height=3, refine="none", windows=8, opening=True)
    with pytest.raises(ValueError, match="9 windows are more than the horizon of 8"):
        tree.variances(LEVEL, 9)
    with pytest.raises(ValueError, match="3 rows of noise for 5 draws"):
        tree.publish(LEVEL, np.zeros((4, 1), dtype=np.int64), np.zeros((3, 1), dtype=np.int64))
    with pytest.raises(ValueError, match="at most 1,099,511,627,776 windows"):
        Tree(branching=1024, height=9, refine="none", windows=None, opening=True)
    with pytest.raises(ValueError, match="with refine=least_squares a node may span at most 1,048,576 windows"):
        Tree(branching=2, height=22, refine="least_squares", windows=None, opening=True)
    for name, wrong in (("branching", 1), ("height", 0), ("windows", 0)):
        with pytest.raises(ValueError, match=f"{name}={wrong}"):
            Tree(**{"branching": 2, "height": 2, "refine": "none", "windows": 9, "opening": True} | {name: wrong})

"""Trees: the effect of noise on published numbers, known figures, and the horizon."""

import itertools
import math

import numpy as np
import pytest

from privacy.series import Series
from privacy.strategies.choice import Refine
from privacy.strategies.tree.tree import Tree
from tests.privacy.steps import Given, listed, nodes_matrix, noise_matrix, publish, sampled, stepped

LEVEL = Series(kind="level")
SERIES = [LEVEL, Series(kind="change"), Series(kind="entered"), Series(kind="sliding", width=5, every=2)]
REFINES: list[Refine] = ["none", "subtraction", "bottom_up", "least_squares"]
FORESTS = [(2, 1), (2, 3), (2, 6), (3, 3), (7, 2)]
# Horizons, each with numbers of closed windows: some cut nodes, some do not.
CLOSED = {None: [1, 13, 16], 1: [1], 5: [5], 16: [16], 23: [16, 22, 23], 27: [9]}


def trees(refine: Refine, windows: int | None) -> list[Tree]:
    return [
        Tree(branching=branching, height=height, refine=refine, windows=windows, initial_level=initial_level)
        for (branching, height), initial_level in itertools.product(FORESTS, (True, False))
    ]


each_tree = pytest.mark.parametrize(
    "forest",
    [trees(refine, windows) for refine in REFINES for windows in CLOSED],
    ids=lambda f: f"{f[0].refine}-{f[0].windows}",
)


def cases(forest: list[Tree]) -> list[tuple[Tree, int, Series]]:
    """Yield trees, numbers of closed windows, and published series."""
    return [(tree, windows, series) for tree in forest for windows in CLOSED[tree.windows] for series in SERIES]


def wild(rng: np.random.Generator, rows: int, bits: int) -> np.ndarray:
    return rng.integers(-(1 << bits), 1 << bits, size=(rows, 3))


@pytest.mark.slow
@pytest.mark.few(6)
@each_tree
def test_published_numbers_are_a_function_of_the_noisy_nodes_bit_by_bit(forest):
    """Databases with equal noisy nodes give equal publications, for any later windows."""
    rng = np.random.default_rng(4)
    for tree, windows, series in cases(forest):
        nodes = sampled(tree, windows)
        last = max(end for _, _, end in nodes)
        leaves, noise = wild(rng, 1 + windows, 50), wild(rng, len(nodes), 45)
        moved = wild(rng, 1 + last, 45)
        if not tree.initial_level:
            moved[0] = 0
        less = noise - nodes_matrix(nodes, last) @ moved

        one, other = (
            publish(tree, series, data, Given(dict(zip(nodes, rows, strict=True)), 3))
            for data, rows in ((leaves, noise), (leaves + moved[: 1 + windows], less))
        )

        assert one.tobytes() == other.tobytes()


@pytest.mark.slow
@pytest.mark.few(6)
@each_tree
def test_variances_and_weights_are_those_of_the_noise(forest):
    for tree, windows, series in cases(forest):
        matrix = noise_matrix(tree, series, windows, sampled(tree, windows))

        np.testing.assert_allclose(tree.variances(series, windows), (matrix**2).sum(axis=1), rtol=1e-12)
        weights = tree.weights(series, windows)
        assert len(weights) == len(matrix)
        for row, sizes in zip(np.abs(matrix), weights, strict=True):
            np.testing.assert_allclose(np.sort(sizes[sizes > 1e-12]), np.sort(row[row > 1e-12]), rtol=1e-12)


@pytest.mark.parametrize(
    ("refine", "windows", "rows"),
    [
        ("none", None, [0, 3, 4, 6, 7, 10]),
        ("bottom_up", 7, [0, 3, 4, 6, 7, 9]),  # nothing for a root that the horizon cuts
        ("subtraction", None, [0, 5, 5, 7, 7, 12]),  # a root, both nodes below it, and two leaves at a time
        ("least_squares", 16, [0, 7, 7, 7, 7, 14]),
        ("least_squares", 7, [0, 7, 7, 7, 7, 13]),  # three leaves and two nodes, one of them cut, below a cut root
    ],
)
def test_noise_is_sampled_for_nodes_that_are_first_of_use_and_no_others(refine, windows, rows):
    tree = Tree(branching=2, height=3, refine=refine, windows=windows, initial_level=False)

    assert [len(sampled(tree, count)) for count in range(6)] == rows


def test_one_layer_is_the_disjoint_strategy():
    disjoint = Tree(branching=9, height=1, refine="none", windows=365, initial_level=True)

    assert (disjoint.name, disjoint.parameters, len(disjoint.nodes(7).end)) == ("disjoint", {}, 8)
    assert disjoint.variances(LEVEL, 4).tolist() == [2.0, 3.0, 4.0, 5.0]
    tree = Tree(branching=9, height=2, refine="bottom_up", windows=365, initial_level=True)
    assert (tree.name, tree.parameters) == ("tree", {"branching": 9, "height": 2, "refine": "bottom_up"})


@pytest.mark.parametrize("refine", ["none", "subtraction"])
def test_integers_stay_exact_beyond_the_precision_of_floats(refine):
    """Sums beyond 2^53 with noise of 2^45, against Python's integers: rounded once."""
    tree = Tree(branching=2, height=7, refine=refine, windows=100, initial_level=True)
    rng = np.random.default_rng(7)
    leaves, nodes = wild(rng, 101, 54), sampled(tree, 100)
    noise = wild(rng, len(nodes), 45)
    matrix = noise_matrix(tree, LEVEL, 100, nodes).astype(int).astype(object)

    told = publish(tree, LEVEL, leaves, Given(dict(zip(nodes, noise, strict=True)), 3))

    exact = np.cumsum(leaves.astype(object), axis=0)[1:] + matrix @ noise.astype(object)
    assert told.tolist() == [[float(number) for number in row] for row in exact.tolist()]
    assert abs(exact).max() > 2**55


def least(windows: int, refine: Refine, branchings: range, *, pure: bool) -> tuple[float, float]:
    """Return the least, over all trees, of the largest and of the mean variance of a level, without an initial level.

    One toggle touches a node of each layer: at epsilon = 1 the Laplace noise of a node has variance 2 layers^2, at
    rho = 1/2 the Gaussian noise has variance layers.
    """
    largest, mean = [], []
    for branching in branchings:
        for height in range(1, 2 + math.ceil(math.log(windows, branching))):
            tree = Tree(branching=branching, height=height, refine=refine, windows=windows, initial_level=False)
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


@pytest.mark.few(5)
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
        tree = Tree(branching=2, height=layers, refine=refine, windows=windows, initial_level=False)
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
                tree = Tree(branching=branching, height=height, refine="none", windows=None, initial_level=False)
                most = tree.variances(series, 3 * width + 2 * branching ** (height - 1)).max()
                found.append((height * most, 2 * height**2 * most))

    assert [min(values) for values in zip(*found, strict=True)] == [gaussian, laplace]


def test_the_whole_forest_has_every_node_that_a_cut_one_has():
    """A unit without changes after the horizon moves cut nodes as it moves whole ones."""
    for tree in itertools.chain.from_iterable(trees(refine, windows) for refine in REFINES for windows in CLOSED):
        if tree.windows is None:
            assert (tree.whole, tree.layers) == (None, tree.height)
            continue
        whole = Tree(
            branching=tree.branching,
            height=tree.height,
            refine="none",
            windows=tree.whole,
            initial_level=tree.initial_level,
        )
        assert whole.layers >= tree.layers
        there = {(layer, begin) for layer, begin, _ in listed(whole.nodes(whole.windows))}
        own = listed(tree.nodes(tree.windows))
        assert {(layer, begin) for layer, begin, _ in own} <= there
        assert nodes_matrix(own, tree.windows)[:, 1:].sum(axis=0).max() == tree.layers


def test_impossible_arguments_are_refused():
    tree = Tree(branching=2, height=3, refine="none", windows=8, initial_level=True)
    with pytest.raises(ValueError, match="9 windows are more than the horizon of 8"):
        tree.variances(LEVEL, 9)
    with pytest.raises(ValueError, match="9 windows are more than the horizon of 8"):
        stepped(tree, np.zeros((10, 1), dtype=np.int64), Given({}, 1), [], [4])
    with pytest.raises(ValueError, match="at most 1,099,511,627,776 windows"):
        Tree(branching=1024, height=9, refine="none", windows=None, initial_level=True)
    with pytest.raises(ValueError, match="with refine=least_squares a node may span at most 1,048,576 windows"):
        Tree(branching=2, height=22, refine="least_squares", windows=None, initial_level=True)
    for name, wrong in (("branching", 1), ("height", 0), ("windows", 0)):
        with pytest.raises(ValueError, match=f"{name}: expected at least {wrong + 1}"):
            Tree(**{"branching": 2, "height": 2, "refine": "none", "windows": 9, "initial_level": True} | {name: wrong})

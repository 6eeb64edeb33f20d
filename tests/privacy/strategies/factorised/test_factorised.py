"""Toeplitz factorisations compared with dense matrices and Python's integers, and their rounding with its bound."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privacy.series import BEFORE_ALL, Series, totals
from privacy.states import States
from privacy.strategies.factorised import coefficients
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.exponential_kernel import Exponentials
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.fitting import dyadic, zolotarev
from privacy.touched import at_most
from tests.privacy.steps import Given, Recorded, exact_nodes, listed, publish, stepped

POLES = dyadic(*zolotarev(0.02, 0.02, 4))
SERIES = [
    Series(kind="level"),
    Series(kind="change"),
    Series(kind="sliding", width=7, every=3),
    Series(kind="sliding", width=1),
    Series(kind="entered"),
]


def factorised(form: str, *, windows: int | None = 40, initial_level: bool = False) -> Factorised:
    """Yield a factorisation of each form, with parameters that could be chosen for some forty windows."""
    kernel = {
        "square_root": Coefficients(),
        "leaky": Coefficients(leak=0.05),
        "window": Coefficients(leak=0.1, ends=True),
        "endless": Coefficients(leak=0.3, ends=True),
        "arma": Exponentials(poles=POLES),
        "arma without guard bits": Exponentials(poles=POLES, guard=0),
    }[form]
    return Factorised(kernel=kernel, windows=None if form == "endless" else windows, initial_level=initial_level)


FORMS = pytest.mark.parametrize(
    "form", ["square_root", "leaky", "window", "endless", "arma", "arma without guard bits"]
)
OPENINGS = pytest.mark.parametrize("initial_level", [False, True])


def leaves_within(limit: int, *, windows: int, cells: int) -> np.ndarray:
    """Yield leaves whose levels are anywhere within the limit, and sometimes at it."""
    generator = np.random.default_rng(windows + cells)
    levels = generator.integers(-limit, limit, (windows + 1, cells), endpoint=True)
    levels[generator.random(levels.shape) < 0.2] = limit
    return np.diff(levels, axis=0, prepend=0)


def toeplitz(column: np.ndarray, size: int) -> np.ndarray:
    lags = np.arange(size)[:, None] - np.arange(size)
    padded = np.pad(column, (0, max(0, size - len(column))))
    return np.where(lags >= 0, padded[np.maximum(lags, 0)], 0.0)


def noise_weights(chosen: Factorised, series: Series, windows: int) -> np.ndarray:
    """Return W = A C^-1, dense, [numbers, nodes], from the coefficients alone."""
    demand = totals(series, np.eye(windows + 1, dtype=np.int64))[:, 0 if chosen.initial_level else 1 :]
    filtered = toeplitz(chosen.coefficients, chosen.leaves(windows))
    return np.linalg.solve(filtered.T, demand.T.astype(float)).T


def most_rounding(chosen: Factorised) -> float:
    """Return the largest distance of a node from the linear part of C, in steps: half a step and the states' part."""
    if not isinstance(chosen.kernel, Exponentials):
        return 0.5
    digits = 16 + chosen.kernel.guard
    return 0.5 + sum(u * 2.0 ** (b - digits) / a for a, b, u in chosen.kernel.poles if 0 < a < 2**b)


@pytest.mark.few(23)
@FORMS
@OPENINGS
@pytest.mark.parametrize("series", SERIES, ids=lambda series: f"{series.kind}{series.width}")
def test_published_is_the_exact_number_plus_filtered_noise(form, initial_level, series):
    chosen = factorised(form, initial_level=initial_level)
    leaves = leaves_within(2**40, windows=40, cells=3)
    noise = Recorded(3, bits=35)
    weights = noise_weights(chosen, series, 40)
    exact = totals(series, leaves if initial_level else np.vstack([0 * leaves[:1], leaves[1:]]))

    _, (published,), _ = stepped(chosen, leaves, noise, [series], [1, 2, 9, 30])

    error = np.abs(published - (exact + weights @ [noise.row(node) for node in listed(chosen.nodes(40))])).max()
    assert error <= most_rounding(chosen) * np.abs(weights).sum(axis=1).max() + 1
    assert error <= 1e-9 * np.abs(exact).max()


@pytest.mark.few(43)
@FORMS
@OPENINGS
@pytest.mark.parametrize("series", SERIES, ids=lambda series: f"{series.kind}{series.width}")
@pytest.mark.parametrize("windows", [3, 40])
def test_variances_and_weights_are_those_of_the_dense_matrix(form, initial_level, series, windows):
    chosen = factorised(form, initial_level=initial_level)
    dense = noise_weights(chosen, series, windows)

    np.testing.assert_allclose(chosen.variances(series, windows), (dense**2).sum(axis=1), rtol=1e-9, atol=1e-12)
    rows = chosen.weights(series, windows)
    assert len(rows) == len(dense)
    for row, of_dense in zip(rows, dense, strict=True):
        np.testing.assert_allclose(np.sort(row)[::-1], np.sort(np.abs(of_dense))[::-1][: len(row)], atol=1e-9)
        assert np.abs(of_dense).sum() == pytest.approx(row.sum(), rel=1e-9)


@FORMS
@OPENINGS
def test_nodes_are_exact_if_products_exceed_64_bits(form, initial_level):
    """In Python's integers, from the definitions, with the largest levels."""
    chosen = factorised(form, initial_level=initial_level)
    guard = chosen.kernel.guard if isinstance(chosen.kernel, Exponentials) else 1  # a leaf is the difference of levels
    leaves = leaves_within(2 ** min(60, 61 - guard), windows=40, cells=2)
    if not initial_level:
        leaves[1] += leaves[0]
        leaves[0] = 12345

    nodes = exact_nodes(chosen, leaves)

    for cell in range(2):
        stream = leaves[0 if initial_level else 1 :, cell].tolist()
        if isinstance(chosen.kernel, Exponentials):
            expected, states = [], [0] * len(POLES)
            for x in stream:
                states = [s - (a * s >> b) + (x << guard) for s, (a, b, _) in zip(states, POLES, strict=True)]
                weighted = sum(u * s for s, (_, _, u) in zip(states, POLES, strict=True))
                expected.append(weighted + 2 ** (15 + guard) >> 16 + guard)
        else:
            rounded = [round(Fraction(c) * 2**20) for c in chosen.coefficients] + [0] * len(stream)
            expected = [sum(rounded[j] * stream[t - j] for j in range(t + 1)) + 2**19 >> 20 for t in range(len(stream))]
        assert nodes[:, cell].tolist() == expected


@pytest.mark.slow
def test_long_histories_are_exact():
    """More leaves than one block of the matrix has rows or columns."""
    windows = 9000
    chosen = Factorised(kernel=Coefficients(leak=0.01), windows=windows, initial_level=False)
    leaves = leaves_within(2**50, windows=windows, cells=1)
    rounded = np.rint(chosen.coefficients * 2**20).astype(int).tolist()

    nodes, _, _ = stepped(chosen, leaves, Given({}, 1), [], [windows])

    stream = leaves[1:, 0].tolist()
    for t in (511, 512, 2047, 2048, 8998, 8999):
        assert nodes[t, 0] == sum(rounded[j] * stream[t - j] for j in range(t + 1)) + 2**19 >> 20


@FORMS
def test_the_initial_level_counts_only_if_it_is_released(form):
    chosen = factorised(form)
    leaves = leaves_within(2**40, windows=40, cells=1)
    other = np.vstack([leaves[:1] + 2**30, leaves[1:]])
    level = Series(kind="level")

    here, there = (publish(chosen, level, data, Given({}, 1)) for data in (leaves, other))
    np.testing.assert_array_equal(here, there)
    opened = factorised(form, initial_level=True)
    more, less = (publish(opened, level, data, Given({}, 1)) for data in (other, leaves))
    np.testing.assert_allclose(more - less, 2**30, atol=100)


def test_every_leaf_has_a_published_node():
    told = factorised("leaky", initial_level=True).nodes(3)

    assert told.begin.tolist() == [BEFORE_ALL, 0, 1, 2]
    assert told.end.tolist() == [0, 1, 2, 3]
    assert told.layer.tolist() == [0, 0, 0, 0]
    assert factorised("leaky").nodes(3).begin.tolist() == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        Factorised(kernel=Coefficients(leak=0.01), windows=800, initial_level=False),
        Factorised(kernel=Coefficients(leak=0.2, ends=True), windows=None, initial_level=False),
        Factorised(kernel=Exponentials(poles=dyadic(*zolotarev(0.01, 0.01, 4))), windows=800, initial_level=False),
        Factorised(
            kernel=Exponentials(poles=dyadic(*zolotarev(0.01, 0.01, 4)), guard=0), windows=800, initial_level=False
        ),
    ],
    ids=["leaky", "endless", "arma", "arma without guard bits"],
)
def test_rounding_moves_neighbours_by_no_more_than_its_bound(chosen):
    """Sixty units of a dozen changes each, on other units' sums without round numbers."""
    generator = np.random.default_rng(5)
    windows, cells, changes, steps = 800, 60, 12, 2**24
    leaves = leaves_within(2**40, windows=windows, cells=cells)
    moved = np.zeros_like(leaves)
    for cell in range(cells):
        times = np.sort(generator.choice(np.arange(1, windows), changes, replace=False))
        moved[times, cell] = np.diff(generator.integers(0, steps, changes, endpoint=True), prepend=0)
    linear = toeplitz(chosen.coefficients, windows) @ moved[1:]

    difference = exact_nodes(chosen, leaves + moved) - exact_nodes(chosen, leaves)

    norms = np.sqrt(((difference - linear) ** 2).sum(axis=0))
    assert norms.min() > 1
    assert norms.max() <= chosen.rounding(changes, steps) * steps


def test_without_end_rounding_errors_fade():
    chosen = Factorised(kernel=Coefficients(leak=0.2, ends=True), windows=None, initial_level=False)
    support = len(chosen.coefficients)
    leaves = leaves_within(2**40, windows=3 * support, cells=5)
    moved = np.zeros_like(leaves)
    moved[1] = 2**24

    difference = exact_nodes(chosen, leaves + moved) - exact_nodes(chosen, leaves)

    assert difference[:support].all()
    assert not difference[support:].any()
    assert chosen.rounding(1, 1) == pytest.approx(math.sqrt(support))


@pytest.mark.slow
def test_a_constant_state_stays_within_the_bound():
    """The worst case of the states' own rounding: a state so small that it never decays. Half steps are not enough."""
    windows = 12_000
    poles = ((0, 0, 20_000), (1, 12, 40_000), (1, 0, 5_536))
    chosen = Factorised(kernel=Exponentials(poles=poles), windows=windows, initial_level=False)
    leaves = np.zeros((windows + 1, 1), dtype=np.int64)
    leaves[1] = 15
    linear = 15 * chosen.coefficients

    error = np.abs(exact_nodes(chosen, leaves)[:, 0] - linear)

    bound = chosen.rounding(1, 1) / math.sqrt(windows)
    assert 8 < error.max() < bound < 11


@pytest.mark.slow
def test_twenty_cells_pass_twenty_thousand_windows_at_constant_state():
    windows, cells = 20_000, 20
    chosen = Factorised(
        kernel=Exponentials(poles=dyadic(*zolotarev(5e-5, 5e-5, 5))), windows=windows, initial_level=True
    )
    leaves = leaves_within(2**50, windows=windows, cells=cells)

    nodes, _, carries = stepped(chosen, leaves, Given({}, cells), [], range(2_000, windows, 2_000))

    sizes = {sum(r.size for rows in (c.integers, c.floats) for r in rows.values()) for c in carries}
    assert sizes == {2 * len(chosen.kernel.poles) * cells}
    smooth = coefficients.convolve(chosen.coefficients, leaves[:, :2].astype(float))
    np.testing.assert_allclose(nodes[:, :2], smooth, atol=1e-12 * 2**50)


def test_values_beyond_64_bits_are_refused():
    for change in (2**61 + 1, -(2**61) - 1):
        with pytest.raises(OverflowError, match="change exceeds 2\\^61 steps"):
            exact_nodes(factorised("leaky"), np.array([[0], [change]]))
    for form, bits in (("arma", 53), ("arma without guard bits", 61)):
        with pytest.raises(OverflowError, match=f"level exceeds 2\\^{bits} steps"):
            exact_nodes(factorised(form), np.array([[0], [2**bits], [1]]))
        assert exact_nodes(factorised(form), np.array([[0], [2**bits]])).tolist() == [[2**bits]]
        with pytest.raises(OverflowError, match="level"):
            stepped(factorised(form), np.array([[0], [2**bits], [1]]), Given({}, 1), [], [2])


@pytest.mark.parametrize(
    ("kernel", "windows", "message"),
    [
        (lambda: Coefficients(leak=0.1), None, "leaky factorisation needs an end"),
        (lambda: Exponentials(poles=POLES), None, "arma factorisation needs an end"),
        (lambda: Coefficients(ends=True), 10, "leak=0.0 must be above 0"),
        (lambda: Coefficients(leak=1.5, ends=True), 10, "leak=1.5 must be above 0"),
        (lambda: Coefficients(leak=-0.5), 10, "leak=-0.5 must be above 0"),
        (lambda: Coefficients(), 0, "windows: expected at least 1, not 0"),
        (lambda: Exponentials(poles=()), 10, "at least two"),
        (lambda: Exponentials(poles=((0, 0, 60_000), (3, 4, 5_536))), 10, "the last"),
        (lambda: Exponentials(poles=((0, 0, 60_000), (256, 9, 5_000), (1, 0, 536))), 10, "2\\^8"),
        (lambda: Exponentials(poles=((0, 0, 60_000), (3, 1, 5_000), (1, 0, 536))), 10, "rise"),
        (lambda: Exponentials(poles=((0, 0, 60_000), (1, 0, 5_000))), 10, "sum 2\\^16"),
        (lambda: Exponentials(poles=((0, 0, 65_537), (1, 0, -1))), 10, "positive"),
    ],
)
def test_parameters_that_make_no_factorisation_are_refused(kernel, windows, message):
    with pytest.raises(ValueError, match=message):
        Factorised(kernel=kernel(), windows=windows, initial_level=False)


def test_windows_beyond_the_horizon_are_refused():
    with pytest.raises(ValueError, match="windows=41 lie beyond the horizon of 40"):
        factorised("leaky").variances(Series(kind="level"), 41)


@pytest.mark.parametrize(
    ("found", "numerator", "rate"),
    [
        (coefficients.window(60, 0.0), Fraction(-1, 2), Fraction(1)),
        (coefficients.window(60, 0.25), Fraction(-1, 2), Fraction(3, 4)),
        (coefficients.leaky(60, 0.25), Fraction(1, 2), Fraction(3, 4)),
    ],
    ids=["square_root", "window", "leaky"],
)
def test_coefficients_are_those_of_the_binomial_series(found, numerator, rate):
    """(1 - rate x)^numerator in fractions; the leaky filter's partial sums of it."""
    term, exact = Fraction(1), []
    for j in range(60):
        exact.append(term)
        term *= -rate * (numerator - j) / (j + 1)
    if numerator > 0:
        exact = [sum(exact[: j + 1]) for j in range(60)]

    np.testing.assert_allclose(found, [float(c) for c in exact], rtol=1e-12)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 700])
def test_a_series_times_its_inverse_is_one(count):
    series = coefficients.leaky(count, 0.02)

    product = np.convolve(series, coefficients.inverse(series))[:count]

    np.testing.assert_allclose(product, np.eye(1, count)[0], atol=1e-12)
    np.testing.assert_allclose(coefficients.response(series), coefficients.window(count, 0.02), atol=1e-12)


@pytest.mark.parametrize("leak", [1e-1, 1e-3, 1e-6])
def test_decays_undo_exponentials(leak):
    poles = dyadic(*zolotarev(leak, leak, 5))
    weights = np.array([u / 2**16 for _, _, u in poles])
    gaps = np.array([a / 2**b for a, b, _ in poles])

    sizes, decays = coefficients.decays(weights, gaps)

    assert (sizes > 0).all()
    assert (gaps[:-1] < decays).all()
    assert (decays < gaps[1:]).all()
    undone = coefficients.exponentials(3000, sizes, decays)
    by_newton = coefficients.response(coefficients.exponentials(3000, weights, gaps))
    np.testing.assert_allclose(undone, by_newton, atol=1e-11)


def test_a_series_without_inverse_is_refused():
    with pytest.raises(ValueError, match="begins with 0"):
        coefficients.inverse(np.array([0.0, 1.0]))


def test_rounding_and_coordinates_are_charged_for_each_cell_and_component_that_a_unit_moves():
    """Three changes of an entry that was present move four cells, and differences at two boundaries move three leaves.

    Two entries at two boundaries are in four cells at most, too.
    """
    chosen, largest = factorised("arma"), [2**24, 2**20]

    changed = chosen.moved(at_most(3), cells=9, each=1, largest=largest, shared=False)
    apart = chosen.moved_apart(2, cells=9, each=1, largest=largest, entries=2)

    of_each = math.hypot(*(chosen.rounding(3, steps) for steps in largest))
    assert (changed.rounding, apart.rounding) == (pytest.approx(2 * of_each), pytest.approx(2 * of_each))
    assert changed.coordinates == apart.coordinates == 40 * 4 * 2
    assert chosen.moved(at_most(3), cells=3, each=1, largest=largest, shared=False).coordinates == 40 * 3 * 2
    endless = factorised("endless")  # each change adds to its rounding
    one = endless.moved_apart(2, cells=9, each=1, largest=largest[:1], entries=1)
    assert one.rounding == pytest.approx(2**0.5 * endless.rounding(3, largest[0]))


def test_changes_beyond_the_leaves_cost_no_more_and_no_less():
    """An entry that was present at the start has used up one change, so that four changes can be in three leaves."""
    short = factorised("square_root", windows=3)
    states = States(radius=Fraction(1), diameter=Fraction(2), hulls=())

    norms = short.norms(states, 6)

    assert norms[0] < norms[2] < norms[3]
    assert norms[3:] == [norms[3]] * 3

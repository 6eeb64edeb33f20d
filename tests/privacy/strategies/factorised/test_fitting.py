"""Fitted factorisations reach the stated errors, and no other parameter would have been much better.

Variances are for rho = 1/2, where they are the squared sensitivity times the sum of squares of the noise's weights.
No part of this is random.
"""

import numpy as np
import pytest

from privacy.cells.mixed import Mixed
from privacy.cells.product import Product
from privacy.series import Series
from privacy.strategies.candidates import Needs
from privacy.strategies.choice import Choice, FilterForm
from privacy.strategies.factorised import coefficients, vectors
from privacy.strategies.factorised.certificate import certify
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.energy import toggles
from privacy.strategies.factorised.exponential_kernel import Exponentials
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.fitting import FACTORISED, dyadic, fit, zolotarev
from tests.privacy.strategies.factorised.test_vectors import HISTOGRAM

LEVEL = Series(kind="level")


def fitted(form: str, windows: int, changes: int, *, bound=toggles, worst: bool = True) -> Factorised:
    def energy(found: Factorised) -> float:
        return float(bound(found.coefficients, windows, changes)[changes])

    return fit(form, windows=windows, over=windows, initial_level=False, series=[LEVEL], energy=energy, worst=worst)


def offered(form: FilterForm, size: int) -> list[Factorised]:
    """Return what the planner is offered for states of at most `size` steps."""
    asked = Needs(
        series=(LEVEL,),
        windows=8,
        nominal=8,
        initial_level=True,
        choice=Choice(name="factorised", form=form),
        boundaries=None,
        counted=True,
        power=2,
        size=size,
        squared_norm=lambda strategy, leaf: float((strategy.coefficients**2).sum()),
        error=lambda candidate: 1.0,
    )
    return [piece.strategy for candidate in FACTORISED.candidates(asked) for piece in candidate]


@pytest.mark.parametrize("form", ["arma", "square_root"])
def test_whatever_is_offered_has_room_for_sixteen_million_entries(form):
    """The heaviest sums over two ordered keys, and as many entries in one cell as `plan` promises."""
    along = Mixed(alone=bytes([63, 63]), rows=(bytes([63, 63]),))
    over = Product(axes=(along, along))
    entries = 2**24
    leaves = np.zeros((9, over.cells), dtype=np.int64)
    leaves[0, 0], leaves[3, 0], leaves[4, 0] = entries * 2**24, -entries * 2**24, entries * 2**24
    (chosen,) = offered(form, over.heaviest * 2**24)

    _, (published,), _ = chosen.step(
        None, over.spread(leaves), series=[LEVEL], sample=lambda nodes: np.zeros((len(nodes.end), over.nodes), np.int64)
    )

    found = over.gather(published)[:, 0] / 2**24
    np.testing.assert_allclose(found, [*[entries] * 2, 0, *[entries] * 5], atol=1e-3)
    assert offered(form, 2**38) == []
    with pytest.raises(OverflowError, match="weighted sums over cells"):
        over.spread(leaves * 2**4)


def in_bins(c: np.ndarray, windows: int, k: int) -> np.ndarray:
    return vectors.changes(vectors.shapes(c, windows), HISTOGRAM, k, present=False)


def largest(factorised: Factorised) -> float:
    return float(factorised.variances(LEVEL, factorised.windows).max())


@pytest.mark.slow
@pytest.mark.parametrize(("windows", "goal"), [(128, 6.82), (365, 8.70), (1024, 10.95), (4096, 14.1)])
def test_one_change_at_a_state_of_a_few_numbers(windows, goal):
    factorised = fitted("arma", windows, 1)

    assert toggles(factorised.coefficients, windows, 1)[1] * largest(factorised) <= goal
    assert len(factorised.kernel.poles) <= 6


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("windows", "changes", "form", "goal"),
    [
        (128, 2, "arma", 9.9),
        (128, 4, "leaky", 15.2),
        (128, 8, "arma", 23.0),
        (365, 2, "arma", 13.1),
        (365, 4, "arma", 20.9),
        (365, 8, "arma", 33.0),
        (1024, 2, "arma", 16.7),
        (1024, 4, "arma", 27.5),
        (1024, 8, "arma", 44.5),
        (4096, 2, "arma", 22.2),
        (4096, 4, "leaky", 37.2),
        (4096, 8, "arma", 62.7),
    ],
)
def test_a_few_changes(windows, changes, form, goal):
    """The search uses the bounds in closed form, the claim uses the certificate of its result."""
    factorised = fitted(form, windows, changes)

    assert certify(factorised.coefficients, changes)[changes] * largest(factorised) <= goal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("windows", "k", "goal"),
    [(365, 2, 22.7), (365, 4, 37.5), (365, 8, 60.5), (1024, 2, 28.5), (1024, 4, 50.0), (1024, 8, 83.0)],
)
def test_a_histogram(windows, k, goal):
    factorised = fitted("arma", windows, k, bound=in_bins)

    assert in_bins(factorised.coefficients, windows, k)[k] * largest(factorised) <= goal


@pytest.mark.slow
@pytest.mark.parametrize(("width", "goal"), [(7, 3.61), (30, 6.54), (90, 9.32), (365, 13.6)])
def test_sliding_windows_without_end(width, goal):
    sliding = Series(kind="sliding", width=width)
    factorised = fit(
        "window",
        windows=None,
        over=max(1024, 2 * width),
        initial_level=False,
        series=[sliding],
        energy=lambda found: float(toggles(found.coefficients, None, 1)[1]),
    )

    bounds = toggles(factorised.coefficients, None, 8)
    variances = factorised.variances(sliding, 20 * width + 1000)
    assert 1.1 < factorised.kernel.leak * width < 1.3
    for changes in (1, 2, 4, 8):
        assert bounds[changes] * variances.max() <= goal * changes
    # Constant from the point at which the first leaf is far back.
    np.testing.assert_allclose(variances[-100:], variances.max(), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize(("windows", "changes"), [(100, 1), (100, 4), (300, 60)])
def test_no_leak_of_a_fine_grid_is_better(worst, windows, changes):
    def cost(factorised: Factorised) -> float:
        variances = factorised.variances(LEVEL, windows)
        size = variances.max() if worst else variances.mean()
        return float(toggles(factorised.coefficients, windows, changes)[changes] * size)

    leaks = np.exp(np.linspace(np.log(0.02 / windows), 0, 150)).tolist()
    best = min(
        cost(Factorised(kernel=Coefficients(leak=min(1.0, leak)), windows=windows, initial_level=False))
        for leak in leaks
    )

    assert cost(fitted("leaky", windows, changes, worst=worst)) <= 1.001 * best
    assert cost(fitted("arma", windows, changes, worst=worst)) <= 1.01 * best


def test_the_mean_and_the_largest_variance_are_different_aims():
    by_mean, by_largest = (fitted("leaky", 365, 2, worst=worst) for worst in (False, True))

    energies = [toggles(c.coefficients, 365, 2)[2] for c in (by_mean, by_largest)]
    means = [e * c.variances(LEVEL, 365).mean() for e, c in zip(energies, (by_mean, by_largest), strict=True)]
    most = [e * largest(c) for e, c in zip(energies, (by_mean, by_largest), strict=True)]
    assert means[0] < 0.999 * means[1]
    assert most[1] < 0.999 * most[0]


def test_every_series_counts():
    """Levels and changes prefer different leaks; both together prefer one in between."""

    def leak(*series: Series) -> float:
        return fit(
            "leaky",
            windows=200,
            over=200,
            initial_level=True,
            series=series,
            energy=lambda found: float(toggles(found.coefficients, 201, 4)[4]),
        ).kernel.leak

    change = Series(kind="change")
    least, most = sorted([leak(LEVEL), leak(change)])
    assert 1.1 * least < leak(LEVEL, change) < most / 1.1


def test_the_square_root_has_nothing_to_fit():
    assert fitted("square_root", 50, 3) == Factorised(kernel=Coefficients(), windows=50, initial_level=False)


@pytest.mark.parametrize("low", [0.05, 1e-2, 1e-5])
@pytest.mark.parametrize("poles", [3, 4, 5])
def test_the_rational_function_is_the_best_of_its_degree(low, poles):
    """Its relative error to the root has 2 d + 1 turning points at the same two values: Chebyshev's criterion."""
    zeros, others = zolotarev(0.0, low, poles)
    s = np.exp(np.linspace(np.log(low), np.log(2), 20_001))[:, None]
    error = np.log(s + zeros / (1 - zeros)).sum(axis=1) - np.log(s + others / (1 - others)).sum(axis=1)
    error -= np.log(s[:, 0]) / 2

    inner = error[1:-1]
    turning = (inner - error[:-2]) * (inner - error[2:]) > 0
    extremes = np.concatenate((error[:1], inner[turning], error[-1:]))
    assert len(extremes) == 2 * poles + 1
    np.testing.assert_allclose(extremes[0::2], error.max(), atol=1e-6)
    np.testing.assert_allclose(extremes[1::2], error.min(), atol=1e-6)


@pytest.mark.parametrize("leak", [0.5, 0.05, 1e-3])
@pytest.mark.parametrize("poles", [3, 4, 5])
def test_rounded_factorisations_are_convex_and_near_the_leaky_filter(leak, poles):
    factorised = Factorised(
        kernel=Exponentials(poles=dyadic(*zolotarev(leak, leak, poles))), windows=5000, initial_level=False
    )

    ratio = factorised.coefficients / coefficients.leaky(5000, leak)

    assert np.abs(np.log(ratio)).max() < 0.2
    steps = np.diff(factorised.coefficients)
    assert (steps <= 0).all()
    assert (np.diff(steps) >= -1e-15).all()


def test_poles_that_round_to_the_same_are_one():
    poles = dyadic(np.array([0.2, 0.5002, 0.9997]), np.array([0.5, 0.9995]))

    assert [pole[:2] for pole in poles] == [(0, 0), (1, 1), (1, 0)]
    assert sum(u for _, _, u in poles) == 2**16

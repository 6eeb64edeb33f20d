"""The noise of a whole release: its exact distribution, and one sample for each node and cell.

A correct release fails a statistical test here with probability at most FALSE_ALARM: the number of samples in each bin
is exactly binomial, and the tails of all bins are added up (Bonferroni).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Measure
from privacy.noise.distributions import DiscreteLaplace
from privacy.planning.demand import Demand
from privacy.planning.linear_part import LinearPart
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.protection import Span
from privacy.series import Family, Series, SeriesKind, totals
from privacy.smoothing.segments import Segment
from privacy.strategies.choice import REFINES, Choice
from privacy.strategies.factorised.fitting import FAMILIES
from tests.dense import dense
from transforms.aggregation.node_sums import BOUNDED, Aggregation, NodeKey
from transforms.aggregation.queries import Query, Timeline
from transforms.release.linear_chunk import add_noise
from transforms.release.release import ReleasePlan, protect, remember
from transforms.release.smoothed_tables import covariances_of

FALSE_ALARM = 1e-6
CONSTRAINT = AtMost(3)
DISJOINT = Choice(name="disjoint")
COUNT: NodeKey = (BOUNDED, 0, "net", 0)
MEAN: NodeKey = (BOUNDED, 1, "net", 0)
LEFT: NodeKey = (BOUNDED, 0, "left", 0)
DAY = 86_400_000_000

MEASURES = (Measure(kind="count"), Measure(kind="mean", low=0, high=10))


def plan_for(kinds: tuple[SeriesKind, ...], cells: int, windows: int) -> Plan:
    """Return a plan for a count with these kinds and the changes of a mean, at epsilon 1."""
    demands = [
        Demand(
            name="beds",
            measure=MEASURES[0],
            cells=cells,
            series=tuple(Series(kind=k) for k in kinds),
            choice=DISJOINT,
        ),
        Demand(name="age", measure=MEASURES[1], cells=cells, series=(Series(kind="change"),), choice=DISJOINT),
    ]
    return make_plan(
        demands,
        promise=Promise(constraint=CONSTRAINT, window=DAY, windows=windows, owner=False),
        budget=Budget(epsilon=1.0, delta=0.0),
        mechanism="laplace",
        accounting="naive",
    )


def nothing(plan: Plan, key: NodeKey, cells: int, windows: int) -> NDArray[np.int64]:
    """Return the exact nodes of an empty changelog."""
    queries = tuple(
        Query(name=d.name, measure=d.measure, by=(("cell", tuple(range(cells))),), publish=d.series)
        for d in plan.demands
    )
    timeline = Timeline(start=0, every=DAY, windows=windows)
    return dense([], Aggregation(queries=queries, timeline=timeline, constraint=CONSTRAINT), key)


def agrees(drawn: NDArray[np.int64], distribution: DiscreteLaplace) -> bool:
    """Return whether each value within 3 scales, and each tail beyond them, has the frequency of the distribution."""
    reach = round(3 * distribution.scale)
    values = np.arange(-reach, reach + 1)
    q = np.exp(-1 / distribution.scale)
    tail = q ** (reach + 1) / (1 + q)
    chances = np.array([tail, *((1 - q) / (1 + q) * q ** np.abs(values)), tail])
    clipped = np.clip(drawn, -reach - 1, reach + 1)
    counts = np.bincount(clipped + reach + 1, minlength=len(chances))
    share = FALSE_ALARM / (2 * len(chances))
    n = len(drawn)
    return bool(np.all((binom.cdf(counts, n, chances) > share) & (binom.sf(counts - 1, n, chances) > share)))


WINDOWS, CELLS = 999, 150


def part(plan: Plan, key: NodeKey) -> LinearPart:
    (released,) = plan.linear(key[1], key[2])
    return released


def nodes_of(exact: NDArray[np.int64], released: LinearPart) -> NDArray[np.int64]:
    """Return nodes, int64 [components, nodes, cells]."""
    return np.stack(add_noise(exact, released).nodes)


@pytest.mark.slow
@pytest.mark.parametrize("key", [COUNT, LEFT])
def test_the_noise_of_an_empty_changelog_follows_the_distribution_of_the_plan(key: NodeKey) -> None:
    plan = plan_for(("level", "left"), CELLS, WINDOWS)
    released = part(plan, key)
    (distribution,) = released.noise
    assert isinstance(distribution, DiscreteLaplace)

    noisy = nodes_of(nothing(plan, key, CELLS, WINDOWS), released)

    assert noisy.shape == (1, WINDOWS + int(released.strategy.initial_level), CELLS)
    assert agrees(noisy.ravel(), distribution)


@pytest.mark.slow
def test_noise_of_half_the_scale_fails_the_test() -> None:
    plan = plan_for(("level", "left"), CELLS, WINDOWS)
    released = part(plan, COUNT)
    (distribution,) = released.noise
    halved = replace(released, noise=tuple(DiscreteLaplace(n.scale / 2) for n in released.noise))

    noisy = nodes_of(nothing(plan, COUNT, CELLS, WINDOWS), halved)

    assert isinstance(distribution, DiscreteLaplace)
    assert not agrees(noisy.ravel(), distribution)


def weighted(epsilon: float) -> LinearPart:
    level = Demand(
        name="beds",
        measure=MEASURES[0],
        cells=500,
        series=(Series(kind="level"),),
        choice=Choice(name="direct", weights=(1.0, 8.0)),
    )
    (released,) = make_plan(
        [level],
        promise=Promise(constraint=AtOnce(), window=DAY, windows=None, owner=False, protects=Span(2 * DAY)),
        budget=Budget(epsilon=epsilon, delta=0.0),
        mechanism="laplace",
        accounting="naive",
    ).parts
    return released


@pytest.mark.slow
def test_weighted_windows_get_noise_by_their_shares() -> None:
    noisy = nodes_of(np.zeros((1, 401, 500), dtype=np.int64), weighted(1.0))[0]

    # Of two successive days one has a fifth of epsilon, the other four fifths.
    wide, narrow = DiscreteLaplace(5.0), DiscreteLaplace(1.25)
    assert agrees(noisy[0::2].ravel(), wide)
    assert agrees(noisy[1::2].ravel(), narrow)
    assert not agrees(noisy[0::2].ravel(), narrow)


def test_smoothing_knows_the_variance_of_each_width_of_noise() -> None:
    """A multiple of narrow noise is not wider noise: at epsilon 5 noise has less than a fifth of its variance."""
    (found,) = covariances_of(weighted(5.0), Series(kind="level"), [Segment(first=2, kept=2, last=6)])

    wide, narrow = DiscreteLaplace(1.0).variance, DiscreteLaplace(0.25).variance
    np.testing.assert_allclose(found, np.diag([wide, narrow, wide, narrow]), rtol=1e-5)


def test_the_noise_covers_the_joint_sensitivity_of_the_whole_release() -> None:
    plan = plan_for(("level", "left"), 2, 10)

    paid = sum(
        released.sensitivity.l1 * plan.demands[released.query].measure.components[0].largest / released.noise[0].scale
        for released in plan.parts
    )
    # With noise of half the width the sum would be 2.
    assert paid == pytest.approx(1.0, abs=1e-9)
    assert paid <= 1.0


def test_every_node_cell_and_component_has_an_independent_sample() -> None:
    # Two columns of 200 samples are equal by chance with probability at most Pr[N = N']^200 each, and
    # Pr[N = N'] <= 1/2 for these scales: far below the FALSE_ALARM for all pairs together.
    plan = plan_for(("level",), 200, 40)
    pairs = (2 * 41) ** 2
    assert pairs * 0.5**200 < FALSE_ALARM

    noisy = [nodes_of(nothing(plan, key, 200, 40), part(plan, key)) for key in (COUNT, COUNT, MEAN)]

    rows = np.concatenate([nodes.reshape(-1, 200) for nodes in noisy])
    assert len(np.unique(rows, axis=0)) == len(rows)
    columns = np.concatenate([nodes.transpose(0, 2, 1).reshape(-1, 40) for nodes in noisy[2:]])
    assert len(np.unique(columns, axis=0)) == len(columns)


def test_noise_is_added_to_the_exact_sums_without_changing_them() -> None:
    plan = plan_for(("level",), 3, 4)
    exact = nothing(plan, COUNT, 3, 4) + 1_000_000
    before = exact.copy()

    noisy = nodes_of(exact, part(plan, COUNT))

    # |N| > 500,000 has a probability below exp(-500,000 / scale) for each of 15 samples.
    assert 15 * 2 * np.exp(-500_000 / part(plan, COUNT).noise[0].scale) < FALSE_ALARM
    assert np.array_equal(exact, before)
    assert np.abs(noisy - exact).max() <= 500_000


@pytest.mark.parametrize(
    ("kinds", "family", "initial_level"),
    [(("level",), "net", True), (("change",), "net", False), (("level", "left"), "left", False)],
)
def test_the_initial_level_is_a_published_node_only_if_it_is_released(
    kinds: tuple[SeriesKind, ...], family: Family, initial_level: bool
) -> None:
    plan = plan_for(kinds, 500, 2)
    key: NodeKey = (BOUNDED, 0, family, 0)

    noisy = nodes_of(nothing(plan, key, 500, 2) + 7, part(plan, key))

    assert noisy.shape == (1, 2 + int(initial_level), 500)
    # 500 samples are not all 0.
    assert np.all(np.any(noisy != 7, axis=2))


SLIDING = (Series(kind="sliding", width=7), Series(kind="level"), Series(kind="change"))
CHOICES = [
    Choice(name="disjoint"),
    Choice(name="sliding"),
    *(Choice(name="tree", branching=3, height=3, refine=refine) for refine in REFINES),
    *(Choice(name="factorised", form=form) for form in FAMILIES),
]


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_published_numbers_are_exact_ones_plus_noise_that_does_not_depend_on_data(choice: Choice) -> None:
    """Two releases use a distribution with fixed samples: the noise must not depend on the data."""
    plan = strategic(choice, SLIDING, windows=40)
    rng = np.random.default_rng(11)
    exact = rng.integers(-50, 50, (1, 41, 4)) << 24
    for released in plan.linear(0, "net"):
        distribution = _Fixed(12345)
        fixed = replace(released, noise=(distribution,))  # type: ignore[arg-type]
        with_data, without = add_noise(exact, fixed), add_noise(exact * 0, fixed)
        for series, told, noise in zip(released.series, with_data.sums, without.sums, strict=True):
            np.testing.assert_allclose(told[0] - noise[0], totals(series, exact[0]), rtol=1e-9, atol=2.0**24 * 1e-3)


class _Fixed:
    """A distribution whose samples are not random."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def noise(self, size: int) -> NDArray[np.int64]:
        return np.random.default_rng(self.seed).integers(-(2**30), 2**30, size)


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_errors_have_the_variance_of_the_plan(choice: Choice) -> None:
    """The sum of squares of 400 independent errors for each of a few windows, each over its stated variance.

    Noise is sub-Gaussian or Laplace-like: for Gaussian noise the sum is chi-square with 400 degrees of freedom, except
    for the grid, and its tails at FALSE_ALARM / cases are the limits.
    """
    windows, cells = 30, 400
    plan = strategic(choice, SLIDING[:2], windows=windows)
    limit = FALSE_ALARM / (len(CHOICES) * 8)
    low, high = chi2.ppf(limit, cells), chi2.isf(limit, cells)
    for released in plan.linear(0, "net"):
        drawn = add_noise(np.zeros((1, windows + 1, cells), dtype=np.int64), released)
        for series, sums in zip(released.series, drawn.sums, strict=True):
            variances = released.variances(series, windows) * released.noise[0].variance
            assert len(sums[0]) == len(variances) > 0
            for place in (0, len(variances) - 1):
                assert low < (sums[0][place] ** 2).sum() / variances[place] < high


def strategic(choice: Choice, series: tuple[Series, ...], *, windows: int) -> Plan:
    """Return a plan for a count with Gaussian noise."""
    if choice.name == "sliding":
        series = tuple(s for s in series if s.kind == "sliding")
    return make_plan(
        [Demand(name="beds", measure=MEASURES[0], cells=1, series=series, choice=choice)],
        promise=Promise(constraint=CONSTRAINT, window=DAY, windows=windows, owner=False),
        budget=Budget(epsilon=1.0, delta=1e-6),
        mechanism="gaussian",
        accounting="pld",
    )


def test_noise_continues_only_under_the_plan_under_which_it_was_sampled(tmp_path: Path) -> None:
    """Another scale, for example, would make numbers of old and new noise with errors that no plan states."""
    plan = plan_for(("level",), 2, 4)
    (part,) = plan.linear(0, "net")
    other = replace(plan, parts=(replace(part, noise=(DiscreteLaplace(2 * part.noise[0].scale),)), *plan.parts[1:]))
    queries = tuple(
        Query(name=d.name, measure=d.measure, by=(("cell", (0, 1)),), publish=d.series) for d in plan.demands
    )
    first = Aggregation(queries=queries, timeline=Timeline(start=0, every=DAY, windows=2), constraint=CONSTRAINT)
    second = replace(first, timeline=Timeline(start=0, every=DAY, windows=4, released=2))
    for noisy in protect(ReleasePlan(plan=plan, aggregation=first), COUNT, [], past=None, keep=True):
        for name, content in remember(noisy):
            (tmp_path / name).write_bytes(content)

    def go_on(plan: Plan) -> list[tuple[NodeKey, bytes]]:
        return list(protect(ReleasePlan(plan=plan, aggregation=second), COUNT, [], past=str(tmp_path), keep=True))

    assert len(go_on(plan)) == 2  # a block and a state
    with pytest.raises(ValueError, match="was sampled under another plan"):
        go_on(other)

"""Exact cost of samples that are made with sums over cells: all that they publish, for all neighbours."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from privacy.adaptive.base import Period, Rule
from privacy.adaptive.bd import BdRule
from privacy.adaptive.budget import scales_for, spent
from privacy.adaptive.carry import AdaptiveCarry, Ints
from privacy.adaptive.dsat import DsatRule, Gains
from privacy.adaptive.fixed import FixedRule
from privacy.adaptive.samples import sketched
from privacy.adaptive.scales import Scales
from privacy.adaptive.spending import offered
from privacy.adaptive.step import distance
from privacy.cells.base import Sketcher
from privacy.cells.each import Each
from privacy.cells.kdtree.kdtree import kdtree
from privacy.cells.kdtree.reading import least_squares
from privacy.cells.layers import Layers
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.quadtree import quadtree
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import DiscreteLaplace
from privacy.planning.document import CODEC
from tests.privacy.adaptive.runs import chances, offset

EPSILON, R = 1.0, 2
FIXED = FixedRule(period=Period(windows=6), interval=6)
"""One sample, which takes all of epsilon."""

OVERS: dict[str, Sketcher] = {
    "tree": Product(axes=(Layers(cells=7, sizes=(1, 2, 4), weights=(1, 1, 1)),)),
    "optimised": Product(axes=(Layers(cells=3), Layers(cells=4, sizes=(1, 4), weights=(3, 1)))),
    "prefix": Product(axes=(Prefixes(cells=5),)),
    "quadtree": Product(axes=(quadtree((4, 3), (True, True)),)),
    "kdtree": kdtree((6,), (True,), height=2, share=0.3),
    "kdtree split once": kdtree((6,), (True,), height=1, share=0.3),
    "kdtree of two keys": kdtree((2, 3, 4), (False, True, True), height=2, share=0.4),
}


@dataclass(frozen=True)
class Kept:
    """A document that contains a sketcher."""

    over: Sketcher


def scales_of(over: Sketcher, adaptive: Rule = FIXED, epsilon: float = EPSILON) -> Scales:
    return scales_for(adaptive, budget=epsilon, sensitivity=R, over=over)


def step_over(rule, scales, over, carry, level, sample):
    """Return the units that the sample took, its reading and the carry."""
    found = rule.publication.step(scales, over, carry, level, sample)
    return found.units, found.reading, found.carry


class Without:
    """No noise; splits are chosen as given, and the scores and scales of all requests are recorded."""

    def __init__(self, picks: Sequence[int]) -> None:
        self.picks = iter(picks)
        self.log_chance = 0.0
        self.scales: list[float] = []
        self.open: list[int] = []

    def __call__(self, distribution: DiscreteLaplace | PrivateChoice, size: int) -> Ints:
        if isinstance(distribution, PrivateChoice):
            self.open.append(len(distribution.scores))
            pick = next(self.picks, 0)
            self.log_chance += math.log(chances(distribution.scores.tolist(), distribution.scale)[pick])
            return np.array([pick])
        self.scales.append(distribution.scale)
        return np.zeros(size, dtype=np.int64)


def all_picks(over: Sketcher, scales: Scales, level: Ints) -> Iterator[tuple[int, ...]]:
    """Yield every way in which regions can be split."""
    done = Without(())
    sketched(over, scales, level, 1, done)
    picks: list[int] = [0] * len(done.open)
    while True:
        yield tuple(picks)
        done = Without(picks)
        sketched(over, scales, level, 1, done)
        picks = [*picks, *[0] * len(done.open)][: len(done.open)]
        while picks and picks[-1] == done.open[len(picks) - 1] - 1:
            picks.pop()
        if not picks:
            return
        picks[-1] += 1


def loss(over: Sketcher, scales: Scales, one: Ints, other: Ints) -> float:
    """Return the largest log ratio of a sample's publications for two histograms: over all splits and noisy sums."""
    worst = 0.0
    for picks in all_picks(over, scales, one):
        sides = [Without(picks), Without(picks)]
        sums = [sketched(over, scales, level, 1, side) for level, side in zip((one, other), sides, strict=True)]
        (scale,) = sides[0].scales
        moved = float(np.abs(sums[0] - sums[1]).sum())
        worst = max(worst, abs(sides[0].log_chance - sides[1].log_chance) + moved / scale)
    return worst


def neighbours(level: Ints) -> Iterator[Ints]:
    """Yield histograms with one unit more or less: all its size in one cell, or in two."""
    for cell in range(len(level)):
        for sign in (1, -1):
            other = level.copy()
            other[cell] += sign * R
            yield other
    other = level.copy()
    other[[0, -1]] += R // 2
    yield other


LEVELS = {
    # There are few ways to split them; the unit is far from the median, where a choice reveals most.
    "kdtree": (np.array([0, 400, 0, 0, 0, 1600]), 0.95),
    "kdtree split once": (np.array([0, 400, 0, 0, 0, 1600]), 0.999),
    "kdtree of two keys": (None, 0.8),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", OVERS)
def test_a_sample_costs_exactly_the_stated_budget(name: str) -> None:
    over = OVERS[name]
    level, least = LEVELS.get(name, (None, 0.999))
    if name == "kdtree of two keys":  # one round along each axis, of one tree
        over = kdtree((1, 3, 3), (False, True, True), height=1, share=0.4)
    if level is None:
        level = np.random.default_rng(3).integers(0, 50, over.cells)
        level[0], level[-1] = 400, 1600
    scales = scales_of(over)

    assert spent(FIXED, scales) <= EPSILON
    losses = [loss(over, scales, level, other) for other in neighbours(level)]
    assert least * EPSILON < max(losses) <= EPSILON + 1e-9
    assert max(loss(over, replace(scales, whole=scales.whole / 2), level, o) for o in neighbours(level)) > 1.3 * EPSILON
    if scales.splits is not None:
        louder = replace(scales, splits=scales.splits / 4)
        assert max(loss(over, louder, level, other) for other in neighbours(level)) > 1.1 * EPSILON
        assert spent(FIXED, louder) > EPSILON


@pytest.mark.parametrize("name", OVERS)
def test_each_sum_has_separate_noise_and_a_part_of_the_budget_has_more_noise(name: str) -> None:
    over, level, asked = OVERS[name], np.arange(OVERS[name].cells), []
    scales = replace(scales_of(over), units=4)

    def noise(distribution: DiscreteLaplace | PrivateChoice, size: int) -> Ints:
        asked.append(distribution.scale)
        return np.zeros(size, np.int64) if isinstance(distribution, PrivateChoice) else 1_000 + np.arange(size)

    parts = [sketched(over, scales, level, 1, noise), sketched(over, scales, level, 1, Without([0] * 40))]
    added = parts[0] - parts[1]
    sums = added[np.flatnonzero(added)[0] :]
    assert sums.tolist() == (1_000 + np.arange(len(sums))).tolist()
    assert len(added) - len(sums) == len(asked) - 1
    assert asked == [*[4 * (scales.splits or 0)] * (len(asked) - 1), 4 * scales.whole]


@pytest.mark.parametrize("name", OVERS)
def test_gaussian_noise_covers_the_squared_move_of_sums(name: str) -> None:
    """In rho: for noisy sums the squared L2 norm over twice the variance, for a round of splits epsilon^2 / 2."""
    over, level = OVERS[name], np.random.default_rng(3).integers(0, 50, OVERS[name].cells)
    scales = scales_for(FIXED, noise="gaussian", budget=0.5, sensitivity=R, over=over)
    sums = sketched(over, scales, level, 1, Without([0] * 20))
    costs = []
    for other in neighbours(level):
        moved = sketched(over, scales, other, 1, Without([0] * 20)) - sums
        costs.append(float((moved.astype(float) ** 2).sum()) / (2 * scales.sample(1).scale ** 2))
    of_splits = over.rounds * (2 * R / scales.split(1)) ** 2 / 2 if over.rounds else 0.0
    assert max(costs) + of_splits == pytest.approx(float(spent(FIXED, scales)), rel=1e-9)
    assert 0.4999 < spent(FIXED, scales) <= 0.5
    if over.rounds:
        assert of_splits == pytest.approx(0.5 * over.share)
        half = replace(scales, units=4)  # a sample that takes a quarter of the budget has twice the noise
        assert (half.split(1), half.sample(1).scale) == pytest.approx((2 * half.split(4), 2 * half.sample(4).scale))


@pytest.mark.slow
@pytest.mark.parametrize("name", OVERS)
def test_a_distance_moves_by_at_most_the_size_of_a_unit_at_one_time(name: str) -> None:
    over, rng = OVERS[name], np.random.default_rng(4)
    level, far = rng.integers(-30, 50, over.cells), 0
    for _ in range(20):
        before = rng.integers(0, 40, over.cells)
        sketch = sketched(over, scales_of(over), before, 1, lambda d, size: d.noise(size))
        reading = over.read(sketch)
        for other in neighbours(level):
            near = [distance(reading.sums(one), reading.near) for one in (level, other)]
            far = max(far, abs(near[0] - near[1]))
    assert far == R


@pytest.mark.parametrize("name", OVERS)
def test_decisions_depend_on_that_distance_and_its_noise(name: str) -> None:
    over, adaptive = OVERS[name], BdRule(period=Period(span=9), decisions=0.3)
    scales, level = scales_of(over, adaptive), np.arange(OVERS[name].cells)
    _, reading, carry = step_over(adaptive, scales, over, None, level, Without([0] * 40))
    near = distance(reading.sums(level + 7), reading.near)
    least = offset(adaptive, scales, carry, units=offered(adaptive, carry), cells=over.cells, reading=reading) - near
    for nu, above in ((least, True), (least - 1, False)):

        def noise(distribution: DiscreteLaplace | PrivateChoice, size: int) -> Ints:
            tested = isinstance(distribution, DiscreteLaplace) and distribution.scale == scales.test
            return np.full(size, nu if tested else 0)  # noqa: B023

        assert bool(step_over(adaptive, scales, over, carry, level + 7, noise)[0]) is above


@pytest.mark.parametrize("name", OVERS)
def test_many_steps_equal_one_step_and_the_last_numbers_are_repeated(name: str) -> None:
    over, adaptive = OVERS[name], DsatRule(period=Period(span=9), samples=3, decisions=0.3, gains=Gains())
    scales = scales_of(over, adaptive, 20.0)
    assert CODEC.read(Scales, json.loads(json.dumps(CODEC.write(scales)))) == scales
    assert CODEC.read(Kept, json.loads(json.dumps(CODEC.write(Kept(over))))) == Kept(over)
    levels = np.random.default_rng(5).integers(0, 9, (12, over.cells)).cumsum(axis=0) * np.array([[1], [9]] * 6)
    rng, taken, carry, cells = np.random.default_rng(6), [], None, []
    kept: list[Ints] = []
    for level in levels:

        def noise(distribution: DiscreteLaplace | PrivateChoice, size: int) -> Ints:
            if isinstance(distribution, PrivateChoice):
                return np.array([int(distribution.scores.argmax())])
            return np.rint(rng.laplace(scale=distribution.scale, size=size)).astype(np.int64)

        units, reading, carry = step_over(adaptive, scales, over, carry, level, noise)
        document = json.loads(json.dumps(CODEC.write(carry)))
        carry = CODEC.read(AdaptiveCarry, document, published=carry.published)
        taken.append(units)
        cells.append(reading.cells)
        kept.append(carry.published)
    assert taken[0] == 1
    assert 1 < sum(taken) < 12
    for window in range(1, 12):
        same = kept[window].tolist() == kept[window - 1].tolist()
        assert same is not bool(taken[window])
        assert (cells[window].tolist() == cells[window - 1].tolist()) is same


def test_cells_of_a_kdtree_are_least_squares_of_its_regions_spread_evenly() -> None:
    rng = np.random.default_rng(7)
    for shape, ordered, height in (
        ((4, 6), (True, True), 3),
        ((3, 2, 7), (True, False, True), 2),
        ((1, 7), (True, True), 2),
        ((9,), (True,), 3),
        ((3, 7), (False, True), 1),
    ):
        tree = kdtree(shape, ordered, height=height, share=0.3)
        level = rng.integers(0, 50, tree.cells)
        sketch = tree.sketch(level, lambda scores: int(rng.integers(len(scores))), lambda n: rng.integers(-9, 9, n))
        levels, noisy = tree.opened(sketch)
        held = [tree.places(regions)[None, :] == np.arange(len(regions))[:, None] for regions in levels]
        nodes = np.concatenate([weight * one for weight, one in zip(tree.weights, held, strict=True)])
        assert (nodes.sum(axis=0) == sum(tree.weights)).all()  # each cell is once in each level
        last = held[-1].astype(float)
        assert (last.sum(axis=1) == levels[-1].sizes).all()
        inverse = np.linalg.pinv(nodes @ (last / last.sum(axis=1)[:, None]).T)
        values, variances = least_squares(levels, noisy, tree.weights)
        reading = tree.read(sketch)
        assert values == pytest.approx(inverse @ np.concatenate(noisy))
        assert variances == pytest.approx(np.diag(inverse @ inverse.T))
        assert reading.near.tolist() == np.rint(values).tolist()
        assert reading.cells == pytest.approx(values / last.sum(axis=1) @ last)
        assert reading.deviations == pytest.approx(np.sqrt(variances) / last.sum(axis=1) @ last)
        assert reading.mean_norm == pytest.approx(math.sqrt(2 / math.pi) * np.sqrt(variances).sum())
        assert reading.root == pytest.approx(math.sqrt(variances.sum()))
        assert reading.sums(level).tolist() == (last @ level).tolist()
        for wrong in (sketch[:-1], np.append(sketch, 0), np.r_[99, sketch[1:]]):
            with pytest.raises(ValueError, match="another kdtree"):
                tree.opened(wrong)


def test_regions_of_whole_numbers_that_wrap_keep_their_sums() -> None:
    tree = kdtree((4,), (True,), height=1, share=0.5)
    level = np.array([2**62, 2**62, 2**62, 2**62])

    splits = Without((1,))
    sketch = tree.sketch(
        level, lambda scores: int(splits(PrivateChoice(scores, 1e20), 1)[0]), lambda n: np.zeros(n, np.int64)
    )

    assert sketch.tolist() == [1, 0, -(2**63), -(2**63)]


@pytest.mark.slow
def test_a_choice_follows_permute_and_flip() -> None:
    """Counts are binomial: within 5.5 standard deviations except with probability 4e-8 (twice that for the tails)."""
    scores, runs = [0, 3], 2_000
    chosen = int(PrivateChoice(np.array(scores), 3.0).noise(runs).sum())

    stated, halved = (runs * chances(scores, scale)[1] for scale in (3.0, 1.5))
    reach = 5.5 * math.sqrt(stated * (1 - stated / runs)) + 1
    assert abs(chosen - stated) < reach
    assert abs(halved - stated) > 2 * reach


def test_weights_are_geometric_and_mismatched_arguments_are_refused() -> None:
    tree = quadtree((64, 64), (True, True))
    assert np.array(tree.weights[:-1]) / tree.weights[1:] == pytest.approx(2 ** (1 / 3), rel=0.05)
    scales, level = scales_of(OVERS["tree"]), np.zeros(7, dtype=np.int64)
    with pytest.raises(ValueError, match="with other sums over cells"):
        step_over(FIXED, scales, Each(cells=7), None, level, Without(()))
    with pytest.raises(ValueError, match="with other sums over cells"):
        step_over(FIXED, scales_of(OVERS["kdtree"]), OVERS["tree"], None, level, Without(()))
    with pytest.raises(ValueError, match="expected int64 in 7 cells"):
        step_over(FIXED, scales, OVERS["tree"], None, level[:6], Without(()))
    carry: AdaptiveCarry | None = None
    for _ in range(6):
        _, _, carry = step_over(FIXED, scales, OVERS["tree"], carry, level, Without(()))
    with pytest.raises(ValueError, match="the release ends after 6"):
        step_over(FIXED, scales, OVERS["tree"], carry, level, Without(()))
    assert Fraction(99, 100) < spent(FIXED, scales) <= 1

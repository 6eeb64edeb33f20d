"""Smoothing over groups of windows: what it costs exactly, that it goes on, what a group is."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.adaptive.choice import AdaptiveChoice
from privacy.adaptive.grouping import LONGEST, deviation, smoothed, step_grouped, unpacked
from privacy.adaptive.policy import Adaptive
from privacy.adaptive.scales import Scales, scales_for, spent
from privacy.adaptive.step import step
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis
from privacy.constraint import AtOnce
from privacy.measure import Measure
from privacy.noise.distributions import DiscreteLaplace
from privacy.planning.demand import Demand
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.protection import Span
from privacy.series import Series
from tests.privacy.adaptive_runs import added_up, at_or_above, mass

R = 2
CERTAIN = 1 << 50
Ints = np.ndarray


class Chosen:
    """No noise but that of a test, which is chosen."""

    def __init__(self, scales: Scales, nu: int) -> None:
        self.scales, self.nu = scales, nu

    def __call__(self, distribution: DiscreteLaplace, size: int) -> Ints:
        return np.full(size, self.nu if distribution.scale == self.scales.test else 0)


def log_chance(adaptive: Adaptive, scales: Scales, stream: Ints, left: list[bool], noisy: Ints) -> float:
    """ln of the chance that one cell's windows have these noisy numbers and groups: exact, from what is decided."""
    assert scales.threshold is not None
    assert scales.test is not None
    support = np.arange(-80 * round(scales.test), 80 * round(scales.test) + 1.0)
    total, weights, carry, group = 0.0, None, None, []
    for level, leaves, told in zip(stream, left, noisy, strict=True):
        total += float(mass(told - level, scales.sample(1).scale))
        open_ = carry is not None and bool(unpacked(carry.published, 1).length[0])
        if not open_:
            assert not leaves
            total, group = total + added_up(weights), [level]
            weights = mass(support, scales.threshold)
        else:
            group.append(level)
            moved = deviation(np.array(group)[:, None], np.array([len(group)]))[0]
            least = adaptive.threshold - moved
            for nu, made_of in ((least - 1, len(group)), (least, 1)):
                assert step_grouped(adaptive, scales, carry, np.array([level]), Chosen(scales, nu))[1][0] == made_of
            chance = (
                at_or_above(least + support, scales.test) if leaves else at_or_above(1 - least - support, scales.test)
            )
            weights = weights + chance
        _, _, carry = step_grouped(
            adaptive, scales, carry, np.array([level]), Chosen(scales, CERTAIN if leaves else -CERTAIN)
        )
    return total + added_up(weights)


def loss(adaptive: Adaptive, scales: Scales, one: Ints, other: Ints, left: list[bool]) -> float:
    return log_chance(adaptive, scales, one, left, one) - log_chance(adaptive, scales, other, left, one)


BEFORE = 40


def stays(adaptive: Adaptive) -> tuple[Ints, Ints, list[bool]]:
    """A unit makes the first window stand out still more, and nothing leaves its group."""
    one = np.array([70, *[0] * BEFORE])
    other = one + R * (np.arange(len(one)) == 0)
    return one, other, [False] * len(one)


def leaves(adaptive: Adaptive) -> tuple[Ints, Ints, list[bool]]:
    """A unit makes a window stand out less that leaves a group, though it hardly should."""
    one = np.array([*[0] * BEFORE, 70])
    other = one - R * (np.arange(len(one)) == BEFORE)
    return one, other, [*[False] * BEFORE, True]


CASES = {"stays": (stays, 0, 0.47), "leaves": (leaves, 270, 0.43)}


@pytest.mark.parametrize("case", CASES)
def test_costs_no_more_than_is_said(case: str) -> None:
    """The bound for groups is not reached: 0.3 to 0.4 of it are, so a quarter of a noise costs more than epsilon."""
    played, threshold, least = CASES[case]
    adaptive = Adaptive(policy="pegasus", span=1, decisions=0.8, threshold=threshold)
    scales = scales_for(adaptive, budget=1.0, sensitivity=R)
    one, other, left = played(adaptive)

    assert 0.9999 < spent(adaptive, scales) <= 1
    assert least < loss(adaptive, scales, one, other, left) <= 1 + 1e-9
    assert loss(adaptive, scales, other, one, left) <= 1 + 1e-9
    for names in (("whole",), ("threshold", "test")):
        louder = replace(scales, **{name: getattr(scales, name) / 4 for name in names})
        assert loss(adaptive, louder, one, other, left) > 1.02, names
    for name in ("whole", "threshold", "test"):
        assert spent(adaptive, replace(scales, **{name: getattr(scales, name) / 2})) > 1.1


def test_in_a_span_each_window_is_paid_for() -> None:
    """A unit that is in all windows of it makes each of them less likely, and what they do together."""
    adaptive = Adaptive(policy="pegasus", span=3, decisions=0.5, threshold=0)
    scales = scales_for(adaptive, budget=1.0, sensitivity=R)
    one = np.array([200, 200, 200, *[0] * BEFORE])
    other = one + R * (np.arange(len(one)) < 3)

    assert 0.5 + 0.5 * 0.3 < loss(adaptive, scales, one, other, [False] * len(one)) <= 1
    as_for_one = scales_for(replace(adaptive, span=1), budget=1.0, sensitivity=R)
    fewer = replace(as_for_one, units=3, whole=as_for_one.whole / 3)
    assert loss(adaptive, fewer, one, other, [False] * len(one)) > 1.9


def test_a_deviation_moves_by_twice_what_its_windows_move_together_and_reaches_it_nearly() -> None:
    rng, nearest = np.random.default_rng(1), 0.0
    for size, far in itertools.product((1, 2, 5, 64), (3, 2**47, 2**62)):
        exact = rng.integers(-far, far, (size, 30))
        moved = np.zeros_like(exact)
        moved[: rng.integers(1, size + 1)] = rng.integers(-3, 4, 30)
        length = np.full(30, size)
        change = np.abs(deviation(exact + moved, length) - deviation(exact, length))
        whole = 2 * np.abs(moved).sum(axis=0)
        assert (change <= whole).all()
        nearest = max(nearest, float((change / np.maximum(whole, 1)).max()))
    assert nearest > 0.4
    alone = np.array([[100], *[[0]] * 63])  # a unit that makes one window stand out more moves it by twice as much
    apart = [deviation(times * alone, np.array([64]))[0] for times in (1, 2)]
    assert apart[1] - apart[0] >= 0.98 * 2 * 100
    ends = np.array([[0, 0], [2**63 - 1, -(2**63)]])  # neighbours on the circle of 2^64
    assert deviation(ends, np.array([2, 2])).tolist() == [0, 0]


@pytest.mark.parametrize("left", [False, True])
def test_all_that_is_published_has_noise_of_its_own_and_so_has_each_threshold(left: bool) -> None:
    adaptive = Adaptive(policy="pegasus", span=4, decisions=0.5, threshold=9)
    scales = scales_for(adaptive, budget=1.0, sensitivity=R)
    noise, carry, before = {"cells": np.array([3, 50, 700]), "rho": np.array([20, 300, 4_000])}, None, []

    def sample(distribution: DiscreteLaplace, size: int) -> Ints:
        if distribution == scales.sample(1):
            return noise["cells"][:size]
        if distribution.scale == scales.threshold:
            return noise["rho"][:size]
        assert distribution.scale == scales.test
        return np.full(size, CERTAIN if left else -CERTAIN)

    for level in (np.array([1, 2, 3]), np.array([5, 6, 7])):
        values, _, carry = step_grouped(adaptive, scales, carry, level, sample)
        before.append(level + noise["cells"])
        assert values.tolist() == (before[-1] if left else np.mean(before, axis=0)).tolist()
        assert unpacked(carry.published, 3).limit.tolist() == (9 + noise["rho"]).tolist()

    drawn, noise["rho"] = noise["rho"], np.array([-7, 40, 9])  # a group that begins has a threshold of its own
    _, _, carry = step_grouped(adaptive, scales, carry, np.array([5, 6, 7]), sample)
    assert unpacked(carry.published, 3).limit.tolist() == (9 + (noise["rho"] if left else drawn)).tolist()


def test_scales_of_another_span_are_refused() -> None:
    adaptive = Adaptive(policy="pegasus", span=7, decisions=0.5, threshold=9)
    scales = scales_for(replace(adaptive, span=1), budget=1.0, sensitivity=R)

    with pytest.raises(ValueError, match="scales: for 1 unit, but the policy has 7"):
        step_grouped(adaptive, scales, None, np.array([1, 2, 3]), lambda _, size: np.zeros(size, dtype=np.int64))


def run(adaptive: Adaptive, scales: Scales, levels: Ints, kept: bool) -> tuple[Ints, Ints]:
    rng, carry, values, lengths = np.random.default_rng(3), None, [], []

    def noise(distribution: DiscreteLaplace, size: int) -> Ints:
        return np.rint(rng.laplace(scale=distribution.scale, size=size)).astype(np.int64)

    for level in levels:
        value, length, carry = step_grouped(adaptive, scales, carry, level, noise)
        if kept:  # as a state of its own
            carry = replace(carry, published=unpacked(carry.published.copy(), len(level)).packed())
        values.append(value)
        lengths.append(length)
    return np.array(values), np.array(lengths)


def test_a_group_ends_where_numbers_jump_and_after_so_many_windows() -> None:
    adaptive = Adaptive(policy="pegasus", span=1, decisions=0.5, threshold=900)
    scales = scales_for(adaptive, budget=20.0, sensitivity=1)
    levels = np.repeat([[100, 5], [2_000, 5]], 70, axis=0)
    values, lengths = run(adaptive, scales, levels, kept=False)

    assert lengths[:70, 1].tolist() == [*range(1, LONGEST + 1), *range(1, 7)]
    assert lengths[69:73, 0].tolist() == [6, 1, 1, 2]  # what leaves a group is one by itself
    assert np.abs(values[20:64] - levels[20:64]).mean() < 0.1 < np.abs(values[:2] - levels[:2]).mean() + 0.2
    again = run(adaptive, scales, levels, kept=True)
    assert (again[0] == values).all()
    assert (again[1] == lengths).all()


@pytest.mark.parametrize("smooth", ["mean", "median", "james_stein"])
def test_smoothers_are_of_the_windows_of_a_group(smooth: str) -> None:
    noisy = np.array([[1, 5], [3, 9], [8, 0], [100, 0], [2, 0]])
    found = smoothed(noisy, np.array([5, 2]), smooth, 2.0)
    first = {"mean": 22.8, "median": 3.0}.get(smooth)
    assert found[1] == 7.0
    if first is None:
        spread = ((noisy[:, 0] - 22.8) ** 2).sum()
        first = 22.8 + (1 - 2 * 2.0 / spread) * (2 - 22.8)
    assert found[0] == pytest.approx(first)


def test_a_plan_holds_it_and_what_it_is_not_for_is_refused() -> None:
    def planned(cells: int = 9, delta: float = 0.0, **others) -> object:
        choice = AdaptiveChoice(policy="pegasus", threshold=40.0, smooth="median")
        demand = Demand(
            name="beds",
            measure=Measure(kind="count"),
            cells=cells,
            series=(Series(kind="level"),),
            adaptive=choice,
            **others,
        )
        return make_plan(
            [demand],
            promise=Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(7)),
            budget=Budget(epsilon=1.0, delta=delta),
            mechanism="auto" if not delta else "gaussian",
            accounting=None,
        )

    plan = planned()
    assert plan_from_json(plan_to_json(plan)) == plan
    (part,) = plan.adaptive
    assert (part.adaptive.decisions, part.adaptive.smooth, part.adaptive.units) == (0.2, "median", 7)
    assert "over which windows numbers are smoothed" in plan.statement
    with pytest.raises(ValueError, match="65,536 at most"):
        planned(cells=70_000)
    with pytest.raises(ValueError, match="each cell by itself"):
        planned(axes=(Axis(cells=9, ordered=True),), over=CellChoice(name="tree"))
    with pytest.raises(ValueError, match="Laplace noise alone"):
        planned(delta=1e-9)
    with pytest.raises(ValueError, match="Laplace noise alone"):
        scales_for(part.adaptive, noise="gaussian", budget=1.0, sensitivity=1)
    with pytest.raises(ValueError, match="of the policy pegasus"):
        Adaptive(policy="ba", span=3, decisions=0.5, smooth="median")
    with pytest.raises(ValueError, match="groups windows"):
        step(part.adaptive, part.scales, None, np.zeros((1, 9), dtype=np.int64), Chosen(part.scales, 0))
    with pytest.raises(ValueError, match="not of 3 cells"):
        unpacked(np.zeros(9, dtype=np.int64), 3)
    ended = Adaptive(policy="pegasus", windows=1, decisions=0.5, threshold=1)
    scales = scales_for(ended, budget=1.0, sensitivity=1)
    _, _, carry = step_grouped(ended, scales, None, np.zeros(1, dtype=np.int64), Chosen(scales, 0))
    with pytest.raises(ValueError, match="ends after 1"):
        step_grouped(ended, scales, carry, np.zeros(1, dtype=np.int64), Chosen(scales, 0))

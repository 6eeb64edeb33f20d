"""The noise on the way that every release takes: its exact law, and one draw of its own for each node and cell.

A correct release fails a statistical test here with probability at most FALSE_ALARM: the number of draws in each bin
is binomial, exactly, and the tails of all bins are added up (Bonferroni).
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from privacy.accounting import Loss
from privacy.constraint import AtMost
from privacy.disjoint import Kind
from privacy.measure import Measure
from privacy.mechanisms import DiscreteLaplace
from privacy.plan import Demand, Plan, make_plan
from privacy.sensitivity import Family
from transforms.bounded_sums import BOUNDED, Aggregation, NodeKey, dense
from transforms.queries import Query, Timeline
from transforms.release import add_noise

FALSE_ALARM = 1e-6
CONSTRAINT = AtMost(3)
COUNT: NodeKey = (BOUNDED, 0, "net", 0)
MEAN: NodeKey = (BOUNDED, 1, "net", 0)
LEFT: NodeKey = (BOUNDED, 0, "left", 0)
DAY = 86_400_000_000

MEASURES = (Measure(kind="count"), Measure(kind="mean", low=0, high=10))


def plan_for(kinds: tuple[Kind, ...], cells: int, windows: int) -> Plan:
    """A count with these kinds and a mean's changes, at epsilon 1."""
    demands = [
        Demand(name="beds", measure=MEASURES[0], cells=cells, kinds=kinds),
        Demand(name="age", measure=MEASURES[1], cells=cells, kinds=("change",)),
    ]
    return make_plan(
        demands,
        constraint=CONSTRAINT,
        window=DAY,
        windows=windows,
        owner=False,
        budget=Loss(epsilon=1.0, delta=0.0),
        mechanism="laplace",
        accounting="naive",
    )


def nothing(plan: Plan, key: NodeKey, cells: int, windows: int) -> NDArray[np.int64]:
    """The exact nodes of an empty changelog."""
    queries = tuple(
        Query(name=d.name, measure=d.measure, by=(("cell", tuple(range(cells))),), families=d.families)
        for d in plan.demands
    )
    timeline = Timeline(start=0, every=DAY, windows=windows)
    return dense([], Aggregation(queries=queries, timeline=timeline, constraint=CONSTRAINT), key)


def agrees(drawn: NDArray[np.int64], law: DiscreteLaplace) -> bool:
    """Whether each value within 3 scales, and each tail beyond them, is there as often as the law says."""
    reach = round(3 * law.scale)
    values = np.arange(-reach, reach + 1)
    q = np.exp(-1 / law.scale)
    tail = q ** (reach + 1) / (1 + q)
    chances = np.array([tail, *((1 - q) / (1 + q) * q ** np.abs(values)), tail])
    clipped = np.clip(drawn, -reach - 1, reach + 1)
    counts = np.bincount(clipped + reach + 1, minlength=len(chances))
    share = FALSE_ALARM / (2 * len(chances))
    n = len(drawn)
    return bool(np.all((binom.cdf(counts, n, chances) > share) & (binom.sf(counts - 1, n, chances) > share)))


WINDOWS, CELLS = 999, 150


@pytest.mark.parametrize("key", [COUNT, LEFT])
def test_what_is_added_to_an_empty_changelog_follows_the_law_that_the_plan_states(key: NodeKey) -> None:
    plan = plan_for(("level", "left"), CELLS, WINDOWS)
    (law,) = plan.of(0, key[2]).noise
    assert isinstance(law, DiscreteLaplace)

    noisy = add_noise(nothing(plan, key, CELLS, WINDOWS), plan, key)

    assert noisy.shape == (1, WINDOWS + 1, CELLS)
    assert agrees(noisy[0, 1:].ravel(), law)


def test_noise_of_half_the_scale_would_be_caught() -> None:
    plan = plan_for(("level", "left"), CELLS, WINDOWS)
    (law,) = plan.of(0, "net").noise
    halved = tuple(replace(r, noise=tuple(DiscreteLaplace(n.scale / 2) for n in r.noise)) for r in plan.released)

    noisy = add_noise(nothing(plan, COUNT, CELLS, WINDOWS), replace(plan, released=halved), COUNT)

    assert isinstance(law, DiscreteLaplace)
    assert not agrees(noisy[0, 1:].ravel(), law)


def test_the_noise_pays_for_the_joint_sensitivity_of_all_that_is_released() -> None:
    plan = plan_for(("level", "left"), 2, 10)

    paid = sum(
        released.sensitivity.l1 * plan.demands[released.query].measure.components[0].largest / released.noise[0].scale
        for released in plan.released
    )
    # With a noise half as wide the sum would be 2.
    assert paid == pytest.approx(1.0, abs=1e-9)
    assert paid <= 1.0


def test_every_node_cell_and_component_has_a_draw_of_its_own() -> None:
    # Two columns of 200 equal draws would meet by chance with probability at most Pr[N = N']^200 each, and
    # Pr[N = N'] <= 1/2 for these scales: far below the FALSE_ALARM for all pairs together.
    plan = plan_for(("level",), 200, 40)
    pairs = (2 * 41) ** 2
    assert pairs * 0.5**200 < FALSE_ALARM

    noisy = [add_noise(nothing(plan, key, 200, 40), plan, key) for key in (COUNT, COUNT, MEAN)]

    rows = np.concatenate([nodes[:, 1:].reshape(-1, 200) for nodes in noisy])
    assert len(np.unique(rows, axis=0)) == len(rows)
    columns = np.concatenate([nodes[:, 1:].transpose(0, 2, 1).reshape(-1, 40) for nodes in noisy[2:]])
    assert len(np.unique(columns, axis=0)) == len(columns)


def test_noise_is_added_to_the_exact_sums_which_stay_as_they_are() -> None:
    plan = plan_for(("level",), 3, 4)
    exact = nothing(plan, COUNT, 3, 4) + 1_000_000
    before = exact.copy()

    noisy = add_noise(exact, plan, COUNT)

    # |N| > 500,000 has a probability below exp(-500,000 / scale) for each of 15 draws.
    assert 15 * 2 * np.exp(-500_000 / plan.of(0, "net").noise[0].scale) < FALSE_ALARM
    assert np.array_equal(exact, before)
    assert np.abs(noisy - exact).max() <= 500_000


@pytest.mark.parametrize(
    ("kinds", "family", "opening"),
    [(("level",), "net", True), (("change",), "net", False), (("level", "left"), "left", False)],
)
def test_the_opening_node_is_drawn_for_where_it_is_released_and_zero_elsewhere(
    kinds: tuple[Kind, ...], family: Family, opening: bool
) -> None:
    plan = plan_for(kinds, 500, 2)
    key: NodeKey = (BOUNDED, 0, family, 0)

    noisy = add_noise(nothing(plan, key, 500, 2) + 7, plan, key)

    # 500 draws are not all -7.
    assert bool(np.any(noisy[:, 0] != 0)) == opening
    assert np.any(noisy[:, 1] != 7)

"""Charged sensitivities are never below the proved ones, not by one digit: bounds are computed again, in fractions.

The bounds are those of docs/proofs/strategies.md: pairing by layers, odd nodes, events, the worst split among an
owner's entries. Values are chosen so that sizes are thirds and sevenths, which floats cannot represent.
"""

import itertools
import math
from fractions import Fraction

import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, Within
from privacy.measure import Component, Measure
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events, of_net
from privacy.planning.spent import spent
from privacy.series import Family, Series
from privacy.strategies.choice import Choice
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.odd_nodes import most_odd, most_odd_within
from privacy.strategies.tree.tree import Tree

THIRDS = Component(name="sum", grid=1.0, low=-7, high=21)
SEVENTHS = Component(name="squares", grid=1.0, low=-5, high=7)
ONE = Component(name="count", grid=1.0, low=3, high=3)
COMPONENTS = [(THIRDS,), (ONE, THIRDS, SEVENTHS)]
WINDOWS = 27
ALONE = Choice(name="disjoint")


def contribution(components: tuple[Component, ...], cells: int, part: AtMost | Within, *, owner: bool) -> Contribution:
    return Contribution(
        promise=Promise(constraint=part, window=10, windows=None, owner=owner), components=components, cells=cells
    )


def sizes(components: tuple[Component, ...], cells: int, power: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return radius, diameter and the length of the line, which is for one cell alone; squared for L2."""
    widths = [Fraction(c.high - c.low, c.largest) ** power for c in components]
    line = [Fraction(max(c.high, 0) - min(c.low, 0), c.largest) ** power for c in components]
    radius = Fraction(len(components))
    diameter = max(radius, sum(widths), 2 * radius if cells > 1 else Fraction(0))
    return radius, diameter, sum(line, Fraction(0))


def proved(
    strategy: Tree | Sliding, components: tuple[Component, ...], cells: int, part: AtMost | Within, power: int
) -> Fraction:
    """Return one entry's L1 norm, or squared L2 norm."""
    radius, diameter, line = sizes(components, cells, power)
    k = part.changes if isinstance(part, AtMost) else None

    def met(length: int, nodes: int) -> tuple[int, int]:
        if k is not None:
            return min(k, nodes), min(k - 1, nodes)
        most = min(-(-part.span // length) + 1, nodes)
        return most, most

    if isinstance(strategy, Sliding):
        overlap = -(-strategy.width // strategy.every)
        appears, present = met(10, WINDOWS)
        there_are = (WINDOWS - strategy.width) // strategy.every + 1
        across = overlap * appears if k is not None else -(-(strategy.width + appears - 1) // strategy.every)
        apart = overlap * max(radius + (appears - 1) * diameter, present * diameter)
        return min(apart, min(across, there_are) * diameter)
    told = radius if strategy.initial_level else Fraction(0)
    layers = [met(10 * strategy.branching**i, WINDOWS // strategy.branching**i) for i in range(strategy.height)]
    apart = max(
        sum((radius + (a - 1) * diameter for a, _ in layers), Fraction(0)),
        told + sum((b * diameter for _, b in layers), Fraction(0)),
    )
    if cells > 1:
        return apart
    shape = {"branching": strategy.branching, "height": strategy.height, "windows": WINDOWS}
    if k is None:
        return min(apart, told + line * most_odd_within(layers[0][0], **shape))
    odd = most_odd(WINDOWS, **shape)
    toggles = line * odd[min(k, WINDOWS)]
    return min(apart, max(toggles, told + line * odd[min(k - 1, WINDOWS)]) if strategy.initial_level else toggles)


def splits(k: int, most: int) -> list[tuple[int, ...]]:
    """Yield the ways to write k as a sum of numbers up to `most` that do not rise."""
    return [()] if k == 0 else [(j, *rest) for j in range(min(k, most), 0, -1) for rest in splits(k - j, j)]


def charged_just_enough(claimed: Sensitivity, l1: Fraction, l2_squared: Fraction) -> bool:
    """Assert that a charge is not below the exact value, and above it by at most one digit."""
    below_l1, below_l2 = (Fraction(math.nextafter(x, 0.0)) for x in (claimed.l1, claimed.l2))
    return below_l1 < l1 <= Fraction(claimed.l1) and below_l2**2 < l2_squared <= Fraction(claimed.l2) ** 2


STRATEGIES = [
    *(
        Tree(branching=c, height=h, refine="none", windows=WINDOWS, initial_level=o)
        for c, h in ((2, 1), (2, 4), (3, 3), (5, 2))
        for o in (False, True)
    ),
    Sliding(width=7, every=2, windows=WINDOWS),
    Sliding(width=3, every=1, windows=WINDOWS),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("components", COMPONENTS, ids=["thirds", "three"])
def test_an_entry_is_charged_the_proved_sensitivity(strategy, components):
    for cells, part in itertools.product((1, 5), (AtMost(1), AtMost(3), AtMost(7), AtMost(40), Within(0), Within(35))):
        claimed = of_net(strategy, contribution(components, cells, part, owner=False))

        l1, l2 = (proved(strategy, components, cells, part, power) for power in (1, 2))
        assert charged_just_enough(claimed, l1, l2), (cells, part)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_an_owner_is_charged_the_worst_split_among_entries(strategy):
    for components, cells, k in itertools.product(COMPONENTS, (1, 5), (1, 4, 9)):
        claimed = of_net(strategy, contribution(components, cells, AtMost(k), owner=True))

        each = {j: [proved(strategy, components, cells, AtMost(j), power) for power in (1, 2)] for j in range(1, k + 1)}
        l1 = max(sum((each[j][0] for j in split), Fraction(0)) for split in splits(k, k))
        l2 = max(sum(math.sqrt(each[j][1]) for j in split) for split in splits(k, k))
        assert l1 <= Fraction(claimed.l1) <= l1 * (1 + Fraction(1, 10**13))
        assert l2 * (1 - 1e-15) <= claimed.l2 <= l2 * (1 + 1e-12)
        for entries in (1, 2):
            claimed = of_net(strategy, contribution(components, cells, AtMost(k, entries=entries), owner=True))
            l1 = max(sum((each[j][0] for j in split), Fraction(0)) for split in splits(k, k) if len(split) <= entries)
            assert l1 <= Fraction(claimed.l1) <= l1 * (1 + Fraction(1, 10**13))


@pytest.mark.parametrize("family", ["entered", "left"])
@pytest.mark.parametrize("owner", [False, True])
def test_events_are_charged_the_proved_sensitivity(family: Family, owner):
    for cells, k, (c, h) in itertools.product((1, 5), (2, 5, 30), ((2, 1), (3, 3))):
        tree = Tree(branching=c, height=h, refine="none", windows=WINDOWS, initial_level=False)
        claimed = of_events(family, tree, contribution((ONE, THIRDS, SEVENTHS), cells, AtMost(k), owner=owner))
        if cells == 1 and not (owner and family == "entered"):
            n = (k + 1) // 2 if family == "entered" else k // 2
        else:
            n = k if family == "entered" else k - 1
        n = n if owner else min(n, WINDOWS * cells)
        squares = [n**2 if owner else n // c**i * c ** (2 * i) + (n % c**i) ** 2 for i in range(h)]

        assert charged_just_enough(claimed, Fraction(h * n * 3), Fraction(sum(squares) * 3))


@pytest.mark.slow
def test_the_epsilon_that_is_stated_covers_the_noise_that_is_drawn():
    """L1 over b, summed in fractions over the queries, for the release and after each window: not 3e-17 more either."""
    bounds = [(-1.0, 3.0), (-5.0, 7.0), (-0.1, 0.7), (-2.0, 11.0)]
    demands = [
        Demand(
            name=f"q{i}",
            measure=Measure(kind="sum", low=low, high=high),
            cells=1,
            series=(Series(kind="change"),),
            choice=ALONE,
        )
        for i, (low, high) in enumerate(bounds)
    ]
    for k, epsilon in itertools.product((3, 6, 7, 11), (0.1, 0.3, 0.7, 1.0, 1.9)):
        plan = make_plan(
            demands,
            promise=Promise(constraint=AtMost(k), window=10, windows=None, owner=False),
            budget=Budget(epsilon=epsilon),
            mechanism="laplace",
            accounting="naive",
        )

        def lost(windows: int, plan=plan, k=k) -> Fraction:
            """Return the loss of an entry that appears, or of one that was present and moves in each of few windows."""
            total = Fraction(0)
            for released in plan.parts:
                (component,) = plan.demands[released.query].measure.components
                radius, diameter, line = sizes((component,), 1, 1)
                most = min(max(radius + (windows - 1) * diameter, windows * diameter), windows * line)
                if windows >= k:
                    most = min(radius + (k - 1) * diameter, k * line)
                total += most * component.largest / Fraction(released.noise[0].scale)
            return total

        assert lost(100) <= Fraction(plan.budget.epsilon) <= Fraction(epsilon)
        for windows in range(1, k):
            assert lost(windows) <= Fraction(spent(plan, windows).epsilon)

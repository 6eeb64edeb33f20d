"""Candidates of strategies over cells for the queries of a workload.

The cost of a strategy S in time follows from its radius r and its diameter D. For an entry with m changes it is about
r + (m - 1) D, and exactly this for disjoint windows, in L1 or in squared L2. So the *cost* of S is this value, squared
in L1, times the mean variance of the queries of the workload. The planner prices the best few exactly, with each
strategy in time. Among trees of nearly the same cost the one with the fewest nodes is chosen: each node has noise to
sample and to store.

The tree's branchings and heights are tried one by one. *Optimised* trees have a weight for each layer, found by scipy's
L-BFGS-B on their logarithms and rounded to small integers. For given layers and Gaussian noise the cost is convex in
the squared weights, up to scale (Li, Miklau, Hay, McGregor, Rastogi, VLDBJ 2015), so the result is the best of its kind
except for rounding. If everything that a unit ever does is protected, a *mixed* strategy is fitted from the best tree
that is small enough (privacy.cells.mixing). No claim is made that any of these is the best of all matrices
(benchmarks/cells has lower bounds).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.base import Along, Sketcher
from privacy.cells.boxes import Range
from privacy.cells.choice import CellChoice
from privacy.cells.hierarchy import hierarchy
from privacy.cells.layers import Layers
from privacy.cells.mixed import MOST_MIXED
from privacy.cells.mixing import fits, mixed
from privacy.cells.offer import CellTerms, CellUse, lightest
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.residual_weights import marginals_over
from privacy.cells.space import Space, cells_of
from privacy.cells.wanted import Wanted
from privacy.problems import RuleError
from privacy.ties import TOLERANCE, cheapest, cheapest_first

BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)

FITTED = 4
"""Number of trees that get weights: the best ones with equal weights, each of another branching."""

NEARLY, HEAVY = 1.04, 1.3
"""Largest ratio of cost that is accepted for fewer nodes along an axis; the second for more than `MANY` cells."""

MANY = 2**17
"""Noise takes about 10 microseconds a node. Above this, no mixed strategies: they visit all cells for each row."""

PRICED = 3
"""Number of strategies that are priced with each strategy in time."""

LARGEST_WEIGHT = 12

MOST_CHANGES = 1 << 20
"""More changes of an entry are counted as this number: the cheapest strategy does not change any more."""


Found = Callable[[int, "Sought"], list[Along]]
"""Returns candidates along an axis with a number of cells, at least 2."""


@dataclass(frozen=True, slots=True)
class PerAxis:
    """Strategies that are fitted separately for the listed axes together, each hierarchy and each ordered axis.

    Attributes:
        found: strategies of each kind along an axis.
        settings: settings of a choice.
        most: number of strategies that are priced exactly; single cells come last if there are several.
    """

    sketched: ClassVar[type[Sketcher]] = Product
    found: tuple[Found, ...]
    settings: tuple[str, ...] = ()
    most: int = 1

    def strategies(self, terms: CellTerms) -> tuple[Product, ...]:
        return _strategies(self, terms)

    def sketcher(self, terms: CellTerms) -> Product | None:
        return lightest(self.strategies(terms))

    def problems(self, choice: CellChoice, use: CellUse) -> Iterator[RuleError]:
        yield from ()


@lru_cache(maxsize=256)
def _strategies(offer: PerAxis, terms: CellTerms) -> tuple[Product, ...]:
    space, choice, along = terms.space, terms.choice, terms.choice.along
    workload: tuple[Workload, ...] = tuple(along if axis.ordered else "cells" for axis in space)
    alone = tuple(Layers(cells=axis.cells) for axis in space)
    sums = (*(_box(kept, space) for kept in choice.marginals), *choice.listed)
    shares = (*choice.shares, *(1.0 for _ in choice.listed)) if choice.shares else ()
    each = Product(axes=alone, workload=workload, listed=sums, shares=shares)
    many, changes = cells_of(space) > MANY, min(terms.changes, MOST_CHANGES)
    alongs: list[list[Along]] = [[one] for one in alone]
    for place, axis in enumerate(space):
        if axis.children:
            alongs[place] = [hierarchy(axis.children, terms.power, changes)]
        if axis.ordered and axis.cells > 1:
            ranges = tuple(sorted(cells for box in sums if (cells := box[place]) is not None))
            sought = Sought(
                wanted=Wanted(along, ranges),
                power=terms.power,
                changes=changes,
                branching=choice.branching,
                given=HEAVY if many else NEARLY,
                mixing=not (terms.blocks or many),
            )
            alongs[place] = [one for found in offer.found for one in found(axis.cells, sought)]
    listed = [axis.cells for axis in space if axis.listed]
    together = marginals_over(listed, choice, power=terms.power, changes=changes, blocks=terms.blocks)
    if together:
        alongs[: len(listed)], workload = [[*together]], ("cells", *workload[len(listed) :])
    products = [replace(each, axes=axes, workload=workload) for axes in product(*alongs)]
    products = cheapest_first(products, lambda one: cost(one, power=terms.power, changes=changes, apart=terms.apart))
    # The average of single cells is not that of a hierarchy's levels, so the two cannot be compared.
    others = [each] if offer.most > 1 and not any(axis.children for axis in space) else []
    return tuple(dict.fromkeys([*products[: max(offer.most, len(together))], *others]))


def _box(kept: Sequence[int], space: Space) -> tuple[Range | None, ...]:
    """Return the cells of a row of a marginal along each axis: None for any one cell of an axis that it keeps."""
    return tuple(None if place in kept else (0, axis.cells) for place, axis in enumerate(space))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Requirements for strategies along an axis.

    Attributes:
        wanted: queries along the axis.
        power, changes: as in privacy.cells.offer.CellTerms.
        branching: branching of trees; None: any.
        given: accepted ratio of the cost to the least cost, for a strategy with fewer nodes.
        mixing: whether mixed strategies are considered.
    """

    wanted: Wanted
    power: int
    changes: int
    branching: int | None
    given: float
    mixing: bool

    def cost(self, along: Along) -> float:
        """Return the cost of a strategy along the axis, as `cost` defines it."""
        listed = tuple((one,) for one in self.wanted.listed)
        product = Product(axes=(along,), workload=(self.wanted.workload,), listed=listed)
        return cost(product, power=self.power, changes=self.changes)

    def cost_of_layers(self, cells: int, sizes: tuple[int, ...], weights: Sequence[float]) -> float:
        """Return the cost of layers, whose weights need not be integers.

        Args:
            cells: number of cells along the axis.
            sizes: number of cells in a node of each layer.
            weights: weight of each layer.
        """
        radius = sum(weight**self.power for weight in weights)
        shared = weights[-1] ** self.power if sizes[-1] >= cells else 0
        diameter = max(radius, 2 * (radius - shared))
        moved = radius + (self.changes - 1) * diameter
        return float(moved ** (2 // self.power) * self.wanted.of_layers(cells, sizes, tuple(weights)))


def cost(product: Product, *, power: int, changes: int, apart: tuple[int, ...] = ()) -> float:
    """Return the cost by which strategies are compared, for one release of disjoint windows.

    Args:
        product: the strategy over cells.
        power: 1 if L1 norms are charged, 2 for L2.
        changes: approximate number of changes of an entry.
        apart: number of near cells along each axis, if only the place of a unit is protected; otherwise empty.
    """
    corners = product.corners(power, apart or None)
    if apart:
        moved = max(one + other - 2 * both for one, other, both in corners)
        return float(moved ** (2 // power) * product.average())
    radius = max(one for one, _, _ in corners)
    diameter = max(radius, *(one + other - 2 * both for one, other, both in corners))
    return float((radius + (changes - 1) * diameter) ** (2 // power) * product.average())


def each_cell(cells: int, sought: Sought) -> list[Along]:
    """Return the strategy of single cells."""
    return [Layers(cells=cells)]


def prefixes(cells: int, sought: Sought) -> list[Along]:
    """Return the strategy of prefix sums."""
    return [Prefixes(cells=cells)]


def trees(cells: int, sought: Sought) -> list[Along]:
    """Return the tree with the fewest nodes among the best trees with equal weights."""
    return [_lightest(_by_cost(cells, sought), sought)]


def optimised(cells: int, sought: Sought) -> list[Along]:
    """Return the tree with the fewest nodes among the best trees with weights, and mixed strategies."""
    weighted = [
        Layers(cells=cells, sizes=tree.sizes, weights=_weights(tree, sought))
        for place, tree in enumerate(_by_cost(cells, sought))
        if place < FITTED or sought.given == HEAVY
    ]
    mixes: list[Along] = []
    if sought.mixing and cells <= MOST_MIXED and sought.wanted != Wanted("cells"):
        mixes = [mixed(tree, sought.wanted, sought.power, sought.changes) for tree in _small(cells, sought)]
    return [_lightest(weighted, sought), *mixes]


EACH = PerAxis((each_cell,))
PREFIX = PerAxis((prefixes,))
TREE = PerAxis((trees,), settings=("branching",))
OPTIMISED = PerAxis((optimised,))
AUTO = PerAxis((each_cell, prefixes, trees, optimised), most=PRICED)


def _small(cells: int, sought: Sought) -> list[Layers]:
    """Return the best tree that is small enough for a mixed strategy."""
    trees = [Layers(cells=cells, sizes=sizes, weights=(1,) * len(sizes)) for _, sizes in _sizes(cells, None)]
    return cheapest_first(filter(fits, trees), sought.cost)[:1]


@lru_cache(maxsize=256)
def _by_cost(cells: int, sought: Sought) -> tuple[Layers, ...]:
    """Return the best tree of each branching, with equal weights, the cheapest first."""

    def of(tree: Layers) -> float:
        return sought.cost_of_layers(cells, tree.sizes, tree.weights)

    best: dict[int, Layers] = {}
    for step, sizes in _sizes(cells, sought.branching):
        tree = Layers(cells=cells, sizes=sizes, weights=(1,) * len(sizes))
        best[step] = cheapest((best.get(step, tree), tree), of)
    return tuple(cheapest_first(best.values(), of))


def _lightest(alongs: Sequence[Along], sought: Sought) -> Along:
    """Return the strategy with the fewest nodes among those whose cost is near the least."""
    most = (1 + TOLERANCE) * sought.given * min(map(sought.cost, alongs))
    return min((one for one in alongs if sought.cost(one) <= most), key=lambda along: along.matrix.nodes)


def _sizes(cells: int, branching: int | None) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield trees of at least two layers, by their branching, each with and without a root."""
    for step in BRANCHINGS if branching is None else (branching,):
        sizes = [1]
        while sizes[-1] * step < cells:
            sizes.append(sizes[-1] * step)
            yield step, tuple(sizes)
            yield step, (*sizes, sizes[-1] * -(-cells // sizes[-1]))
        if len(sizes) == 1:
            yield step, (1, cells)


def _weights(tree: Layers, sought: Sought) -> tuple[int, ...]:
    """Return the weight of each layer, as a small integer."""
    from scipy.optimize import minimize  # slow to import

    def of(logarithms: Sequence[float]) -> float:
        weights = tuple(np.exp([0.0, *logarithms]).tolist())
        return math.log(sought.cost_of_layers(tree.cells, tree.sizes, weights))

    others = len(tree.sizes) - 1
    found = minimize(of, np.zeros(others), method="L-BFGS-B", bounds=[(-2.5, 2.5)] * others, options={"maxiter": 60})
    best = np.exp(np.append(0.0, found.x))
    scales = [scale / best.max() for scale in range(1, LARGEST_WEIGHT + 1)]
    tried = {tuple(np.maximum(1, np.rint(best * scale)).astype(int).tolist()) for scale in scales}
    return cheapest(sorted(tried), lambda whole: sought.cost_of_layers(tree.cells, tree.sizes, whole))

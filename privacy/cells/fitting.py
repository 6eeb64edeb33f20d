"""Strategies over cells that are worth a look, for what is asked of the cells.

What a strategy S costs in time follows from its radius r and its diameter D. For an entry with m changes it is about
r + (m - 1) D, exactly so for windows by themselves, in L1 or in squared L2: so the *cost* of S is that, squared in L1,
times the mean variance of the queries of the workload. The planner prices the best few exactly, with each strategy in
time. Among trees of nearly the same cost the one with the fewest nodes is taken: each has noise to sample and to keep.

The tree's branchings and heights are tried one by one. *Optimised* trees have a weight for each layer, from scipy's
L-BFGS-B on their logarithms, as small whole numbers. For given layers and Gaussian noise the cost is convex in the
squared weights, up to scale (Li, Miklau, Hay, McGregor, Rastogi, VLDBJ 2015), so that what is found is the best of its
kind but for rounding. From the best tree that is small enough a *mixed* strategy is found (privacy.cells.mixing), where
all that a unit ever does is protected. That any is the best of all matrices is not claimed (benchmarks/cells has lower
bounds).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from privacy.cells.along import Along
from privacy.cells.averages import Workload
from privacy.cells.choice import CellChoice
from privacy.cells.layers import Layers
from privacy.cells.mixed import MOST_MIXED
from privacy.cells.mixing import fits, mixed
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.quadtree import quadtree_over
from privacy.cells.space import Space, cells_of
from privacy.cells.wanted import Wanted

BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)

FITTED = 4
"""So many trees get weights: the best ones with equal weights, each of another branching."""

NEARLY, HEAVY = 1.04, 1.3
"""So much of cost is given for fewer nodes along an axis; the second where there are more than `MANY` cells in all."""

MANY = 2**17
"""Noise takes some 10 microseconds a node. No mixed strategies either: they walk through all cells for each row."""

PRICED = 3
"""So many strategies are priced with each strategy in time."""

LARGEST_WEIGHT = 12


def strategies(
    space: Space, choice: CellChoice, *, power: int, changes: int, apart: tuple[int, ...] = (), blocks: bool = False
) -> tuple[Product, ...]:
    """Strategies over the cells of a query, the cheapest first; the ordered axes alone have a choice.

    Args:
        power: 1 where L1 norms are charged, 2 for L2.
        changes: of an entry, about.
        apart: where only the place of a unit is protected, how many cells are near along each axis; else empty.
        blocks: whether rows must fall into blocks (privacy.cells.product), which mixed strategies' do not.

    Raises:
        ValueError: a choice that cannot be had.

    >>> from privacy.cells.space import Axis
    >>> best, *others = strategies((Axis(cells=64, ordered=True),), CellChoice(workload="ranges"), power=2, changes=4)
    >>> best.axes[0].name, cost(others[-1], power=2, changes=4) > 4 * cost(best, power=2, changes=4)
    ('optimised', True)
    """
    if choice.name == "kdtree":
        raise ValueError("a kdtree looks at the data: it is for samples of adaptive publication")
    if choice.name == "quadtree":
        if apart:
            raise ValueError("a quadtree is not for a distance; use tree or prefix")
        asked: Workload = "cells" if choice.workload == "listed" else choice.workload
        return (Product(axes=(quadtree_over(space),), workload=(asked,), listed=choice.listed),)
    return _strategies(space, choice, power, min(changes, 1 << 20), apart, blocks)


@lru_cache(maxsize=256)
def _strategies(
    space: Space, choice: CellChoice, power: int, changes: int, apart: tuple[int, ...], blocks: bool
) -> tuple[Product, ...]:
    along: Workload = "cells" if choice.workload == "listed" else choice.workload
    workload: tuple[Workload, ...] = tuple(along if axis.ordered else "cells" for axis in space)
    alone = tuple(Layers(cells=axis.cells) for axis in space)
    each = Product(axes=alone, workload=workload, listed=choice.listed)
    given = HEAVY if cells_of(space) > MANY else NEARLY
    alongs: list[list[Along]] = [[one] for one in alone]
    for place, axis in enumerate(space):
        if axis.ordered:
            ranges = tuple(sorted(cells for box in choice.listed if (cells := box[place]) is not None))
            wanted = _Sought(
                Wanted(along, ranges), power, changes, given, mixing=not blocks and cells_of(space) <= MANY
            )
            alongs[place] = _along(axis.cells, choice, wanted)
    found = [replace(each, axes=axes) for axes in product(*alongs)]
    found.sort(key=lambda product: cost(product, power=power, changes=changes, apart=apart))
    if choice.name == "auto":
        return tuple(dict.fromkeys([*found[:PRICED], each]))
    return tuple(found[:1])


@dataclass(frozen=True, slots=True)
class _Sought:
    """What is sought along an axis.

    Attributes:
        given: so much of cost for fewer nodes.
        mixing: whether mixed strategies are looked for.
    """

    wanted: Wanted
    power: int
    changes: int
    given: float
    mixing: bool

    def cost(self, along: Along) -> float:
        """As `cost`."""
        listed = tuple((one,) for one in self.wanted.listed)
        product = Product(axes=(along,), workload=(self.wanted.workload,), listed=listed)
        return cost(product, power=self.power, changes=self.changes)

    def cost_of_layers(self, cells: int, sizes: tuple[int, ...], weights: Sequence[float]) -> float:
        """`cost` of layers, whose weights need not be whole."""
        radius = sum(weight**self.power for weight in weights)
        shared = weights[-1] ** self.power if sizes[-1] >= cells else 0
        diameter = max(radius, 2 * (radius - shared))
        moved = radius + (self.changes - 1) * diameter
        return float(moved ** (2 // self.power) * self.wanted.of_layers(cells, sizes, tuple(weights)))


def cost(product: Product, *, power: int, changes: int, apart: tuple[int, ...] = ()) -> float:
    """What is compared, for one release of windows by themselves."""
    corners = product.corners(power, apart or None)
    if apart:
        moved = max(one + other - 2 * both for one, other, both in corners)
        return float(moved ** (2 // power) * product.average())
    radius = max(one for one, _, _ in corners)
    diameter = max(radius, *(one + other - 2 * both for one, other, both in corners))
    return float((radius + (changes - 1) * diameter) ** (2 // power) * product.average())


def _along(cells: int, choice: CellChoice, sought: _Sought) -> list[Along]:
    each = Layers(cells=cells)
    if cells == 1 or choice.name == "each":
        return [each]
    if choice.name == "prefix":
        return [Prefixes(cells=cells)]
    trees: list[Along] = []
    weighted: list[Along] = []
    mixes: list[Along] = []
    for place, tree in enumerate(_by_cost(cells, choice, sought)):
        trees.append(tree)
        if choice.name != "tree" and (place < FITTED or sought.given == HEAVY):
            weighted.append(Layers(cells=cells, sizes=tree.sizes, weights=_weights(tree, sought)))
    if choice.name == "tree":
        return [_lightest(trees, sought)]
    if sought.mixing and cells <= MOST_MIXED and sought.wanted != Wanted("cells"):
        mixes = [mixed(tree, sought.wanted, sought.power, sought.changes) for tree in _small(cells, choice, sought)]
    best = [_lightest(weighted, sought), *mixes]
    return best if choice.name == "optimised" else [each, Prefixes(cells=cells), _lightest(trees, sought), *best]


def _small(cells: int, choice: CellChoice, sought: _Sought) -> list[Layers]:
    """The best tree that is small enough to mix its cells."""
    trees = [Layers(cells=cells, sizes=sizes, weights=(1,) * len(sizes)) for _, sizes in _sizes(cells, None)]
    return sorted(filter(fits, trees), key=sought.cost)[:1]


def _by_cost(cells: int, choice: CellChoice, sought: _Sought) -> list[Layers]:
    """The best tree of each branching, with equal weights."""

    def of(tree: Layers) -> float:
        return sought.cost_of_layers(cells, tree.sizes, tree.weights)

    best: dict[int, Layers] = {}
    for step, sizes in _sizes(cells, choice.branching):
        tree = Layers(cells=cells, sizes=sizes, weights=(1,) * len(sizes))
        best[step] = min(best.get(step, tree), tree, key=of)
    return sorted(best.values(), key=of)


def _lightest(alongs: Sequence[Along], sought: _Sought) -> Along:
    """The one with the fewest nodes among those that cost hardly more than the cheapest."""
    least = min(map(sought.cost, alongs))
    return min((one for one in alongs if sought.cost(one) <= sought.given * least), key=lambda along: along.nodes)


def _sizes(cells: int, branching: int | None) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Trees of at least two layers, by their branching, each with and without a root."""
    for step in BRANCHINGS if branching is None else (branching,):
        sizes = [1]
        while sizes[-1] * step < cells:
            sizes.append(sizes[-1] * step)
            yield step, tuple(sizes)
            yield step, (*sizes, sizes[-1] * -(-cells // sizes[-1]))
        if len(sizes) == 1:
            yield step, (1, cells)


def _weights(tree: Layers, sought: _Sought) -> tuple[int, ...]:
    """For each layer, as small whole numbers."""
    from scipy.optimize import minimize  # slow to import

    def of(logarithms: Sequence[float]) -> float:
        weights = tuple(np.exp([0.0, *logarithms]).tolist())
        return math.log(sought.cost_of_layers(tree.cells, tree.sizes, weights))

    others = len(tree.sizes) - 1
    found = minimize(of, np.zeros(others), method="L-BFGS-B", bounds=[(-2.5, 2.5)] * others, options={"maxiter": 60})
    best = np.exp(np.append(0.0, found.x))
    scales = [scale / best.max() for scale in range(1, LARGEST_WEIGHT + 1)]
    tried = {tuple(np.maximum(1, np.rint(best * scale)).astype(int).tolist()) for scale in scales}
    return min(sorted(tried), key=lambda whole: sought.cost_of_layers(tree.cells, tree.sizes, whole))

"""Strategies over cells that are worth a look, for what is asked of the cells.

What a strategy S costs in time follows from its radius r and its diameter D. For an entry with m changes it is about
r + (m - 1) D, exactly so for windows by themselves, in L1 or in squared L2: so the *cost* of S is that, squared in L1,
times the mean variance of the queries of the workload. The planner prices the best few exactly, with each strategy in
time. Among trees of nearly the same cost the one with the fewest nodes is taken: each has noise to sample and to keep.

The tree's branchings and heights are tried one by one. *Optimised* trees have a weight for each layer, from scipy's
L-BFGS-B on their logarithms, as small whole numbers. For given layers and Gaussian noise the cost is convex in the
squared weights, up to scale (Li, Miklau, Hay, McGregor, Rastogi, VLDBJ 2015), so that what is found is the best of its
kind but for rounding; that it is the best of all matrices is not claimed (benchmarks/cells has lower bounds).
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from privacy.cells.averages import Workload, averages
from privacy.cells.choice import CellChoice
from privacy.cells.layers import Layers
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Along, Product
from privacy.cells.space import Space, cells_of

BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)

FITTED = 4
"""So many trees get weights: the best ones with equal weights, each of another branching."""

NEARLY, HEAVY = 1.04, 1.3
"""So much of cost is given for fewer nodes along an axis; the second where there are more than `MANY` cells in all."""

MANY = 2**17
"""Noise takes some 10 microseconds a node."""

PRICED = 3
"""So many strategies are priced with each strategy in time."""

LARGEST_WEIGHT = 12


def strategies(
    space: Space, choice: CellChoice, *, power: int, changes: int, apart: tuple[int, ...] = ()
) -> tuple[Product, ...]:
    """Strategies over the cells of a query, the cheapest first; the ordered axes alone have a choice.

    Args:
        power: 1 where L1 norms are charged, 2 for L2.
        changes: of an entry, about.
        apart: where only the place of a unit is protected, how many cells are near along each axis; else empty.

    Raises:
        ValueError: a choice that cannot be had.

    >>> from privacy.cells.space import Axis
    >>> best, *_ = strategies(
    ...     (Axis(cells=1024, ordered=True),), CellChoice(workload="ranges"), power=2, changes=4)
    >>> best.axes[0].name, round(342 / best.average() / best.axes[0].filled, 1) > 15
    ('tree', True)
    """
    return _strategies(space, choice, power, min(changes, 1 << 20), apart)


@lru_cache(maxsize=256)
def _strategies(
    space: Space, choice: CellChoice, power: int, changes: int, apart: tuple[int, ...]
) -> tuple[Product, ...]:
    workload: tuple[Workload, ...] = tuple(choice.workload if axis.ordered else "cells" for axis in space)
    each = Product(axes=tuple(Layers(cells=axis.cells) for axis in space), workload=workload)
    given = HEAVY if cells_of(space) > MANY else NEARLY
    alongs = [
        _along(axis.cells, choice, power, changes, given) if axis.ordered else [Layers(cells=axis.cells)]
        for axis in space
    ]
    found = [Product(axes=axes, workload=workload) for axes in product(*alongs)]
    found.sort(key=lambda product: cost(product, power=power, changes=changes, apart=apart))
    if choice.name == "auto":
        return tuple(dict.fromkeys([*found[:PRICED], each]))
    return tuple(found[:1])


def cost(product: Product, *, power: int, changes: int, apart: tuple[int, ...] = ()) -> float:
    """What is compared, for one release of windows by themselves."""
    corners = product.corners(power, apart or None)
    if apart:
        moved = max(one + other - 2 * both for one, other, both in corners)
        return float(moved ** (2 // power) * product.average())
    radius = max(one for one, _, _ in corners)
    diameter = max(radius, *(one + other - 2 * both for one, other, both in corners))
    return float((radius + (changes - 1) * diameter) ** (2 // power) * product.average())


def _along(cells: int, choice: CellChoice, power: int, changes: int, given: float) -> list[Along]:
    each = Layers(cells=cells)
    if cells == 1 or choice.name == "each":
        return [each]
    if choice.name == "prefix":
        return [Prefixes(cells=cells)]
    trees: list[Along] = []
    weighted: list[Along] = []
    for place, tree in enumerate(_by_cost(cells, choice, power, changes)):
        trees.append(tree)
        if choice.name != "tree" and (place < FITTED or given == HEAVY):
            weights = _weights(tree, choice.workload, power, changes)
            weighted.append(Layers(cells=cells, sizes=tree.sizes, weights=weights))
    equal = _lightest(trees, power, changes, choice.workload, given)
    if choice.name == "tree":
        return [equal]
    best = _lightest(weighted, power, changes, choice.workload, given)
    return [best] if choice.name == "optimised" else [each, Prefixes(cells=cells), equal, best]


def _by_cost(cells: int, choice: CellChoice, power: int, changes: int) -> list[Layers]:
    """The best tree of each branching, with equal weights."""
    best: dict[int, Layers] = {}
    for step, sizes in _sizes(cells, choice.branching):
        tree = Layers(cells=cells, sizes=sizes, weights=(1,) * len(sizes))
        best[step] = min(
            best.get(step, tree),
            tree,
            key=lambda each: _cost(cells, each.sizes, each.weights, choice.workload, power, changes),
        )
    return sorted(
        best.values(), key=lambda each: _cost(cells, each.sizes, each.weights, choice.workload, power, changes)
    )


def _lightest(alongs: Sequence[Along], power: int, changes: int, workload: Workload, given: float) -> Along:
    """The one with the fewest nodes among those that cost hardly more than the cheapest."""

    def of(along: Along) -> float:
        return cost(Product(axes=(along,), workload=(workload,)), power=power, changes=changes)

    least = min(map(of, alongs))
    return min((along for along in alongs if of(along) <= given * least), key=lambda along: along.nodes)


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


def _weights(tree: Layers, workload: Workload, power: int, changes: int) -> tuple[int, ...]:
    """For each layer, as small whole numbers."""
    from scipy.optimize import minimize  # slow to import

    def of(logarithms: Sequence[float]) -> float:
        weights = tuple(np.exp([0.0, *logarithms]).tolist())
        return math.log(_cost(tree.cells, tree.sizes, weights, workload, power, changes))

    others = len(tree.sizes) - 1
    found = minimize(of, np.zeros(others), method="L-BFGS-B", bounds=[(-2.5, 2.5)] * others, options={"maxiter": 60})
    best = np.exp(np.append(0.0, found.x))
    scales = [scale / best.max() for scale in range(1, LARGEST_WEIGHT + 1)]
    tried = {tuple(np.maximum(1, np.rint(best * scale)).astype(int).tolist()) for scale in scales}
    return min(sorted(tried), key=lambda whole: _cost(tree.cells, tree.sizes, whole, workload, power, changes))


def _cost(
    cells: int, sizes: tuple[int, ...], weights: Sequence[float], workload: Workload, power: int, changes: int
) -> float:
    """`cost` of layers along one axis, whose weights need not be whole."""
    radius = sum(weight**power for weight in weights)
    shared = weights[-1] ** power if sizes[-1] >= cells else 0
    diameter = max(radius, 2 * (radius - shared))
    return float((radius + (changes - 1) * diameter) ** (2 // power) * averages(cells, sizes, weights)[workload])

"""Mean variance of many queries under layers of sums, in time that does not depend on the number of cells.

All nodes of a layer are equal, except the last, which may be cut: two types. For each type and each set of queries that
end in a node (single cells, or the prefix that ends there) the sums of 1, alpha, alpha^2 and R over them are kept
(privacy.cells.layers), which is all that the parents need. For all ranges: with P_j the estimate of the first j
cells,

    sum over i < j of Var(P_j - P_i) = (d + 1) (sum of Var P_j) - Var(sum of P_j)

since the terms with i = 0 are the prefixes themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from privacy.cells.sums import Floats

Workload = Literal["cells", "prefixes", "ranges"]
"""Single cells; all prefix sums, as quantiles need them; all ranges of adjacent cells."""

WORKLOADS: tuple[Workload, ...] = get_args(Workload)


@dataclass(frozen=True, slots=True)
class _Node:
    """Values of one node, or of several nodes as arrays.

    Attributes:
        cells: number of cells that it contains.
        u: variance of its estimate from itself and the nodes below it.
        cell_squares, cell_rest: sums of alpha^2 and R over its single cells.
        alphas, squares, rest: sums of alpha, alpha^2 and R over the prefixes that end in it.
        ramp, ramp_rest: alpha and R of the sum of these prefixes.
    """

    cells: Floats
    u: Floats
    cell_squares: Floats
    cell_rest: Floats
    alphas: Floats
    squares: Floats
    rest: Floats
    ramp: Floats
    ramp_rest: Floats


def averages(cells: int, sizes: Sequence[int], weights: Sequence[float]) -> dict[Workload, float]:
    """Return the mean variance of each workload's queries, if the noise of a node has variance 1.

    Args:
        cells: number of cells, d.
        sizes, weights: as in privacy.cells.layers.Layers; weights may be any positive numbers.

    >>> {name: round(mean, 6) for name, mean in averages(4, (1,), (1.0,)).items()}
    {'cells': 1.0, 'prefixes': 2.5, 'ranges': 2.0}
    """
    return dict(zip(WORKLOADS, _averages(cells, tuple(sizes), tuple(map(float, weights))), strict=True))


@lru_cache(maxsize=4096)
def _averages(cells: int, sizes: tuple[int, ...], weights: tuple[float, ...]) -> tuple[float, float, float]:
    one = np.ones(())
    leaf = _Node(one, one / weights[0] ** 2, one, 0 * one, one, one, 0 * one, one, 0 * one)
    whole = last = leaf
    count = cells
    for (size, larger), weight in zip(pairwise(sizes), weights[1:], strict=True):
        step, parents = larger // size, -(-cells // larger)
        rest = count - (parents - 1) * step
        whole, last = _parent(_row(whole, whole, step), weight), _parent(_row(whole, last, rest), weight)
        count = parents
    return _at_roots(_row(whole, last, count), cells)


def _row(whole: _Node, last: _Node, count: int) -> _Node:
    """Return the values of `count` adjacent nodes, the last one of a separate type."""
    return _Node(*(np.append(np.full(count - 1, getattr(whole, f.name)), getattr(last, f.name)) for f in fields(_Node)))


def _parent(children: _Node, weight: float) -> _Node:
    u, m = children.u, children.u.sum()
    share, before = u / m, np.cumsum(children.u) - children.u
    squares = children.cells * before**2 + 2 * before * u * children.alphas + u**2 * children.squares
    alphas, moved = _ramps(children), float(u @ _ramps(children))
    return _Node(
        cells=children.cells.sum(),
        u=1 / (weight**2 + 1 / m),
        cell_squares=(share**2 * children.cell_squares).sum(),
        cell_rest=(children.cell_rest + children.cell_squares * u * (1 - share)).sum(),
        alphas=(children.cells * before + children.alphas * u).sum() / m,
        squares=squares.sum() / m**2,
        rest=(children.rest + children.cells * before + u * children.squares - squares / m).sum(),
        ramp=np.asarray(moved / m),
        ramp_rest=(children.ramp_rest + alphas**2 * u).sum() - moved**2 / m,
    )


def _ramps(row: _Node) -> Floats:
    """Return alpha of each node in the sum of all prefixes: one for each that ends in it or after it."""
    ramps: Floats = row.ramp + row.cells.sum() - np.cumsum(row.cells)
    return ramps


def _at_roots(roots: _Node, cells: int) -> tuple[float, float, float]:
    before = np.cumsum(roots.u) - roots.u
    each = (roots.cell_rest + roots.cell_squares * roots.u).sum()
    prefixes = (roots.rest + roots.squares * roots.u + roots.cells * before).sum()
    ramp = (roots.ramp_rest + _ramps(roots) ** 2 * roots.u).sum()
    ranges = (cells + 1) * prefixes - ramp
    return float(each / cells), float(prefixes / cells), float(ranges / (cells * (cells + 1) / 2))

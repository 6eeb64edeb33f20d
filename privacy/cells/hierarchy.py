"""Weights of the layers of a hierarchy (privacy.cells.nested), without data.

The error is half the mean variance of cells plus half that of the layers above. As for marginals
(privacy.cells.balance), the charge is c w in the weights for L1 and c w^2 for squared L2, with c = 1 + 2 (changes - 1)
for layers in which two cells may differ and 1 for those of one node, and the charge of the radius if that is larger.
For Gaussian noise the error times the charge is convex in the squared weights up to scale, so the search ends at the
best weights except for rounding. For Laplace noise it begins at equal weights, and at these without one of the layers.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np

from privacy.cells.balance import MOST_CHANGES, SMALL, rounded
from privacy.cells.base import Sketcher
from privacy.cells.choice import CellChoice
from privacy.cells.layers import Layers
from privacy.cells.nested import Children, Nested, error
from privacy.cells.offer import CellTerms, CellUse
from privacy.cells.product import Product
from privacy.problems import RuleError
from privacy.ties import cheapest


@lru_cache(maxsize=64)
def hierarchy(children: Children, power: int, changes: int) -> Nested:
    """Return the hierarchy with integer weights of the least error found.

    Args:
        children: number of nodes below each node, for each layer above the cells.
        power: 1 if L1 norms are charged, 2 for L2.
        changes: approximate number of changes of an entry.
    """
    from scipy.optimize import minimize  # slow to import

    counts = np.array([sum(children[0]), *map(len, children)])
    charge = 1.0 + 2.0 * (changes - 1) * (counts > 1)

    def cost(weights: Sequence[float]) -> float:
        sizes = np.array(weights, dtype=np.float64)
        moved = max(float(charge @ sizes**power), changes * float((sizes**power).sum()))
        return moved ** (2 // power) * error(children, tuple((sizes**2).tolist()))

    equal = np.zeros(len(counts))
    starts = [equal]
    if power == 1:
        starts += [np.where(np.arange(len(counts)) == layer, math.log(SMALL), equal) for layer in range(1, len(counts))]
    tried: set[tuple[int, ...]] = set()
    for start in starts:
        bounds = [(-6.0, 6.0)] * len(counts)
        found = minimize(lambda logs: math.log(cost(np.exp(logs))), start, method="L-BFGS-B", bounds=bounds)
        tried |= rounded(np.exp(found.x))
    return Nested(children=children, weights=cheapest(sorted(tried), cost))


class HierarchyOffer:
    """Offer of hierarchies (privacy.cells.offer.CellOffer), for queries with a key that has one."""

    settings: ClassVar[tuple[str, ...]] = ()
    sketched: ClassVar[type[Sketcher]] = Product

    def strategies(self, terms: CellTerms) -> tuple[Product, ...]:
        """Return one strategy: weighted layers along each hierarchy, and the cells of other keys."""
        changes = min(terms.changes, MOST_CHANGES)
        return (
            Product(
                axes=tuple(
                    hierarchy(axis.children, terms.power, changes) if axis.children else Layers(cells=axis.cells)
                    for axis in terms.space
                )
            ),
        )

    def sketcher(self, terms: CellTerms) -> Product | None:
        """Return None: hierarchies are not sampled adaptively."""
        return None

    def problems(self, choice: CellChoice, use: CellUse) -> Iterator[RuleError]:
        if use.adaptive:
            message = "numbers of a hierarchy are not published adaptively; list the cells, or use another strategy"
            yield RuleError(message, "by")
        if choice.name != "auto":
            yield RuleError("a hierarchy chooses the sums that get noise; remove cells, or list its values", "cells")

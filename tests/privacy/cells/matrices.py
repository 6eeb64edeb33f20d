"""Strategies over cells of all kinds, with their dense matrices."""

import numpy as np

from privacy.cells.base import Along
from privacy.cells.layers import Layers
from privacy.cells.marginals import Marginals
from privacy.cells.mixed import Mixed
from privacy.cells.mixing import mixed
from privacy.cells.nested import Nested
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.quadtree import quadtree
from privacy.cells.residuals import Residuals
from privacy.cells.wanted import Wanted

ALONG: list[Along] = [
    Layers(cells=1),
    Layers(cells=7),
    Layers(cells=7, weights=(3,)),
    Layers(cells=5, sizes=(1, 2, 4), weights=(1, 1, 1)),
    Layers(cells=8, sizes=(1, 2, 4, 8), weights=(1, 1, 1, 1)),
    Layers(cells=17, sizes=(1, 4, 16), weights=(2, 1, 3)),
    Layers(cells=30, sizes=(1, 3, 9, 27, 81), weights=(1, 2, 3, 4, 5)),
    Layers(cells=12, sizes=(1, 2, 6, 12), weights=(2, 3, 1, 4)),
    Layers(cells=7, sizes=(1, 7), weights=(1, 2)),
    Prefixes(cells=1),
    Prefixes(cells=6),
]
MIXED: list[Along] = [
    Mixed(alone=bytes([3, 1, 2, 2]), rows=(bytes([0, 4, 1, 2]), bytes([1, 1, 1, 1]), bytes([5, 0, 0, 1]))),
    Mixed(alone=bytes([2]), rows=()),
    mixed(Layers(cells=9, sizes=(1, 3), weights=(1, 1)), Wanted("ranges"), 1, 4),
]
ALONE = [Product(axes=(along,)) for along in ALONG]
RESIDUALS = [
    Residuals(shape=(3, 4, 2), kept=((0, 1, 2), (0, 1), (0, 2), (0,), (1,), (2,), ()), weights=(2, 1, 3, 2, 1, 2, 7)),
    Residuals(shape=(2, 3, 1), kept=((0, 1, 2), (1,), ()), weights=(1, 2, 1)),
    Residuals(shape=(2,), kept=((0,), ()), weights=(3, 1)),
]
PRODUCTS = [
    Product(axes=axes)
    for axes in (
        (ALONG[3], ALONG[10]),
        (Layers(cells=3), ALONG[7]),
        (ALONG[3], Layers(cells=2), ALONG[8]),
        (ALONG[10], Prefixes(cells=3)),
        (quadtree((4, 4), (True, True)),),
        (quadtree((5, 2, 7), (True, False, True)),),
        (quadtree((1, 3), (True, True)),),
        (Layers(cells=2), MIXED[0]),
        (MIXED[0], MIXED[2]),
        (Marginals(shape=(3, 4, 2), kept=((0, 1, 2), (0, 1), (1, 2), ()), weights=(2, 3, 1, 4)),),
        (Marginals(shape=(2, 3, 1), kept=((0, 1, 2), (1,), (2,)), weights=(1, 2, 3)),),
        (Nested(children=((2, 1, 3), (1, 2), (2,)), weights=(2, 3, 0, 1)),),
        (Layers(cells=2), Nested(children=((3, 1), (2,)), weights=(1, 0, 2))),
        (
            Marginals(shape=(2, 3), kept=((0, 1), (1,), ()), weights=(2, 1, 3)),
            Layers(cells=3, sizes=(1, 2), weights=(1, 2)),
            Nested(children=((2, 1), (2,)), weights=(1, 2, 0)),
        ),
        (RESIDUALS[0],),
        (RESIDUALS[1],),
        (RESIDUALS[2], Layers(cells=3, sizes=(1, 2), weights=(1, 2)), MIXED[0]),
    )
]


def dense(strategy: Along | Product) -> np.ndarray:
    return strategy.spread(np.eye(strategy.cells, dtype=np.int64)).T.astype(float)


def ranges(cells: int) -> np.ndarray:
    return np.array([[a <= c <= b for c in range(cells)] for a in range(cells) for b in range(a, cells)], dtype=float)

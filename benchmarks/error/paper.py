"""The paper's releases under the paper's composition.

M. Pan, "Differentially-private Continual Releases against Dynamic Databases". Every node that an entry can touch is
charged alone: at m nodes each gets (epsilon / m, delta / m) and noise of its own (basic composition), as the paper does
for its tree (HDCR) and its sliding windows (SWCR). Counts of touched nodes are the corrected ones: for changes within B
the paper's are too small to be private (docs/proofs/strategies.md). What is generous: the initial level is one node
outside the tree, where the paper puts it into every layer.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.error.setting import Setting, sigma

Mechanism = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class Way:
    """A tree by its branching and height (layers), or, without these, direct sliding windows."""

    branching: int | None = None
    height: int | None = None

    def __str__(self) -> str:
        return "direct" if self.branching is None else f"c={self.branching}, h={self.height}"


def rmse(setting: Setting, way: Way, mechanism: Mechanism) -> float:
    """Root mean square error of the continuous mechanisms; of Laplace noise at delta 0."""
    nodes = touched(setting, way)
    if mechanism == "laplace":
        node = math.sqrt(2) * nodes / setting.epsilon
    else:
        node = sigma(setting.epsilon / nodes, setting.delta / nodes)
    return node * math.sqrt(terms(setting, way))


def binary(setting: Setting, mechanism: Mechanism) -> float:
    """The binary tree with a layer for each power of two below the number of windows."""
    return rmse(setting, Way(2, max(1, math.ceil(math.log2(setting.windows)))), mechanism)


def best(setting: Setting) -> tuple[float, Way, Mechanism]:
    """The least error over all trees, direct sliding windows and both mechanisms, and what reaches it."""
    mechanisms: tuple[Mechanism, ...] = ("laplace", "gaussian")
    found = [(rmse(setting, way, mechanism), way, mechanism) for way in _ways(setting) for mechanism in mechanisms]
    return min(found, key=lambda triple: triple[0])


def _ways(setting: Setting) -> Iterator[Way]:
    for branching in range(2, setting.windows + 1):
        height = 1
        while branching ** (height - 1) <= setting.windows:
            yield Way(branching, height)
            height += 1
    if setting.width is not None:
        yield Way()


def touched(setting: Setting, way: Way) -> int:
    """Nodes that an entry can touch.

    >>> touched(Setting(changes=4), Way(2, 10)), touched(Setting(changes=None, span=30, width=7), Way(2, 9))
    (40, 72)
    """
    if way.branching is None or way.height is None:
        assert setting.width is not None
        if setting.changes is not None:
            return setting.changes * setting.width
        assert setting.span is not None
        return setting.span + setting.width
    if setting.changes is not None:
        return setting.changes * way.height
    assert setting.span is not None
    return sum(-(-setting.span // way.branching**layer) + 1 for layer in range(way.height)) + setting.initial_level


def terms(setting: Setting, way: Way) -> float:
    """Nodes that are added up for one number, on average: the least cover, and the initial level for levels."""
    if way.branching is None or way.height is None:
        return 1.0
    ends = np.arange(setting.width or 1, setting.windows + 1)
    begins = np.zeros_like(ends) if setting.width is None else ends - setting.width
    return float(cover_sizes(begins, ends, way.branching, way.height).mean()) + setting.initial_level


def cover_sizes(begins: NDArray[np.int64], ends: NDArray[np.int64], branching: int, height: int) -> NDArray[np.int64]:
    """Nodes in the least cover of windows begin + 1, ..., end, as begin and end rise through the layers.

    >>> cover_sizes(np.array([0, 1]), np.array([7, 7]), 2, 3).tolist()
    [3, 4]
    """
    sizes = np.zeros_like(ends)
    for _ in range(height - 1):
        # Up to the next parent from the left, down to the last from the right; or all of it, if there is none between.
        up, down = -(-begins // branching), ends // branching
        through = up <= down
        sizes += np.where(through, up * branching - begins + ends - down * branching, ends - begins)
        begins, ends = np.where(through, up, 0), np.where(through, down, 0)
    return sizes + ends - begins

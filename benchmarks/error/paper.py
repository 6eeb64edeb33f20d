"""Errors of the paper's releases under the paper's composition.

M. Pan, "Differentially-private Continual Releases against Dynamic Databases". Every node that an entry can touch is
charged separately: each of m nodes gets (epsilon / m, delta / m) and separate noise (basic composition), as in the
paper's tree (HDCR) and sliding windows (SWCR). Counts of touched nodes are the corrected ones: for changes within B the
paper's are too small to be private (docs/proofs/strategies.md). One choice favours the paper: the initial level is one
node outside the tree, while the paper puts it into every layer.
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
    """Return the root mean square error of the continuous mechanisms; Laplace noise has delta 0.

    Args:
        setting: of the release.
        way: the tree, or direct sliding windows.
        mechanism: the kind of noise.
    """
    nodes = touched(setting, way)
    if mechanism == "laplace":
        node = math.sqrt(2) * nodes / setting.epsilon
    else:
        node = sigma(setting.epsilon / nodes, setting.delta / nodes)
    return node * math.sqrt(terms(setting, way))


def binary(setting: Setting, mechanism: Mechanism) -> float:
    """Return the error of the binary tree with a layer for each power of two below the number of windows."""
    return rmse(setting, Way(2, max(1, math.ceil(math.log2(setting.windows)))), mechanism)


def best(setting: Setting) -> tuple[float, Way, Mechanism]:
    """Return the least error over all trees, direct sliding windows and both mechanisms, with its release."""
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
    """Return the number of nodes that an entry can touch.

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
    sizes: list[int] = [way.branching**layer for layer in range(way.height)]
    return sum(-(-setting.span // size) + 1 for size in sizes) + setting.initial_level


def terms(setting: Setting, way: Way) -> float:
    """Return the mean number of nodes in the sum for one number: the least cover, and the initial level for levels."""
    if way.branching is None or way.height is None:
        return 1.0
    ends = np.arange(setting.width or 1, setting.windows + 1)
    begins = np.zeros_like(ends) if setting.width is None else ends - setting.width
    return float(cover_sizes(begins, ends, way.branching, way.height).mean()) + setting.initial_level


def cover_sizes(begins: NDArray[np.int64], ends: NDArray[np.int64], branching: int, height: int) -> NDArray[np.int64]:
    """Return the number of nodes [numbers] in the least cover of windows begin + 1, ..., end.

    Args:
        begins: [numbers].
        ends: [numbers].
        branching: of the tree.
        height: number of layers.

    >>> cover_sizes(np.array([0, 1]), np.array([7, 7]), 2, 3).tolist()
    [3, 4]
    """
    sizes = np.zeros_like(ends)
    for _ in range(height - 1):
        # Up to the next parent from the left and down to the last from the right; all nodes if no parent is between.
        up, down = -(-begins // branching), ends // branching
        through = up <= down
        sizes += np.where(through, up * branching - begins + ends - down * branching, ends - begins)
        begins, ends = np.where(through, up, 0), np.where(through, down, 0)
    return sizes + ends - begins

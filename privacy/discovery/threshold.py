"""Thresholds of keys that nobody lists: the noisy count from which on a key may be shown.

A key is a *candidate* at the end of a window if at least one counted entry is in it then. A candidate whose noisy count
reaches the threshold is found, and listed from then on. If other keys of the query are listed, a key has a cell for
each combination of their values, and its count is the sum over its cells. So the list can reveal a unit only if the
unit is alone in a key, and the noise lifts its own entries over the threshold. With probability at most delta this
happens anywhere:

    delta  >=  sum over windows in which neighbours may differ of  n max_v Pr[Z + v >= threshold] / v               (1)

with n the most entries of a unit at one time, v = 1, ..., n the entries in one of its keys (at most the number of a
key's cells for a unit that counts once in each), and Z the noise of the key's level at the end of the window, which is
that of all its cells. If everything that a unit does is protected, these are all windows. In a protected span they are
those of the span, for any number of windows. The level may be a sum of values that are not below 0: v entries add at
most v times the largest value, which then takes the place of an entry.

Proof: docs/proofs/discovery.md. If data may react to published numbers, the proof requires that the noise of a level is
a sum of the noise of nodes (`Strategy.summed_levels`). Other strategies have Gaussian noise, and levels that are
rounded: (1) then holds for a threshold that is smaller by `SLACK`.
"""

import math
from dataclasses import dataclass

import numpy as np

from privacy.bisection import last_holding
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.weighted import half_width
from privacy.series import Series
from privacy.strategies.base import Strategy

LEVEL = Series(kind="level")

SLACK = 1024
"""Levels of strategies that round have errors below this part of an entry."""

MOST_CARRIED = 250
"""Most numbers that are kept for each key between windows, unless the spec names the form of its filter."""

MOMENTS = 50
"""Numbers of closed windows at which the size of a state is considered: in the middle it may be largest."""

GROUPS = 1000
"""Most different variances of levels; more are rounded up to steps of half a percent."""

LARGEST = 2**60
"""Thresholds above this are refused: levels are 64-bit integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """Units that are alone in keys: all facts on which the threshold of a query depends.

    Attributes:
        noise: noise of one node.
        cells: number of cells of each key, whose levels add up.
        levels: (nodes, windows): how many windows have levels with the variance of that number of nodes, in one cell,
            among those in which neighbours may differ.
        summed: whether each level has the plain sum of the noise of a number of nodes.
        entries: most entries of a unit at one time.
        distinct: whether a unit counts once in each cell.
        step: grid steps of one entry.
    """

    noise: NoiseDistribution
    cells: int = 1
    levels: tuple[tuple[float, int], ...]
    summed: bool
    entries: int
    distinct: bool
    step: int

    def chance(self, threshold: int) -> float:
        """Return the right side of (1): the probability that a key is found in which a unit is alone; rounded up.

        Args:
            threshold: noisy count from which on a key is found, in grid steps.
        """
        most = min(self.entries, self.cells) if self.distinct else self.entries
        together = np.arange(1, most + 1, dtype=np.float64)
        reach = threshold - (0 if self.summed else -(-self.cells * self.step // SLACK)) - together * self.step
        noisy = (nodes * self.cells for nodes, _ in self.levels)
        tails = (self.noise.tail(nodes, reach, summed=self.summed) / together for nodes in noisy)
        worst = [windows * float(tail.max()) for tail, (_, windows) in zip(tails, self.levels, strict=True)]
        return self.entries * sum(worst) * (1 + 1e-9)

    def threshold(self, delta: float) -> int:
        """Return the least threshold with a chance of at most `delta`, in grid steps.

        Args:
            delta: probability, above 0.

        Raises:
            ValueError: the threshold would be too large for a level.

        >>> from privacy.noise.distributions import DiscreteLaplace
        >>> alone = Alone(noise=DiscreteLaplace(1.0), levels=((1, 1),), summed=True, entries=1, distinct=False, step=1)
        >>> alone.threshold(5e-10)
        23
        """
        if delta <= 0:
            raise ValueError(f"delta={delta} must be above 0 to find keys")
        high = self.step
        while self.chance(high) > delta:
            high *= 2
            if high > LARGEST:
                raise ValueError("the threshold of found keys would exceed 2^60 grid steps; use a larger epsilon")
        return last_holding(lambda at: self.chance(at) <= delta, high, 0, near=_adjacent, whole=True)

    def needed(self, threshold: int, probability: float) -> int:
        """Return the least entries with which a key is found at the end of any one window with a probability.

        Args:
            threshold: as for `chance`.
            probability: at least 0.5.
        """
        if probability == 0.5:
            return -(-threshold // self.step)
        nodes = self.cells * max(nodes for nodes, _ in self.levels)
        weights = np.ones(round(nodes)) if self.summed else np.array([math.sqrt(nodes)])
        lower = half_width(self.noise, weights, 2 * probability - 1)
        return -int(-(threshold + lower) // self.step)


def _adjacent(holds: int, fails: int) -> bool:
    return holds - fails <= 1


def levels_of(strategy: Strategy, windows: int | None, apart: int | None) -> tuple[tuple[float, int], ...]:
    """Return the variances of the levels at which neighbours may differ, in units of one node's, as `Alone.levels`.

    Args:
        strategy: strategy in time, for which `listable` holds.
        windows: number of windows; None if the release has no end.
        apart: most ends of windows at which neighbours differ; None: all.

    >>> from privacy.strategies.tree.tree import Tree
    >>> tree = Tree(branching=2, height=3, refine="none", windows=4, initial_level=False)
    >>> levels_of(tree, 4, None), levels_of(tree, 4, 3)
    (((1.0, 3), (2.0, 1)), ((2.0, 3),))
    """
    nodes = strategy.variances(LEVEL, 1 if windows is None else windows)
    nodes = np.rint(nodes) if strategy.summed_levels else nodes
    if apart is not None:
        return ((float(nodes.max()), apart if windows is None else min(apart, windows)),)
    if windows is None:
        raise ValueError("without an end, a unit can be alone in a key in any number of windows")
    found, counts = np.unique(nodes, return_counts=True)
    if len(found) > GROUPS:
        found, counts = np.unique(np.exp(np.ceil(np.log(nodes) * 200) / 200), return_counts=True)
    return tuple(zip(found.tolist(), counts.tolist(), strict=True))


def listable(strategy: Strategy, *, subgaussian: bool, reacting: bool) -> bool:
    """Return whether keys can be found by levels of a strategy, so that (1) holds.

    Args:
        strategy: strategy in time.
        subgaussian: whether tails are known for any weights of nodes, as for Gaussian noise.
        reacting: whether data may react to published numbers.
    """
    if strategy.windows is None and not strategy.of_levels:
        return False
    return strategy.summed_levels or (subgaussian and not reacting)


def small(strategy: Strategy) -> bool:
    """Return whether the state of a key is small enough for millions of keys, after any number of windows."""
    if not strategy.bounded:
        return False
    moments = [1] if strategy.windows is None else np.linspace(1, strategy.windows, MOMENTS).round().tolist()
    return max(strategy.carried(int(moment), [LEVEL]) for moment in moments) <= MOST_CARRIED


def refuse_coarse(strategy: Strategy, windows: int, step: int) -> None:
    """Refuse a strategy whose rounding might move a level by more than `SLACK` allows.

    A node is rounded by at most half a step. Arithmetic on floats adds less than as much again.

    Args:
        strategy: strategy in time.
        windows: number of windows.
        step: grid steps of one entry.

    Raises:
        ValueError: rounding may move a level by too much.
    """
    (weights,) = strategy.weights(LEVEL, windows, since=windows - 1)
    if not strategy.summed_levels and float(weights.sum()) > step / (2 * SLACK):
        raise ValueError(f"{strategy.name}: rounds levels of {windows:,} windows too much for the discovery of keys")

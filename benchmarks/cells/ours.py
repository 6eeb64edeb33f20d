"""Cells that a release publishes of units on an axis in one window, and the quantiles and ranges from them.

Noise has the plan's distribution and scale. NumPy's generator replaces the exact sampler, for speed only.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells.data import Units
from privacy.answers.quantiles import Quantiles, balances, quantiles, reach_of
from privacy.noise.distributions import DiscreteLaplace
from privacy.planning.plan import Plan

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cells:
    """Noisy counts [runs, cells] of cells of equal size, their edges [cells + 1], and their plan."""

    plan: Plan
    counts: Floats
    edges: Floats

    def quantile(self, share: float) -> Quantiles:
        (part,) = self.plan.linear(0)
        (noise,) = part.noise
        along = None if part.over is None or part.over.trivial else part.over.axes[0]
        reach = reach_of(noise, 1.0, 1.0, balances(self.counts.shape[1], share, along), 0.95)
        return quantiles(self.counts, share, low=self.edges[:-1], high=self.edges[1:], reach=reach)

    def ranges(self, low: Floats, high: Floats) -> Floats:
        """Return counts [runs, ranges]; the units of a cell count as spread evenly over it.

        Args:
            low: lower ends of the ranges, [ranges].
            high: upper ends of the ranges, [ranges].
        """
        sums = np.concatenate([np.zeros((len(self.counts), 1)), np.cumsum(self.counts, axis=1)], axis=1)
        return np.stack([np.interp(high, self.edges, one) - np.interp(low, self.edges, one) for one in sums])


def published(units: Units, plan: Plan, *, runs: int, random: np.random.Generator) -> Cells:
    """Return cells with fresh noise for each run on the same exact counts.

    Args:
        units: to count.
        plan: of one query with one linear part and Laplace noise.
        runs: number of independent samples of noise.
        random: generator of the noise.
    """
    (part,) = plan.linear(0)
    cells = plan.demands[0].cells
    exact = units.counts(cells)
    nodes = exact if part.over is None else part.over.spread(exact)
    (noise,) = part.noise
    assert isinstance(noise, DiscreteLaplace)
    size, falls = (runs, len(nodes)), -np.expm1(-1 / noise.scale)
    drawn = random.geometric(falls, size) - random.geometric(falls, size)
    noisy: Floats = np.add(nodes, drawn, dtype=np.float64)
    counts = noisy if part.over is None else part.over.gather(noisy)
    return Cells(plan=plan, counts=counts, edges=np.linspace(units.low, units.high, cells + 1))

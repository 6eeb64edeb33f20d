"""The one rule by which noise is priced: to compare options, to calibrate, to say what is spent and what errors are.

For each part of a release its *charged* sensitivity S is what its noise is in proportion to (Measurement.charged). With
a share w of a budget of one unit, the noise of a node has the standard deviation

    sqrt(2) S / w     Laplace: S / b add up to epsilon
    S / sqrt(w)       Gaussian: (S / sigma)^2 add up

the first but for the step to whole numbers. Parts of one query share its budget evenly. A published number's variance
is that of a node times the sum of squares of its weights (privacy.strategies.base).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from privacy.accounting.composition import Measurement
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.contribution import Sensitivity
from privacy.series import Series
from privacy.strategies.base import Floats


class Priced(Protocol):
    """A part, with its noise or without."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Of all its nodes."""
        ...

    @property
    def series(self) -> tuple[Series, ...]:
        """What is published from it, in windows."""
        ...

    def variances(self, series: Series, windows: int) -> Floats:
        """[numbers]: sums of squares of weights."""
        ...


def measured(sensitivity: Sensitivity, weight: float = 1.0) -> Measurement:
    """A part as it is composed, with its share of the budget."""
    return Measurement(
        l1=sensitivity.l1,
        l2=sensitivity.l2,
        nodes=sensitivity.nodes,
        node_l1=sensitivity.node_l1,
        node_l2=sensitivity.node_l2,
        coordinates=sensitivity.coordinates,
        weight=weight,
    )


def share(query: int, weights: Sequence[float], queries: Sequence[int]) -> float:
    """Of the budget, for one part of a query.

    Args:
        weights: the share of each query.
        queries: of each part of the release.

    >>> share(1, [0.5, 0.5], [0, 1, 1])
    0.25
    """
    return weights[query] / queries.count(query)


def share_for(deviation: float, mechanism: Mechanism) -> float:
    """In proportion to this a budget is split where standard deviations at a whole one are to become equal."""
    return math.pow(deviation, NOISE[mechanism].power)


def split_deviation(parts: float, mechanism: Mechanism) -> float:
    """How much larger standard deviations are if so many parts share a budget.

    >>> split_deviation(4, "laplace"), split_deviation(4, "gaussian")
    (4.0, 2.0)
    """
    return math.pow(parts, 1 / NOISE[mechanism].power)


def node_deviation(sensitivity: Sensitivity, mechanism: Mechanism, accounting: Accounting) -> float:
    """Standard deviation of one node's noise for a whole budget of one unit, in normalised units."""
    charged = float(measured(sensitivity).charged_exactly(mechanism, accounting))
    return NOISE[mechanism].deviation * charged


def total_variance(parts: Iterable[tuple[Priced, float]], windows: int) -> tuple[float, int]:
    """Sum of the variances of all published numbers, and how many there are.

    Args:
        parts: with the variance of one node's noise.
    """
    squares, numbers = 0.0, 0
    for part, node in parts:
        for series in part.series:
            variances = part.variances(series, windows)
            squares += node * float(variances.sum())
            numbers += len(variances)
    return squares, numbers


def root_mean_square(parts: Sequence[Priced], windows: int, mechanism: Mechanism, accounting: Accounting) -> float:
    """Error over all numbers of parts that share a budget of one unit, in normalised units; infinite without any."""
    nodes = [node_deviation(part.sensitivity, mechanism, accounting) for part in parts]
    squares, numbers = total_variance([(part, node * node) for part, node in zip(parts, nodes, strict=True)], windows)
    split = len(parts) ** (2 // NOISE[mechanism].power)
    return math.sqrt(split * squares / numbers) if numbers else math.inf

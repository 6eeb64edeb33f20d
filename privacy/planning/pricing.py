"""Price of noise: one rule to compare options, to calibrate, and to compute spent budget and errors.

The noise of each part of a release is proportional to its *charged* sensitivity S (Measurement.charged). With a share w
of a budget of one unit, the noise of a node has the standard deviation

    sqrt(2) S / w     Laplace: S / b add up to epsilon
    S / sqrt(w)       Gaussian: (S / sigma)^2 add up

the first except for the step to integers. Parts of one query share its budget evenly. A published number's variance
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
    """Interface of a part, with or without noise."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of all its nodes."""
        ...

    @property
    def series(self) -> tuple[Series, ...]:
        """Series that it publishes, in windows."""
        ...

    def variances(self, series: Series, windows: int) -> Floats:
        """Return the sums of squares of weights, float64 [numbers]."""
        ...


def measured(sensitivity: Sensitivity, weight: float = 1.0) -> Measurement:
    """Return a part as a measurement, with its share of the budget."""
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
    """Return the share of the budget of one part of a query.

    Args:
        query: place of the query.
        weights: share of each query.
        queries: query of each part of the release.

    >>> share(1, [0.5, 0.5], [0, 1, 1])
    0.25
    """
    return weights[query] / queries.count(query)


def share_for(deviation: float, mechanism: Mechanism) -> float:
    """Return the value to which shares are proportional if standard deviations are to become equal."""
    return math.pow(deviation, NOISE[mechanism].power)


def split_deviation(parts: float, mechanism: Mechanism) -> float:
    """Return the factor by which standard deviations grow if `parts` parts share a budget.

    >>> split_deviation(4, "laplace"), split_deviation(4, "gaussian")
    (4.0, 2.0)
    """
    return math.pow(parts, 1 / NOISE[mechanism].power)


def node_deviation(sensitivity: Sensitivity, mechanism: Mechanism, accounting: Accounting) -> float:
    """Return the standard deviation of one node's noise for a whole budget of one unit, in normalised units.

    Args:
        sensitivity: sensitivity of the part.
        mechanism: kind of noise.
        accounting: how parts are composed.
    """
    charged = float(measured(sensitivity).charged_exactly(mechanism, accounting))
    return NOISE[mechanism].deviation * charged


def total_variance(parts: Iterable[tuple[Priced, float]], windows: int) -> tuple[float, int]:
    """Return the sum of the variances of all published numbers, and the number of these."""
    squares, numbers = 0.0, 0
    for part, node in parts:
        for series in part.series:
            variances = part.variances(series, windows)
            squares += node * float(variances.sum())
            numbers += len(variances)
    return squares, numbers


def root_mean_square(parts: Sequence[Priced], windows: int, mechanism: Mechanism, accounting: Accounting) -> float:
    """Return the error over all numbers of parts that share a budget of one unit; infinite without parts.

    Args:
        parts: the parts.
        windows: number of windows.
        mechanism: kind of noise.
        accounting: how parts are composed.

    Returns:
        Root mean square error in normalised units.
    """
    nodes = [node_deviation(part.sensitivity, mechanism, accounting) for part in parts]
    squares, numbers = total_variance([(part, node * node) for part, node in zip(parts, nodes, strict=True)], windows)
    split = len(parts) ** (2 // NOISE[mechanism].power)
    return math.sqrt(split * squares / numbers) if numbers else math.inf

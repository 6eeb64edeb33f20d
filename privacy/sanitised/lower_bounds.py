"""How well any sanitisation of a record can do: no mechanism whatever has a smaller worst expected error.

The error of a mechanism on a metric space D is E = max over d in D of the expected distance between d and what is put
in its place. Source: Holohan, Leith, Mason, "Differential Privacy in Metric Spaces" (Information Sciences 305, 2015),
theorems 6 and 7, both as corrected and proved in docs/proofs/sanitised.md: theorem 6 holds with twice its bound, and
theorem 7 only where outputs are elements of D.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least, positive
from privacy.upward import below, exp_above

Distances = NDArray[np.float64] | Sequence[Sequence[float]]


def diameter_bound(diameter: float, *, epsilon: float, delta: float = 0.0) -> float:
    """E >= (1 - delta) diameter / (1 + e^epsilon), wherever the outputs lie; rounded down.

    Attained for two points, by randomised response.

    >>> round(diameter_bound(1.0, epsilon=math.log(3)), 6)
    0.25
    """
    _check(diameter, epsilon, delta)
    return below(Fraction(diameter) * (1 - Fraction(delta)) / (1 + exp_above(epsilon)))


def packing_bound(radius: float, points: int, *, epsilon: float, delta: float = 0.0) -> float:
    """E >= (1 - delta) r (m - 1) / (m - 1 + e^epsilon) for m points of D around which no two balls share an output.

    Args:
        radius: r of the balls, which are open: all that may come out and is nearer than r to their centre.
        points: m, at least 2.

    Attained for the discrete metric, by optimal randomised response.

    >>> packing_bound(1.0, 11, epsilon=0.0)
    0.9090909090909091
    """
    _check(radius, epsilon, delta)
    at_least("points", points, 2)
    return below(Fraction(radius) * (1 - Fraction(delta)) * (points - 1) / (points - 1 + exp_above(epsilon)))


def packing_radius(distances: Distances, points: Sequence[int]) -> float:
    """The largest radius with which balls around these points share no output.

    Args:
        distances: [inputs][outputs], of all outputs that there may be. The paper leaves out those outside D, and they
            may lie between two points: a star's centre is half as far from each leaf as other leaves are.

    >>> packing_radius([[0, 1], [1, 0]], [0, 1]), packing_radius([[0, 1, 0.5], [1, 0, 0.5]], [0, 1])
    (1.0, 0.5)
    """
    far = np.asarray(distances, dtype=np.float64)
    pairs = ((one, other) for place, one in enumerate(points) for other in points[place + 1 :])
    return min((float(np.maximum(far[one], far[other]).min()) for one, other in pairs), default=math.inf)


def finite_bound(distances: Distances, *, epsilon: float, delta: float = 0.0) -> float:
    """The better of both for a finite space whose elements alone may come out, over packings found greedily.

    >>> discrete = 1 - np.eye(5)
    >>> round(finite_bound(discrete, epsilon=0.0), 9)
    0.8
    """
    far = np.asarray(distances, dtype=np.float64)
    best = diameter_bound(float(far.max()), epsilon=epsilon, delta=delta)
    for least in np.unique(far[far > 0]):
        points: list[int] = []
        for point in range(len(far)):
            if all(far[point, other] >= least for other in points):
                points.append(point)
        if len(points) >= 2:
            radius = packing_radius(far, points)
            best = max(best, packing_bound(radius, len(points), epsilon=epsilon, delta=delta))
    return best


def _check(distance: float, epsilon: float, delta: float) -> None:
    positive("distance", distance)
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon={epsilon} must be at least 0 and finite")
    if not 0 <= delta < 1:
        raise ValueError(f"delta={delta} must be at least 0 and below 1")

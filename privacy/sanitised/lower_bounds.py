"""Lower bounds of the error of any sanitisation of a record: no mechanism has a smaller worst expected error.

The error of a mechanism on a metric space D is E = max over d in D of the expected distance between d and its output.
Sources: Holohan, Leith, Mason, "Differential Privacy in Metric Spaces" (Information Sciences 305, 2015), theorems 6 and
7, both as corrected in docs/proofs/sanitised.md: theorem 6 holds with twice its bound, and theorem 7 only if outputs
are elements of D. `spread_bound` is a bound of this project, proved there; for many points and a large epsilon it is
many times larger. The largest of all applicable bounds is shown.
"""

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.checks import DELTA, at_least, between, positive
from privacy.upward import below, exp_above

Floats = NDArray[np.float64]
Distances = Floats | Sequence[Sequence[float]]

MOST_PACKINGS = 32
"""Number of sets of points that `finite_bound` tries."""

MOST_POINTS = 1000
"""Number of points of a line that `line_bound` uses."""


def diameter_bound(diameter: float, *, epsilon: float, delta: float = 0.0) -> float:
    """Return (1 - delta) diameter / (1 + e^epsilon), a lower bound of E for any outputs; rounded down.

    It is reached for two points, by randomised response.

    Args:
        diameter: largest distance of two inputs.
        epsilon, delta: privacy parameters.

    >>> round(diameter_bound(1.0, epsilon=math.log(3)), 6)
    0.25
    """
    _check(diameter, epsilon, delta)
    return below(Fraction(diameter) * (1 - Fraction(delta)) / (1 + exp_above(epsilon)))


def packing_bound(radius: float, points: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Return (1 - delta) r (m - 1) / (m - 1 + e^epsilon), a bound for m points of D whose balls share no output.

    Args:
        radius: r, radius of the open balls: the possible outputs nearer than r to their centre.
        points: m, at least 2.
        epsilon, delta: privacy parameters.

    It is reached for the discrete metric, by optimal randomised response.

    >>> packing_bound(1.0, 11, epsilon=0.0)
    0.9090909090909091
    """
    _check(radius, epsilon, delta)
    at_least("points", points, 2)
    return below(Fraction(radius) * (1 - Fraction(delta)) * (points - 1) / (points - 1 + exp_above(epsilon)))


def packing_radius(distances: Distances, points: Sequence[int]) -> float:
    """Return the largest radius with which balls around these points share no output.

    Args:
        distances: [inputs][outputs], for all possible outputs. The paper omits those outside D, and they may lie
            between two points: a star's centre is half as far from each leaf as other leaves are.
        points: indices of the inputs.

    >>> packing_radius([[0, 1], [1, 0]], [0, 1]), packing_radius([[0, 1, 0.5], [1, 0, 0.5]], [0, 1])
    (1.0, 0.5)
    """
    of_points = np.asarray(distances, dtype=np.float64)[list(points)]
    return float(np.sort(of_points, axis=0)[1].min())  # distance of each output to the second nearest point


def spread_bound(
    distances: Distances, diameter: float, *, epsilon: float, delta: float = 0.0, shares: Floats | None = None
) -> float:
    """Return the largest a for which no output makes sum of (d - a)+ less than e^epsilon times sum of (a - d)+.

    d are the distances of some points of D from the output. With a delta, a is reduced (docs/proofs/sanitised.md).

    Args:
        distances: [points][outputs], for all possible outputs; or smaller ones.
        diameter: largest distance of two points.
        epsilon, delta: privacy parameters.
        shares: share of each row, if rows represent several points; they add up to 1.

    >>> round(spread_bound(1 - np.eye(11), 1.0, epsilon=0.0), 6)
    0.909091
    """
    _check(diameter, epsilon, delta)
    far = np.asarray(distances, dtype=np.float64)
    weights = np.full(len(far), 1 / len(far)) if shares is None else shares
    order = np.argsort(far, axis=0)
    far, of_points = np.take_along_axis(far, order, axis=0), weights[order]
    near, sums, rest = np.cumsum(of_points, axis=0), np.cumsum(of_points * far, axis=0), math.exp(-epsilon)
    # The nearest points of an output are e^epsilon times as likely as the others; their number depends on the output.
    found = float(((sums * (1 - rest) + sums[-1] * rest) / (near * (1 - rest) + rest)).min())
    if delta > 0:
        room = float(sums[-1].min()) - found
        most = found * (diameter - found) if 2 * found <= diameter else diameter**2 / 4
        found = found - delta * most / room if room > 0 else 0.0
    return max(0.0, found * (1 - 1e-9))  # covers all rounding of these sums


def finite_bound(distances: Distances, *, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest bound for a finite space with its elements as outputs, over packings found greedily.

    Args:
        distances: [points][points], a metric.
        epsilon, delta: privacy parameters.

    >>> discrete = 1 - np.eye(5)
    >>> round(finite_bound(discrete, epsilon=0.0), 9)
    0.8
    """
    far = np.asarray(distances, dtype=np.float64)
    best = diameter_bound(float(far.max()), epsilon=epsilon, delta=delta)
    apart = np.unique(far[far > 0])
    for least in apart[np.unique(np.linspace(0, len(apart) - 1, MOST_PACKINGS).astype(int))]:
        points = _packed(far, float(least))
        if len(points) >= 2:
            radius, diameter = packing_radius(far, points), float(far[np.ix_(points, points)].max())
            packed = packing_bound(radius, len(points), epsilon=epsilon, delta=delta)
            best = max(best, packed, spread_bound(far[points], diameter, epsilon=epsilon, delta=delta))
    return best


def line_bound(steps: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest bound for numbers 0, ..., `steps`, with outputs anywhere on the line.

    Args:
        steps: number of grid steps.
        epsilon, delta: privacy parameters.

    >>> line_bound(1, epsilon=0.0), round(line_bound(1000, epsilon=3.0), 1)
    (0.5, 91.4)
    """
    apart = -(-steps // (MOST_POINTS - 1))
    points = steps // apart + 1
    # Every output has at least as many points near it as a point in the middle: at distances 0, 1, 1, 2, 2, ...
    middle = ((np.arange(points) + 1) // 2 * apart).astype(np.float64)
    spread = spread_bound(middle[:, None], float((points - 1) * apart), epsilon=epsilon, delta=delta)
    return max(spread, diameter_bound(float(steps), epsilon=epsilon, delta=delta))


def sets_bound(elements: int, at_most: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest bound for sets of at most `at_most` elements, with any set as output, by symmetric difference.

    Args:
        elements: number of elements.
        at_most: largest size of a set.
        epsilon, delta: privacy parameters.

    >>> round(sets_bound(3, 2, epsilon=1.5), 4), round(sets_bound(20, 20, epsilon=3.0), 4)
    (0.8586, 7.3882)
    """
    sizes = [math.comb(elements, size) for size in range(at_most + 1)]
    shares = np.array([size / sum(sizes) for size in sizes])
    # No output has more sets at a distance of l than the empty set, which has all sets of l elements.
    empty, diameter = np.arange(at_most + 1.0)[:, None], float(min(elements, 2 * at_most))
    return max(
        spread_bound(empty, diameter, epsilon=epsilon, delta=delta, shares=shares),
        packing_bound(1.0, sum(sizes), epsilon=epsilon, delta=delta),
        diameter_bound(diameter, epsilon=epsilon, delta=delta),
    )


def curves_bound(points: int, steps: int, total: int, *, largest: bool, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest bound for curves of points in 0, ..., `steps` with a sum of at most `total`, and any outputs.

    Points that are at their maximum or at 0 form a set; outputs between may be rounded at random to the same distance.

    Args:
        points: number of points.
        steps: largest value of a point, in grid steps.
        total: largest sum of the points.
        largest: whether the distance is the largest difference of two points, instead of the sum of all.
        epsilon, delta: privacy parameters.

    >>> curves_bound(3, 50, 60, largest=False, epsilon=1.5) > 50 * sets_bound(3, 1, epsilon=1.5) - 1e-9
    True
    """
    best = line_bound(min(steps, total), epsilon=epsilon, delta=delta)
    for full in {max(1, total // steps), min(points, -(-total // steps))}:
        height = min(steps, total // full)
        if largest:
            corners = sum(math.comb(points, size) for size in range(full + 1))
            best = max(best, packing_bound(height / 2, corners, epsilon=epsilon, delta=delta))
        else:
            best = max(best, height * sets_bound(points, full, epsilon=epsilon, delta=delta))
    return best


def _packed(far: Floats, least: float) -> list[int]:
    """Return elements that are at least `least` from each other, each the first remaining one."""
    points, left = [], np.ones(len(far), dtype=bool)
    while left.any():
        points.append(int(left.argmax()))
        left &= far[points[-1]] >= least
    return points


def _check(distance: float, epsilon: float, delta: float) -> None:
    positive("distance", distance)
    between("epsilon", epsilon, 0, sys.float_info.max)
    DELTA.check("delta", delta)

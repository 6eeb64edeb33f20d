"""Squared L2 norms of a filter's nodes for two trajectories that differ at few consecutive boundaries.

Let g be as in privacy.strategies.tree.apart: free in [-r, r] at each of w consecutive boundaries, 0 elsewhere; several
cells are no worse than one, for the reason given there. The leaves are z(i) = g(i) - g(i - 1), so

    C z = sum of g(i) d(. - i),    d_0 = c_0,  d_j = c_j - c_(j-1):

the differences of the coefficients, shifted. d ends with the coefficients, so coefficients beyond the horizon are
ignored: rows beyond the horizon only add to the norm.

    spectral    ||C z||^2 <= sup |d^(omega)|^2 sum of g(i)^2 <= w r^2 sup |d^(omega)|^2, by Parseval. |d^|^2 is a
                trigonometric polynomial of degree m < len(d); on a grid of N > 2 m points its largest value is at least
                cos(pi m / N) times the supremum (Ehlich and Zeller, 1964).
    exactly     for few boundaries: the norm is convex in each g(i), so it is the largest for signs, all of which are
                tried. Reached on an endless line.

If the initial level is not released, an entry that is present at the start begins with a leaf -g(0) at the first window
without the matching +g(0) before it: it adds at most r ||c||, by the triangle inequality.
"""

import math
from fractions import Fraction

import numpy as np

from privacy.strategies.base import Floats
from privacy.upward import above

MOST_EXACT = 12
"""Largest number of boundaries for which all signs are tried."""

GRID = 32
"""Number of grid points for each coefficient: cos(pi / 32) is 0.995."""

LONGEST = 1 << 14
"""Number of differences of which the spectrum is taken. The others have one sign, so they add up to the coefficient."""

ROUNDED = 1 + 1e-9
"""Factor that covers the rounding errors of transforms and sums in double precision."""


def of_filter(
    coefficients: Floats,
    *,
    leaves: int | None,
    initial_level: bool,
    boundaries: int,
    radius: Fraction,
    on_a_line: bool = True,
) -> float:
    """Return the squared L2 norm of the nodes y = C x that one unit moves, without rounding of nodes.

    Neighbours: trajectories of one unit that differ at consecutive boundaries (privacy.protection.Span).

    Args:
        coefficients: coefficients of C, float64 [n], non-negative and not increasing.
        leaves: number of leaves, including the initial level if it is the first; None for an endless line.
        initial_level: whether the initial level is the first leaf.
        boundaries: largest number of consecutive boundaries at which the trajectories differ.
        radius: squared size of the largest state, in normalised units.
        on_a_line: whether a line is the worst case; otherwise the spectral bound is used alone.

    >>> of_filter(np.ones(1), leaves=None, initial_level=True, boundaries=3, radius=Fraction(1)) # disjoint windows
    10.00000001
    """
    if leaves is not None:
        boundaries = min(boundaries, leaves + int(not initial_level))
    ended = leaves is None or len(coefficients) < leaves
    d = np.diff(coefficients, prepend=0.0, append=[0.0] if ended else [])
    inside = boundaries - int(not initial_level)
    squared = max(_squared(d, boundaries, on_a_line), 0.0)
    if not initial_level:  # the entry may be present at the start
        there = math.sqrt(max(_squared(d, inside, on_a_line), 0.0)) + float(np.linalg.norm(coefficients))
        squared = max(squared, there * there)
    return float(above(radius)) * squared * ROUNDED


def _squared(d: Floats, boundaries: int, on_a_line: bool) -> float:
    if boundaries == 0:
        return 0.0
    spectral = boundaries * _supremum(d)
    if boundaries > MOST_EXACT or not on_a_line:
        return spectral
    size = 1 << (len(d) + boundaries - 1).bit_length()
    power = np.abs(np.fft.rfft(d, size)) ** 2
    products = np.fft.irfft(power, size)[:boundaries]
    gram = products[np.abs(np.subtract.outer(np.arange(boundaries), np.arange(boundaries)))]
    places = np.arange(1 << (boundaries - 1))
    signs = 1.0 - 2.0 * ((places[:, None] >> np.arange(boundaries)) & 1)
    return min(spectral, float(np.einsum("si,ij,sj->s", signs, gram, signs, optimize=True).max()))


def _supremum(d: Floats) -> float:
    """Return an upper bound of the supremum of |d^(omega)|^2."""
    first, points = d[:LONGEST], GRID * min(len(d), LONGEST)
    power = float((np.abs(np.fft.rfft(first, points)) ** 2).max()) / math.cos(math.pi * (len(first) - 1) / points)
    return (math.sqrt(power) + float(np.abs(d[LONGEST:]).sum())) ** 2

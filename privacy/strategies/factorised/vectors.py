"""Bounds in closed form of the squared L2 norm by which an entry whose states are vectors moves a filter's output.

States have norm at most r and distance at most D, no state counting as 0; z holds the increments of an entry at the
leaves where it changes; N, E, convex and non-increasing sequences are those of privacy.strategies.factorised.energy;
rho^2 = max{r^2, D^2 / 2}. The least of three bounds is taken, for an entry that appears with j changes, the first of
them l_1 leaves before the second and so on, or for an entry that was present at the start, which is not released, and
changes j times:

               appears                                      was present
    Pairing    r^2 N(n) + D^2 (N(n-1) + ... + N(n-j+1))     D^2 (N(n) + ... + N(n-j+1))
    Spacing    r^2 N(l_1) + D^2 (N(l_2) + ... + N(l_j))     D^2 (N(l_1) + ... + N(l_j))
    Visits     rho^2 (sum of E over visits that end         this sum and rho^2 N(n), for the visit that began
               + N(n - l) for one that does not)            before the first leaf

In a time span all changes lie in L adjacent leaves, so that at most L - 1 gaps and visits of one leaf each lie between
the first and the last: D^2 ((L - 1) N(1) + N(n)) by spacing, rho^2 ((L - 1) E(1) + 2 N(n)) by visits. If the initial
level is the first leaf, an entry in the initial level stays for x leaves until its span begins: spacing adds r^2 N(x),
visits add rho^2 E(x), and the last change has at most n - x leaves.

The difference between given coefficients c and c', the sequence of the shape that a bound requires, moves the output by
|z_a| |c - c'| for each change: |Cz| <= |C'z| + (r + (j - 1) D) |c - c'|, or j D. Proofs:
docs/proofs/strategies.md#filters.
"""

import math
from dataclasses import dataclass

import numpy as np

from privacy.states import States
from privacy.strategies.factorised.energy import (
    ROOM,
    Floats,
    Near,
    convex,
    energies,
    falling,
    last_columns,
    rising,
    worst_split,
)
from privacy.upward import above


@dataclass(frozen=True, slots=True)
class Shapes:
    """Values that all bounds for one filter share.

    Attributes:
        leaves: number of leaves, including the initial level if it is one; None if the release has no end.
        falls: the largest non-increasing sequence below the coefficients.
        curves: the largest convex non-increasing sequence below the coefficients.
        energy: E(0), E(1), ... of `curves`, float64 [n + 1].
    """

    leaves: int | None
    falls: Near
    curves: Near
    energy: Floats


def shapes(c: Floats, leaves: int | None) -> Shapes:
    """Return the shapes of coefficients, float64 [n], that are finite and >= 0; zeros follow."""
    curves = convex(c, leaves)
    return Shapes(leaves, falling(c, leaves), curves, energies(curves.c))


def changes(shape: Shapes, states: States, k: int, *, present: bool) -> Floats:
    """Return bounds of the squared L2 norm for 0, ..., k changes, float64 [k + 1], non-decreasing.

    Args:
        shape: shapes of the filter.
        states: sizes of states in L2, squared, in normalised units.
        k: largest number of changes, at most the number of leaves.
        present: whether the entry was present at the start, which is not released; its changes are in leaves.

    >>> from fractions import Fraction
    >>> one_hot = States(radius=Fraction(1), diameter=Fraction(2), hulls=())
    >>> changes(shapes(np.ones(4), 4), one_hot, 2, present=False).round(6).tolist()
    [0.0, 4.0, 4.0]
    >>> changes(shapes(np.ones(4), 4), one_hot, 2, present=True).round(6).tolist()
    [0.0, 8.0, 8.0]
    """
    radius, diameter, rho = _sizes(states)
    first = diameter if present else radius
    counts, parts = np.arange(k + 1), np.arange(k)
    falls, curves = shape.falls, shape.curves
    last = last_columns(falls, shape.leaves, k)
    apart = np.concatenate(([0.0], np.cumsum(np.concatenate((first * last[:1], diameter * last[1:])))))
    if shape.leaves is not None:
        gaps = worst_split(falls.squares, diameter * parts, parts, first * falls.squares, shape.leaves)
        apart = np.minimum(apart, np.concatenate(([0.0], gaps)))
    moved = math.sqrt(first) + math.sqrt(diameter) * np.maximum(counts - 1, 0)
    bounds = _lifted(apart, moved, falls)
    if shape.leaves is not None:
        seen = worst_split(shape.energy, parts, parts, curves.squares, shape.leaves)
        seen = rho * (seen + (curves.squares[-1] if present else 0.0))
        bounds = np.minimum(bounds, _lifted(np.concatenate(([0.0], seen)), moved, curves))
    bounds[0] = 0.0
    return rising(bounds)


def within(shape: Shapes, states: States, span: int, *, initial_level: bool) -> float:
    """Return a bound of the squared L2 norm for any number of changes in `span` adjacent leaves.

    Without an initial level the entry may have been present at the start.

    Args:
        shape: shapes of the filter.
        states: sizes of states in L2, squared, in normalised units.
        span: number of adjacent leaves.
        initial_level: whether the first leaf is the initial level, at which the entry may change too.
    """
    radius, diameter, rho = _sizes(states)
    falls, curves, inner = shape.falls, shape.curves, span - 1
    last = last_columns(falls, shape.leaves, span + int(initial_level))
    paired = diameter * float(last.sum()) - ((diameter - radius) * float(last[0]) if initial_level else 0.0)
    spaced = diameter * inner * float(falls.squares[1])
    seen = rho * inner * float(shape.energy[1])
    if not initial_level:
        spaced += diameter * float(falls.squares[-1])
        seen += rho * 2 * float(curves.squares[-1])
    elif shape.leaves is None:
        spaced += (radius + diameter) * float(falls.squares[-1])
        seen += rho * float(shape.energy[-1] + curves.squares[-1])
    else:
        one = np.ones(1, dtype=np.int64)
        spaced += float(worst_split(falls.squares, radius * one, one, diameter * falls.squares, shape.leaves)[0])
        seen += rho * float(worst_split(shape.energy, one, one, curves.squares, shape.leaves)[0])
    moved = np.array([span * math.sqrt(diameter) + (math.sqrt(radius) if initial_level else 0.0)])
    apart = _lifted(np.array([min(paired, spaced)]), moved, falls)
    return float(min(apart[0], _lifted(np.array([seen]), moved, curves)[0]))


def _lifted(bounds: Floats, moved: Floats, near: Near) -> Floats:
    lifted: Floats = (np.sqrt(bounds) + moved * near.distance) ** 2 * ROOM
    return lifted


def _sizes(states: States) -> tuple[float, float, float]:
    """Return r^2, D^2 and rho^2."""
    return above(states.radius), above(states.diameter), above(max(states.radius, states.diameter / 2))

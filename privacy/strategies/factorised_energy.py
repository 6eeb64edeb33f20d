"""How far one entry can move the output of a filter, squared: bounds in closed form.

A Toeplitz factorisation sends the leaf increments z of an entry through a lower-triangular Toeplitz matrix C of n
leaves, with coefficients c_0 >= c_1 >= ... >= 0. N(m) = c_0^2 + ... + c_{m-1}^2 is the energy of a column that m leaves
see. S_k^2 is the largest |Cz|^2 for states in [0, 1] that change at most k times; by convexity states 0 and 1 in turn
reach it.

Pairing.  S_k^2 <= N(n) + N(n-1) + ... + N(n-k+1), and the last change adds at most N(n-k+1).                    (1)
    Products of columns are >= 0 and fall with the distance; signs alternate, the nearest is negative.
Spacing.  S_k^2 <= k N(n/k), never more than (1).                                                                (2)
    (Cz)_t is an alternating sum of falling terms, at most c_{t-i} for the latest change i; N is concave.
Energy.   For c also convex, with r on-blocks and E(l) the energy of a block of length l on the whole line,
    a = c_inf^2, E0(l) = E(l) - a l: S^2 <= max over m of min{ r E(m/r), a m + (r-1) E0((n-m)/(r-1)) + E0(n) }.  (3)
    Blocks have products <= 0; pairs of leaves, one on and one off, are counted by blocks that are on, or off. What
    lies beyond n does not count: c goes on as its last value, the convex continuation of least energy.
Rounding. Coefficients rounded to integers are not quite convex. For any other sequence c', |Cz| <= |C'z| + j |c - c'|
    with j columns in z. c' is the largest convex (for (1), (2): non-increasing) sequence below c.               (4)

States that are vectors: privacy.strategies.factorised_vectors. Proofs and sources: docs/proofs/strategies.md#filters
and #rounding. (1) is Andersson, Jain, Sivakumar's, arXiv:2601.02257, as far as its abstract says.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROOM = 1 + 1e-9
"""Every bound is made wider by this, far more than floating point can lose in sums of up to 1e6 coefficients."""


@dataclass(frozen=True, slots=True)
class Near:
    """A sequence of the wanted shape and how far, in L2, the given coefficients are from it."""

    c: Floats
    distance: float

    @property
    def squares(self) -> Floats:
        """N(0), N(1), ...; after the last one N stays as it is."""
        return np.concatenate(([0.0], np.cumsum(self.c**2)))

    def lift(self, bounds: Floats, count: Ints | int) -> Floats:
        """(4): bounds of squares for the given coefficients from those for the sequence, by the number of columns."""
        lifted: Floats = (np.sqrt(bounds) + count * self.distance) ** 2 * ROOM
        return lifted


def columns(c: Floats, windows: int | None, k: int) -> Floats:
    """Pairing, (1): [k + 1] bounds of S_0^2, ..., S_k^2.

    Args:
        c: coefficients, finite and >= 0; zeros follow. Where they rise, the bound pays for it by (4).
        windows: how many leaves, the initial level among them where it is one; None if there is no end.

    >>> columns(np.ones(4), 4, 2).round(6).tolist()
    [0.0, 4.0, 7.0]
    """
    near = falling(c, windows)
    return near.lift(np.concatenate(([0.0], np.cumsum(last_columns(near, windows, k)))), np.arange(k + 1))


def spaced(c: Floats, windows: int | None, k: int) -> Floats:
    """Spacing, (2): [k + 1] bounds of S_0^2, ..., S_k^2. Arguments as in `columns`.

    >>> spaced(np.ones(4), 4, 2).round(6).tolist()
    [0.0, 4.0, 4.0]
    """
    near, changes = falling(c, windows), np.arange(1, k + 1)
    bounds = changes * _at(near.squares, (math.inf if windows is None else windows) / changes)
    return near.lift(np.concatenate(([0.0], bounds)), np.arange(k + 1))


def toggles(c: Floats, windows: int | None, k: int) -> Floats:
    """The least of (1) to (3): [k + 1] bounds of S_0^2, ..., S_k^2, non-decreasing. Arguments as in `columns`.

    >>> toggles(np.array([1, 0.5, 0.375, 0.3125]), 4, 3).round(3).tolist()
    [0.0, 1.488, 2.0, 2.93]
    """
    bounds = spaced(c, windows, k)
    if windows is not None:
        near = convex(c, windows)
        energy, last = energies(near.c), last_columns(near, windows, k)
        blocks = np.arange(1, (k + 1) // 2 + 1)
        inner = np.concatenate(([0.0], np.repeat(_blocks(energy, near.c[-1] ** 2, blocks, windows), 2)[:k]))
        # With an odd number of changes the last block is a visit without an end.
        inner[1::2] = np.minimum(inner[1::2], worst_split(energy, blocks - 1, blocks - 1, near.squares, windows))
        bounds = np.minimum(bounds, near.lift(one_more(inner, last), np.arange(k + 1)))
    near = falling(c, windows)
    if near.distance == 0:
        bounds = one_more(bounds, last_columns(near, windows, k))
    return rising(bounds)


def within(c: Floats, windows: int | None, span: int, *, initial_level: bool = False) -> float:
    """Bound of |Cz|^2 for states in [0, 1] that change only within `span` leaves in a row, any number of times.

    All but the last change make blocks in the span, (3); the last adds its column, (1). Arguments as in `columns`.

    Args:
        initial_level: whether they may change at the first leaf too. That adds a column; or all on-blocks are counted
            alone: from there to the span, of any length x; those in the span; and one after it, with n - x leaves at
            most.

    >>> round(within(np.ones(10), 10, 3), 6), round(within(np.ones(10), 10, 3, initial_level=True), 6)
    (11.0, 11.0)
    """
    at_least("span", span, 1)
    leaves = span if windows is None else min(span, windows)
    falls, near = falling(c, windows), convex(c, windows)
    # Spacing: every leaf but the last of the span can be at most c_0, and N follows.
    bound = falls.lift((leaves - 1) * falls.squares[1:2] + falls.squares[-1], leaves)
    energy, plateau = energies(near.c), near.c[-1] ** 2

    def closed(places: int) -> Floats:
        """Blocks that begin and end at these leaves; `places - 1` leaves can be on."""
        return _blocks(energy, plateau, np.array([max(1, places // 2)]), max(0, places - 1))

    inner = np.maximum(closed(leaves), closed(leaves - 1) + near.squares[-1])
    bound = np.minimum(bound, near.lift(inner, leaves))
    if not initial_level:
        return float(bound[0])

    def alone(room: int) -> float:
        """On-blocks in so many leaves, an off-leaf before each."""
        count = np.arange(1, room // 2 + 1)
        return float((count * _at(energy, (room - count) / count)).max(initial=0.0))

    one = np.ones(1, dtype=np.int64)
    around = energy[-1:] + near.squares[-1]
    if windows is not None:
        around = worst_split(energy, one, one, near.squares, windows)
    joint = energy[-1:] + alone(leaves - 1)
    if leaves > 1:
        joint = np.maximum(joint, around + alone(leaves - 2))
    joint = np.minimum(near.lift(joint, leaves + 1), after_initial_level(falls, 1.0, bound, leaves, 1.0))
    return float(np.maximum(bound, joint)[0])


def after_initial_level(falls: Near, radius: float, bounds: Floats, count: int, length: float) -> Floats:
    """Bounds for an entry on a line of squared `length` that is in the initial level, in a state of squared size up
    to `radius`: r^2 N(n) on top of what bounds its `count` later changes, since their product is not positive.
    """
    lost = math.sqrt(length) * count * falls.distance
    whole = np.hypot(math.sqrt(radius * float(falls.squares[-1])), np.sqrt(bounds) + lost)
    found: Floats = (whole + math.sqrt(radius) * falls.distance + lost) ** 2 * ROOM
    return found


def falling(c: Floats, windows: int | None) -> Near:
    """The largest non-increasing sequence below c, [n]; one zero more than c where there is no end."""
    c = _checked(c, windows)
    lower = np.minimum.accumulate(c)
    return Near(lower, float(np.linalg.norm(c - lower)))


def convex(c: Floats, windows: int | None) -> Near:
    """The largest convex non-increasing sequence below c: its lower hull.

    >>> convex(np.array([4.0, 2.0, 2.0, 1.0]), 4).c.tolist()
    [4.0, 2.0, 1.5, 1.0]
    """
    c = _checked(c, windows)
    lower = np.minimum.accumulate(c)
    at = np.arange(len(c))
    while len(at) > 2:
        slope = np.diff(lower[at]) / np.diff(at)
        # A point above the line between two others is no corner of the hull, whatever else goes at the same time.
        corner = np.concatenate(([True], slope[:-1] < slope[1:], [True]))
        if corner.all():
            break
        at = at[corner]
    hull = np.interp(np.arange(len(c)), at, lower[at])
    digits = 1e-15 * float(c[0]) * math.sqrt(len(c))  # floats are convex only to their last digits
    return Near(hull, float(np.linalg.norm(c - hull)) + digits)


def energies(c: Floats) -> Floats:
    """E(0), ..., E(n) for coefficients that go on as c_{n-1} for ever.

    E(l) = sum_t (c_t - c_{t-l})^2. With e = c - c_{n-1} this is N(l) + sum_{t >= l} e_t^2 + sum_t e_t^2 - 2 r(l), r
    the autocorrelation of e: no cancellation of large terms.

    >>> energies(np.array([1.0, 0.5, 0.0])).round(6).tolist()
    [0.0, 1.5, 2.5, 2.5]
    """
    from scipy.signal import fftconvolve  # slow to import

    excess = c - c[-1]
    rest = np.append(np.cumsum((excess**2)[::-1])[::-1], 0.0)
    product = np.append(fftconvolve(excess, excess[::-1])[len(c) - 1 :], 0.0)
    energy: Floats = np.concatenate(([0.0], np.cumsum(c**2))) + rest + rest[0] - 2 * product
    energy += 1e-13 * rest[0]  # the transform's error is below 1e-14 of the largest product
    energy[0] = 0.0
    return energy


def one_more(bounds: Floats, last: Floats) -> Floats:
    """Use S_j^2 <= S_{j-1}^2 + last_j, which holds where c is non-increasing.

    >>> one_more(np.array([0.0, 3.0, 9.0]), np.array([4.0, 2.0])).tolist()
    [0.0, 3.0, 5.0]
    """
    added = np.concatenate(([0.0], np.cumsum(last)))
    least: Floats = np.minimum.accumulate(bounds - added) + added
    return least


def _checked(c: Floats, windows: int | None) -> Floats:
    """The coefficients as floats, cut or filled with zeros to the leaves there are; one zero more without an end."""
    c = np.asarray(c, dtype=np.float64)
    if c.ndim != 1 or len(c) == 0 or not np.isfinite(c).all() or c.min() < 0:
        raise ValueError("coefficients must be one row of finite numbers that are not negative")
    if windows is not None:
        at_least("windows", windows, 1)
    length = len(c) + 1 if windows is None else windows
    return np.concatenate((c[:length], np.zeros(max(0, length - len(c)))))


def last_columns(near: Near, windows: int | None, k: int) -> Floats:
    """N(n), N(n - 1), ..., N(n - k + 1): the most that the last of 1, 2, ..., k changes adds."""
    if windows is None:
        return np.full(k, near.squares[-1])
    return _at(near.squares, np.maximum(windows - np.arange(k), 0.0))


def _at(values: Floats, x: Floats) -> Floats:
    """Values at 0, 1, 2, ..., linear in between, so concave if they are; the last one for ever."""
    x = np.minimum(x, len(values) - 1)
    below = x.astype(np.int64)
    found: Floats = values[below]
    return found + (x - below) * (values[np.minimum(below + 1, len(values) - 1)] - found)


def _blocks(energy: Floats, plateau: float, blocks: Ints, room: int) -> Floats:
    """(3) for each number of on-blocks, all within `room` leaves. Both forms are concave in m, and so is the lesser."""
    gaps = blocks - 1
    whole = _at(energy, np.array(float(room)))

    def by_on(m: Floats) -> Floats:
        return blocks * _at(energy, m / blocks)

    def by_off(m: Floats) -> Floats:
        off = (room - m) / np.maximum(gaps, 1)
        return plateau * m + gaps * (_at(energy, off) - plateau * off) + whole - plateau * room

    low, high = _peak(lambda m: np.minimum(by_on(m), by_off(m)), len(blocks), room)
    # Between low and high, by_on rises, and by_off rises by no more than the plateau.
    return np.minimum(by_on(high), by_off(low) + plateau * (high - low))


def worst_split(each: Floats, times: NDArray[Any], parts: Ints, last: Floats, room: int) -> Floats:
    """max over x of times * each(x / parts) + last(room - x), concave and rising, for each number of parts."""

    def front(x: Floats) -> Floats:
        return times * _at(each, x / np.maximum(parts, 1))

    low, high = _peak(lambda x: front(x) + _at(last, room - x), len(parts), room)
    return front(high) + _at(last, room - low)


def _peak(value: Callable[[Floats], Floats], count: int, room: int) -> tuple[Floats, Floats]:
    """Brackets of the largest values of `count` concave functions on [0, room]."""
    grid = np.linspace(0, 1, 33)[:, None]
    low, high = np.zeros(count), np.full(count, float(room))
    each = np.arange(count)
    for _ in range(7):  # to room * 4e-9, where nothing is left to win
        tried = low + grid * (high - low)
        best = value(tried).argmax(axis=0)
        low, high = tried[np.maximum(best - 1, 0), each], tried[np.minimum(best + 1, len(grid) - 1), each]
    return low, high


def rising(bounds: Floats) -> Floats:
    """A bound for more changes holds for fewer too."""
    lowest: Floats = np.minimum.accumulate(bounds[::-1])[::-1]
    return lowest

"""Bounds in closed form of the squared L2 norm by which one entry moves the output of a filter.

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
    Blocks have products <= 0; pairs of leaves, one on and one off, are counted by blocks that are on, or off. Leaves
    beyond n do not count: c continues with its last value, the convex continuation of least energy.
Rounding. Coefficients rounded to integers are not exactly convex. For any other sequence c', |Cz| <= |C'z| + j |c - c'|
    with j columns in z. c' is the largest convex (for (1), (2): non-increasing) sequence below c.               (4)

States that are vectors: privacy.strategies.factorised.vectors. Proofs and sources: docs/proofs/strategies.md#filters
and #rounding. (1) is due to Andersson, Jain and Sivakumar, arXiv:2601.02257, according to its abstract.
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
"""Factor by which every bound is widened, far more than floating point loses in sums of up to 1e6 coefficients."""


@dataclass(frozen=True, slots=True)
class Near:
    """Sequence of the required shape, and its L2 distance from the given coefficients.

    Attributes:
        c: the sequence, float64 [n].
        distance: L2 distance.
    """

    c: Floats
    distance: float

    @property
    def squares(self) -> Floats:
        """N(0), N(1), ..., float64 [n + 1]; after the last entry N is constant."""
        return np.concatenate(([0.0], np.cumsum(self.c**2)))

    def lift(self, bounds: Floats, count: Ints | int) -> Floats:
        """Return, by (4), bounds of squares for the given coefficients from the bounds for the sequence.

        Args:
            bounds: squared norms, float64 [...].
            count: number of columns, broadcast against `bounds`.
        """
        lifted: Floats = (np.sqrt(bounds) + count * self.distance) ** 2 * ROOM
        return lifted


def columns(c: Floats, windows: int | None, k: int) -> Floats:
    """Return the bounds of S_0^2, ..., S_k^2 by pairing, (1), float64 [k + 1].

    Args:
        c: coefficients [n], finite and >= 0; zeros follow. If they rise, the bound is widened by (4).
        windows: number of leaves, including the initial level if it is one; None if the release has no end.
        k: largest number of changes.

    >>> columns(np.ones(4), 4, 2).round(6).tolist()
    [0.0, 4.0, 7.0]
    """
    near = falling(c, windows)
    return near.lift(np.concatenate(([0.0], np.cumsum(last_columns(near, windows, k)))), np.arange(k + 1))


def spaced(c: Floats, windows: int | None, k: int) -> Floats:
    """Return the bounds of S_0^2, ..., S_k^2 by spacing, (2), float64 [k + 1]. Args: as for `columns`.

    >>> spaced(np.ones(4), 4, 2).round(6).tolist()
    [0.0, 4.0, 4.0]
    """
    near, changes = falling(c, windows), np.arange(1, k + 1)
    bounds = changes * _at(near.squares, (math.inf if windows is None else windows) / changes)
    return near.lift(np.concatenate(([0.0], bounds)), np.arange(k + 1))


def toggles(c: Floats, windows: int | None, k: int) -> Floats:
    """Return the least of bounds (1) to (3) of S_0^2, ..., S_k^2, float64 [k + 1], non-decreasing.

    Args: as for `columns`.

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
    """Return a bound of |Cz|^2 for states in [0, 1] that change any number of times, within `span` leaves.

    All but the last change make blocks in the span, (3); the last adds its column, (1).

    Args:
        c: coefficients [n], finite and >= 0.
        windows: number of leaves, including the initial level if it is one; None if the release has no end.
        span: number of adjacent leaves.
        initial_level: whether states may change at the first leaf too. That adds a column. The other bound counts all
            on-blocks alone: the block from the first leaf to the span, of any length x; those in the span; and one
            after it, with at most n - x leaves.

    >>> round(within(np.ones(10), 10, 3), 6), round(within(np.ones(10), 10, 3, initial_level=True), 6)
    (11.0, 11.0)
    """
    at_least("span", span, 1)
    leaves = span if windows is None else min(span, windows)
    falls, near = falling(c, windows), convex(c, windows)
    # Spacing: each leaf of the span adds at most c_0^2, and the last one N.
    bound = falls.lift((leaves - 1) * falls.squares[1:2] + falls.squares[-1], leaves)
    energy, plateau = energies(near.c), near.c[-1] ** 2

    def closed(places: int) -> Floats:
        """Return the bound for blocks that begin and end at these leaves; `places - 1` leaves can be on."""
        return _blocks(energy, plateau, np.array([max(1, places // 2)]), max(0, places - 1))

    inner = np.maximum(closed(leaves), closed(leaves - 1) + near.squares[-1])
    bound = np.minimum(bound, near.lift(inner, leaves))
    if not initial_level:
        return float(bound[0])

    def alone(room: int) -> float:
        """Return the bound for on-blocks in `room` leaves, with an off-leaf before each."""
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
    """Return bounds for an entry that is in the initial level: r^2 N(n) plus the bound of its later changes.

    The product of both parts is not positive.

    Args:
        falls: the largest non-increasing sequence below the coefficients.
        radius: largest squared size of a state.
        bounds: squared norms of the later changes, float64 [...].
        count: number of later changes.
        length: squared length of the line on which the entry moves.
    """
    lost = math.sqrt(length) * count * falls.distance
    whole = np.hypot(math.sqrt(radius * float(falls.squares[-1])), np.sqrt(bounds) + lost)
    found: Floats = (whole + math.sqrt(radius) * falls.distance + lost) ** 2 * ROOM
    return found


def falling(c: Floats, windows: int | None) -> Near:
    """Return the largest non-increasing sequence below c, [n]; without an end, with one more zero than c."""
    c = _checked(c, windows)
    lower = np.minimum.accumulate(c)
    return Near(lower, float(np.linalg.norm(c - lower)))


def convex(c: Floats, windows: int | None) -> Near:
    """Return the largest convex non-increasing sequence below c: its lower hull.

    >>> convex(np.array([4.0, 2.0, 2.0, 1.0]), 4).c.tolist()
    [4.0, 2.0, 1.5, 1.0]
    """
    c = _checked(c, windows)
    lower = np.minimum.accumulate(c)
    at = np.arange(len(c))
    while len(at) > 2:
        slope = np.diff(lower[at]) / np.diff(at)
        # A point above the line between two others is no corner of the hull, even if other points are removed with it.
        corner = np.concatenate(([True], slope[:-1] < slope[1:], [True]))
        if corner.all():
            break
        at = at[corner]
    hull = np.interp(np.arange(len(c)), at, lower[at])
    digits = 1e-15 * float(c[0]) * math.sqrt(len(c))  # floats are convex only to their last digits
    return Near(hull, float(np.linalg.norm(c - hull)) + digits)


def energies(c: Floats) -> Floats:
    """Return E(0), ..., E(n), float64 [n + 1], for coefficients [n] that continue as c_{n-1} without end.

    E(l) = sum_t (c_t - c_{t-l})^2. With e = c - c_{n-1} this is N(l) + sum_{t >= l} e_t^2 + sum_t e_t^2 - 2 r(l), r
    the autocorrelation of e: no cancellation of large terms.

    >>> energies(np.array([1.0, 0.5, 0.0])).round(6).tolist()
    [0.0, 1.5, 2.5, 2.5]
    """
    from scipy.fft import irfft, next_fast_len, rfft  # slow to import, and scipy.signal far slower

    excess, size = c - c[-1], next_fast_len(2 * len(c) - 1, real=True)
    rest = np.append(np.cumsum((excess**2)[::-1])[::-1], 0.0)
    convolved = irfft(rfft(excess, size) * rfft(excess[::-1], size), size)
    product = np.append(convolved[len(c) - 1 : 2 * len(c) - 1], 0.0)
    energy: Floats = np.concatenate(([0.0], np.cumsum(c**2))) + rest + rest[0] - 2 * product
    energy += 1e-13 * rest[0]  # the transform's error is below 1e-14 of the largest product
    energy[0] = 0.0
    return energy


def one_more(bounds: Floats, last: Floats) -> Floats:
    """Return bounds lowered by S_j^2 <= S_{j-1}^2 + last_j, which holds if c is non-increasing.

    >>> one_more(np.array([0.0, 3.0, 9.0]), np.array([4.0, 2.0])).tolist()
    [0.0, 3.0, 5.0]
    """
    added = np.concatenate(([0.0], np.cumsum(last)))
    least: Floats = np.minimum.accumulate(bounds - added) + added
    return least


def _checked(c: Floats, windows: int | None) -> Floats:
    """Return the coefficients as floats, cut or padded with zeros to all leaves; one zero more without an end."""
    c = np.asarray(c, dtype=np.float64)
    if c.ndim != 1 or len(c) == 0 or not np.isfinite(c).all() or c.min() < 0:
        raise ValueError("coefficients must be one row of finite numbers that are not negative")
    at_least("windows", windows, 1)
    length = len(c) + 1 if windows is None else windows
    return np.concatenate((c[:length], np.zeros(max(0, length - len(c)))))


def last_columns(near: Near, windows: int | None, k: int) -> Floats:
    """Return N(n), N(n - 1), ..., N(n - k + 1): the most that the last of 1, 2, ..., k changes adds, float64 [k].

    Args:
        near: the largest non-increasing sequence below the coefficients.
        windows: number of leaves n; None if the release has no end.
        k: largest number of changes.
    """
    if windows is None:
        return np.full(k, near.squares[-1])
    return _at(near.squares, np.maximum(windows - np.arange(k), 0.0))


def _at(values: Floats, x: Floats) -> Floats:
    """Return the values at x, linear between 0, 1, 2, ..., so concave if they are; constant after the last one."""
    x = np.minimum(x, len(values) - 1)
    below = x.astype(np.int64)
    found: Floats = values[below]
    return found + (x - below) * (values[np.minimum(below + 1, len(values) - 1)] - found)


def _blocks(energy: Floats, plateau: float, blocks: Ints, room: int) -> Floats:
    """Return (3) for each number of on-blocks, all within `room` leaves. Both are concave in m, so is their minimum."""
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
    """Return max over x of times * each(x / parts) + last(room - x), for each number of parts, float64 [parts].

    Args:
        each, last: concave and rising, float64, at 0, 1, 2, ....
        times: factors of `each`, one for each number of parts.
        parts: int64 [parts].
        room: number of leaves.
    """

    def front(x: Floats) -> Floats:
        return times * _at(each, x / np.maximum(parts, 1))

    low, high = _peak(lambda x: front(x) + _at(last, room - x), len(parts), room)
    return front(high) + _at(last, room - low)


def _peak(value: Callable[[Floats], Floats], count: int, room: int) -> tuple[Floats, Floats]:
    """Return brackets of the maxima of `count` concave functions on [0, room]."""
    grid = np.linspace(0, 1, 33)[:, None]
    low, high = np.zeros(count), np.full(count, float(room))
    each = np.arange(count)
    for _ in range(7):  # to room * 4e-9, where no improvement remains
        tried = low + grid * (high - low)
        best = value(tried).argmax(axis=0)
        low, high = tried[np.maximum(best - 1, 0), each], tried[np.minimum(best + 1, len(grid) - 1), each]
    return low, high


def rising(bounds: Floats) -> Floats:
    """Return non-decreasing bounds: a bound for more changes also holds for fewer, float64 [k + 1]."""
    lowest: Floats = np.minimum.accumulate(bounds[::-1])[::-1]
    return lowest

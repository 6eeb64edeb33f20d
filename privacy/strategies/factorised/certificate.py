"""Bounds by dynamic programming of the squared L2 norm by which one entry moves the output of a linear map.

S_k^2 is the largest |Cz|^2 for an entry with states g in [0, 1] that change at most k times
(privacy.strategies.factorised.energy); z holds their increments. G = C^T C, and |Cz|^2 = g^T Y g with Y the second
differences of G. A block is a run of leaves a, ..., b-1 with one state. Alone it has E(a, b) = |C(e_a - e_b)|^2 = G_aa
+ G_bb - 2 G_ab, where column n of C is 0. All leaves together have G_00, and they meet the block with s(a, b) = G_a0 -
G_b0.

Certificate. Let P be the sum of the positive Y_ij with i != j. For every theta in [0, 1]

    S_k^2 <= P + (1 - theta) G_00 + max { theta sum_on E(b) + (1 - theta) sum_off (E(o) - 2 s(o)) },

over all ways to cut the leaves into off-blocks and on-blocks in turn with at most k changes.

Proof. |Cz|^2 is convex in g, so g is 0 or 1. Over the on-blocks, g^T Y g = sum E(b) + terms Y_ij with i and j in
different blocks, at most P. With h = 1 - g, g^T Y g = 1^T Y 1 - 2 h^T Y 1 + h^T Y h, and the last term is treated the
same way over the off-blocks. The bound is theta times the first plus 1 - theta times the second. QED

For convex c the P of a filter is 0. Rounding makes it positive, and for long filters it is then better to certify the
convex sequence below and add the distance, (4) of privacy.strategies.factorised.energy; the better of both is taken.

Time span. If all changes lie in L adjacent leaves, each of them one leaf earlier gives the same output and a row more,
so the first L leaves are the worst. The columns after them are constant: columns 0, ..., L-1 of C form a matrix of L
leaves that may change at each, and the certificate holds for it. Without a limit on changes the maximum is one walk
over the leaves. If the initial level may also change, its block ends where the span begins: one walk for each such
place.

Own result. For its tightness, see docs/proofs/strategies.md#certificate.
"""

import numpy as np

from privacy.strategies.factorised.energy import (
    Floats,
    Ints,
    Near,
    convex,
    falling,
    last_columns,
    one_more,
    rising,
    toggles,
)
from privacy.strategies.factorised.energy import within as closed_within

MOST_LEAVES = 4096
"""Largest number of leaves: a computation needs 8 n^2 bytes, and about k n^2 nanoseconds for each theta."""

MOST_WORK = 2**27
"""Largest k n^2; further changes are bounded one by one."""

MOST_WALKS = 2**22
"""Largest work for time spans: leaves of the span times coefficients, or its square times its possible places."""

THETAS: Floats = np.array([0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 1.0])
"""0 and 1 are exact for few changes; for more changes values in between are best, towards a half."""

ROWS = 64
"""Number of rows in one block, so that they stay in the cache."""


def certify(c: Floats, k: int) -> Floats:
    """Return bounds of S_0^2, ..., S_k^2 for a filter, float64 [k + 1], none larger than those of `toggles`.

    Args:
        c: coefficients [n], finite and >= 0, one for each leaf; floats, or integers below 2^53.
        k: largest number of changes.

    Raises:
        ValueError: for more than `MOST_LEAVES` leaves; `toggles` has no limit.

    >>> certify(np.array([1, 0.5, 0.375, 0.3125]), 3).round(3).tolist()
    [0.0, 1.488, 1.863, 2.301]
    """
    c = np.asarray(c, dtype=np.float64)
    n = len(c)
    _refuse_many(n)
    bounds = toggles(c, n, k)
    steps = min(k, MOST_WORK // n**2)
    near, crossing = convex(c, n), _crossing(c)
    if crossing < 2 * np.sqrt(bounds[steps]) * steps * near.distance:
        near = Near(c, 0.0)
    else:
        crossing = 0.0
    # Sums of n terms lose less than n units in the last place, and the sum of all Y_ij has n times as many.
    lost = 1e-15 * n * (n + k) * float(c @ c)
    found = near.lift(_certify(_filter_energies(near.c), steps, crossing) + lost, np.arange(steps + 1))
    bounds[: steps + 1] = np.minimum(bounds[: steps + 1], found)
    if falling(c, n).distance == 0:
        bounds = one_more(bounds, last_columns(Near(c, 0.0), n, k))
    return rising(bounds)


def within(c: Floats, windows: int | None, span: int, *, initial_level: bool = False) -> float:
    """Return a bound of |Cz|^2 for states in [0, 1] that change any number of times, within `span` leaves.

    The bound is never larger than that of `energy.within`.

    Args:
        c: coefficients [n], finite and >= 0.
        windows: number of leaves, including the initial level if it is one; None if the release has no end.
        span: number of adjacent leaves.
        initial_level: whether states may change at the first leaf too.

    >>> c = np.array([1, 0.5, 0.375, 0.3125])
    >>> round(within(c, 4, 2), 3), round(within(c, 4, 1, initial_level=True), 3)
    (1.488, 1.863)
    """
    bound = closed_within(c, windows, span, initial_level=initial_level)
    leaves = span if windows is None else min(span, windows)
    if leaves > MOST_LEAVES or leaves * len(c) > MOST_WALKS:
        return bound
    if initial_level and (windows is None or windows > MOST_LEAVES or leaves**2 * windows > MOST_WALKS):
        return bound
    near = convex(c, windows)
    line = np.pad(near.c, (0, leaves)) if windows is None else near.c
    most = _walk(line, leaves, np.zeros(1, dtype=np.int64), from_first=False)
    if initial_level:
        most = max(most, _walk(line, leaves, np.arange(1, len(line)), from_first=True))
    most += 1e-15 * len(line) * (len(line) + leaves) * float(line @ line)
    return min(bound, float(near.lift(np.array([most]), leaves + int(initial_level))[0]))


def _walk(c: Floats, leaves: int, places: Ints, *, from_first: bool) -> float:
    """Return the certificate for any number of changes in a span that begins at one of `places`, least over `THETAS`.

    Args:
        from_first: whether the first block extends from leaf 0 to the place.
    """
    n, theta = len(c), THETAS[:, None, None]
    # G(a, b) for b - a = lag is the sum of the first n - b products.
    sums = np.zeros((leaves, n + 1))
    for lag in range(min(leaves, n)):
        np.cumsum(c[: n - lag] * c[lag:], out=sums[lag, 1 : n - lag + 1])
        sums[lag, n - lag + 1 :] = sums[lag, n - lag]
    own = np.pad(sums[0, ::-1], (0, leaves))  # G(a, a); beyond the last leaf all columns are 0
    first = np.zeros(n + leaves + 1)  # G(0, a), only the needed part
    if from_first:
        first[:n] = np.correlate(c, c, "full")[n - 1 :]
    else:
        lags = np.arange(min(leaves, n))
        first[lags] = sums[lags, n - lags]
    # The most for the leaves before place + b, the last block on or off, for each theta and place.
    on, off = np.zeros((2, len(THETAS), len(places), leaves))
    if from_first:
        on[:, :, 0] = THETAS[:, None] * (own[0] + own[places] - 2 * first[places])
        off[:, :, 0] = -np.inf
    for b in range(1, leaves + 1):
        begins = places[:, None] + np.arange(b)
        if b < leaves:
            end = places[:, None] + b
            alone = own[begins] + own[end] - 2 * sums[np.arange(b, 0, -1), np.maximum(n - end, 0)]
            meets = first[begins] - first[end]
        else:
            alone, meets = own[begins], first[begins]
        last_on = (theta * alone + off[:, :, :b]).max(axis=2)
        last_off = ((1 - theta) * (alone - 2 * meets) + on[:, :, :b]).max(axis=2)
        if b < leaves:
            on[:, :, b], off[:, :, b] = last_on, last_off
    most = np.maximum(last_on, last_off) + (1 - THETAS[:, None]) * own[0]
    return float(most.min(axis=0).max())


def _certify(energy: Floats, k: int, crossing: float) -> Floats:
    """Return the certificate for 0 to k changes, least over `THETAS`.

    Args:
        energy: [n + 1, n + 1], E(a, b) at [b, a] for a <= b; entries above the diagonal are ignored.
        crossing: P.
    """
    n = len(energy) - 1
    own = energy[n, : n + 1]  # E(a, n) = G_aa, and so s(0, b) from E(0, b) = G_00 + G_bb - 2 G_b0
    meets = (own[0] - own + energy[:, 0]) / 2
    best = np.full(k + 1, np.inf)
    best[0] = 0.0
    for theta in THETAS:
        # ahead[b]: the most for leaves before b, as off-blocks and on-blocks in turn, after 0, 1, ... changes.
        ahead = (1 - theta) * (energy[:, 0] - 2 * meets)
        most = np.empty(k + 1)
        most[0] = ahead[n]
        for changes in range(1, k + 1):
            if changes % 2:
                ahead = _longest(energy, theta, ahead)
            else:
                ahead = _longest(energy, 1 - theta, ahead + 2 * (1 - theta) * meets) - 2 * (1 - theta) * meets
            most[changes] = ahead[n]
        best = np.minimum(best, np.maximum.accumulate(most) + (1 - theta) * own[0] + crossing)
    return best


def _longest(energy: Floats, weight: float, ahead: Floats) -> Floats:
    """Return max over a <= b of weight * E(a, b) + ahead[a], for each b."""
    found = np.empty(len(ahead))
    for first in range(0, len(ahead), ROWS):
        end = min(first + ROWS, len(ahead))
        value = weight * energy[first:end, :end]
        value += ahead[:end]
        value[:, first:][np.triu_indices(end - first, 1)] = -np.inf
        value.max(axis=1, out=found[first:end])
    return found


def _filter_energies(c: Floats) -> Floats:
    """Return [n + 1, n + 1], E(a, b) at [b, a] for a <= b, else 0, in n rounds of sums."""
    n = len(c)
    own = np.concatenate(([0.0], np.cumsum(c**2)))[::-1]  # G_aa = N(n - a)
    energy = np.zeros((n + 1, n + 1))
    energy[n] = own
    product = np.zeros(n)  # G(b - m, b) for m = 0, 1, ...
    for b in range(n - 1, -1, -1):
        after = n - 1 - b
        product[: b + 1] += c[after] * c[after:]
        energy[b, : b + 1] = own[: b + 1] + own[b] - 2 * product[b::-1]
    return energy


def _crossing(c: Floats) -> float:
    """Return P of a filter."""
    q = np.diff(c, prepend=0.0)
    total, product = 0.0, np.zeros(len(c))  # Y_ij = sum_{s <= n - j} q_s q_{s + j - i}, for j - i = 0, 1, ...
    for s in range(len(c)):
        product[: len(c) - s] += q[s] * q[s:]
        total += 2 * float(np.maximum(product[1 : len(c) - s], 0.0).sum())
    return total


def _refuse_many(n: int) -> None:
    if n > MOST_LEAVES:
        raise ValueError(f"{n} leaves are too many to certify; at most {MOST_LEAVES:,} are allowed")

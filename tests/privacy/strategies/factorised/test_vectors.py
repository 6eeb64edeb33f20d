"""Bounds for states that are vectors, compared with every trajectory of small filters and with the written theorems.

The theorems are computed a second time, in exact arithmetic, from docs/proofs/strategies.md alone: the charged bound
may be larger by a margin for floating point, and never smaller.
"""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest

from privacy.constraint import Within
from privacy.states import States
from privacy.strategies.factorised.filters import of_filter
from privacy.strategies.factorised.vectors import changes, shapes, within
from privacy.touched import at_most
from tests.privacy.strategies.factorised.test_energy import SLACK, filters, increments, leaky, square_root, toeplitz

STATES = {
    "histogram": np.eye(3),
    "signed": np.array([[1.0], [-1.0], [0.5]]),
    "corner": np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
    "cross": np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]),
    "odd": np.array([[1.0, 0.8], [0.0, -1.0], [0.6, 0.0]]),
}


def sizes(states: np.ndarray) -> States:
    """Return the squared sizes; the absence of a state is a state too."""
    all_states = np.concatenate((states, np.zeros((1, states.shape[1]))))
    return States(
        radius=Fraction(np.square(states).sum(axis=1).max()),
        diameter=Fraction(np.square(all_states[:, None] - all_states).sum(axis=2).max()),
        hulls=(),
    )


def every(states: np.ndarray, leaves: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Yield increments of all trajectories, where they change, and which were present before the first leaf."""
    all_states = np.concatenate((states, np.zeros((1, states.shape[1]))))
    places = np.array(list(itertools.product(range(len(all_states)), repeat=leaves + 1)))
    z = np.diff(all_states[places], axis=1)
    return z, np.diff(places, axis=1) != 0, places[:, 0] != len(states)


def squares(c: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (np.einsum("ts,bsk->btk", toeplitz(c, z.shape[1]), z) ** 2).sum(axis=(1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STATES)
def test_no_entry_exceeds_the_bound_for_its_changes_whether_it_appears_or_was_there(kind):
    n, size = 4 if len(STATES[kind]) > 3 else 5, sizes(STATES[kind])
    z, changed, present = every(STATES[kind], n)
    made = changed.sum(axis=1)
    for c in filters(n, 40):
        found = squares(c, z)
        for there in (False, True):
            bound = changes(shapes(c, n), size, n, present=there)
            assert (found[present == there] <= bound[made[present == there]] * SLACK).all(), (c, there)
            assert (np.diff(bound) >= 0).all()


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("initial_level", [False, True])
def test_no_entry_exceeds_the_bound_for_a_time_span(kind, initial_level):
    n, size = 4 if len(STATES[kind]) > 3 else 5, sizes(STATES[kind])
    z, changed, present = every(STATES[kind], n)
    if initial_level:  # published at the first leaf; later changes are in the span
        z, changed = z[~present], changed[~present][:, 1:]
    leaves = changed.shape[1]
    first, last = changed.argmax(axis=1), leaves - 1 - changed[:, ::-1].argmax(axis=1)
    for span in (1, 2, 3):
        near = z[(last - first < span) | ~changed.any(axis=1)]
        for c in filters(n, 25):
            bound = within(shapes(c, n), size, span, initial_level=initial_level)
            assert squares(c, near).max() <= bound * SLACK, (c, span)
            longer = np.concatenate((near, np.zeros_like(near)), axis=1)
            endless = within(shapes(c, None), size, span, initial_level=initial_level)
            assert squares(np.pad(c, (0, n)), longer).max() <= endless * SLACK, (c, span)


# The theorems as they are written


@lru_cache(maxsize=16)
def written(c: tuple[Fraction, ...], n: int) -> dict[str, list[Fraction]]:
    """Return sums for the largest convex sequence below c, which does not rise, exactly: N, E; and squared distance."""
    corners = [0]
    for place in range(1, n):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (c[b] - c[a]) * (place - b) < (c[place] - c[b]) * (b - a):
                break
            corners.pop()
        corners.append(place)
    hull = [c[0]]
    for a, b in itertools.pairwise(corners):
        hull += [c[a] + (c[b] - c[a]) * Fraction(t - a, b - a) for t in range(a + 1, b + 1)]
    line = hull + [hull[-1]] * n
    told = {"N": [Fraction(0)], "E": []}
    for s in hull:
        told["N"].append(told["N"][-1] + s * s)
    for length in range(n + 1):
        told["E"].append(sum((line[t] - (line[t - length] if t >= length else 0)) ** 2 for t in range(n + length)))
    told["plain"] = [Fraction(0), *itertools.accumulate(s * s for s in c)]
    told["distance"] = [sum((a - b) ** 2 for a, b in zip(c, hull, strict=True))]
    return told


def at(values: list[Fraction], x: Fraction) -> Fraction:
    low = min(math.floor(x), len(values) - 1)
    high = min(low + 1, len(values) - 1)
    return values[low] + (x - low) * (values[high] - values[low])


def root(x: Fraction) -> mpmath.mpf:
    return mpmath.sqrt(mpmath.mpf(x.numerator) / x.denominator)


def proved(c: tuple[Fraction, ...], size: States, *, k: int | None, span: int, initial_level: bool) -> mpmath.mpf:
    """Return the least of pairing, spacing and visits, for the worse of an entry that appears and a present one."""
    n, told = len(c), written(c, len(c))
    big_n, energy, plain, distance = told["N"], told["E"], told["plain"], root(told["distance"][0])
    r2, d2 = size.radius, size.diameter
    rho2 = max(r2, d2 / 2)
    r, d = root(r2), root(d2)

    def most(first: Fraction, count: int, each: list[Fraction], weight: Fraction, last: list[Fraction]) -> Fraction:
        return max(
            (weight * count * at(each, Fraction(x, count)) if count else 0) + first * last[n - x] for x in range(n + 1)
        )

    def lifted(square: Fraction, moved: mpmath.mpf, away: mpmath.mpf) -> mpmath.mpf:
        return (root(square) + moved * away) ** 2

    if k is None:
        columns = [plain[n - i] for i in range(span + int(initial_level))]
        paired = d2 * sum(columns) - ((d2 - r2) * columns[0] if initial_level else 0)
        spaced = d2 * (span - 1) * plain[1] + (most(d2, 1, plain, r2, plain) if initial_level else d2 * plain[n])
        ended = most(Fraction(1), 1, energy, Fraction(1), big_n) if initial_level else 2 * big_n[n]
        moved = span * d + (r if initial_level else 0)
        return min(
            lifted(paired, moved, 0),
            lifted(spaced, moved, 0),
            lifted(rho2 * ((span - 1) * energy[1] + ended), moved, distance),
        )
    worst = mpmath.mpf(0)
    for j, there in ((min(k, n), False), *(() if initial_level else ((min(k - 1, n), True),))):
        if j == 0:
            continue
        first = d2 if there else r2
        moved = root(first) + (j - 1) * d
        paired = first * plain[n] + d2 * sum(plain[n - i] for i in range(1, j))
        spaced = most(first, j - 1, plain, d2, plain)
        seen = rho2 * (most(Fraction(1), j - 1, energy, Fraction(1), big_n) + (big_n[n] if there else 0))
        worst = max(worst, min(lifted(paired, moved, 0), lifted(spaced, moved, 0), lifted(seen, moved, distance)))
    return worst


ROUNDED = {
    "square root": square_root(24),
    "leaky": leaky(24, 0.03),
    "window": square_root(24) * 0.9 ** np.arange(24),
    "flat": np.full(24, 0.7),
}
HISTOGRAM = States(radius=Fraction(1), diameter=Fraction(2), hulls=())
THIRDS = States(radius=Fraction(2), diameter=Fraction(25, 9), hulls=())


@pytest.mark.slow
@pytest.mark.parametrize("form", ROUNDED)
@pytest.mark.parametrize("initial_level", [False, True])
@pytest.mark.parametrize("size", [HISTOGRAM, THIRDS], ids=["histogram", "thirds"])
def test_the_charge_equals_the_written_theorem_and_is_never_less(form, initial_level, size):
    """Coefficients rounded to 2^-20 are not convex: the distance is charged for each change."""
    c = np.rint(ROUNDED[form] * 2**20) / 2**20
    exact = tuple(Fraction(x) for x in c)
    with mpmath.workdps(40):
        for k in (1, 2, 3, 4, 7, 12, 24, 40):
            found = of_filter(c, leaves=24, initial_level=initial_level, touched=at_most(k), states=size)[-1]
            least = proved(exact, size, k=k, span=0, initial_level=initial_level)
            assert least <= found <= least * (1 + 1e-8), k
        for span in (1, 2, 5, 11, 20):
            part = Within(span - 1)
            met = min(span, 24 - int(initial_level))
            found = of_filter(c, leaves=24, initial_level=initial_level, touched=part.touched(1), states=size)[-1]
            least = proved(exact, size, k=None, span=met, initial_level=initial_level)
            assert least <= found <= least * (1 + 1e-8), span


@pytest.mark.parametrize("span", [2, 3])
def test_every_change_in_a_time_span_pays_for_coefficients_that_rise(span):
    c, (z, changed, _) = np.array([0.0, 1.0, 0.0, 1.0]), every(STATES["histogram"], 4)
    first, last = changed.argmax(axis=1), 3 - changed[:, ::-1].argmax(axis=1)
    inside = (last - first < span) & changed.any(axis=1)

    assert squares(c, z)[inside].max() <= within(shapes(c, 4), HISTOGRAM, span, initial_level=False)


def test_rounded_coefficients_cost_almost_nothing_for_vectors():
    c = square_root(20_000)
    rounded = np.round(c * 2**20) / 2**20
    told, near = (changes(shapes(x, 20_000), HISTOGRAM, 8, present=False) for x in (c, rounded))

    assert near == pytest.approx(told, rel=1e-3)


def test_without_an_end_every_move_costs_two_columns_and_can():
    c = np.array([1.0, 0.6, 0.3])
    states = np.zeros((1, 12, 3))
    for visit in range(3):
        states[0, 4 * visit :, :] = np.eye(3)[visit]

    assert changes(shapes(c, None), HISTOGRAM, 3, present=False)[3] == pytest.approx(
        squares(c, increments(states))[0], rel=1e-8
    )


def test_a_time_span_of_a_histogram_costs_about_half_of_a_column_for_each_leaf():
    """A year of days, all changes in a week: before, every leaf of the span was charged more than a whole column."""
    c = square_root(365)
    column = float(c @ c)
    charged = within(shapes(c, 365), HISTOGRAM, 8, initial_level=False)

    assert charged == pytest.approx(7 * 4 / math.pi + 2 * column, rel=1e-3)
    assert charged < 0.32 * 8 * 2 * column

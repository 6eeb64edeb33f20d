"""How many cells a histogram should have, from public numbers alone, beside the best in hindsight.

Choosing the width that does best on the data, as a footnote of Fang and Chang has it, is no part of any guarantee: that
choice is a function of the data, published with the histogram: for some neighbours it differs, so that the width alone
tells them apart (`chosen_by_looking` in tests/test_benchmarks_cells.py).

`cells_for` knows the number of units (or a guess of it), epsilon, and nothing of how they lie. Fine cells under the
planner's sums need no choice. Errors of random ranges whose ends are anywhere, what lies in a cell spread evenly.
"""

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import points
from benchmarks.cells.data import Units, made_up, stops
from benchmarks.cells.near import name_of, plan_of
from benchmarks.cells.ours import published

Floats = NDArray[np.float64]
RUNS, RANGES = 60, 400
TRIED = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def cells_for(units: int, epsilon: float) -> int:
    """The best number of cells with noise of their own if units were spread evenly.

    A range holds a third of d cells, of variance 2 / epsilon^2 each, and cuts two, of whose n / d units each a sixth
    is the variance of how many are inside: n / (3 d) + 2 d / (3 epsilon^2) is least at d = epsilon sqrt(n / 2).

    >>> cells_for(10_000, 1.0)
    71
    """
    return max(1, round(epsilon * math.sqrt(units / 2)))


def expected_square(units: Units, cells: int, epsilon: float, low: Floats, high: Floats) -> float:
    """Exact mean square error of ranges, noise and what cells leave out."""
    edges = np.linspace(units.low, units.high, cells + 1)
    sums = np.concatenate([[0], np.cumsum(units.counts(cells))])
    bias = np.interp(high, edges, sums) - np.interp(low, edges, sums) - points.counted(units.places, low, high)
    inside = np.clip(
        (np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])) / (edges[1] - edges[0]), 0, 1
    )
    return float(np.mean(bias**2 + (inside**2).sum(axis=1) * 2 / epsilon**2))


def chosen_by_looking(units: Units, epsilon: float, low: Floats, high: Floats) -> int:
    """What the data would have: not private."""
    return min(TRIED, key=lambda cells: expected_square(units, cells, epsilon, low, high))


def table() -> str:
    lines = [
        "| units | n | best in hindsight | off by | from n alone | off by | 1,024 cells | off by |",
        "|---|--:|--:|--:|--:|--:|---|--:|",
    ]
    random = np.random.default_rng()
    for units in (stops(365), stops(28), stops(1), *made_up()):
        ends = np.sort(np.random.default_rng(1).uniform(units.low, units.high, (2, RANGES)), axis=0)
        truth = points.counted(units.places, *ends)
        best, rule = chosen_by_looking(units, 1.0, *ends), cells_for(len(units.places), 1.0)
        each = [math.sqrt(expected_square(units, cells, 1.0, *ends)) for cells in (best, rule)]
        plan = plan_of(1024, 0)
        fine = published(units, plan, runs=RUNS, random=random).ranges(*ends)
        lines.append(
            f"| {units.name} | {len(units.places):,} | {best} | {each[0]:.1f} | {rule} | {each[1]:.1f} "
            f"| {name_of(plan)} | {math.sqrt(np.mean((fine - truth) ** 2)):.1f} |"
        )
    return "\n".join(lines)

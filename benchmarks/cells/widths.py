"""Number of cells of a histogram from public numbers alone, compared with the best one in hindsight.

A footnote of Fang and Chang chooses the width that is best for the data. No guarantee covers that: the choice is a
function of the data and is published with the histogram. For some neighbours it differs, so the width alone
distinguishes them (`chosen_by_looking` in tests/test_benchmarks_cells.py).

`cells_for` uses the number of units (or a guess) and epsilon, but not the places of units. Fine cells under the
planner's sums need no choice. Errors are those of random ranges; the units of a cell count as spread evenly over it.
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
    """Return the best number of cells with separate noise if units are spread evenly.

    A range holds a third of d cells, with a variance of 2 / epsilon^2 each. It cuts two cells of n / d units each, and
    the number of those units inside it has a variance of a sixth of them. The sum n / (3 d) + 2 d / (3 epsilon^2) is
    least at d = epsilon sqrt(n / 2).

    >>> cells_for(10_000, 1.0)
    71
    """
    return max(1, round(epsilon * math.sqrt(units / 2)))


def expected_square(units: Units, cells: int, epsilon: float, low: Floats, high: Floats) -> float:
    """Return the exact mean square error of ranges, from noise and from counting units as spread evenly over cells.

    Args:
        units: on the axis.
        cells: number of cells.
        epsilon: the budget.
        low: lower ends of the ranges, [ranges].
        high: upper ends of the ranges, [ranges].
    """
    edges = np.linspace(units.low, units.high, cells + 1)
    sums = np.concatenate([[0], np.cumsum(units.counts(cells))])
    bias = np.interp(high, edges, sums) - np.interp(low, edges, sums) - points.counted(units.places, low, high)
    inside = np.clip(
        (np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])) / (edges[1] - edges[0]), 0, 1
    )
    return float(np.mean(bias**2 + (inside**2).sum(axis=1) * 2 / epsilon**2))


def chosen_by_looking(units: Units, epsilon: float, low: Floats, high: Floats) -> int:
    """Return the number of cells with the least error on the data. The choice is not private.

    Args:
        units: on the axis.
        epsilon: the budget.
        low: lower ends of ranges, [ranges].
        high: upper ends of ranges, [ranges].
    """
    return min(TRIED, key=lambda cells: expected_square(units, cells, epsilon, low, high))


def table() -> str:
    lines = [
        "| units | n | best in hindsight | RMSE | from n alone | RMSE | 1,024 cells | RMSE |",
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

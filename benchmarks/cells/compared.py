"""Ranges and medians by each method, if places are protected up to a distance: one window of units.

Errors are measured: each run samples fresh noise for the same units. Sizes of cells and groups follow from public
numbers alone (`step_for`, `points.group_for`).
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import medians, points
from benchmarks.cells.data import Units, made_up, stops
from benchmarks.cells.near import name_of, plan_of, variance
from benchmarks.cells.ours import Cells, published
from privacy.cells.averages import Workload

Floats = NDArray[np.float64]
RUNS, SETS, RANGES = 1000, 40, 2000
FINER, MOST_CELLS = 4, 8192
"""Factor of `ours, finer` on the number of cells that is best for evenly spread units; largest number."""


def step_for(units: int, *, length: float, reach: float, epsilon: float) -> float:
    """Return the size of a cell under prefixes that is best for ranges if units are spread evenly.

    It depends on public numbers alone. The two nodes of a range have a variance of 4 (reach / (step epsilon))^2. A
    range cuts two cells of n step / length units each, and the number of those units inside it has a variance of a
    sixth of them: n step / (3 length) for both. A size below the distance divides the distance, since parts of a cell
    count as one.

    Args:
        units: number of units n.
        length: of the axis.
        reach: the protected distance, in units of the axis.
        epsilon: the budget.

    >>> step_for(10_000, length=100.0, reach=1.0, epsilon=1.0)
    0.5
    """
    best = (24 * reach**2 * length / (units * epsilon**2)) ** (1 / 3)
    return float(best if best > reach else reach / round(reach / best))


def cells_of(
    units: Units, *, reach: float, step: float, epsilon: float, runs: int, random: np.random.Generator, of: Workload
) -> Cells:
    """Return noisy counts of equal cells that cover the axis, of at least the size `step`.

    Args:
        units: on the axis.
        reach: protected distance, in units of the axis.
        step: size of a cell, in units of the axis.
        epsilon: the budget.
        runs: number of independent samples of noise.
        random: generator of the noise.
        of: what the cells are for.
    """
    length = units.high - units.low
    cells = min(MOST_CELLS, max(2, math.floor(length / step + 1e-9)))
    apart = min(cells - 1, math.ceil(reach * cells / length - 1e-9))
    return published(units, plan_of(cells, apart, epsilon=epsilon, workload=of), runs=runs, random=random)


def off(values: Floats, units: Units, share: float = 0.5) -> float:
    """Return the mean distance of estimates from the quantile, or from the interval of all quantiles.

    Args:
        values: estimates, [runs].
        units: on the axis.
        share: of the quantile.

    Returns:
        the distance in `units.unit`.
    """
    wanted = share * len(units.places)
    first = units.places[math.ceil(wanted) - 1]
    last = units.places[int(wanted)] if wanted == int(wanted) else first
    return float(np.mean(np.maximum(0.0, np.maximum(first - values, values - last)))) * units.scale


def samples() -> list[tuple[Units, float]]:
    """Return sets of units, each with a short and a long distance."""
    found = [(stops(days), reach) for days in (365, 28, 1) for reach in (0.001, 0.01)]
    return found + [(units, units.high / share) for units in made_up() for share in (100, 10)]


def told(units: Units, reach: float) -> str:
    return f"{units.name} | {len(units.places):,} | {reach * units.scale:,.4g} {units.unit}"


def median_ways(units: Units, reach: float, epsilon: float, random: np.random.Generator) -> dict[str, Floats]:
    """Return the medians [runs] by each method.

    Args:
        units: on the axis.
        reach: protected distance, in units of the axis.
        epsilon: the budget.
        random: generator of the noise.
    """
    n, length = len(units.places), units.high - units.low
    low, high, places = units.low, units.high, units.places
    step = step_for(n, length=length, reach=reach, epsilon=epsilon)
    group = points.group_for(n, length=length, reach=reach, epsilon=epsilon)
    of_cells = partial(cells_of, units, reach=reach, epsilon=epsilon, runs=RUNS, random=random, of="prefixes")

    def often(one: Callable[[], float]) -> Floats:
        return np.array([one() for _ in range(RUNS)])

    def smooth(one: Callable[..., float]) -> Floats:
        return often(partial(one, places, low=low, high=high, reach=reach, epsilon=epsilon, random=random))

    def of_points(group: int) -> float:
        made = points.published(units.places, reach=reach, epsilon=epsilon, group=group, random=random)
        return float(made[medians.rank(n) - 1])

    return {
        "ours": of_cells(step=step).quantile(0.5).value,
        "ours, finer": of_cells(step=step / FINER).quantile(0.5).value,
        "sorted points": often(lambda: of_points(1)),
        "in groups": often(lambda: of_points(group)),
        "smooth, t": smooth(medians.student),
        "smooth, Cauchy": smooth(medians.cauchy),
        "noise of the distance": smooth(medians.by_reach),
        "exponential": often(partial(medians.exponential, places, low=low, high=high, epsilon=epsilon, random=random)),
    }


def medians_table() -> str:
    random = np.random.default_rng()
    lines: list[str] = []
    for units, reach in samples():
        found = {name: off(values, units) for name, values in median_ways(units, reach, 1.0, random).items()}
        if not lines:
            lines += [f"| units | n | distance | {' | '.join(found)} |", "|---|--:|--:|" + "--:|" * len(found)]
        lines.append(f"| {told(units, reach)} | {' | '.join(f'{error:,.3g}' for error in found.values())} |")
    return "\n".join(lines)


def smooth_sensitivities() -> str:
    """Return Fang and Chang's figure 6: smooth sensitivities of the median of exponential points, scaled to [0, 1].

    Means of 300 sets. The paper does not print beta.
    """
    random = np.random.default_rng()
    lines = ["| beta | points | all places | 0.02 apart | 0.005 apart |", "|--:|--:|--:|--:|--:|"]
    for beta in (1 / 6, 1.0):
        for size in (10, 20, 50, 100):
            sets = np.sort(random.exponential(size=(300, size)), axis=1)
            sets /= sets[:, -1:]
            found = [
                np.mean([medians.smooth_sensitivity(one, low=0, high=1, reach=reach, beta=beta) for one in sets])
                for reach in (1.0, 0.02, 0.005)
            ]
            lines.append(f"| {beta:.2g} | {size} | {' | '.join(f'{each:.4f}' for each in found)} |")
    return "\n".join(lines)


def curves() -> str:
    """Return a table of errors of medians by epsilon."""
    random = np.random.default_rng()
    lines: list[str] = []
    units = made_up()[0]
    for reach in (1.0, 10.0, 100.0):
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            found = {name: off(values, units) for name, values in median_ways(units, reach, epsilon, random).items()}
            if not lines:
                lines += [f"| distance | epsilon | {' | '.join(found)} |", "|--:|--:|" + "--:|" * len(found)]
            lines.append(f"| {reach:g} | {epsilon:g} | {' | '.join(f'{error:,.2g}' for error in found.values())} |")
    return "\n".join(lines)


def range_ways(units: Units, reach: float, random: np.random.Generator) -> dict[str, float]:
    """Return the root mean square error of the counts of random ranges by each method, with epsilon = 1.

    Args:
        units: on the axis.
        reach: protected distance, in units of the axis.
        random: generator of the noise.
    """
    n, length = len(units.places), units.high - units.low
    ends = np.sort(np.random.default_rng(1).uniform(units.low, units.high, (2, RANGES)), axis=0)
    truth = points.counted(units.places, *ends)
    group = points.group_for(n, length=length, reach=reach, epsilon=1.0)
    step = step_for(n, length=length, reach=reach, epsilon=1.0)

    def rmse(found: Floats) -> float:
        return float(np.sqrt(np.mean((found - truth) ** 2)))

    def of_cells(step: float) -> float:
        made = cells_of(units, reach=reach, step=step, epsilon=1.0, runs=SETS, random=random, of="ranges")
        return rmse(made.ranges(*ends))

    def of_points(group: int) -> float:
        sets = [
            points.published(units.places, reach=reach, epsilon=1.0, group=group, random=random) for _ in range(SETS)
        ]
        return rmse(np.stack([points.counted(one, *ends) for one in sets]))

    return {
        "ours": of_cells(step),
        "ours, finer": of_cells(step / FINER),
        "sorted points": of_points(1),
        "in groups": of_points(group),
    }


def ranges() -> str:
    random = np.random.default_rng()
    lines: list[str] = []
    for units, reach in samples():
        found = range_ways(units, reach, random)
        if not lines:
            lines += [f"| units | n | distance | {' | '.join(found)} |", "|---|--:|--:|" + "--:|" * len(found)]
        lines.append(f"| {told(units, reach)} | {' | '.join(f'{error:,.3g}' for error in found.values())} |")
    return "\n".join(lines)


def gains() -> str:
    """Return how much smaller mean square errors are than if all places are protected, by the share of the axis.

    10,000 synthetic units; ranges of 1,000 cells.
    """
    random = np.random.default_rng()
    units = made_up()[0]
    length, places = units.high - units.low, units.places
    lines = [
        "| delta | 1 / delta^2 | a sorted point | after isotonic regression | a range, ours | sums over cells |",
        "|--:|--:|--:|--:|--:|---|",
    ]

    def squares(delta: float) -> tuple[float, float, float, str]:
        reach = delta * length
        noise = random.laplace(scale=reach, size=(SETS, len(places)))
        made = [points.published(places, reach=reach, epsilon=1.0, group=1, random=random) for _ in range(SETS)]
        plan = plan_of(1000, max(1, round(delta * 999)))
        mean = variance(plan)
        return float(np.mean(noise**2)), float(np.mean((np.stack(made) - places) ** 2)), mean, name_of(plan)

    whole = squares(1.0)
    for delta in (1.0, 0.5, 0.1, 0.02, 0.01, 0.005, 0.002, 0.001):
        one = squares(delta)
        gained = " | ".join(f"{a / b:,.3g}" for a, b in zip(whole[:3], one[:3], strict=True))
        lines.append(f"| {delta:g} | {1 / delta**2:,.0f} | {gained} | {one[3]} |")
    return "\n".join(lines)


def middle_crossing(made: Cells, share: float) -> Floats:
    """Return the middle of the places where the balance first and last crosses zero."""
    total = made.counts.sum(axis=1, keepdims=True)
    above = np.concatenate([np.zeros_like(total), np.cumsum(made.counts, axis=1)], axis=1) - share * total
    rows, last = np.arange(len(above)), above.shape[1] - 1
    found = np.zeros(len(above))
    for end in (np.argmax(above >= 0, axis=1), np.minimum(last + 1 - np.argmax(above[:, ::-1] < 0, axis=1), last)):
        begins, ends = above[rows, end - 1], above[rows, end]
        part = np.clip(-begins / np.where(ends > begins, ends - begins, 1.0), 0.0, 1.0)
        found += (made.edges[end - 1] + part * (made.edges[end] - made.edges[end - 1])) / 2
    return found


def crossings() -> str:
    """Return a table of errors of quantiles if noise causes many crossings, by two estimates.

    The estimates are the middle of the crossings, and the crossing of the isotonic regression.
    """
    random = np.random.default_rng()
    lines = ["| units | cells | share | middle of the first and the last | isotonic |", "|---|--:|--:|--:|--:|"]
    for units in (stops(1), stops(28)):
        for parts in (1, 2, 8):
            reach = 0.001
            made = cells_of(
                units, reach=reach, step=reach / parts, epsilon=1.0, runs=RUNS, random=random, of="prefixes"
            )
            for share in (0.1, 0.5):
                old = off(middle_crossing(made, share), units, share)
                new = off(made.quantile(share).value, units, share)
                lines.append(f"| {units.name} | {made.counts.shape[1]} | {share} | {old:,.3g} m | {new:,.3g} m |")
    return "\n".join(lines)

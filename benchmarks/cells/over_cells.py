"""Gain of sums over ordered cells for random ranges, compared with lower bounds; and a grid of 1,000 x 1,000 cells.

Variances are exact. All releases are levels of 52 windows at epsilon = 1, of entries that change at most 4 times.
"""

import resource
import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh

from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.cells.offer import CellTerms
from privacy.cells.space import Axis, Space
from privacy.cells.table import strategies
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.noise.kinds import Mechanism
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.series import Series
from transforms.release.linear_chunk import step

WINDOWS, CHANGES = 52, 4
LEVEL = Series(kind="level")
DELTA: dict[Mechanism, float] = {"laplace": 0.0, "gaussian": 1e-9}
ONE_AXIS: tuple[str, ...] = ("each", "prefix", "tree", "optimised")
MOST_DENSE = 2048
"""Cells up to which singular values are computed."""


@dataclass(frozen=True)
class Row:
    """One table row: mean variances of ranges under a strategy."""

    cells: int
    mechanism: Mechanism
    strategy: str
    gain: float
    above: float | None


def plan_of(space: Space, name: str, mechanism: Mechanism, windows: int) -> Plan:
    """Return the plan of one query whose cells are for ranges.

    Args:
        space: axes of the cells.
        name: the strategy over cells.
        mechanism: the kind of noise.
        windows: number of windows.
    """
    demand = Demand(
        name="people",
        measure=Measure(kind="count"),
        cells=int(np.prod([axis.cells for axis in space])),
        axes=space,
        series=(LEVEL,),
        over=CellChoice(name=name, workload="ranges"),
    )
    return make_plan(
        [demand],
        promise=Promise(constraint=AtMost(CHANGES), window=1, windows=windows, owner=False),
        budget=Budget(epsilon=1.0, delta=DELTA[mechanism]),
        mechanism=mechanism,
        accounting=None,
    )


def lower_bound(cells: int) -> float:
    """Return the least mean variance of all ranges under any matrix with columns of L2 norm 1 (Li and Miklau 2013).

    A column's L1 norm is at least its L2 norm, so the bound also holds for Laplace noise, but is loose there.
    """
    place = np.arange(1, cells + 1)
    gram = np.minimum.outer(place, place) * np.minimum.outer(cells + 1 - place, cells + 1 - place)
    values = eigvalsh(gram.astype(float))
    singular = np.sqrt(np.maximum(values, 0)).sum()
    return float(singular**2 / cells / (cells * (cells + 1) / 2))


def rows(cells: int, mechanism: Mechanism) -> list[Row]:
    """Return a row for each strategy over cells, with the best strategy over time for it."""
    space = (Axis(cells=cells, ordered=True),)
    power = 1 if mechanism == "laplace" else 2
    found = []
    alone = np.mean(stddev(plan_of(space, "each", mechanism, WINDOWS), 0, LEVEL, WINDOWS) ** 2)
    for name in ONE_AXIS:
        plan = plan_of(space, name, mechanism, WINDOWS)
        over = plan.linear(0)[0].over
        assert over is not None
        variance = np.mean(stddev(plan, 0, LEVEL, WINDOWS) ** 2)
        above = None
        if cells <= MOST_DENSE:  # of one window and one change, to which the bound applies
            (once,) = strategies(
                CellTerms(space=space, choice=CellChoice(name=name, workload="ranges"), power=power, changes=1)
            )
            radius = once.corners(power)[-1][0]
            above = radius ** (2 // power) * once.average() / lower_bound(cells)
        found.append(Row(cells, mechanism, over.name, float(alone / variance), above))
    return found


def table() -> str:
    lines = [
        "| cells | noise | sums over cells | variance divided by, compared with separate cells "
        "| multiple of the lower bound |",
        "|--:|---|---|--:|--:|",
    ]
    for cells in (102, 1024, 100_000):
        for mechanism in DELTA:
            for row in rows(cells, mechanism):
                above = "-" if row.above is None else f"{row.above:.2f}"
                lines.append(f"| {row.cells:,} | {row.mechanism} | {row.strategy} | {row.gain:.2f} | {above} |")
    return "\n".join(lines)


def grid(windows: int, mechanism: Mechanism) -> str:
    """Return time, memory and errors of 1,000 x 1,000 cells, released window by window as a run does."""
    space = (Axis(cells=1000, ordered=True), Axis(cells=1000, ordered=True))
    began = time.perf_counter()
    plan = plan_of(space, "auto", mechanism, WINDOWS)
    (released,) = plan.linear(0)
    assert released.over is not None
    planned = time.perf_counter() - began
    held, random = None, np.random.default_rng(1)
    for window in range(windows):
        rows = 2 if window == 0 else 1
        held, protected = step(released, held, random.integers(0, 3, (1, rows, released.over.cells)))
        assert protected.sums[0][0].shape == (1, released.over.cells)
    seconds = time.perf_counter() - began - planned
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    over, box = released.over, float(np.sqrt(np.mean(stddev(plan, 0, LEVEL, WINDOWS) ** 2)))
    alone = float(np.sqrt(np.mean(stddev(plan_of(space, "each", mechanism, WINDOWS), 0, LEVEL, WINDOWS) ** 2)))
    return (
        f"{mechanism}: {over.name}, {over.nodes:,} nodes; over time {released.strategy.name}.\n"
        f"Planned in {planned:.1f} s; {windows} windows in {seconds:.0f} s; peak {peak:.2f} GB.\n"
        f"A random box has a root mean square error of {box:,.0f}; with noise for each cell alone, {alone:,.0f}."
    )

"""Gain of a distance for ranges: the planner's plans for places up to a distance, compared with all places.

Neighbours differ in the place of one unit. `factors` computes Fang and Chang's factors: the mean variance of a random
range if all places are protected, divided by the same if only places up to a distance are. Both use the best strategy
that the planner finds. Levels of one window, epsilon = 1, Laplace noise; variances are exact.
"""

from functools import lru_cache

import numpy as np

from privacy.accounting.accounting import Budget
from privacy.cells.averages import Workload
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis
from privacy.constraint import AtOnce
from privacy.measure import Measure
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.choice import Choice

LEVEL = Series(kind="level")


@lru_cache
def plan_of(cells: int, apart: int, *, epsilon: float = 1.0, name: str = "auto", workload: Workload = "ranges") -> Plan:
    """Return the plan of one window in which a unit is in one cell and its place is protected.

    Args:
        cells: number of cells along the axis.
        apart: the distance in cells up to which its place is protected. With 0, its presence is protected.
        epsilon: the budget.
        name: the strategy over cells.
        workload: what the cells are for.
    """
    demand = Demand(
        name="map",
        measure=Measure(kind="count"),
        cells=cells,
        axes=(Axis(cells=cells, ordered=True),),
        series=(LEVEL,),
        choice=Choice(name="direct"),
        over=CellChoice(name=name, workload=workload),
        apart=(apart,) if apart else (),
    )
    return make_plan(
        [demand],
        promise=Promise(
            constraint=AtOnce(),
            window=1,
            windows=None,
            owner=False,
            protects=Span(1, (("x", str(apart)),) if apart else ()),
        ),
        budget=Budget(epsilon=epsilon, delta=0.0),
        mechanism="laplace",
        accounting=None,
    )


def name_of(plan: Plan) -> str:
    over = plan.linear(0)[0].over
    return "each" if over is None else over.name


def variance(plan: Plan) -> float:
    """Return the mean variance over the workload."""
    return float(np.mean(stddev(plan, 0, LEVEL, 1) ** 2))


def factors() -> str:
    lines = [
        "| cells | distance, cells | sums over cells | RMSE | RMSE, all places | ratio of variances |",
        "|--:|--:|---|--:|--:|--:|",
    ]
    for cells in (64, 256, 1024):
        far = plan_of(cells, cells - 1)
        for apart in (1, 2, 4, 8, 16, 64):
            if apart < cells:
                near = plan_of(cells, apart)
                gain = variance(far) / variance(near)
                lines.append(
                    f"| {cells:,} | {apart} | {name_of(near)} | {variance(near) ** 0.5:.1f} "
                    f"| {variance(far) ** 0.5:.1f} ({name_of(far)}) | {gain:.1f} |"
                )
    return "\n".join(lines)

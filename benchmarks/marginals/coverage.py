"""How often the intervals of totals, subtotals and inner nodes hold the exact number, in many independent releases."""

import numpy as np

from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Series
from privacy.strategies.choice import Choice
from transforms.aggregation.hierarchy_key import Node, hierarchy_of
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline, planned
from transforms.release.estimated_numbers import estimates_of
from transforms.release.linear_chunk import add_noise
from transforms.release.marginal_tables import marginal_estimates, marginal_name, marginals_of, over_rows

RELEASES = 2_000
CHANGE = Series(kind="change")
TOWNS = hierarchy_of((Node("A", (Node(1), Node(2))), Node("B", (Node(3),))), root="all")


def table() -> str:
    """Return the share of intervals that hold, for each table; with one row it deviates by 0.5 % on average."""
    lines = ["| table | rows | Laplace | Gaussian |", "|---|--:|--:|--:|"]
    shares = [_shares(delta) for delta in (0.0, 1e-9)]
    for (name, rows), one, other in zip(_names(), *shares, strict=True):
        lines.append(f"| {name} | {rows} | {one:.1%} | {other:.1%} |")
    return "\n".join(lines)


def _query() -> Query:
    return Query(
        name="people",
        measure=Measure(kind="count"),
        by=(("sex", ("f", "m")), ("age", OrderedKey(start=0, step=10, steps=6)), ("town", (1, 2, 3))),
        publish=(CHANGE,),
        marginals=((), ("sex",), ("age",)),
        hierarchies=(("town", TOWNS),),
        over=CellChoice(marginals=((), (0,), (1,)), workload="levels"),
        strategy=Choice(name="disjoint"),
    )


def _names() -> list[tuple[str, int]]:
    query = _query()
    leaf = np.zeros((1, query.cells))
    names = [(marginal_name(query, one), over_rows(leaf, query, one.levels).shape[1]) for one in marginals_of(query)]
    return [("cells", query.cells), *names]


def _shares(delta: float) -> list[float]:
    """Return for the cells and each marginal the share of intervals that hold the exact number, over all rows.

    Windows of separate sums have independent noise: each is a release.
    """
    query, constraint = _query(), AtMost(1)
    plan = make_plan(
        [query.demand],
        promise=Promise(constraint=constraint, window=1, windows=RELEASES, owner=False),
        budget=Budget(epsilon=1.0, delta=delta),
        mechanism="gaussian" if delta else "laplace",
        accounting=None,
    )
    timeline = Timeline(start=0, every=1, windows=RELEASES)
    aggregation = Aggregation(queries=planned((query,), plan), timeline=timeline, constraint=constraint)
    (released,) = plan.linear(0, "net")
    ((sums,),) = add_noise(np.zeros((1, 1 + RELEASES, query.cells), dtype=np.int64), released).sums
    tables = [estimates_of(CHANGE, [sums], aggregation, released)]
    tables += [marginal_estimates(CHANGE, [sums], aggregation, released, one, sums) for one in marginals_of(query)]
    return [float(((rows.ci_low <= 0) & (rows.ci_high >= 0)).mean()) for rows in tables]

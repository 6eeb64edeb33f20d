"""Variances of marginals and trees compared with the least possible ones, with HDMM's class and with single cells."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from benchmarks.marginals.optimum import error_of, least_possible
from privacy.accounting.accounting import Budget
from privacy.cells.balance import Asked, balanced, weighing
from privacy.cells.choice import CellChoice
from privacy.cells.marginals import Kept
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.noise.kinds import Mechanism
from privacy.planning.linear_part import LinearPart
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Series
from transforms.aggregation.hierarchy_key import Node, hierarchy_of, values_of
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import Marginal, marginal_name, marginals_of, noise_of_rows

SCHEMAS = {
    "Adult": (9, 16, 7, 5, 2),
    "CPS": (4, 7, 2, 5),
    "CPS of ResidualPlanner": (50, 100, 7, 4, 2),
    "eight keys of two values": (2,) * 8,
}
"""Numbers of values of each key. Adult: work class, education, marital status, race, sex of UCI's Adult. CPS: marital
status, household, sex, race of the Current Population Survey. The third is in the authors' code
(github.com/dkifer/ResidualPlanner): income, age, marital status, race, sex."""

SMALL = 1e-9
"""Share of the cells in the error if marginals alone count; the cells are published in any case."""

LEVEL = Series(kind="level")
MECHANISMS: tuple[Mechanism, ...] = ("laplace", "gaussian")


def keeping(sizes: Sequence[int], axes: int) -> list[Kept]:
    """Return all marginals that keep a number of axes among these."""
    return [kept for size in sizes for kept in combinations(range(axes), size) if size < axes]


def variances() -> str:
    """Compare sums of variances of all rows, Gaussian noise, one window and one change."""
    lines = ["| keys | marginals | rows | variance, marginals alone | with the cells | single cells |"]
    lines.append("|---|---|--:|--:|--:|--:|")
    for name, shape in SCHEMAS.items():
        for sizes in ((1,), (2,), (3,), (1, 2, 3), (0, 1, 2, 3)):
            marginals = keeping(sizes, len(shape))
            alone, together = (_compared(shape, marginals, share) for share in (SMALL, 1.0))
            rows = sum(math.prod(shape[axis] for axis in kept) for kept in marginals)
            what = "0 to 3 keys" if 0 in sizes else "1 to 3 keys" if len(sizes) > 1 else f"{sizes[0]} of {len(shape)}"
            ratios = f"{alone[0]:.4f} | {together[0]:.4f} | {alone[1]:.1f}"
            lines.append(f"| {name} | {what} | {rows:,} | {ratios} |")
    return "\n".join(lines)


def _compared(shape: tuple[int, ...], marginals: Sequence[Kept], cells: float) -> tuple[float, float]:
    """Return the variance of weighted blocks, and that of single cells, as multiples of the least possible one."""
    tables = (tuple(range(len(shape))), *marginals)
    rows = [float(math.prod(shape[axis] for axis in kept)) for kept in tables]
    asked = Asked(shape, tables, (cells * rows[0], *rows[1:]))
    found, least = balanced(asked, 2, 1), least_possible(asked)
    single = weighing(asked).error(np.array([1.0, *np.zeros(len(marginals))]))
    return error_of(found, asked) / least, single / least


def windows() -> str:
    """Compare one release of levels over 365 windows, entries with at most 4 changes, epsilon = 1, delta = 1e-9."""
    lines = ["| query | noise | numbers | stddev | single cells | variance divided by |", "|---|---|---|--:|--:|--:|"]
    for name, query in (("Adult", _adult()), ("tracts", _tracts())):
        for mechanism in MECHANISMS:
            (ours, grid), (single, _) = (
                part_of(query, over, mechanism=mechanism, windows=365) for over in (query.over, CellChoice())
            )
            for table, own, alone in zip(_tables(query), _means(query, ours), _means(query, single), strict=True):
                text = marginal_name(query, table) or "cells"
                deviations = f"{grid * own**0.5:,.1f} | {grid * alone**0.5:,.1f}"
                lines.append(f"| {name} | {mechanism} | {text} | {deviations} | {alone / own:.2f} |")
    return "\n".join(lines)


def _adult() -> Query:
    names = ("education", "marital", "race", "sex", "work")
    sizes = (16, 7, 5, 2, 9)
    return Query(
        name="people",
        measure=Measure(kind="count"),
        by=tuple((name, tuple(range(size))) for name, size in zip(names, sizes, strict=True)),
        publish=(LEVEL,),
        marginals=((), *((name,) for name in names), ("education", "sex")),
        over=CellChoice(marginals=((), *((axis,) for axis in range(5)), (0, 3))),
    )


def _tracts() -> Query:
    """Return a query of 85,374 tracts in 3,162 counties and 51 states, with sizes as uneven as those of the US."""
    random = np.random.default_rng(2020)
    counties = random.multinomial(3_162 - 51, random.dirichlet(np.full(51, 2.0))) + 1
    tracts = random.multinomial(85_374 - 3_162, random.dirichlet(np.full(3_162, 0.4))) + 1
    number, states, place = 0, [], 0
    for state, count in enumerate(counties.tolist()):
        below = []
        for county in range(count):
            below.append(Node(f"county {state}.{county}", tuple(Node(number + n) for n in range(tracts[place]))))
            number, place = number + int(tracts[place]), place + 1
        states.append(Node(f"state {state}", tuple(below)))
    return Query(
        name="tracts",
        measure=Measure(kind="count"),
        by=(("place", values_of(states)),),
        publish=(LEVEL,),
        hierarchies=(("place", hierarchy_of(states, root="all")),),
        over=CellChoice(workload="levels"),
    )


def part_of(query: Query, over: CellChoice, *, mechanism: Mechanism, windows: int) -> tuple[LinearPart, float]:
    """Return the part of the levels of a query, and its grid: at most 4 changes, epsilon = 1, delta = 1e-9."""
    plan = make_plan(
        [replace(query, over=over).demand],
        promise=Promise(constraint=AtMost(4), window=1, windows=windows, owner=False),
        budget=Budget(epsilon=1.0, delta=1e-9 if mechanism == "gaussian" else 0.0),
        mechanism=mechanism,
        accounting=None,
    )
    return plan.linear(0, "net")[0], plan.demands[0].measure.components[0].grid


def _tables(query: Query) -> list[Marginal]:
    return [Marginal((0,) * len(query.by)), *marginals_of(query)]


def _means(query: Query, part: LinearPart) -> Iterator[float]:
    """Yield the mean variance of the rows of each table over all windows."""
    in_time = float(part.strategy.variances(LEVEL, 365).mean()) * part.noise[0].variance
    for table in _tables(query):
        yield in_time * float(noise_of_rows(query, part.over, [table.levels]).squares.mean())

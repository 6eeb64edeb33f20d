"""Variances of marginals and trees compared with the least possible ones, with HDMM's class and with single cells."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from benchmarks.marginals.hdmm import optimised
from benchmarks.marginals.optimum import least_possible
from privacy.accounting.accounting import Budget
from privacy.cells.balance import Asked, balanced, weighing
from privacy.cells.boxes import of_boxes
from privacy.cells.choice import CellChoice
from privacy.cells.intersections import Kept
from privacy.cells.residual_weights import marginals_over
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.noise.kinds import NOISE, Mechanism
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
    lines = ["| keys | marginals | rows | HDMM | marginals alone | with the cells | blocks alone | single cells |"]
    lines.append("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, what, alone in _asked(SMALL):
        together = replace(alone, shares=(alone.shares[0] / SMALL, *alone.shares[1:]))
        least = least_possible(alone)
        ratios = [
            optimised(_without_cells(alone), 2) / least,
            planned_error(alone, "gaussian") / least,
            planned_error(together, "gaussian") / least_possible(together),
            balanced(alone, 2, 1)[1] / least,
        ]
        single = weighing(alone).error(np.array([1.0, *np.zeros(len(alone.kept) - 1)])) / least
        texts = " | ".join(f"{ratio:.4f}" for ratio in ratios)
        lines.append(f"| {name} | {what} | {_rows(alone):,} | {texts} | {single:.1f} |")
    return "\n".join(lines)


def peers() -> str:
    """Compare root mean square errors of all rows of marginals at a sensitivity of 1 and noise of variance 1."""
    lines = ["| keys | marginals | ResidualPlanner | HDMM | Slackwater | HDMM, Laplace | Slackwater, Laplace |"]
    lines.append("|---|---|--:|--:|--:|--:|--:|")
    for name, what, alone in _asked(SMALL):
        errors = [
            least_possible(_without_cells(alone)),
            optimised(_without_cells(alone), 2),
            planned_error(alone, "gaussian"),
            optimised(_without_cells(alone), 1),
            planned_error(alone, "laplace"),
        ]
        texts = " | ".join(f"{math.sqrt(error / _rows(alone)):.3f}" for error in errors)
        lines.append(f"| {name} | {what} | {texts} |")
    return "\n".join(lines)


def _asked(cells: float) -> Iterator[tuple[str, str, Asked]]:
    """Yield each schema with each set of its marginals: each row counts equally, and one of the cells `cells`."""
    for name, shape in SCHEMAS.items():
        for sizes in ((1,), (2,), (3,), (1, 2, 3), (0, 1, 2, 3)):
            tables = (tuple(range(len(shape))), *keeping(sizes, len(shape)))
            rows = [float(math.prod(shape[axis] for axis in kept)) for kept in tables]
            what = "0 to 3 keys" if 0 in sizes else "1 to 3 keys" if len(sizes) > 1 else f"{sizes[0]} of {len(shape)}"
            yield name, what, Asked(shape, tables, (cells * rows[0], *rows[1:]))


def _rows(asked: Asked) -> int:
    """Return the number of rows of all marginals."""
    return sum(asked.rows(kept) for kept in asked.kept[1:])


def _without_cells(asked: Asked) -> Asked:
    return Asked(asked.shape, asked.kept[1:], asked.shares[1:])


def planned_error(asked: Asked, mechanism: Mechanism) -> float:
    """Return the weighted sum of variances of rows under the planner's choice, for one change and noise of variance 1.

    Variances are those that a release states for each row. The norm is the sensitivity that the planner charges.
    """
    power = NOISE[mechanism].power
    choice = CellChoice(marginals=asked.kept[1:], shares=asked.shares)
    best = marginals_over(asked.shape, choice, power=power, changes=1, blocks=False)[0]
    boxes = [[None if axis in kept else (0, size) for axis, size in enumerate(asked.shape)] for kept in asked.kept]
    norm = max(corner[0] for corner in best.matrix.corners(power))
    return float(np.array(asked.shares) @ of_boxes(boxes, [best]).squares) * norm ** (2 // power)


def windows() -> str:
    """Compare one release of levels over 365 windows, entries with at most 4 changes, epsilon = 1, delta = 1e-9."""
    lines = ["| query | noise | numbers | stddev | single cells | variance divided by |", "|---|---|---|--:|--:|--:|"]
    for name, query in (("Adult", _adult()), ("tracts", tracts())):
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


def tracts() -> Query:
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

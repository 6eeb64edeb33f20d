"""A page with a chart of each kind, from numbers with noise of the plan of each query, but without a pipeline."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.pages import html
from pipelines.pages.charts import Times, chart_document
from pipelines.pages.numbers import Numbers
from pipelines.pages.outline import outline_of
from pipelines.pages.pictures.message import message
from privacy.accounting.accounting import Budget
from privacy.adaptive.bd import Bd
from privacy.answers.ranges import half_widths
from privacy.cells.boxes import of_boxes
from privacy.cells.choice import CellChoice
from privacy.constraint import AtMost, AtOnce
from privacy.estimates import CONFIDENCE
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.protection import Span
from privacy.series import Series
from transforms.aggregation.hierarchy_key import Node, hierarchy_of, values_of
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import by_marginal, marginal_name, marginals_of, over_rows
from transforms.release.quantile_tables import by_quantile

DAY = 86_400_000_000
WEEKS = Times(start=1_767_225_600_000_000, window=7 * DAY)  # 2026-01-01
LEVEL, CHANGE = Series(kind="level"), Series(kind="change")
WINDOWS = 12
AGES = OrderedKey(start=0, step=5, steps=20)
LAT, LONG = (OrderedKey(start=44886, step=14, steps=12, digits=3), OrderedKey(start=-93336, step=16, steps=9, digits=3))
STORM = 7
"""Window in which the map has its largest cell."""

COUNT = Measure(kind="count")
TOWNS = ("Munich", "Nuremberg", "Hof", "Ulm", "Kassel", "Hanau")
TOP = (
    Node("Bavaria", (Node("Munich"), Node("Nuremberg"), Node("Hof"))),
    Node("Ulm"),
    Node("Hesse", (Node("Kassel"), Node("Hanau"))),
)
WARDS = tuple(f"ward {number:02}" for number in range(1, 31))


def plan_of(query: Query, *, gaussian: bool = False, promise: Promise | None = None) -> Plan:
    return make_plan(
        [query.demand],
        promise or Promise(constraint=AtMost(2), window=WEEKS.window, windows=WINDOWS, owner=False),
        budget=Budget(epsilon=1.0, delta=1e-6 if gaussian else 0.0),
        mechanism="gaussian" if gaussian else "laplace",
        accounting=None,
    )


def numbers_of_truth(
    query: Query, plan: Plan, truth: np.ndarray, repeated: np.ndarray | None = None, *, whole: Query | None = None
) -> Numbers:
    """Return noisy numbers with their intervals.

    Args:
        query: The query with the cells.
        plan: Its plan.
        truth: Exact numbers, [windows, cells].
        repeated: Which windows repeat the one before.
        whole: The query that the plan is of, if the cells are sums of its cells.
    """
    (series,), generator = query.publish, np.random.default_rng(7)
    part = plan.of_series(0, series)
    sampled = [] if repeated is None else (~repeated).tolist()
    sides = (
        [
            [
                None if len(key) == len(own) else (0, len(own))
                for (_, key), (_, own) in zip(query.by, whole.by, strict=True)
            ]
        ]
        if whole
        else [[None] * len(query.by)]
    )
    if query.ordered and whole is None:
        sides = [[(0, 1) if name in dict(query.ordered) else None for name, _ in query.by]]
    of = of_boxes(sides, part.along)
    half = np.array(
        [
            np.nan if one is None else half_widths(*one, of, CONFIDENCE)[0] * plan.demands[0].measure.components[0].grid
            for one in part.noise_in_time(series, len(truth), sampled)
        ]
    )
    noise = generator.normal(size=truth.shape) * np.nan_to_num(half)[:, None] / 2
    value = truth + np.round(noise)
    if repeated is not None:
        for window in np.flatnonzero(repeated):
            value[window] = value[window - 1]
    total = None
    if whole is None and not query.marginals and not query.hierarchies and not query.measure.distinct:
        weights, wanted = np.ones(query.cells), np.arange(len(truth))
        widths = part.sum_errors(series, weights, wanted, None, sampled)[1] * plan.demands[0].measure.components[0].grid
        total = value.sum(axis=1), widths
    return Numbers(
        series=series,
        value=value,
        low=value - half[:, None],
        high=value + half[:, None],
        total=total,
        repeated=repeated,
    )


def bell(cells: int, middle: float, width: float) -> np.ndarray:
    found: np.ndarray = np.exp(-(((np.arange(cells) - middle) / width) ** 2))
    return found


def ages() -> tuple[Query, Plan, np.ndarray]:
    query = Query(
        name="ages",
        measure=COUNT,
        by=(("age", AGES),),
        publish=(LEVEL,),
        over=CellChoice(name="tree", branching=4, workload="ranges"),
    )
    truth = np.array([3000 * bell(22, 7 + window / 4, 4) for window in range(WINDOWS)]).round()
    return query, plan_of(query), truth


def stops(over: CellChoice = CellChoice(), *, gaussian: bool = False) -> tuple[Query, Plan, np.ndarray]:  # noqa: B008
    query = Query(
        name="stops",
        measure=COUNT,
        by=(("problem", ("traffic", "suspicious")), ("lat", LAT), ("long", LONG)),
        publish=(CHANGE,),
        over=over,
    )
    one = np.multiply.outer(bell(14, 8, 3), bell(11, 4, 2)) * 400
    truth = np.array([[one * (3 if window == STORM else 1), one / 4] for window in range(WINDOWS)]).round()
    return query, plan_of(query, gaussian=gaussian), truth.reshape(WINDOWS, -1)


def documents() -> list[dict[str, Any]]:
    """Return the data of charts of all kinds."""
    made: list[tuple[Query, list[Numbers], Plan, str, tuple[float, float] | None]] = []

    query, _, truth = ages()
    query = replace(query, over=CellChoice())
    plan = plan_of(query)
    made.append((query, [numbers_of_truth(query, plan, truth)], plan, "", None))
    query, plan, truth = stops()
    made.append((query, [numbers_of_truth(query, plan, truth)], plan, "", None))

    query = replace(query, name="boxes", over=CellChoice(name="quadtree", workload="ranges"))
    plan = plan_of(query, gaussian=True)
    made.append((query, [numbers_of_truth(query, plan, truth)], plan, "", None))

    whole = Query(name="medians", measure=COUNT, by=(("age", AGES),), publish=(LEVEL,), quantiles=(0.25, 0.5, 0.75))
    plan, query = plan_of(whole), by_quantile(whole)
    value = np.array([[20, 34, 49]]) + np.arange(WINDOWS)[:, None] * 0.8
    quantiles = Numbers(series=LEVEL, value=value, low=value - 1.5, high=value + 1.5, total=None)
    made.append((query, [quantiles], plan, "quantiles", (0.0, 100.0)))

    query = Query(name="wards", measure=COUNT, by=(("ward", WARDS),), publish=(LEVEL,))
    plan = plan_of(query)
    truth = np.outer(np.ones(WINDOWS), 4000 / np.arange(1, 31)).round()
    made.append((query, [numbers_of_truth(query, plan, truth)], plan, "", None))

    query = Query(
        name="people",
        measure=COUNT,
        by=(("region", ("north", "south", "east")), ("sex", ("f", "m"))),
        publish=(LEVEL,),
        marginals=((), ("region",), ("sex",)),
    )
    made += with_marginals(query, np.outer(np.ones(WINDOWS), [2000, 1800, 900, 950, 60, 10]))
    query = Query(
        name="places",
        measure=COUNT,
        by=(("town", values_of(TOP)),),
        publish=(LEVEL,),
        hierarchies=(("town", hierarchy_of(TOP, root="all")),),
        over=CellChoice(workload="levels"),
    )
    made += with_marginals(query, np.outer(np.linspace(1, 2, WINDOWS), [1500, 500, 80, 1200, 300, 200]).round())
    query = replace(
        query,
        name="jobs",
        by=(("sex", ("f", "m")), *query.by),
        marginals=(("town",),),
        over=CellChoice(workload="levels", marginals=((1,),)),
    )
    made += with_marginals(query, np.outer(np.ones(WINDOWS), [900, 90, 40, 800, 0, 10, 60, 50, 40, 70, 80, 20]))

    query = Query(name="rare", measure=COUNT, by=(("kind", ("a", "b", "c")),), publish=(LEVEL,), adaptive=Bd())
    plan = plan_of(
        query,
        promise=Promise(
            constraint=AtOnce(1), window=WEEKS.window, windows=WINDOWS, owner=False, protects=Span(4 * WEEKS.window)
        ),
    )
    repeated = np.array([window not in (0, 4, 9) for window in range(WINDOWS)])
    made.append(
        (query, [numbers_of_truth(query, plan, np.outer(np.arange(WINDOWS), [300, 200, 10]), repeated)], plan, "", None)
    )

    query = Query(
        name="wait", measure=Measure(kind="mean", low=0, high=90), column="wait", by=(("age", AGES),), publish=(LEVEL,)
    )
    value = np.outer(np.ones(WINDOWS), np.linspace(10, 60, 22))
    half = np.linspace(2, 50, 22)
    made.append(
        (
            query,
            [Numbers(series=LEVEL, value=value, low=value - half, high=value + half, total=None)],
            plan_of(query),
            "",
            (0.0, 90.0),
        )
    )

    query = Query(name="all", measure=COUNT, publish=(LEVEL,))
    plan = plan_of(query)
    truth = np.linspace(5000, 6000, WINDOWS)[:, None].round()
    truth[1], truth[STORM] = truth[0], 9000
    made.append((query, [numbers_of_truth(query, plan, truth)], plan, "", None))
    return [
        chart_document(
            query,
            numbers,
            plan,
            times=WEEKS,
            queries=len(made),
            of=of,
            within=within,
            name=f"{query.name}, {of}" if of else "",
        )
        for query, numbers, plan, of, within in made
    ]


def with_marginals(query: Query, truth: np.ndarray) -> list[tuple[Query, list[Numbers], Plan, str, None]]:
    """Return the numbers of a query, and those of its marginals or inner nodes."""
    plan = plan_of(query)
    cells = numbers_of_truth(query, plan, truth)
    found = [(query, [replace(cells, total=None)], plan, "", None)]
    for marginal in marginals_of(query):
        rows = by_marginal(query, marginal)
        value = over_rows(cells.value, query, marginal.levels)
        half = (cells.high - cells.low)[:, :1]
        one = Numbers(series=LEVEL, value=value, low=value - half, high=value + half, total=None)
        found.append((rows, [one], plan, marginal_name(query, marginal), None))
    return found


def half_width(document: dict[str, Any], window: int, box: list[tuple[int, int]], *, every: bool = False) -> float:
    """Return the half width of the interval of a sum, as `assets/pictures.js` does; `every`: of all listed values."""
    errors, sums = (
        document["series"][0]["over" if every else "errors"],
        document["picture"]["over" if every else "sums"],
    )
    table, in_time, share = errors["noise"][window]
    space, table = sums["spaces"][errors["space"]], sums["tables"][table]
    sizes = [len(axis["labels"]) for axis in document["picture"]["axes"]]
    places = [list(combinations(range(size + 1), 2)).index(side) for size, side in zip(sizes, box, strict=True)]
    largest = 1.0
    if "boxes" in table:
        return float(table["boxes"][places[0]])
    if "bounds" in space:
        sides = [one[last] - one[first] for one, (first, last) in zip(space["bounds"], box, strict=True)]
        squares = space["times"] * np.prod(sides)
        if "exact" in table:
            return float(table["exact"][int(squares)])
        largest = 1 / squares
    elif "axes" in space:
        squares = np.prod([axis["squares"][at] for axis, at in zip(space["axes"], places, strict=True)])
        largest = np.prod([axis["largest"][at] for axis, at in zip(space["axes"], places, strict=True)])
    else:
        squares = space["boxes"][places[0] * sizes[1] * (sizes[1] + 1) // 2 + places[1]]
    factor = [half for least, half in table["spread"] if least == 1 or least <= 1 / (share * largest) + 1e-9][-1]
    return float(np.sqrt(in_time * squares) * factor)


def write_page(path: Path, drawn: Sequence[dict[str, Any]], outline: Path | None = None) -> None:
    """Write a page with charts, as `slackwater report` does."""
    sections = [
        html.section(
            f"query-{place}",
            one["name"],
            [
                html.drawn(place, " ".join(message(one, drawn))),
                *([html.compared(place)] if "shares" in one.get("picture", {}) else []),
            ],
        )
        for place, one in enumerate(drawn)
    ]
    kinds = dict.fromkeys(one["picture"]["kind"] for one in drawn if "picture" in one)
    data: dict[str, Any] = {"queries": drawn}
    if outline is not None:
        data["outline"] = outline_of(outline)
    path.write_text(html.page("all kinds", sections, data=data, pictures=kinds))


def write_outline(path: Path) -> None:
    """Write a polygon around the middle of the map."""
    ring = [[-93.32, 44.9], [-93.21, 44.9], [-93.21, 45.04], [-93.27, 45.0], [-93.32, 45.04], [-93.32, 44.9]]
    shape = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [shape]}))

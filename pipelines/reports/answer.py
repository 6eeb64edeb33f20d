"""`slackwater answer`: any further sum over published cells, with its standard deviation and 95 % interval.

It reads the public side of a release and nothing else: the answer is made from what is published, and costs no privacy.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.reports.answer_of_samples import refuse_uneven, spreads_of_samples
from pipelines.reports.published import Published, asked, naming, published
from pipelines.spec.durations import duration_text
from pipelines.spec.times import moment_text
from privacy.answers.sums import Weights, over_cells, spread, weights_of
from privacy.counted import counted
from privacy.estimates import CONFIDENCE
from privacy.noise.distributions import DiscreteGaussian, NoiseDistribution, widened
from privacy.planning.plan import Plan, Released
from privacy.series import Series
from privacy.smoothing.noise_covariance import noise_weights
from transforms.aggregation.cells_where import cells_where
from transforms.aggregation.expression import Condition
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.release.published_columns import SAMPLED, TIME

FREE = "made from what is published, so it costs no privacy"


def answer(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "answer")
    release = published(arguments.spec)
    named = {name: getattr(arguments, name) for name in ("query", "kind", "width", "where", "window", "minus")}
    try:
        with naming(release.folder):
            query, series, table = asked_of(release, **named)
    except SpecError as error:
        raise SpecError(f"--{error}" if str(error).startswith("where") else str(error)) from None
    cells = int(np.count_nonzero(taken(release, query, arguments.where)))
    document: dict[str, Any] = {
        "release": release.spec.release,
        "query": query.name,
        "kind": series.kind,
        "where": arguments.where,
        "cells": cells,
        "minus": None if arguments.minus is None else moment_text(arguments.minus),
        "answers": [{**row, **_times(row)} for row in table.to_pylist()],
    }
    return document, _text(document)


def asked_of(
    release: Published,
    *,
    query: str | None,
    kind: str | None,
    width: int | None,
    where: str | None,
    window: int | None,
    minus: int | None,
) -> tuple[Query, Series, pa.Table]:
    """`answers` to what flags name, with the query and the series that they mean.

    Raises:
        SpecError: as `answers`; or they mean none, or several.
    """
    one = _query(release, query)
    series = _series(one, release.plan, kind, width)
    return one, series, answers(release, one, series, where=where, window=window, minus=minus)


def answers(
    release: Published,
    query: Query,
    series: Series,
    *,
    where: str | None,
    window: int | None = None,
    minus: int | None = None,
) -> pa.Table:
    """Sums over the cells that satisfy a condition: window_start, window_end, value, stddev, ci_low, ci_high.

    The interval holds the sum of the bounded data with a probability of at least 95 %, each one by itself. Where the
    data decide when a query is published anew, windows that repeat another one have neither interval nor deviation.

    Args:
        where: a condition on the query's keys; None takes all cells.
        window: the end of the one window that is asked for, in microseconds; None takes all that are published.
        minus: the end of another window, whose sum is taken from the first one's.

    Raises:
        SpecError: the condition cuts a cell, there is no such window, or the noise of the numbers is not known.
    """
    place = next(number for number, demand in enumerate(release.plan.demands) if demand.name == query.name)
    _refuse_unknown_noise(query, series, release.plan, place)
    chosen = taken(release, query, where)
    table = next(table for one, table in release.numbers(query) if one == series)
    numbers = table.num_rows // query.cells
    values = table.column("value").to_numpy().reshape(numbers, query.cells)[:, chosen].sum(axis=1)
    starts, ends = (table.column(f"window_{at}").cast(pa.int64()).to_numpy()[:: query.cells] for at in ("start", "end"))
    wanted = np.arange(numbers) if window is None else _number_at(window, ends, series)
    others = None
    if minus is not None:
        if window is None:
            raise SpecError("--minus: of one window; give --window with its end")
        if minus == window:
            raise SpecError("--minus: the same window as --window; give another one")
        others = _number_at(minus, ends, series)
        values = values - values[others]
    grid = release.plan.demands[place].measure.components[0].grid
    part = release.plan.adaptive_of(place)
    if part is None:
        released = release.plan.publishing(place, series)
        over = None if released.over is None or released.over.trivial else released.over
        of_cells = over_cells(chosen.astype(np.float64), over)
        deviation, width = _spreads(released, series, of_cells, wanted, others) * grid
    else:
        sampled = table.column(SAMPLED).to_numpy()[:: query.cells]
        deviation, width = spreads_of_samples(part, sampled, chosen.astype(np.float64), wanted, others) * grid
    return pa.table(
        {
            "window_start": pa.array(starts[wanted]).cast(TIME),
            "window_end": pa.array(ends[wanted]).cast(TIME),
            "value": values[wanted],
            "stddev": pa.array(deviation, from_pandas=True),
            "ci_low": pa.array(values[wanted] - width, from_pandas=True),
            "ci_high": pa.array(values[wanted] + width, from_pandas=True),
        }
    )


def taken(release: Published, query: Query, where: str | None) -> np.ndarray:
    """The cells that satisfy a condition, [cells]; at least one."""
    whole = frozenset(column for column, kind in release.spec.changelog.source.types if kind == "int64")
    if where is None:
        return np.ones(query.cells, dtype=bool)
    chosen = cells_where(Condition.parse(where), query, whole=whole)
    if not chosen.any():
        raise SpecError(f"where: {where!r} takes no cell of query {query.name}")
    return chosen


def _spreads(
    released: Released, series: Series, of_cells: Weights, wanted: np.ndarray, others: np.ndarray | None
) -> np.ndarray:
    """Standard deviations and half widths of some numbers, or of the one less another, [2, numbers], in grid steps."""
    (noise,) = released.noise
    merged, strategy = series.merged(released.leaf), released.strategy
    ends = wanted * merged.every + merged.width
    stretch = strategy.stretch(strategy.nodes(int(max([*ends, *([] if others is None else others + merged.width)]))))
    if stretch is not None:
        return _apart(noise, stretch, of_cells, wanted, others)
    if others is not None:
        one, other = noise_weights(strategy, merged, [int(wanted[0]), int(others[0])])
        found = [weights_of(one - other)]
    elif isinstance(noise, DiscreteGaussian):
        squares = strategy.variances(merged, int(ends[-1]), since=int(ends[0]) - 1)
        found = [weights_of(np.sqrt(np.array([square]))) for square in squares]
    else:
        found = [weights_of(sizes) for sizes in strategy.weights(merged, int(ends[-1]), since=int(ends[0]) - 1)]
    return np.array([spread(noise, in_time, of_cells, CONFIDENCE) for in_time in found]).reshape(-1, 2).T


def _apart(
    noise: NoiseDistribution, stretch: np.ndarray, of_cells: Weights, wanted: np.ndarray, others: np.ndarray | None
) -> np.ndarray:
    """Where each number is one node with noise of its own size; of two both are within their widths (Bonferroni)."""
    once, sides = weights_of(np.ones(1)), [wanted] if others is None else [wanted, others]
    confidence = 1 - (1 - CONFIDENCE) / len(sides)
    deviation, width = np.zeros((2, len(wanted)))
    for side in sides:
        found = [spread(widened(noise, float(stretch[at])), once, of_cells, confidence) for at in side]
        one, half = np.array(found).T
        deviation, width = np.hypot(deviation, one), width + half
    return np.array([deviation, width])


def _number_at(end: int, ends: np.ndarray, series: Series) -> np.ndarray:
    found = np.flatnonzero(ends == end)
    if not len(found):
        near = [moment_text(int(ends[at])) for at in np.sort(np.argsort(np.abs(ends - end))[:2])]
        raise SpecError(
            f"no {series.kind} is published for a window that ends at {moment_text(end)}; the nearest ends are "
            f"{' and '.join(near) or 'none'}"
        )
    return found


def _refuse_unknown_noise(query: Query, series: Series, plan: Plan, place: int) -> None:
    if (part := plan.adaptive_of(place)) is not None:
        refuse_uneven(part, query.name)
    if len(query.measure.components) > 1:
        raise SpecError(f"query {query.name}: a {query.measure.kind} cannot be added up; ask a count or a sum")
    if query.consistent and series.kind in ("level", "entered", "left"):
        others = dict.fromkeys(one.kind for one in query.publish if one.kind in ("change", "sliding"))
        instead = "".join(f" --kind {kind}," for kind in others)
        raise SpecError(
            f"query {query.name}: `consistent` changes the noise of {series.kind}, so that of a sum is unknown; use"
            f"{instead} the cells' own intervals (`slackwater show`), or a query without `consistent`"
        )


def _query(release: Published, name: str | None) -> Query:
    queries = asked(release.spec, None if name is None else [name])
    if len(queries) > 1:
        raise SpecError(f"--query: missing; the release has {', '.join(query.name for query in queries)}")
    return queries[0]


def _series(query: Query, plan: Plan, kind: str | None, width: int | None) -> Series:
    """The series that the flags name; without a kind levels, if they are published, or what alone is."""
    kinds = list(dict.fromkeys(series.kind for series in query.publish))
    if kind is None:
        kind = "level" if "level" in kinds else kinds[0]
    found: Sequence[Series] = [series for series in query.publish if series.kind == kind]
    if not found:
        raise SpecError(f"--kind {kind}: query {query.name} publishes {', '.join(kinds)}")
    if width is not None:
        found = [series for series in found if series.width * plan.promise.window == width]
    if len(found) != 1:
        widths = [duration_text(s.width * plan.promise.window) for s in query.publish if s.kind == kind]
        raise SpecError(f"--width: {kind} numbers of query {query.name} have {', '.join(widths)}; name one of these")
    return found[0]


def _times(row: dict[str, Any]) -> dict[str, str]:
    return {name: row[name].strftime("%Y-%m-%dT%H:%M:%SZ") for name in ("window_start", "window_end")}


def _text(document: dict[str, Any]) -> str:
    rows = [("window end", "value", "stddev", "95 % interval")]
    rows += [
        (
            row["window_end"],
            f"{row['value']:,.1f}",
            *(
                ("-", "- (repeated)")
                if row["stddev"] is None
                else (f"{row['stddev']:,.1f}", f"{row['ci_low']:,.1f} to {row['ci_high']:,.1f}")
            ),
        )
        for row in document["answers"]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    where = "all cells" if document["where"] is None else document["where"]
    less = "" if document["minus"] is None else f", less that of the window that ends {document['minus']}"
    cells = counted(document["cells"], "cell")
    head = f"{document['release']}, {document['query']}, {document['kind']} where {where} ({cells}){less}:"
    return "\n".join(
        [head, *lines, f"{FREE[0].upper()}{FREE[1:]}. Each interval by itself holds the bounded data's number."]
    )

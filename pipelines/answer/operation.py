"""`slackwater answer`: other sums over published cells, with their standard deviations and 95 % intervals.

It reads only the public side of a release, so it costs no privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.common.arguments import Moment, SpecLike, duration_of, moment_of
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.published.release import Published, asked, naming, published
from pipelines.published.sums import REAL, sum_errors, verdict, why_unknown, why_wrong
from pipelines.spec.durations import duration_text
from pipelines.spec.times import moment_text, people_time
from privacy.counted import counted
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.cells_where import cells_where
from transforms.aggregation.expression import Condition
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.common.shown_tables import html_of
from transforms.release.published_columns import SAMPLED, TIME

FREE = "computed from published numbers, so it costs no privacy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Value):
    """Sums over published cells.

    Attributes:
        release: Name of the release.
        query, kind: The numbers that were added up.
        where: The condition on cells; None: all cells.
        cells: Number of cells that were added up.
        minus: End of the window whose sum is subtracted; None: no window is subtracted.
        minus_where: The condition on cells whose sum is subtracted; None: no cells are subtracted.
        real: For differences, whether each is real: `higher`, `lower`, `unclear` or `unknown`; otherwise empty.
        table: Result of `answers`.
    """

    release: str
    query: str
    kind: str
    where: str | None
    cells: int
    minus: str | None
    minus_where: str | None = None
    real: tuple[str, ...] = ()
    table: pa.Table = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater answer --json`."""
        return {
            "release": self.release,
            "query": self.query,
            "kind": self.kind,
            "where": self.where,
            "cells": self.cells,
            "minus": self.minus,
            "minus_where": self.minus_where,
            "answers": [
                row if not self.real else {**row, "real": real}
                for row, real in zip_longest(_rows(self.table), self.real)
            ],
        }

    def text(self) -> str:
        """Return the text that `slackwater answer` prints."""
        return _text(self)

    def _repr_html_(self) -> str:
        kind = {"kind": pa.repeat(self.kind, self.table.num_rows)}  # the window of a level has the name of its end
        columns = kind | {name: self.table[name] for name in self.table.column_names}
        real = {"is the difference real?": pa.array([REAL[one] for one in self.real])} if self.real else {}
        return html_of(pa.table({**columns, **real}), local=lambda moment: moment)


def answer(
    spec: SpecLike,
    *,
    where: str | None = None,
    query: str | None = None,
    kind: str | None = None,
    width: timedelta | None = None,
    minus_where: str | None = None,
    window: Moment = None,
    minus: Moment = None,
) -> Answered:
    """Add up published cells, from the public side alone. Costs no privacy.

    Args:
        spec: The path of a spec, what `load` returns, or the path of the public folder of a release.
        where: A condition on the query's keys. None: all cells.
        query: Name of the query; required if the release has several.
        kind: `level`, `change`, `sliding`, `entered` or `left`. None: level, or the first that is published.
        width: Width of sliding windows; required if there are several.
        minus_where: Another condition, on cells whose sum is subtracted.
        window: End of the one window to answer for. None: all windows.
        minus: End of another window, whose sum is subtracted.

    Raises:
        SpecError: A condition cuts a cell, or there is no such query, kind or window.

    Example:
        `answer("wards.yaml", where="ward in ('medicine', 'surgery')", query="beds").table`. And
        `answer("wards.yaml", where="ward = 'medicine'", minus_where="ward = 'surgery'").real` states for each window
        whether the difference is larger than the noise.
    """
    end, other, wide = moment_of("window", window), moment_of("minus", minus), duration_of("width", width)
    release = published(spec)
    with naming(release.folder):
        one = _query(release, query)
        series = _series(one, release.plan, kind, wide)
        table = answers(release, one, series, where=where, less=minus_where, window=end, minus=other)
        cells = int(np.count_nonzero(taken(release, one, where)))
    compared = other is not None or minus_where is not None
    ends = (table.column(name).to_numpy(zero_copy_only=False).tolist() for name in ("ci_low", "ci_high"))
    return Answered(
        release=release.spec.release,
        query=one.name,
        kind=series.kind,
        where=where,
        cells=cells,
        minus=None if other is None else moment_text(other),
        minus_where=minus_where,
        real=tuple(verdict(*pair) for pair in zip(*ends, strict=True)) if compared else (),
        table=table,
    )


def answers(
    release: Published,
    query: Query,
    series: Series,
    *,
    where: str | None,
    less: str | None = None,
    window: int | None = None,
    minus: int | None = None,
) -> pa.Table:
    """Return sums over the cells that satisfy a condition.

    Each interval alone contains the sum of the bounded data with a probability of at least 95 %. If the query is
    published adaptively, windows that repeat another window have neither interval nor standard deviation.

    Args:
        release: The public side of the release.
        query: The query.
        series: Kind of numbers.
        where: A condition on the query's keys; None: all cells.
        less: Another condition, on cells whose sum is subtracted; None: nothing is subtracted.
        window: End of the one window to answer for, in microseconds since the epoch; None: all published windows.
        minus: End of another window, whose sum is subtracted; None: nothing is subtracted.

    Returns:
        Columns window_start, window_end, value, stddev, ci_low and ci_high; a row for each window.

    Raises:
        SpecError: The condition cuts a cell, there is no such window, or the noise of the numbers is unknown.
    """
    _refuse(query, why_unknown(query, series, release.plan))
    weights = weights_of(release, query, where, less)
    _refuse(query, why_wrong(query, release.plan, weights))
    table = next(table for one, table in release.numbers(query) if one == series)
    numbers = table.num_rows // query.cells
    values = table.column("value").to_numpy().reshape(numbers, query.cells) @ weights
    starts, ends = (table.column(f"window_{at}").cast(pa.int64()).to_numpy()[:: query.cells] for at in ("start", "end"))
    wanted = np.arange(numbers) if window is None else _number_at(window, ends, series)
    others = None
    if minus is not None:
        if window is None:
            raise ArgumentError("minus", "needs one window; give --window with its end")
        if minus == window:
            raise ArgumentError("minus", "the same window as --window; give another one")
        others = _number_at(minus, ends, series)
        values = values - values[others]
    sampled = table.column(SAMPLED).to_numpy()[:: query.cells].tolist() if SAMPLED in table.column_names else []
    deviation, width = sum_errors(query, series, release.plan, weights, wanted=wanted, others=others, sampled=sampled)
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


def _refuse(query: Query, why: str | None) -> None:
    if why is not None:
        raise SpecError(f"query {query.name}: {why}")


def weights_of(release: Published, query: Query, where: str | None, less: str | None) -> np.ndarray:
    """Return the weight of each cell in a sum, 1, 0 or -1, [cells], float64; not all are 0.

    Args:
        release, query: As of `answers`.
        where: Condition on the cells that are added; None: all cells.
        less: Condition on the cells that are subtracted; None: none.

    Raises:
        ArgumentError: All cells are both added and subtracted.
    """
    weights = taken(release, query, where).astype(np.float64)
    if less is not None:
        weights -= taken(release, query, less, parameter="minus_where")
        if not weights.any():
            raise ArgumentError("minus_where", "the same cells as --where, so nothing is left", less)
    return weights


def taken(release: Published, query: Query, where: str | None, *, parameter: str = "where") -> np.ndarray:
    """Return which cells satisfy a condition, [cells], bool; at least one does.

    Args:
        release: The public side of the release.
        query: The query.
        where: A condition on the query's keys; None: all cells.
        parameter: Name of the argument that holds the condition.

    Raises:
        SpecError: The condition cuts a cell, or no cell satisfies it.
    """
    whole = frozenset(column for column, kind in release.spec.changelog.source.types if kind == "int64")
    if where is None:
        return np.ones(query.cells, dtype=bool)
    try:
        chosen = cells_where(Condition.parse(where), query, whole=whole)
    except SpecError as error:
        raise ArgumentError.of_problems([(parameter, str(error).removeprefix("where"))]) from None
    if not chosen.any():
        raise ArgumentError(parameter, f"no cell of query {query.name} satisfies {where!r}")
    return chosen


def _number_at(end: int, ends: np.ndarray, series: Series) -> np.ndarray:
    found = np.flatnonzero(ends == end)
    if not len(found):
        near = [moment_text(int(ends[at])) for at in np.sort(np.argsort(np.abs(ends - end))[:2])]
        raise SpecError(
            f"no {series.kind} is published for a window that ends at {moment_text(end)}; the nearest ends are "
            f"{' and '.join(near) or 'none'}"
        )
    return found


def _query(release: Published, name: str | None) -> Query:
    queries = asked(release.spec, None if name is None else [name])
    if len(queries) > 1:
        raise ArgumentError("query", f"missing; the release has {', '.join(query.name for query in queries)}")
    return queries[0]


def _series(query: Query, plan: Plan, kind: str | None, width: int | None) -> Series:
    """Return the series that the flags name; without a kind, levels if they are published, else the first kind."""
    kinds = list(dict.fromkeys(series.kind for series in query.publish))
    if kind is None:
        kind = "level" if "level" in kinds else kinds[0]
    found: Sequence[Series] = [series for series in query.publish if series.kind == kind]
    if not found:
        raise ArgumentError("kind", f"query {query.name} publishes {', '.join(kinds)}", kind)
    if width is not None:
        found = [series for series in found if series.width * plan.promise.window == width]
    if len(found) != 1:
        widths = [duration_text(s.width * plan.promise.window) for s in query.publish if s.kind == kind]
        raise ArgumentError(
            "width", f"{kind} numbers of query {query.name} have {', '.join(widths)}; name one of these"
        )
    return found[0]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the answers with their times as text."""
    ends = ("window_start", "window_end")
    return [{**row, **{name: f"{row[name]:%Y-%m-%dT%H:%M:%SZ}" for name in ends}} for row in table.to_pylist()]


def _text(of: Answered) -> str:
    rows = [("window end", "value", "stddev", "95 % interval", *(["is the difference real?"] if of.real else []))]
    for row, real in zip_longest(_rows(of.table), of.real):
        spread = ("-", "- (repeated)")
        if row["stddev"] is not None:
            spread = (f"{row['stddev']:,.1f}", f"{row['ci_low']:,.1f} to {row['ci_high']:,.1f}")
        rows.append(
            (people_time(row["window_end"]), f"{row['value']:,.1f}", *spread, *([REAL[real]] if of.real else []))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    less = "" if of.minus_where is None else f", less {of.minus_where}"
    less += "" if of.minus is None else f", less that of the window that ends {people_time(of.minus)}"
    cells = f"{of.where or 'all cells'} ({counted(of.cells, 'cell')})"
    head = f"{of.release}, {of.query}, {of.kind} where {cells}{less}:"
    said = [f"{FREE[0].upper()}{FREE[1:]}. Each interval alone contains the number of the bounded data."]
    if of.real:
        said.append("Of 100 differences that are 0 without noise, at most about 5 look larger by chance.")
    return "\n".join([head, *lines, *said])

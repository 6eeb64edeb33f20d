"""Table of the published numbers of keys that were found privately: a row for each found key and window.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high

A key has levels from its window of discovery on, and other numbers from the first one on that begins then. If other
keys of the query are listed, it has a row for each combination of their values. The rows of a series are in the order
of windows, then of found keys and then of listed ones, so that it reveals nothing about keys that are not found.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.estimates import Estimates, confidence_of, estimate
from privacy.measure import Measure
from privacy.planning.discovered_part import FoundParts
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.common.errors import InputError
from transforms.common.windows import Windows
from transforms.release.estimated_numbers import new_spreads
from transforms.release.published_columns import TIME, constant, key_columns, only_of_some


def found_table(shown: pa.Table, aggregation: Aggregation, parts: FoundParts) -> pa.Table:
    """Return the published rows of found keys, in the measure's units.

    Args:
        shown: Public rows of found keys (`transforms.release.discovered_chunk.shown_schema`).
        aggregation: Aggregation whose timeline ends with the block.
        parts: Parts of the query.
    """
    series = enumerate((part, one) for part in parts for one in part.series)
    return pa.concat_tables(
        _table_of(part, one, shown.filter(pc.equal(shown["series"], place)), aggregation)
        for place, (part, one) in series
    )


def _table_of(part: LinearPart, series: Series, shown: pa.Table, aggregation: Aggregation) -> pa.Table:
    query, timeline, rows = aggregation.queries[part.query], aggregation.timeline, shown.num_rows
    name, since, end = query.found_by or "", timeline.released, shown["window"].to_numpy()
    found = found_numbers(shown, part, series, query.measure, since=since, windows=timeline.windows)
    keys = key_columns(aggregation, part.query, 0, query.each, rows)
    starts, ends = (pa.array(timeline.bounds.at(at), pa.int64()).cast(TIME) for at in (end - series.width, end))
    return pa.table(
        {
            "query": constant(query.name, rows),
            "kind": constant(series.kind, rows),
            "window_start": starts,
            "window_end": ends,
            **keys,
            name: shown["key"].combine_chunks().cast(keys[name].type),
            "value": found.value.ravel(),
            "stddev": np.array(found.stddev.ravel()),
            "ci_low": found.ci_low.ravel(),
            "ci_high": found.ci_high.ravel(),
            **only_of_some(aggregation, rows),
        }
    )


def found_numbers(
    shown: pa.Table, part: LinearPart, series: Series, measure: Measure, *, since: int, windows: int
) -> Estimates:
    """Return the numbers of the public rows of a series with their errors, [rows, 1], in the measure's units.

    Args:
        shown: The rows.
        part: Part of the plan with the series.
        series: The series.
        measure: Measure of the query.
        since: Windows that earlier runs have released.
        windows: Windows that have closed.
    """
    confidence = confidence_of(len(part.noise))
    new = np.searchsorted(series.ends(windows)[len(series.ends(since)) :], shown["window"].to_numpy())
    sums, deviations, widths = [], [], []
    for place, noise in enumerate(part.noise):
        spread = new_spreads(noise, part.strategy, series, windows, since, confidence, gathered=False)
        sums.append(shown["value" if not place else f"value.{place}"].to_numpy()[:, None])
        deviations.append(spread[0][new][:, None])
        widths.append(spread[1][new][:, None])
    return estimate(measure, sums, deviations, widths)


def found_rows(estimates: pa.Table, query: Query, series: Series, windows: Windows) -> pa.Table:
    """Return the rows of one series of a query that finds keys, in the order of windows, found keys and listed ones.

    Args:
        estimates: Rows of its published tables.
        query: The query.
        series: The series.
        windows: Windows of the release.

    Raises:
        InputError: A row is there twice, or a key that was found has no row of a later number.
    """
    name = query.found_by or ""
    begin, end = (windows.numbers(_instants(estimates, f"window_{at}"))[0] for at in ("start", "end"))
    own = pc.and_(pc.equal(estimates["kind"], series.kind), pa.array(end - begin == series.width))
    table = estimates.filter(own)
    table = table.append_column(_CELL, pa.array(_cells(table, query)))
    table = table.sort_by([(one, "ascending") for one in ("window_end", name, _CELL)])
    number, known = _numbers(table, series, windows)
    key, cell = table[name].combine_chunks().dictionary_encode().indices, table[_CELL].to_numpy()
    table = table.drop_columns([_CELL])
    if key.null_count or not known or cell.min(initial=0) < 0:
        raise InputError(f"query {query.name}: a row has no key, or is of another window or cell")
    code, last = key.to_numpy().astype(np.int64) * query.each + cell, int(number.max(initial=-1))
    found = np.full(int(code.max(initial=-1)) + 1, last + 1)
    np.minimum.at(found, code, number)
    rows = np.unique(code * (last + 1) + number)
    by_key = np.append(found, np.full(-len(found) % query.each, last + 1)).reshape(-1, query.each)
    uneven = bool((by_key != by_key[:, :1]).any())
    if uneven or len(rows) != len(code) or len(rows) != int((last + 1 - found).sum()):
        raise InputError(f"query {query.name}: a row of a found key is missing, or there twice")
    return table


def as_listed(
    rows: Sequence[tuple[Series, pa.Table]], query: Query, windows: Windows, until: int
) -> tuple[Query, list[tuple[Series, pa.Table]]]:
    """Return a query that lists the found keys, and a row for each number and cell, null before a key's discovery.

    Keys are in the order of their discovery, and those of one window by their names.

    Args:
        rows: Each series with the rows of `found_rows`.
        query: The query.
        windows: Windows of the release.
        until: Number of published windows.
    """
    name = query.found_by or ""
    (levels,) = (table for series, table in rows if series.kind == "level")
    keys = pc.unique(levels[name])
    places = query.places(len(keys))
    dense = []
    for series, table in rows:
        number, _ = _numbers(table, series, windows)
        key = pc.index_in(table[name], value_set=keys).to_numpy()
        place = number * places.size + places[key, np.arange(len(key)) % query.each]
        at = np.full(len(series.ends(until)) * places.size, -1)
        at[place] = np.arange(len(place))
        numbers = table.select(["value", "stddev", "ci_low", "ci_high"])
        dense.append((series, numbers.take(pa.array(at, mask=at < 0))))
    return query.with_listed(keys.to_pylist()), dense


def _numbers(table: pa.Table, series: Series, windows: Windows) -> tuple[np.ndarray, bool]:
    """Return the place of each row's number in its series, int64 [rows], and whether all rows are of a window."""
    end, known = windows.numbers(_instants(table, "window_end"))
    number, off = np.divmod(end - series.width, series.every)
    return number, bool(known.all() and not off.any())


_CELL = "cell"


def _cells(table: pa.Table, query: Query) -> np.ndarray:
    """Return the cell of each row among those of its found key, int64 [rows]; below 0 for another value."""
    cell = np.zeros(table.num_rows, dtype=np.int64)
    for name, key in query.known:
        values = key.published(0, len(key), table[name].type)
        place = pc.fill_null(pc.index_in(table[name], value_set=values), -1).to_numpy()
        cell = np.where((place < 0) | (cell < 0), -1, cell * len(key) + place)
    return cell


def _instants(table: pa.Table, column: str) -> np.ndarray:
    return table[column].cast(pa.int64()).to_numpy()

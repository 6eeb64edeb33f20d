"""Table of the published numbers of keys that were found privately: a row for each found key and window.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high

A key has levels from its window of discovery on, and other numbers from the first one on that begins then. The rows of
a series are in the order of windows and then of keys, so that it reveals nothing about keys that are not found.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.estimates import CONFIDENCE, estimate
from privacy.planning.discovered_part import DiscoveredPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.common.errors import InputError
from transforms.common.windows import Windows
from transforms.release.estimated_numbers import new_spreads
from transforms.release.published_columns import TIME, constant, key_types, only_of_some


def found_table(shown: pa.Table, aggregation: Aggregation, part: DiscoveredPart) -> pa.Table:
    """Return the published rows of found keys, in the measure's units.

    Args:
        shown: Public rows of found keys, as `transforms.release.discovered_chunk.SHOWN`.
        aggregation: Aggregation whose timeline ends with the block.
        part: Part of the plan.
    """
    series = enumerate(part.series)
    return pa.concat_tables(
        _table_of(one, shown.filter(pc.equal(shown["series"], place)), aggregation, part) for place, one in series
    )


def _table_of(series: Series, shown: pa.Table, aggregation: Aggregation, part: DiscoveredPart) -> pa.Table:
    query, timeline, rows = aggregation.queries[part.query], aggregation.timeline, shown.num_rows
    (noise,), ((name, _),) = part.noise, query.by
    since, windows = timeline.released, timeline.windows
    spread = new_spreads(noise, part.strategy, series, windows, since, CONFIDENCE, gathered=False)
    end = shown["window"].to_numpy()
    new = np.searchsorted(series.ends(windows)[len(series.ends(since)) :], end)
    deviations, widths = (each[new][:, None] for each in spread)
    found = estimate(query.measure, [shown["value"].to_numpy()[:, None]], [deviations], [widths])
    keys = {key: pa.nulls(rows, kind) for key, kind in key_types(aggregation.queries).items()}
    starts, ends = (pa.array(timeline.bounds.at(at), pa.int64()).cast(TIME) for at in (end - series.width, end))
    return pa.table(
        {
            "query": constant(query.name, rows),
            "kind": constant(series.kind, rows),
            "window_start": starts,
            "window_end": ends,
            **keys,
            name: shown["key"].combine_chunks().cast(key_types(aggregation.queries)[name]),
            "value": found.value.ravel(),
            "stddev": np.array(found.stddev.ravel()),
            "ci_low": found.ci_low.ravel(),
            "ci_high": found.ci_high.ravel(),
            **only_of_some(aggregation, rows),
        }
    )


def found_spreads(part: DiscoveredPart, windows: int) -> list[np.ndarray]:
    """Return the standard deviation of each number of each series, float64 [numbers], in grid steps.

    Args:
        part: Part of the plan.
        windows: Number of closed windows.
    """
    (noise,) = part.noise
    return [new_spreads(noise, part.strategy, one, windows, 0, CONFIDENCE, gathered=False)[0] for one in part.series]


def found_rows(estimates: pa.Table, query: Query, series: Series, windows: Windows) -> pa.Table:
    """Return the rows of one series of a query that finds keys, in the order of windows and keys.

    Args:
        estimates: Rows of its published tables.
        query: The query.
        series: The series.
        windows: Windows of the release.

    Raises:
        InputError: A row is there twice, or a key that was found has no row of a later number.
    """
    ((name, _),) = query.by
    begin, end = (windows.numbers(_instants(estimates, f"window_{at}"))[0] for at in ("start", "end"))
    own = pc.and_(pc.equal(estimates["kind"], series.kind), pa.array(end - begin == series.width))
    table = estimates.filter(own).sort_by([("window_end", "ascending"), (name, "ascending")])
    number, known = _numbers(table, series, windows)
    key = table[name].combine_chunks().dictionary_encode().indices
    if key.null_count or not known:
        raise InputError(f"query {query.name}: a row has no key, or is of another window")
    code, last = key.to_numpy(), int(number.max(initial=-1))
    found = np.full(int(code.max(initial=-1)) + 1, last + 1)
    np.minimum.at(found, code, number)
    rows = np.unique(code * (last + 1) + number)
    if len(rows) != len(code) or len(rows) != int((last + 1 - found).sum()):
        raise InputError(f"query {query.name}: a row of a found key is missing, or there twice")
    return table


def as_listed(
    rows: Sequence[tuple[Series, pa.Table]], query: Query, windows: Windows, until: int
) -> tuple[Query, list[tuple[Series, pa.Table]]]:
    """Return a query whose cells are the found keys, and a row for each number and key, null before its discovery.

    Keys are in the order of their discovery, and those of one window by their names.

    Args:
        rows: Each series with the rows of `found_rows`.
        query: The query.
        windows: Windows of the release.
        until: Number of published windows.
    """
    ((name, _),) = query.by
    (levels,) = (table for series, table in rows if series.kind == "level")
    keys = pc.unique(levels[name])
    dense = []
    for series, table in rows:
        number, _ = _numbers(table, series, windows)
        place = number * len(keys) + pc.index_in(table[name], value_set=keys).to_numpy()
        at = np.full(len(series.ends(until)) * len(keys), -1)
        at[place] = np.arange(len(place))
        numbers = table.select(["value", "stddev", "ci_low", "ci_high"])
        dense.append((series, numbers.take(pa.array(at, mask=at < 0))))
    return query.with_listed(keys.to_pylist()), dense


def _numbers(table: pa.Table, series: Series, windows: Windows) -> tuple[np.ndarray, bool]:
    """Return the place of each row's number in its series, int64 [rows], and whether all rows are of a window."""
    end, known = windows.numbers(_instants(table, "window_end"))
    number, off = np.divmod(end - series.width, series.every)
    return number, bool(known.all() and not off.any())


def _instants(table: pa.Table, column: str) -> np.ndarray:
    return table[column].cast(pa.int64()).to_numpy()

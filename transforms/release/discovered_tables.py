"""Table of the published numbers of keys that were found privately: a row for each found key and window.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high

A key has rows from its window of discovery on. Rows are in the order of windows and then of keys, so that their order
reveals nothing about keys that are not found.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.estimates import CONFIDENCE, estimate
from privacy.planning.discovered_part import DiscoveredPart
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.common.errors import InputError
from transforms.common.windows import Windows
from transforms.release.estimated_numbers import new_spreads
from transforms.release.published_columns import TIME, constant, key_types, only_of_some


def found_table(shown: pa.Table, aggregation: Aggregation, part: DiscoveredPart) -> pa.Table:
    """Return the published rows of found keys, in the measure's units.

    Args:
        shown: `window`, `key` and `level` in grid steps, in the order of windows and keys.
        aggregation: Aggregation whose timeline ends with the block.
        part: Part of the plan.
    """
    query, timeline, rows = aggregation.queries[part.query], aggregation.timeline, shown.num_rows
    (series,), (noise,), ((name, _),) = part.series, part.noise, query.by
    spread = new_spreads(noise, part.strategy, series, timeline.windows, timeline.released, CONFIDENCE, gathered=False)
    window = shown["window"].to_numpy()
    deviations, widths = (each[window - timeline.released - 1][:, None] for each in spread)
    found = estimate(query.measure, [shown["level"].to_numpy()[:, None]], [deviations], [widths])
    keys = {key: pa.nulls(rows, kind) for key, kind in key_types(aggregation.queries).items()}
    starts, ends = (pa.array(timeline.bounds.at(at), pa.int64()).cast(TIME) for at in (window - 1, window))
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


def found_rows(estimates: pa.Table, query: Query, windows: Windows) -> pa.Table:
    """Return the rows of a query that finds keys, in the order of windows and keys.

    Args:
        estimates: Rows of its published tables.
        query: The query.
        windows: Windows of the release.

    Raises:
        InputError: A row is there twice, or a key that was found has no row in a later window.
    """
    ((name, _),) = query.by
    table = estimates.sort_by([("window_end", "ascending"), (name, "ascending")])
    end, known = windows.numbers(table["window_end"].cast(pa.int64()).to_numpy())
    key = table[name].combine_chunks().dictionary_encode().indices
    if key.null_count or not known.all():
        raise InputError(f"query {query.name}: a row has no key, or is of another window")
    code, last = key.to_numpy(), int(end.max(initial=0))
    found = np.full(int(code.max(initial=-1)) + 1, last + 1)
    np.minimum.at(found, code, end)
    rows = np.unique(code * (last + 1) + end)
    if len(rows) != len(code) or len(rows) != int((last + 1 - found).sum()):
        raise InputError(f"query {query.name}: a row of a found key is missing, or there twice")
    return table


def as_listed(rows: pa.Table, query: Query, windows: Windows, until: int) -> tuple[Query, pa.Table]:
    """Return a query whose cells are the found keys, and a row for each window and key, null before its discovery.

    Keys are in the order of their discovery, and those of one window by their names.

    Args:
        rows: Rows of `found_rows`.
        query: The query.
        windows: Windows of the release.
        until: Number of published windows.
    """
    ((name, _),) = query.by
    keys = pc.unique(rows[name])
    end, _ = windows.numbers(rows["window_end"].cast(pa.int64()).to_numpy())
    place = (end - 1) * len(keys) + pc.index_in(rows[name], value_set=keys).to_numpy()
    at = np.full(until * len(keys), -1)
    at[place] = np.arange(len(place))
    numbers = ("value", "stddev", "ci_low", "ci_high")
    dense = rows.select(numbers).take(pa.array(at, mask=at < 0))
    return replace(query, by=((name, tuple(keys.to_pylist())),)), dense

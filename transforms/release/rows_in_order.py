"""Rows of published tables in the order of windows and cells.

    in    rows of `estimates`, in any order, in one table or several
    out   the rows of one series, number by number, each with the cells in order

Only the numbers of the rows are held, with their places: the other columns follow from the order, and are made again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.series import Ints, Series
from transforms.aggregation.queries import Query
from transforms.common.errors import InputError
from transforms.common.windows import Windows
from transforms.release.published_columns import TIME, constant


@dataclass(slots=True)
class Placed:
    """Rows of one series, in parts.

    Attributes:
        names: Names and types of the columns, in the order of the table.
        places: Place of each row in the order, int64 [rows] for each part.
        columns: Columns that do not follow from the places, one array for each part.
    """

    names: dict[str, pa.DataType]
    places: list[Ints]
    columns: dict[str, list[pa.ChunkedArray]]


def of_series(estimates: pa.Table, query: Query, series: Series, windows: Windows) -> pa.Table:
    """Return the rows of one series, number by number, each with the cells in order.

    Args:
        estimates: Rows of published tables; those of other queries and series are ignored.
        query: The query.
        series: The series.
        windows: Windows of the release.

    Raises:
        InputError: The rows are not those of all cells of the first windows, each once.
    """
    (rows,) = placed([estimates], query, [series], windows=windows)
    return in_order(rows, query, series, windows)


def placed(
    tables: Iterable[pa.Table],
    query: Query,
    all_series: Sequence[Series],
    *,
    windows: Windows,
    only: Collection[str] | None = None,
) -> list[Placed]:
    """Return the rows of each series.

    Args:
        tables: At least one, with the same columns; rows of other queries and series are ignored.
        query: The query.
        all_series: The series.
        windows: Windows of the release.
        only: Names of the columns that are wanted; None: all.

    Raises:
        InputError: A row is not that of a number and cell of the query.
    """
    found = [Placed({}, [], {}) for _ in all_series]
    own = {"query", "kind", "window_start", "window_end", *(name for name, _ in query.known)}
    cells: dict[str, pa.Array] = {}
    for table in tables:
        cells = cells or {name: key.published(0, len(key), table.column(name).type) for name, key in query.known}
        for one, series in zip(found, all_series, strict=True):
            one.names = dict(zip(table.column_names, table.schema.types, strict=True))
            rows = _of_series(table, query, series, windows)
            one.places.append(_places(rows, query, cells, series, windows))
            for name in one.names.keys() - own:
                if only is None or name in only:
                    one.columns.setdefault(name, []).append(rows.column(name))
    if only is not None:
        for one in found:
            one.names = {name: kind for name, kind in one.names.items() if name in only}
    return found


def in_order(rows: Placed, query: Query, series: Series, windows: Windows) -> pa.Table:
    """Return the rows of one series in order; the parts are released one by one.

    Args:
        rows: From `placed`.
        query: The query.
        series: The series.
        windows: Windows of the release.

    Raises:
        InputError: The rows are not those of all cells of the first windows, each once.
    """
    place = np.concatenate(rows.places)
    rows.places.clear()
    order = np.full(len(place), -1)
    if ((place < 0) | (place >= len(place))).any():
        raise _missing(query, series)
    order[place] = np.arange(len(place))
    if (order < 0).any():
        raise _missing(query, series)
    if len(order) % query.cells:
        raise InputError(f"query {query.name}, {series.kind}: cells of the last window are missing")
    in_place = bool((np.diff(place) == 1).all())  # `place == order` also holds for rows that change places in pairs
    del place
    made = _made(rows, query, series, windows, len(order))
    for name in [name for name in rows.names if name not in made]:
        column = pa.chunked_array([chunk for part in rows.columns.pop(name) for chunk in part.chunks], rows.names[name])
        made[name] = column if in_place else column.take(pa.array(order))
    return pa.table({name: made[name] for name in rows.names})


def _of_series(table: pa.Table, query: Query, series: Series, windows: Windows) -> pa.Table:
    begin, end = (windows.numbers(_instants(table, f"window_{at}"))[0] for at in ("start", "end"))
    wanted = (
        pc.equal(table.column("query"), query.name),
        pc.equal(table.column("kind"), series.kind),
        pa.array(end - begin == series.width),
    )
    mask = reduce(pc.and_, wanted)
    return table if pc.all(mask, min_count=0).as_py() else table.filter(mask)


def _places(table: pa.Table, query: Query, cells: Mapping[str, pa.Array], series: Series, windows: Windows) -> Ints:
    """Return the place of each row among all numbers and cells, int64 [rows]; `cells` has the values of each key."""
    (_, begins), (end, known) = (windows.numbers(_instants(table, f"window_{at}")) for at in ("start", "end"))
    ended, off = np.divmod(end - series.width, series.every)
    cell, known = np.zeros(len(end), dtype=np.int64), known & begins
    for name, key in query.known:
        at = pc.index_in(table.column(name), value_set=cells[name]).fill_null(-1).to_numpy()
        cell, known = cell * len(key) + at, known & (at >= 0)
    if not known.all() or off.any():
        raise _missing(query, series)
    return ended * query.cells + cell


def _made(rows: Placed, query: Query, series: Series, windows: Windows, count: int) -> dict[str, pa.Array]:
    """Return the columns that follow from the order of `count` rows."""
    numbers = count // query.cells
    ends = np.arange(numbers) * series.every + series.width
    made = {}
    if "query" in rows.names:
        made = {"query": constant(query.name, count), "kind": constant(series.kind, count)}
        for name, at in (("window_start", ends - series.width), ("window_end", ends)):
            made[name] = pa.array(windows.at(at).repeat(query.cells)).cast(TIME)
    cell = np.arange(query.cells)
    for name, key in reversed(query.known):  # the last key varies fastest
        cell, place = np.divmod(cell, len(key))
        if (kind := rows.names.get(name)) is not None:
            named = key.published(0, len(key), kind)
            places = pa.array(np.tile(place.astype(np.int32), numbers))
            made[name] = pa.DictionaryArray.from_arrays(places, named).cast(kind)
    return made


def _missing(query: Query, series: Series) -> InputError:
    return InputError(f"query {query.name}, {series.kind}: a row of a number is missing, or there twice")


def _instants(table: pa.Table, column: str) -> np.ndarray:
    return table.column(column).cast(pa.int64()).to_numpy()

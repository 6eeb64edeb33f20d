"""`slackwater show`: the estimates of all epochs as one table, printed or written.

It reads the public side of a release and nothing else, so it costs no privacy.
"""

import argparse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.reports.published import Published, asked, published
from pipelines.spec.paths import within
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.common.sinks import OUTPUT_FORMATS, write_table, write_text
from transforms.release.range_tables import by_range, range_kind

_TABLES = {f".{name}": name for name in OUTPUT_FORMATS}
_TEXTS = (".md", ".txt")
_DIGITS = 5
"""Of numbers that people read; files of tables have them all."""


def show(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "show")
    release, output = published(arguments.spec), arguments.output
    suffix = None if output is None else Path(output).suffix
    if suffix is not None and suffix not in (*_TABLES, *_TEXTS):
        raise SpecError(f"-o {output}: the name must end in {', '.join((*_TABLES, *_TEXTS))}")
    if output is not None and within(output, release.folder):
        raise SpecError(f"-o {output}: lies in the public folder, which holds what is published and nothing else")
    table = numbers(release, arguments.query)
    document: dict[str, Any] = {
        "release": release.spec.release,
        "until": release.until,
        "rows": table.num_rows,
        "file": output,
    }
    if output is None:
        # With --json the numbers themselves; the text would be made for nothing.
        return (
            ({**document, "estimates": _rows(table)}, "")
            if arguments.json
            else (document, _plain(table, release.local, markdown=False))
        )
    if suffix in _TEXTS:
        text = _plain(table, release.local, markdown=suffix == ".md")
        write_text(output, text + "\n")
    else:
        write_table(table, output, format_=_TABLES[str(suffix)])
    return document, f"{document['release']}: {table.num_rows:,} numbers up to {release.until} in {output}"


def numbers(release: Published, queries: list[str] | None) -> pa.Table:
    """The estimates of all epochs, query after query; None: of all queries."""
    tables = [
        table
        for query in asked(release.spec, queries)
        for table in (
            *(table for _, table in release.numbers(query)),
            *(_of_ranges(series, table, query) for series, table in release.ranges(query)),
            *([release.quantiles(query)] if query.quantiles else []),
        )
    ]
    return pa.concat_tables(tables, promote_options="default")


def _of_ranges(series: Series, table: pa.Table, query: Query) -> pa.Table:
    """As they are published: with a kind of their own, and no column for two keys."""
    table = table.set_column(1, "kind", pa.array([range_kind(series)] * table.num_rows, pa.string()))
    (both, _), *_ = by_range(query).by
    return table if len(query.ordered) == 1 else table.drop_columns([both])


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """As JSON has them: times as text."""
    times = {
        name: pc.strftime(table.column(name), format="%Y-%m-%dT%H:%M:%SZ") for name in ("window_start", "window_end")
    }
    for name, column in times.items():
        table = table.set_column(table.column_names.index(name), name, column)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _plain(table: pa.Table, local: Callable[[int], int], *, markdown: bool) -> str:
    """The table for people: times in the zone of the schedule, a few digits, columns that are empty left out."""
    columns = {
        name: cells for name in table.column_names if any(cells := _texts(table.column(name), local)) or name == "query"
    }
    numbers = {name for name in columns if pa.types.is_floating(table.schema.field(name).type)}
    heading = [*columns]
    if markdown:
        columns = {name: [_escaped(cell) for cell in cells] for name, cells in columns.items()}
        lines = [heading, ["---:" if name in numbers else "---" for name in heading]]
        return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *zip(*columns.values(), strict=True)])
    widths = [max(map(len, [name, *cells])) for name, cells in columns.items()]
    told = [heading, *zip(*columns.values(), strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if name in numbers else cell.ljust(width)
            for name, cell, width in zip(heading, line, widths, strict=True)
        ).rstrip()
        for line in told
    )


def _texts(column: pa.ChunkedArray, local: Callable[[int], int]) -> list[str]:
    """A column's cells; null is empty."""
    if pa.types.is_timestamp(column.type):
        moments = column.cast(pa.int64()).to_numpy()
        known, place = np.unique(moments, return_inverse=True)
        texts = np.array([_moment(local(int(moment))) for moment in known])
        return list(texts[place])
    if pa.types.is_floating(column.type):
        return ["" if number is None else _number(number) for number in column.to_pylist()]
    if pa.types.is_boolean(column.type):
        return ["" if value is None else "yes" if value else "no" for value in column.to_pylist()]
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _number(number: float) -> str:
    """With so many digits, and no exponent where a count may stand.

    >>> _number(1234567.25), _number(0.1234567)
    ('1234567', '0.12346')
    """
    return f"{number:.0f}" if 10**_DIGITS <= abs(number) < 1e15 else f"{number:.{_DIGITS}g}"


def _moment(shown: int) -> str:
    """What clocks show, without what is zero.

    >>> _moment(0), _moment(90_000_000)
    ('1970-01-01', '1970-01-01 00:01:30')
    """
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=shown)
    text = at.strftime("%Y-%m-%d %H:%M:%S")
    return text.removesuffix(":00").removesuffix(" 00:00")


def _escaped(cell: str) -> str:
    """What a cell of a Markdown table may hold.

    >>> _escaped("a|b"), _escaped("<i>")
    ('a\\\\|b', '&lt;i>')
    """
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")

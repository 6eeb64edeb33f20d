"""Tables for people as text, or in a file of the form that its ending names.

Text has few digits, names windows and times by the clocks of a zone, and leaves out empty columns.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.dates import number_name
from transforms.common.output_formats import OUTPUT_FORMATS
from transforms.common.sinks import write_table, write_text

Clock = Callable[[int], int]
"""Function from a moment to the local time of clocks, both in microseconds, as if UTC."""

_BOUNDS = ("window_start", "window_end")
"""Columns that text shows as one, with the names of the windows."""

_MARKDOWN = ".md"
_TEXTS = (_MARKDOWN, ".txt")
ENDINGS = (*(f".{name}" for name in OUTPUT_FORMATS), *_TEXTS)
"""Endings of the files that `write_shown` writes."""

_FORMULA = r"(?s)^([=+@\t\r-].)"
_DIGITS = 5
"""Digits of numbers in text; files of tables have all digits."""


def write_shown(table: pa.Table, output: str, *, local: Clock, below: str = "", people: pa.Table | None = None) -> None:
    """Write one file, whose name ends as one of `ENDINGS`.

    Args:
        table: The table.
        output: Path of the file.
        local: Clock for times in text.
        below: Text below the table, for people.
        people: The table with labels in place of names, for text; None: the same table.
    """
    suffix = Path(output).suffix
    if suffix in _TEXTS:
        markdown, shown = suffix == _MARKDOWN, table if people is None else people
        text, below = text_of(shown, local=local, markdown=markdown), indent(below, "    " * markdown)
        write_text(output, "\n\n".join(filter(None, [text, below])) + "\n")
    else:
        name = suffix.removeprefix(".")
        write_table(for_spreadsheets(table) if OUTPUT_FORMATS[name].formulas else table, output, format_=name)


def for_spreadsheets(table: pa.Table) -> pa.Table:
    """Return the table with an apostrophe before each text that a spreadsheet would run as a formula.

    >>> for_spreadsheets(pa.table({"=a": ["=1+1", "-", "[0, 5)"]})).to_pydict()
    {"'=a": ["'=1+1", '-', '[0, 5)']}
    """
    columns = [
        pc.replace_substring_regex(column, _FORMULA, r"'\1") if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=[re.sub(_FORMULA, r"'\1", name) for name in table.column_names])


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows as JSON objects, with times as text."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, pc.strftime(table.column(place), format="%Y-%m-%dT%H:%M:%SZ"))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def text_of(table: pa.Table, *, local: Clock, markdown: bool = False) -> str:
    """Return the table for people; its first column is never left out.

    Args:
        table: The table.
        local: Clock for times.
        markdown: Whether to write a Markdown table.
    """
    columns = _filled(table, local)
    heading = [name for name, _, _ in columns]
    lines = [heading, *zip(*(cells for _, cells, _ in columns), strict=True)]
    if markdown:
        rule = ["---:" if number else "---" for _, _, number in columns]
        first, *others = (map(_escaped, line) for line in lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in (first, rule, *others))
    widths = [max(map(len, [name, *cells])) for name, cells, _ in columns]
    numbers = [number for _, _, number in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in lines
    )


def html_of(table: pa.Table, *, local: Clock, most: int = 50) -> str:
    """Return the first rows of a table as HTML, with the columns of `text_of`, for notebooks.

    Args:
        table: The table.
        local: Clock for times.
        most: Most rows.

    >>> html_of(pa.table({"ward": ["<a>"], "value": [1.5]}), local=lambda moment: moment)
    '<table><tr><th>ward</th><th>value</th></tr><tr><td>&lt;a&gt;</td><td>1.5</td></tr></table>'
    """
    columns = _filled(table.slice(0, most), local)
    rest = f"<p>The first {most} of {table.num_rows:,} rows.</p>" if table.num_rows > most else ""
    head = "".join(f"<th>{escape(name)}</th>" for name, _, _ in columns)
    lines = zip(*(cells for _, cells, _ in columns), strict=True)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{rows}</table>{rest}"


def _filled(table: pa.Table, local: Clock) -> list[tuple[str, list[str], bool]]:
    """Return the columns of `_columns` that are not empty, and the first one."""
    return [column for place, column in enumerate(_columns(table, local)) if place == 0 or any(column[1])]


def _columns(table: pa.Table, local: Clock) -> Iterator[tuple[str, list[str], bool]]:
    """Yield name and texts of each column, and whether it holds numbers; bounds of windows become one column."""
    named = set(_BOUNDS) <= set(table.column_names)
    for name in table.column_names:
        if not named or name not in _BOUNDS:
            yield name, _texts(table.column(name), local), pa.types.is_floating(table.schema.field(name).type)
        elif name == _BOUNDS[0]:
            yield "window", _windows(table, local), False


def _windows(table: pa.Table, local: Clock) -> list[str]:
    """Return the name of the window of each row; of a level, that of its end."""
    bounds = [table.column(name).cast(pa.int64()).to_numpy() for name in _BOUNDS]
    level = pc.starts_with(table.column("kind"), "level").to_numpy() if "kind" in table.column_names else bounds[0] * 0
    known, place = np.unique(np.stack([*bounds, level.astype(np.int64)], axis=1), axis=0, return_inverse=True)
    texts = [number_name("level" if of_end else "", local(start), local(end)) for start, end, of_end in known.tolist()]
    return list(np.array(texts, dtype=object)[place.ravel()])


def _texts(column: pa.ChunkedArray, local: Clock) -> list[str]:
    """Return a column's cells; null is empty."""
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
    """Return a number with `_DIGITS` digits, and without an exponent if it can be a count.

    >>> _number(1234567.25), _number(0.1234567)
    ('1234567', '0.12346')
    """
    return f"{number:.0f}" if 10**_DIGITS <= abs(number) < 1e15 else f"{number:.{_DIGITS}g}"


def _moment(shown: int) -> str:
    """Return the local time without zero parts.

    >>> _moment(0), _moment(90_000_000)
    ('1970-01-01', '1970-01-01 00:01:30')
    """
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=shown)
    text = at.strftime("%Y-%m-%d %H:%M:%S")
    return text.removesuffix(":00").removesuffix(" 00:00")


def _escaped(cell: str) -> str:
    r"""Return a cell of a Markdown table with special characters escaped.

    >>> _escaped("a|b"), _escaped("<i>"), _escaped("[0, 5)"), _escaped("![x](y)"), _escaped("of_ward")
    ('a\\|b', '&lt;i>', '[0, 5)', '![x\\](y)', 'of_ward')
    """
    plain = " ".join(cell.replace("&", "&amp;").replace("<", "&lt;").splitlines())
    return re.sub(r"[\\|*`~\]]|(?<!\w)_|_(?!\w)", r"\\\g<0>", plain)

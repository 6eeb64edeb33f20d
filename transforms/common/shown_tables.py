"""A table for people as text, or in a file as its ending says: as text, or as programs read it.

Text has a few digits, times as some zone's clocks show them, and no column that is empty.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.errors import SpecError
from transforms.common.sinks import OUTPUT_FORMATS, write_table, write_text

Clock = Callable[[int], int]
"""From a moment to what clocks show, both in microseconds as if of UTC."""

_TABLES = {f".{name}": name for name in OUTPUT_FORMATS}
_MARKDOWN = ".md"
_TEXTS = (_MARKDOWN, ".txt")
_FORMULA = r"(?s)^([=+@\t\r-].)"
_DIGITS = 5
"""Of numbers that people read; files of tables have them all."""


def refuse_ending(output: str, *, flag: str = "-o") -> None:
    """
    Raises:
        SpecError: the file's ending is of no kind that can be written.
    """
    if Path(output).suffix not in (*_TABLES, *_TEXTS):
        raise SpecError(f"{flag} {output}: the name must end in {', '.join((*_TABLES, *_TEXTS))}")


def write_shown(table: pa.Table, output: str, *, local: Clock, below: str = "") -> None:
    """One file, of a kind that `refuse_ending` lets pass.

    Args:
        table: what it holds.
        output: its path.
        local: what clocks show, in texts.
        below: what people read below the table.
    """
    suffix = Path(output).suffix
    if suffix in _TEXTS:
        markdown = suffix == _MARKDOWN
        text, below = text_of(table, local=local, markdown=markdown), indent(below, "    " * markdown)
        write_text(output, "\n\n".join(filter(None, [text, below])) + "\n")
    else:
        write_table(for_spreadsheets(table) if suffix == ".csv" else table, output, format_=_TABLES[suffix])


def for_spreadsheets(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before each text that a spreadsheet would run as a formula.

    >>> for_spreadsheets(pa.table({"=a": ["=1+1", "-", "[0, 5)"]})).to_pydict()
    {"'=a": ["'=1+1", '-', '[0, 5)']}
    """
    columns = [
        pc.replace_substring_regex(column, _FORMULA, r"'\1") if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=[re.sub(_FORMULA, r"'\1", name) for name in table.column_names])


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """As JSON has them: times as text."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, pc.strftime(table.column(place), format="%Y-%m-%dT%H:%M:%SZ"))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def text_of(table: pa.Table, *, local: Clock, markdown: bool = False) -> str:
    """The table for people; its first column is never left out."""
    first = table.column_names[0]
    columns = {
        name: cells for name in table.column_names if any(cells := _texts(table.column(name), local)) or name == first
    }
    numbers = {name for name in columns if pa.types.is_floating(table.schema.field(name).type)}
    heading = [*columns]
    if markdown:
        rule = ["---:" if name in numbers else "---" for name in heading]
        first, *others = (map(_escaped, line) for line in (heading, *zip(*columns.values(), strict=True)))
        return "\n".join(f"| {' | '.join(line)} |" for line in (first, rule, *others))
    widths = [max(map(len, [name, *cells])) for name, cells in columns.items()]
    told = [heading, *zip(*columns.values(), strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if name in numbers else cell.ljust(width)
            for name, cell, width in zip(heading, line, widths, strict=True)
        ).rstrip()
        for line in told
    )


def _texts(column: pa.ChunkedArray, local: Clock) -> list[str]:
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

    >>> _escaped("a|b"), _escaped("<i>"), _escaped("[0, 5)"), _escaped("![x](y)"), _escaped("of_ward")
    ('a\\\\|b', '&lt;i>', '[0, 5)', '![x\\\\](y)', 'of_ward')
    """
    plain = " ".join(cell.replace("&", "&amp;").replace("<", "&lt;").splitlines())
    return re.sub(r"[\\|*`~\]]|(?<!\w)_|_(?!\w)", r"\\\g<0>", plain)

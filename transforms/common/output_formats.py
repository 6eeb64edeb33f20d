"""Formats of published files: how a table becomes a file, a file a table again, and many small files a large one.

A new format is a class here or elsewhere and an entry of `OUTPUT_FORMATS`. Its name is the ending of its files. Text
formats have timestamps in ISO 8601.
"""

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import BinaryIO, ClassVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from transforms.common.errors import RefusedError

Types = Mapping[str, pa.DataType]

DEFAULT = "parquet"
"""Format of published files unless the spec names another one, and of all private files."""


class OutputFormat(ABC):
    """Format of published files.

    Attributes:
        name: Its name in specs, and the ending of its files.
        formulas: Whether spreadsheets open the files, and run texts that begin like formulas.
    """

    name: ClassVar[str]
    formulas: ClassVar[bool] = False

    @abstractmethod
    def write(self, table: pa.Table, file: BinaryIO) -> None:
        """Write a table as the content of a file."""

    @abstractmethod
    def read(self, file: pa.BufferReader, types: Types | None) -> pa.Table:
        """Return the columns of a file that `write` or `join` has made.

        Args:
            file: The file.
            types: The columns, in their order, with their types; None: all columns, with types that the file shows.
        """

    @abstractmethod
    def join(self, contents: Sequence[bytes]) -> bytes:
        """Return one file with the rows of several, in that order.

        Raises:
            RefusedError: The files differ in their columns.
        """


class _Parquet(OutputFormat):
    name = "parquet"

    def write(self, table: pa.Table, file: BinaryIO) -> None:
        pq.write_table(table, file)

    def read(self, file: pa.BufferReader, types: Types | None) -> pa.Table:
        return pq.read_table(file, columns=None if types is None else [*types])

    def join(self, contents: Sequence[bytes]) -> bytes:
        tables = [pq.read_table(pa.BufferReader(content)) for content in contents]
        _refuse_others([table.schema for table in tables])
        file = io.BytesIO()
        pq.write_table(pa.concat_tables(tables), file)
        return file.getvalue()


class _Csv(OutputFormat):
    name = "csv"
    formulas = True

    def write(self, table: pa.Table, file: BinaryIO) -> None:
        pyarrow.csv.write_csv(_plain_times(table), file)

    def read(self, file: pa.BufferReader, types: Types | None) -> pa.Table:
        options = pa.csv.ConvertOptions(
            column_types=types,
            include_columns=[*(types or ())],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return pa.csv.read_csv(file, convert_options=options)

    def join(self, contents: Sequence[bytes]) -> bytes:
        headers, rows = zip(*(content.split(b"\n", 1) for content in contents), strict=True)
        _refuse_others(headers)
        return b"\n".join([headers[0], b"".join(rows)])


class _Lines(OutputFormat):
    name = "jsonl"

    def write(self, table: pa.Table, file: BinaryIO) -> None:
        for batch in _plain_times(table).to_batches(max_chunksize=65_536):
            file.write("".join(json.dumps(row) + "\n" for row in batch.to_pylist()).encode())

    def read(self, file: pa.BufferReader, types: Types | None) -> pa.Table:
        if not file.size():  # of an epoch in which no key was found
            return pa.schema((types or {}).items()).empty_table()
        if types is None:
            return pa.json.read_json(file)
        read = pa.json.ParseOptions(explicit_schema=pa.schema(types.items()), unexpected_field_behavior="ignore")
        return pa.json.read_json(file, parse_options=read).select([*types])

    def join(self, contents: Sequence[bytes]) -> bytes:
        return b"".join(contents)


OUTPUT_FORMATS: dict[str, OutputFormat] = {one.name: one for one in (_Parquet(), _Csv(), _Lines())}


def read_published(content: bytes, format_: str, types: Types) -> pa.Table:
    """Return the columns of `types`, and no others, with the types with which they were written.

    Args:
        content: The file.
        format_: Name of its format.
        types: Name to Arrow type of each column.

    Raises:
        ValueError: The file has another form.
    """
    try:
        table = OUTPUT_FORMATS[format_].read(pa.BufferReader(content), types)
    except (KeyError, OSError, pa.ArrowException) as error:
        raise ValueError("not such a file") from error
    if table.schema.types != [*types.values()]:
        raise ValueError("columns of other types")
    return table


def read_whole(content: bytes, path: str) -> pa.Table:
    """Return all columns of a published file, whose format is the ending of its path, with types that it shows."""
    ending = path.rpartition(".")[2]
    return OUTPUT_FORMATS[ending].read(pa.BufferReader(content), None).replace_schema_metadata(None)


def format_of(path: str) -> str | None:
    """Return the format that a path's ending names; None for other endings."""
    return next((name for name in OUTPUT_FORMATS if path.endswith(f".{name}")), None)


def _plain_times(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            text = pa.compute.strftime(table.column(place), format="%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(place, field.name, text)
    return table


def _refuse_others(columns: Sequence[object]) -> None:
    if any(one != columns[0] for one in columns):
        raise RefusedError("files of one query differ in their columns, so they are not joined")

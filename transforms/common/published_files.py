"""Read a published table from a file of any output format, with the types with which it was written."""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from transforms.common.sinks import OutputFormat

Types = Mapping[str, pa.DataType]


def read_published(content: bytes, format_: OutputFormat, types: Types) -> pa.Table:
    """Return the columns of `types`, and no others.

    Args:
        content: The file.
        format_: Its format.
        types: Name to Arrow type of each column.

    Raises:
        ValueError: The file has another form.
    """
    try:
        table = _READERS[format_](pa.BufferReader(content), types)
    except (KeyError, OSError, pa.ArrowException) as error:
        raise ValueError("not such a file") from error
    if table.schema.types != [*types.values()]:
        raise ValueError("columns of other types")
    return table


def _read_parquet(file: pa.BufferReader, types: Types) -> pa.Table:
    return pq.read_table(file, columns=[*types])


def _read_csv(file: pa.BufferReader, types: Types) -> pa.Table:
    options = pa.csv.ConvertOptions(
        column_types=types, include_columns=[*types], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return pa.csv.read_csv(file, convert_options=options)


def _read_lines(file: pa.BufferReader, types: Types) -> pa.Table:
    read = pa.json.ParseOptions(explicit_schema=pa.schema(types.items()), unexpected_field_behavior="ignore")
    return pa.json.read_json(file, parse_options=read).select([*types])


_READERS: dict[OutputFormat, Callable[[pa.BufferReader, Types], pa.Table]] = {
    "parquet": _read_parquet,
    "csv": _read_csv,
    "jsonl": _read_lines,
}

"""Private state between runs as Parquet files: a table is a list of structs, an array a list of numbers.

So all state of a shard is in one file that any Parquet reader opens. Long tables are cut into pieces, one a row: Arrow
cannot read more than 2 GiB of text at once. Pages have checksums, so a reader detects damage. Dictionaries are off:
keys hardly ever repeat, and the attempt takes five times as long as Zstandard alone.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PIECE = 1 << 20
"""Rows of a table in one list."""


def list_of(values: np.ndarray | pa.Array) -> pa.LargeListArray:
    """Return one list of all values, of values [n]."""
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], type=pa.int64()), pa.array(values))


def lists_of(tables: Mapping[str, pa.Table]) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Return a column for each table, all of one length; nulls for a table without columns, since structs need one."""
    pieces = max(1, *(-(-table.num_rows // PIECE) for table in tables.values()))
    return {name: _lists(table, pieces) if table.num_columns else pa.nulls(pieces) for name, table in tables.items()}


def _lists(table: pa.Table, pieces: int) -> pa.ChunkedArray:
    parts = (table.slice(place * PIECE, PIECE) for place in range(pieces))
    return pa.chunked_array([list_of(part.to_struct_array().combine_chunks()) for part in parts])


def table_of(column: pa.ChunkedArray) -> pa.Table:
    """Return the table of one column of `lists_of`.

    >>> table = pa.table({"key": ["a", "b"], "used": [1, 4]})
    >>> table_of(lists_of({"units": table})["units"]).equals(table)
    True
    """
    if pa.types.is_null(column.type):
        return pa.table({})
    return pa.concat_tables(pa.Table.from_struct_array(rows.values) for rows in column.chunks)


def to_parquet(columns: Mapping[str, pa.Array | pa.ChunkedArray], *, metadata: Mapping[bytes, bytes]) -> bytes:
    """Return columns of one length as a Parquet file with one row in each row group."""
    table = pa.table(dict(columns)).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=1, compression="zstd", use_dictionary=False, write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def from_parquet(payload: bytes) -> pa.Table:
    """Return the columns, with a chunk for each row.

    Raises:
        ValueError: The bytes are not a Parquet file, or a damaged one.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(payload), page_checksum_verification=True) as file:
            return pa.concat_tables(file.read_row_group(row, use_threads=False) for row in range(file.num_row_groups))
    except OSError as error:  # Arrow's errors for damaged files
        raise ValueError(str(error)) from error

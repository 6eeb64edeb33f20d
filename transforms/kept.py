"""What the private side keeps between runs, as Parquet files of one row: a table is a list of structs, an array a list.

So all of a shard is in one file that any Parquet reader opens. Dictionaries are off: keys hardly ever repeat, and
trying takes five times as long as Zstandard alone.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def list_of(values: pa.Table | np.ndarray) -> pa.Array:
    """One list with all rows or numbers; null for a table without columns, since structs have at least one field."""
    if isinstance(values, np.ndarray):
        items = pa.array(values)
    elif values.num_columns == 0:
        return pa.nulls(1)
    else:
        items = values.combine_chunks().to_struct_array().combine_chunks()
    return pa.LargeListArray.from_arrays(pa.array([0, len(items)], type=pa.int64()), items)


def table_of(column: pa.ChunkedArray) -> pa.Table:
    """The table that `list_of` made a list of.

    >>> table = pa.table({"key": ["a", "b"], "used": [1, 4]})
    >>> table_of(pa.chunked_array([list_of(table)])).equals(table)
    True
    """
    if pa.types.is_null(column.type):
        return pa.table({})
    return pa.Table.from_struct_array(column.chunk(0).values)


def to_parquet(columns: Mapping[str, pa.Array], *, metadata: Mapping[bytes, bytes] | None = None) -> bytes:
    """Columns of one row each as a Parquet file."""
    table = pa.table(dict(columns)).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False)
    return sink.getvalue().to_pybytes()


def from_parquet(payload: bytes) -> pa.Table:
    """The one row.

    Raises:
        ValueError: bytes that are no Parquet file.
    """
    try:
        return pq.ParquetFile(pa.BufferReader(payload)).read(use_threads=False)
    except OSError as error:  # how Arrow tells some kinds of broken files
        raise ValueError(str(error)) from error

"""Arrow tables as bytes: runners move bytes safely, but not Arrow objects."""

import pyarrow as pa

from transforms.common.compact import restore

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Options of streams: runners copy shuffled data several times, so compression saves time and half of their memory."""


def to_bytes(table: pa.Table) -> bytes:
    """Return one table as an Arrow IPC stream; a slice is cut to its rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_bytes(payload: bytes) -> pa.Table:
    """Return the table of one IPC stream."""
    return restore(pa.ipc.open_stream(pa.py_buffer(payload)).read_all())

"""Arrow tables as bytes that a runner can move: bytes cross runners safely where Arrow objects do not."""

import pyarrow as pa

from transforms.common.compact import restore

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Runners copy what they shuffle several times; packing it costs less than that, and halves their memory."""


def to_bytes(table: pa.Table) -> bytes:
    """One table as an Arrow IPC stream; a slice is cut to its own rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_bytes(payload: bytes) -> pa.Table:
    """The table of one IPC stream."""
    return restore(pa.ipc.open_stream(pa.py_buffer(payload)).read_all())

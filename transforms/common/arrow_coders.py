"""Beam coders for Arrow tables and batches: Arrow IPC instead of pickles.

Beam uses a coder not only to send data to another worker: it also encodes some elements to estimate their size, and a
pickled slice of a table contains all of its parent's buffers. So these coders also compute sizes cheaply. Importing
this module registers them. If a type hint is missing, Beam uses pickles, which is correct but slow.
"""

import json

import apache_beam as beam
import numpy as np
import pyarrow as pa

from transforms.common.batches import Batch
from transforms.common.ipc import from_bytes, to_bytes

_META = b"slackwater.batch"
_GAPS = "gaps"


class TableCoder(beam.coders.Coder):
    """Coder of `pa.Table` as one Arrow IPC stream."""

    def encode(self, value: pa.Table) -> bytes:
        return to_bytes(value)

    def decode(self, encoded: bytes) -> pa.Table:
        return from_bytes(encoded)

    def estimate_size(self, value: pa.Table) -> int:
        return int(value.nbytes)

    def to_type_hint(self) -> type[pa.Table]:
        return pa.Table


class BatchCoder(beam.coders.Coder):
    """Coder of `Batch` as one Arrow IPC stream; file and row numbers are in the schema's metadata and a column."""

    def encode(self, value: Batch) -> bytes:
        table = value.table
        if value.gaps is not None:
            table = table.append_column(_GAPS, pa.array(value.gaps))
        place = json.dumps([value.file, value.first_row]).encode()
        return to_bytes(table.replace_schema_metadata({_META: place}))

    def decode(self, encoded: bytes) -> Batch:
        table = from_bytes(encoded)
        file, first_row = json.loads(table.schema.metadata[_META])
        gaps = table[_GAPS].to_numpy().astype(np.int64) if _GAPS in table.column_names else None
        if gaps is not None:
            table = table.drop_columns([_GAPS])
        return Batch(file, first_row, table.replace_schema_metadata(None), gaps)

    def estimate_size(self, value: Batch) -> int:
        return int(value.table.nbytes)

    def to_type_hint(self) -> type[Batch]:
        return Batch


beam.coders.registry.register_coder(pa.Table, TableCoder)
beam.coders.registry.register_coder(Batch, BatchCoder)

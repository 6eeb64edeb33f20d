"""Exchange of tables between workers that share a disk: tables pass as files, and the runner moves only their places.

    in    (number, pa.Table) ...     parts of one table
    out   (number, bytes) ...        place of each part: one file for all of them, in Arrow's layout in memory
    in    bytes
    out   pa.Table                   mapped into memory, not copied unless it is small

Beam's embedded runner keeps all data that it moves in memory, and copies it about ten times. A step that runs twice
writes another file; only places that arrive count. The files are useless after the pipeline, and they hold exact rows,
so other users cannot read them and they are removed as soon as it ends.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from transforms.common.sinks import NEW, naming

FOLDER = "exchange"

BUFFER = 2**16
"""Bytes that are written at once: a part has a buffer for each column.

The system keeps larger writes in larger units, and counts all of a unit to a process that maps some of it.
"""

MAPPED = 2**16
"""Bytes from which a part is mapped. A process can have 65,530 mappings, and many small files have more parts."""


@contextmanager
def folder_in(folder: str) -> Iterator[str]:
    """Yield a folder for the files of one pipeline, in an existing private folder. At the end it is removed.

    A killed process leaves it in `folder`.
    """
    within = Path(folder, FOLDER)
    within.mkdir(mode=0o700)
    try:
        yield str(within)
    finally:
        shutil.rmtree(within, ignore_errors=True)


def put(parts: Iterable[tuple[int, pa.Table]], folder: str) -> Iterator[tuple[int, bytes]]:
    """Write parts of one schema, each with rows, as one file, and yield their places after all of them are written.

    The file begins with the schema, so that no part holds it: with hundreds of shards, parts are small.
    """
    path = Path(folder, secrets.token_hex(16))
    places: list[tuple[int, int, int]] = []
    with naming(path):
        os.close(os.open(path, NEW, 0o600))
    with naming(path), pa.OSFile(str(path), "wb") as unbuffered, pa.BufferedOutputStream(unbuffered, BUFFER) as file:
        for number, part in parts:
            if not places:
                stream = pa.ipc.new_stream(file, part.schema)
                stream.write_batch(pa.RecordBatch.from_pylist([], part.schema))  # otherwise the first part has it
            begin = file.tell()
            (batch,) = part.combine_chunks().to_batches()  # `get` reads one
            stream.write_batch(batch)
            places.append((number, begin, file.tell() - begin))
    for number, begin, size in places:
        yield number, json.dumps([str(path), begin, size]).encode()


def get(place: bytes) -> pa.Table:
    """Return the table at a place; it keeps its part of the file mapped, unless it is small."""
    path, begin, size = json.loads(place)
    schema = _schema(path)
    with naming(path), pa.memory_map(path) if size >= MAPPED else pa.OSFile(path) as file:
        file.seek(begin)
        message = pa.ipc.read_message(file.read_buffer(size))
    return pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])


@lru_cache(maxsize=2**14)
def _schema(path: str) -> pa.Schema:
    with naming(path), pa.OSFile(path) as file:
        return pa.ipc.read_schema(file)

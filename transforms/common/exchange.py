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
from pathlib import Path

import pyarrow as pa

from transforms.common.sinks import NEW, naming

FOLDER = "exchange"

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
    """Write parts as one file, and yield their places after all of them are written."""
    path, places = Path(folder, secrets.token_hex(16)), []
    with naming(path):
        os.close(os.open(path, NEW, 0o600))
    with naming(path), pa.OSFile(str(path), "wb") as file:
        for number, part in parts:
            begin = file.tell()
            with pa.ipc.new_stream(file, part.schema) as stream:
                stream.write_table(part)
            places.append((number, begin, file.tell() - begin))
    for number, begin, size in places:
        yield number, json.dumps([str(path), begin, size]).encode()


def get(place: bytes) -> pa.Table:
    """Return the table at a place; it keeps its part of the file mapped, unless it is small."""
    path, begin, size = json.loads(place)
    with naming(path), pa.memory_map(path) if size >= MAPPED else pa.OSFile(path) as file:
        file.seek(begin)
        return pa.ipc.open_stream(file.read_buffer(size)).read_all()

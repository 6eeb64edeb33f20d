"""Tables on their way between workers that share a disk: as files, of which a runner moves only the places.

    in    (number, pa.Table) ...     parts of one table
    out   (number, bytes) ...        where each is: a file for all of them, as Arrow lays them out in memory
    in    bytes
    out   pa.Table                   mapped into memory, not copied unless it is small

Beam's embedded runner keeps what it moves in memory, and copies it about ten times. A step that runs twice writes
another file; what counts is what places arrive. Nobody needs the files after the pipeline: they are exact rows, so they
are closed to others and removed as soon as it ends.
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
"""Bytes from which a part is mapped. A process may have 65,530 mappings, and many small files have more parts."""


@contextmanager
def folder_in(folder: str) -> Iterator[str]:
    """A folder for the files of one pipeline, in a private one that is there; with all that is in it gone at the end.

    Whoever is killed leaves it where he worked, in `folder`.
    """
    within = Path(folder, FOLDER)
    within.mkdir(mode=0o700)
    try:
        yield str(within)
    finally:
        shutil.rmtree(within, ignore_errors=True)


def put(parts: Iterable[tuple[int, pa.Table]], folder: str) -> Iterator[tuple[int, bytes]]:
    """Write parts as one file; where they are, once all of them are there."""
    path, places = Path(folder, secrets.token_hex(16)), []
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
    """The table at a place; it keeps its part of the file mapped, unless that is small."""
    path, begin, size = json.loads(place)
    with pa.memory_map(path) if size >= MAPPED else pa.OSFile(path) as file:
        file.seek(begin)
        return pa.ipc.open_stream(file.read_buffer(size)).read_all()

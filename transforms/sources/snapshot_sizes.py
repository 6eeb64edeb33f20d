"""Snapshots that have lost too many rows: they are probably incomplete, and would look like a mass deletion.

Counts are exact facts about the data: these messages are for the owner of the data only.
"""

import json
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from privacy.counted import counted
from transforms.common.sinks import read_bytes
from transforms.sources.columns.layout import Layout
from transforms.sources.files.snapshot_paths import instant_of


def shrinks(layout: Layout, folder: str, share: float) -> list[str]:
    """Return a line for each snapshot that has fewer than 1 - `share` of the usable rows of the one before it.

    Args:
        layout: Layout with the snapshots.
        folder: Diagnostics of the run that read them.
        share: Largest share of rows that may disappear.
    """
    usable = _usable(folder)
    first: dict[int, str] = {}
    rows: Counter[int] = Counter()
    for file in layout.base + layout.files:
        instant = instant_of(layout.source, file.path)
        first.setdefault(instant, file.path)
        rows[instant] += usable[file.path]
    instants = sorted(first)
    return [
        f"{first[now]}: this snapshot has {counted(rows[now], 'usable row')}, and the one before it {rows[before]}; "
        f"changelog.shrink allows a loss of {share:.0%}; if it is half-written, write it again"
        for before, now in pairwise(instants)
        if rows[now] < (1 - share) * rows[before]
    ]


def _usable(folder: str) -> Counter[str]:
    """Return the number of usable rows of each file."""
    usable = Counter(json.loads(read_bytes(FileSystems.join(folder, "read.json")))["rows_read"])
    letters = pa.BufferReader(read_bytes(FileSystems.join(folder, "dead_letters.parquet")))
    dead = pq.read_table(letters, columns=["file", "row"])
    counts = pc.value_counts(dead.filter(dead["row"].is_valid())["file"])
    usable.subtract({count["values"]: count["counts"] for count in counts.to_pylist()})
    return usable

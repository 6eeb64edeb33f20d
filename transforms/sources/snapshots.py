"""Differences of consecutive snapshots: the changelog of a table that exists only as dated copies.

    in    Batch(file, first_row, table)     all rows of all snapshots, normalised: `entry`, `owner` and `after.*`
    out   Batch(file, first_row, table)     the changes, normalised, with `time` and `before.*` too
    dead  pa.Table(file, row, reason)       rows whose entry is in the snapshot already

A difference between two snapshots is dated at the last microsecond before the later one, so that levels at a snapshot's
instant are those of the snapshot. All rows of the first snapshot are insertions, unless an earlier run has read it. If
there are owners, entries are distinguished by owner and key: an entry that changes hands is deleted for one owner and
inserted for the other, so the changes of an owner depend on no other owner's rows.

Rows are grouped by entry and by blocks of a few snapshots; the last snapshot of a block is the first of the next one.
So a group does not grow with the number of snapshots, and most rows are moved once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.batches import DEAD, FILE, POSITION, Batch, dead_letters
from transforms.common.compact import compact
from transforms.common.hashing import unit_hash
from transforms.common.images import IMAGE
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.kinds import one_chunk, plain
from transforms.common.several import Collections
from transforms.common.threaded import Threaded
from transforms.sources.columns.layout import Layout
from transforms.sources.files.listing import Listed
from transforms.sources.files.snapshot_paths import instant_of

Ints = np.ndarray
Group = tuple[int, bytes]
"""(block and shard as one number, rows as Arrow IPC)."""

SPAN = 8
"""Steps from one snapshot to the next in a block."""

GROUP_BYTES = 8 * 2**20
"""Approximate bytes of the files in one group, which is held in memory as a whole."""

_MOST_SHARDS = 2**16
_FIRST = b"first row"
_CODES, _FEW = pa.dictionary(pa.int8(), pa.string()), 100

REPEATED = "the entry is in this snapshot already; of its rows the first counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Snapshots to compare.

    Attributes:
        instants: Instants of the snapshots, in order, in microseconds since the epoch.
        files: Their files, in order.
        snapshot: Number of each file's snapshot.
        opens: Whether the first snapshot is insertions, and not only compared with the second.
        shards: Number of shards into which entries are split.
    """

    instants: tuple[int, ...]
    files: tuple[str, ...]
    snapshot: tuple[int, ...]
    opens: bool
    shards: int

    @property
    def blocks(self) -> int:
        return max(1, -(-(len(self.instants) - 1) // SPAN))

    def blocks_of(self, snapshot: int) -> list[int]:
        """Return the blocks that compare a snapshot with the previous or the next one."""
        return [block for block in sorted({(snapshot - 1) // SPAN, snapshot // SPAN}) if 0 <= block < self.blocks]


def comparison_of(layout: Layout) -> Comparison:
    """Return the snapshots of a layout, by the dates in their paths."""
    files = [(instant_of(layout.source, file.path), file) for file in layout.base + layout.files]
    instants = sorted({instant for instant, _ in files})
    return Comparison(
        instants=tuple(instants),
        files=tuple(file.path for _, file in files),
        snapshot=tuple(instants.index(instant) for instant, _ in files),
        opens=not layout.base,
        shards=min(_MOST_SHARDS, -(-_largest(files) * min(len(instants), SPAN + 1) // GROUP_BYTES) or 1),
    )


def _largest(files: Sequence[tuple[int, Listed]]) -> int:
    """Return the bytes of the largest snapshot."""
    sizes: dict[int, int] = {}
    for instant, file in files:
        sizes[instant] = sizes.get(instant, 0) + file.size
    return max(sizes.values(), default=0)


class CompareSnapshots(beam.PTransform):
    """Transform from batches of all rows to batches of changes, with dead letters under the tag `DEAD`."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._comparison = comparison_of(layout)

    def expand(self, batches: beam.PCollection[Batch]) -> Collections:
        to_groups = partial(route, comparison=self._comparison)
        to_changes = partial(compare, comparison=self._comparison)
        found = (
            batches
            | "SplitByEntry" >> beam.ParDo(Threaded(to_groups)).with_output_types(Group)
            | "GatherEntries" >> beam.GroupByKey()
            | "Compare" >> beam.ParDo(Threaded(to_changes))
        )
        return {
            "rows": found | "Changes" >> beam.Filter(lambda part: not _is_dead(part)).with_output_types(Batch),
            DEAD: found | "Repeated" >> beam.Filter(_is_dead).with_output_types(pa.Table),
        }


def _is_dead(part: Batch | pa.Table) -> bool:
    return isinstance(part, pa.Table)


def route(batch: Batch, comparison: Comparison) -> Iterator[Group]:
    """Yield the rows of a batch for the groups that need them, with the numbers of their file and row."""
    number = comparison.files.index(batch.file)
    table = batch.table.drop_columns(["after", POSITION, FILE])
    rows = batch.row_numbers(np.arange(table.num_rows))
    table = table.append_column("file", pa.repeat(number, table.num_rows)).append_column("row", pa.array(rows))
    for shard, part in _split(table, comparison.shards):
        payload = _pack(part)
        for block in comparison.blocks_of(comparison.snapshot[number]):
            yield block * comparison.shards + shard, payload


def _split(table: pa.Table, shards: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield rows by the hash of their entries, in their order, without empty shards."""
    # NumPy sorts 16-bit integers in linear time.
    shard = (unit_hash(one_chunk(table["entry"])) % np.uint64(shards)).astype(np.uint16)
    order = np.argsort(shard, kind="stable")
    ends = np.cumsum(np.bincount(shard, minlength=shards))
    ordered = table.take(pa.array(order))
    for number, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        if end > begin:
            yield number, ordered.slice(begin, end - begin)


def _pack(part: pa.Table) -> bytes:
    """Return rows in few bytes: differences of row numbers, and codes of repeated texts."""
    columns = dict(zip(part.column_names, part.columns, strict=True))
    rows = part["row"].to_numpy()
    columns["row"] = pa.array(np.diff(rows, prepend=rows[0]))
    for name in _states(part):
        values = one_chunk(part[name])
        if pa.types.is_dictionary(values.type):
            few = len(values.dictionary) <= _FEW
            columns[name] = values.cast(_CODES) if few else values.dictionary_decode()
    return to_bytes(compact(pa.table(columns)).replace_schema_metadata({_FIRST: str(rows[0])}))


def unpack(payload: bytes) -> pa.Table:
    """Return the rows of a part, with texts decoded."""
    part = from_bytes(payload)
    columns = {name: plain(one_chunk(part[name])) for name in part.column_names}
    return pa.table(columns | {"row": np.cumsum(part["row"].to_numpy()) + int(part.schema.metadata[_FIRST])})


def compare(group: tuple[int, Iterable[bytes]], comparison: Comparison) -> Iterator[Batch | pa.Table]:
    block = group[0] // comparison.shards
    first = block * SPAN
    instants = comparison.instants[first : first + SPAN + 1]
    rows = pa.concat_tables([unpack(payload) for payload in group[1]]).combine_chunks()
    file = rows["file"].to_numpy()
    snapshot = np.array(comparison.snapshot)[file] - first
    changes, repeated = differences(rows, snapshot, instants, opens=comparison.opens and block == 0)
    if changes.num_rows:
        yield Batch(comparison.files[file.max()], 0, changes)
    repeated = repeated[(snapshot[repeated] > 0) | (block == 0)]  # the previous block holds its last snapshot
    numbers = rows["row"].to_numpy()[repeated]
    for which in np.unique(file[repeated]).tolist():
        yield dead_letters(comparison.files[which], np.sort(numbers[file[repeated] == which]), REPEATED)


def differences(rows: pa.Table, snapshot: Ints, instants: Sequence[int], *, opens: bool) -> tuple[pa.Table, Ints]:
    """Return the changes from each snapshot to the next.

    With owners, the changes of an owner are a function of that owner's rows. So one unit's rows change only that unit's
    mutations.

    Args:
        rows: All rows of some entries, in any order: `entry`, `owner` if there are owners, `after.<col>`, and `file`
            and `row`, which only decide which of several rows of an entry counts.
        snapshot: Number of each row's snapshot, int64 [rows].
        instants: Instants of the snapshots, in microseconds since the epoch.
        opens: Whether there was nothing before the first snapshot.

    Returns:
        Normalised mutations, and the positions of rows that do not count because their entry exists already, int64 [n].
    """
    chain = _chains(rows)
    chains = int(chain.max(initial=-1)) + 1
    slot = snapshot * chains + chain
    at = np.full(len(instants) * chains, -1)
    at[slot] = np.arange(len(slot))
    repeated = np.flatnonzero(at[slot] != np.arange(len(slot)))
    if len(repeated):
        kept, repeated = _first(rows, slot, slot[repeated])
        at[slot[kept]] = kept
    columns = [values for name in _states(rows) for values in _comparable(rows[name])]
    steps = []
    known = np.full(chains, -1)
    for number, (now, instant) in enumerate(zip(at.reshape(len(instants), chains), instants, strict=True)):
        if number or opens:
            changed = (known < 0) != (now < 0)
            both = np.flatnonzero((known >= 0) & (now >= 0))
            for values in columns:
                changed[both] |= values[known[both]] != values[now[both]]
            found = np.flatnonzero(changed)
            steps.append((known[found], now[found], np.full(len(found), instant - 1)))
        known = now
    before, after, time = map(np.concatenate, zip(*steps, strict=True)) if steps else (known[:0],) * 3
    return _mutations(rows, before, after, time), repeated


def _chains(rows: pa.Table) -> Ints:
    """Return a code from 0 without gaps for each entry, or each entry of an owner, by the keys themselves."""
    entry = pc.dictionary_encode(one_chunk(rows["entry"]))
    codes = entry.indices.to_numpy()
    if "owner" in rows.column_names:
        owner = pc.dictionary_encode(one_chunk(rows["owner"])).indices.to_numpy()
        pairs = owner.astype(np.int64) * len(entry.dictionary) + codes
        codes = pc.dictionary_encode(pa.array(pairs)).indices.to_numpy()
    return codes.astype(np.int64)


def _states(rows: pa.Table) -> list[str]:
    return [name for name in rows.column_names if name.startswith("after.")]


def _first(rows: pa.Table, slot: Ints, shared: Ints) -> tuple[Ints, Ints]:
    """Return the row of each shared slot that is first in the sorted files, and the other rows.

    The first by content would depend on which columns queries need.
    """
    tied = np.flatnonzero(np.isin(slot, shared))
    order = np.lexsort([rows["row"].to_numpy()[tied], rows["file"].to_numpy()[tied], slot[tied]])
    first = np.insert(np.diff(slot[tied][order]) != 0, 0, True)
    return tied[order[first]], np.sort(tied[order[~first]])


def _comparable(column: pa.ChunkedArray) -> Iterator[Ints]:
    """Yield arrays that are equal where the values are; null equals null, and NaN equals NaN."""
    values = one_chunk(column)
    if pa.types.is_string(values.type):
        yield pc.dictionary_encode(values).indices.fill_null(-1).to_numpy()
        return
    if values.null_count:
        yield values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        numbers = values.fill_null(0.0).to_numpy() + 0.0  # one zero
        yield np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    else:
        yield values.cast(pa.int64()).fill_null(0).to_numpy()


def _mutations(rows: pa.Table, before: Ints, after: Ints, time: Ints) -> pa.Table:
    """Return normalised rows; `before` and `after` are positions, -1 if there was no state."""
    some = pa.array(np.where(after >= 0, after, before))
    columns = {"entry": rows["entry"].take(some), "time": pa.array(time)}
    if "owner" in rows.column_names:
        columns["owner"] = rows["owner"].take(some)
    for side, at in (("before", before), ("after", after)):
        columns[side] = pa.array(at >= 0)
        columns[f"{IMAGE}.{side}"] = pa.array((at >= 0).astype(np.uint32))  # an entry has at most one row at a time
        place = pa.array(at, mask=at < 0)
        for name in _states(rows):
            values = rows[name].take(place)
            is_text = pa.types.is_string(values.type)
            columns[name.replace("after", side, 1)] = values.dictionary_encode() if is_text else values
    return pa.table(columns)

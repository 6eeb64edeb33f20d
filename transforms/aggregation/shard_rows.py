"""A shard's rows by their numbers: states carried from earlier runs first, then the mutations, as projected."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.batches import FILE, POSITION, ROW_BITS
from transforms.common.images import IMAGE

BEFORE_ALL = np.iinfo(np.int64).min
"""Time of initial rows and of carried states."""

SHORT = 4
"""Most bits of a source order that is sorted together with the times."""

Ints = np.ndarray


@dataclass(frozen=True, slots=True)
class ShardRows:
    """Columns of a shard by row number.

    If `images`, there are digests of the after images; if `has_before`, also of the before images.
    """

    table: pa.Table
    carried: pa.Table | None

    @property
    def images(self) -> bool:
        return f"{IMAGE}.after" in self.table.column_names

    @property
    def has_before(self) -> bool:
        return f"{IMAGE}.before" in self.table.column_names

    @property
    def orders(self) -> list[str]:
        return [name for name in self.table.column_names if name.startswith("order.")]

    def after(self, name: str, rows: Ints) -> Ints:
        """Return column after.NAME of some rows, [rows]."""
        return to_numpy(with_carried(self.table, self.carried, f"after.{name}"))[rows]

    def image_after(self, rows: Ints) -> Ints:
        """Return digests of the after images, int64 [rows]."""
        return to_numpy(with_carried(self.table, self.carried, f"{IMAGE}.after"))[rows].astype(np.int64)

    def image_before(self, rows: Ints) -> Ints:
        """Return digests of the before images, int64 [rows]. Carried rows have none and are not allowed."""
        known = 0 if self.carried is None else self.carried.num_rows
        return to_numpy(self.table[f"{IMAGE}.before"])[rows - known].astype(np.int64)

    def before(self, name: str, rows: Ints) -> Ints:
        """Return column before.NAME of some rows, [rows]. Carried rows have none and are not allowed."""
        known = 0 if self.carried is None else self.carried.num_rows
        return to_numpy(self.table[f"before.{name}"])[rows - known]

    def short_order(self) -> Ints | None:
        """Return the first source order if it has few values and no image orders ties, such as ends and begins.

        Returns:
            uint8 [rows], from 0 on, of carried rows 0; None for an order of another kind.
        """
        column = None if self.images or not self.orders else self.table[self.orders[0]]
        if column is None or not pa.types.is_integer(column.type) or column.null_count:
            return None
        values = to_numpy(column)
        low = int(values.min(initial=0))
        if values.max(initial=0) - low >= 1 << SHORT:
            return None
        known = 0 if self.carried is None else self.carried.num_rows
        return np.concatenate([np.zeros(known, np.uint8), (values - low).astype(np.uint8)])

    def place(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the file of each row and the row's number in it, both int64 [rows]. Carried rows are not allowed."""
        known = 0 if self.carried is None else self.carried.num_rows
        found = self.table.select([FILE, POSITION]).take(pa.array(rows - known))
        return to_numpy(found[FILE]).astype(np.int64), to_numpy(found[POSITION]) & ((1 << ROW_BITS) - 1)

    def order(self, name: str, rows: Ints) -> Ints:
        """Return the source order as integers that sort in the same way, int64 [rows]."""
        known = 0 if self.carried is None else self.carried.num_rows
        column = self.table[name].take(pa.array(rows - known))
        if pa.types.is_integer(column.type):
            return to_numpy(column.cast(pa.int64()).fill_null(BEFORE_ALL))
        return to_numpy(pc.rank(column, tiebreaker="dense"))


def with_carried(table: pa.Table, carried: pa.Table | None, name: str) -> pa.ChunkedArray:
    """Return a column of both tables, carried rows first.

    Args:
        table: Projected mutations.
        carried: Last known states of entries; None if there are no such rows.
        name: Name of the column.
    """
    if carried is None:
        return table[name]
    return pa.chunked_array([*carried[name].chunks, *table[name].chunks], type=table[name].type)


def to_numpy(column: pa.ChunkedArray | pa.Array) -> Ints:
    return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()


def lasting_orders(table: pa.Table) -> list[str]:
    """Return the columns of the source order that holds across runs; a position in the files does not."""
    return [name for name in table.column_names if name.startswith("order.") and name != POSITION]

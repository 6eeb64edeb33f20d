"""Truncates: the row for a table that was emptied at once becomes a deletion of each existing entry.

    in    pa.Table      projected rows of one shard, truncates among them: rows without an entry
          pa.Table      the last known rows of entries seen in earlier runs
    out   pa.Table      for each truncate a deletion of every entry known from before it

A truncate belongs to no unit: neighbouring changelogs share it, and its effect on one unit's entries depends on that
unit's rows only. It goes to every shard (transforms.aggregation.sharding) and is kept permanently, since rows may come
late.
"""

import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.projection import nothing
from transforms.aggregation.sharding import unit_column
from transforms.common.images import IMAGE


def split(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of entries, and the truncates."""
    if table["entry"].null_count == 0:
        return table, table.slice(0, 0)
    is_truncate = table["entry"].is_null()
    return table.filter(pc.invert(is_truncate)), table.filter(is_truncate)


def deletions(truncates: pa.Table, rows: pa.Table, known: pa.Table | None) -> pa.Table:
    """Return the deletions that truncates cause, of entries with a row before them or at their time.

    Args:
        truncates: Truncates, rows without entry.
        rows: Rows of entries.
        known: `unit` (owners only), `entry` and `time` of entries seen before, or None. Time is null if only the before
            image of a later row is known: that row counts when it comes, among `rows`.

    Returns:
        Rows with the columns of `rows`, one for each entry and truncate, whether or not the entry still exists.
    """
    keys = ["entry"] if unit_column(rows) == "entry" else ["unit", "entry"]
    first = rows.group_by(keys).aggregate([("time", "min")]).rename_columns([*keys, "time"])
    if known is not None and known.num_rows:
        first = pa.concat_tables([first, known.select([*keys, "time"])])
    found = []
    for place in range(truncates.num_rows):
        truncate = truncates.slice(place, 1)
        before = pc.less_equal(first["time"], truncate["time"][0])
        entries = first.filter(before).group_by(keys).aggregate([])
        columns = {name: pa.repeat(truncate[name][0], entries.num_rows) for name in rows.column_names}
        columns |= {name: entries[name] for name in keys}
        columns |= {
            name: nothing(name, rows.schema.field(name).type, entries.num_rows)
            for name in rows.column_names
            if name.startswith(("before.", "after.", f"{IMAGE}."))
        }
        found.append(pa.table(columns).cast(rows.schema))
    return pa.concat_tables([rows.slice(0, 0), *found])

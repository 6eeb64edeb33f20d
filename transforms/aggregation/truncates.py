"""A table that was emptied at once: the one row that says so becomes a deletion of each entry that was there.

    in    pa.Table      projected rows of one shard, truncates among them: rows without an entry
          pa.Table      the last known rows of entries seen in earlier runs
    out   pa.Table      the rows, and for each truncate a deletion of every entry known from before it

A truncate is nobody's: neighbouring changelogs share it, and what it does to one unit's entries depends on that unit's
rows alone. It reaches every shard (transforms.aggregation.sharding) and is kept for ever, since rows may come late.
"""

import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.projection import nothing
from transforms.aggregation.sharding import unit_column
from transforms.common.images import IMAGE


def split(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of entries, and truncates."""
    if table["entry"].null_count == 0:
        return table, table.slice(0, 0)
    is_truncate = table["entry"].is_null()
    return table.filter(pc.invert(is_truncate)), table.filter(is_truncate)


def deletions(truncates: pa.Table, rows: pa.Table, known: pa.Table | None) -> pa.Table:
    """What the truncates do to entries with a row before them, or at their time.

    Args:
        rows: of entries alone.
        known: `unit` (owners only), `entry` and `time` of entries seen before, or None. Time is null where all that
            is known is the image before a row to come: that row counts when it comes, among `rows`.

    Returns:
        rows with the columns of `rows`; one for each entry and truncate, whether or not the entry is still there.
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

"""Exact results by SQL: from the tables as they are now, and from their history for all windows."""

import itertools
from dataclasses import dataclass
from datetime import datetime

import psycopg

from tests.postgres.stays import EVERY


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query of the spec, with the SQL expressions that compute it.

    Attributes:
        spec: The query's entry in the spec, as YAML on one line.
        kinds: Kinds of series that it publishes.
        cell: Cell of a row; null if the row has none.
        number: Aggregate over the rows of a cell.
        nothing: The aggregate's value for no rows.
    """

    name: str
    spec: str
    kinds: tuple[str, ...]
    cell: str = "''"
    where: str = "true"
    number: str = "count(*)"
    nothing: float | None = 0.0

    def of(self, rows: str) -> str:
        """Return SQL for the rows with their cells."""
        cell = f"case when id is not null and coalesce({self.where}, false) then {self.cell} end"
        return f"(select rows.*, {cell} as cell from {rows} as rows)"


QUERIES = (
    Asked(
        name="beds",
        spec="measure: count, by: {ward: [a, b, other]}",
        kinds=("level", "change", "entered", "left"),
        cell="case when ward in ('a', 'b') then ward else 'other' end",
    ),
    Asked(
        name="adults",
        spec='measure: count, where: "age >= 18 and insured = true"',
        kinds=("level", "change", "entered", "left"),
        where="age >= 18 and insured",
    ),
    Asked(
        name="doses",
        spec="measure: {sum: x, min: 0, max: 10}, by: {ward: [b, a]}",
        kinds=("level", "change"),
        cell="case when ward in ('a', 'b') then ward end",
        number="coalesce(sum(least(greatest(x, 0), 10)), 0)",
    ),
    Asked(
        name="prices",
        spec="measure: {mean: price, min: 1, max: 40}",
        kinds=("level",),
        where="price is not null",
        number="avg(least(greatest(price, 1), 40))",
        nothing=None,
    ),
)

Key = tuple[str, str, int, str]
"""Query, kind, window and cell."""

Numbers = dict[Key, float]
"""Published numbers; cells without rows may be missing."""


def levels(connection: psycopg.Connection, table: str, window: int) -> Numbers:
    """Return the levels of the table as it is now, all from one snapshot.

    Args:
        connection: A connection to the server.
        table: Name of the table.
        window: Number of the window to which the levels belong.
    """
    found: Numbers = {}
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read")
        for query in QUERIES:
            rows = connection.execute(
                f"select cell, {query.number} from {query.of(table)} as t where cell is not null group by cell"
            )
            found |= {(query.name, "level", window, cell): float(number) for cell, number in rows}
    return found


REMEMBERED = """
create temporary table remembered on commit drop as
with told as (
    select key, seq, old, new, pg_xact_commit_timestamp(xmin) as at from history
    where source = %(table)s and pg_xact_commit_timestamp(xmin) >= %(since)s
), states as (
    select key, seq, at, new as state from told
    union all (select distinct on (key) key, 0, '-infinity', old from told where %(images)s order by key, seq)
)
select states.key, states.seq, states.at, state.*
from states left join lateral jsonb_populate_record(null::stays_full, states.state) as state on true
"""
"""States of each key with their times. The state before the first change begins at the start, if it is known."""

LEVELS = """
select until, cell, {number}
from generate_series(-1, %(windows)s - 1) as until cross join lateral (
    select distinct on (key) * from {rows} as t where at < %(start)s + (until + 1) * %(every)s order by key, seq desc
) as latest
where cell is not null group by until, cell
"""

MOVES = """
select floor(extract(epoch from at - %(start)s) / extract(epoch from %(every)s))::int, {cell}, count(distinct key)
from (select key, at, cell, lag(cell) over (partition by key order by seq) as old_cell from {rows} as t) as chained
where at >= %(start)s and at < %(start)s + %(windows)s * %(every)s
    and {cell} is not null and cell is distinct from old_cell group by 1, 2
"""


def history(
    connection: psycopg.Connection, table: str, *, since: datetime, images: bool, start: datetime, windows: int
) -> Numbers:
    """Return the published numbers of all windows, from the changes since `since`.

    Args:
        connection: A connection to the server.
        table: Name of the table.
        since: Time of the first change to use.
        images: Whether the states before the first changes count too.
        start: Start of the first window.
        windows: Number of windows.
    """
    times = {"start": start, "every": EVERY, "windows": windows}
    found: Numbers = {}
    with connection.transaction():
        connection.execute(REMEMBERED, {"table": table, "since": since, "images": images})
        for query in QUERIES:
            rows = query.of("remembered")
            told = connection.execute(LEVELS.format(rows=rows, number=query.number), times)
            ends = {(window, cell): float(number) for window, cell, number in told}
            found |= {(query.name, "level", *key): number for key, number in ends.items() if key[0] >= 0}
            if "change" in query.kinds:
                for window, cell in itertools.product(range(windows), {cell for _, cell in ends}):
                    change = ends.get((window, cell), 0.0) - ends.get((window - 1, cell), 0.0)
                    found[query.name, "change", window, cell] = change
            for kind, cell in (("entered", "cell"), ("left", "old_cell")):
                if kind in query.kinds:
                    moves = connection.execute(MOVES.format(rows=rows, cell=cell), times)
                    found |= {(query.name, kind, window, name): float(count) for window, name, count in moves}
    return found

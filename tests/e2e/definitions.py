"""The definitions in plain SQL: what a release is about, computed by DuckDB from the changelog, without our code.

A chain is one stay of one unit. Its states follow from the mutations in order, each told once; the image before the
first one is a state from before the changelog. A change is where a query's cell or clamped value differs from that of
the state before. The constraint says which changes of a unit count; the others are as if they had not been.
"""

from dataclasses import dataclass

import duckdb
import pyarrow as pa

CHARGED = {
    "entry": "select stay as unit, * from changelog",
    "person": "select person as unit, * from changelog",
    # A change of owner is an end for the old one and a beginning for the new one.
    "nurse": """
        select nurse as unit, changelog.* replace (
            if(before.nurse = nurse, before, null) as before, if(after.nurse = nurse, after, null) as after)
        from changelog, (select unnest(list_distinct([before.nurse, after.nurse])) as nurse)
    """,
}
"""Mutations with the unit that answers for them, by the spec's `unit`."""

CHAINED = """
create or replace table states as
with seen as (
    select unit, stay, moment, min(seq) as place, before, after from ({charged})
    group by unit, stay, moment, {same} before, after
), numbered as (
    select *, row_number() over (partition by unit, stay order by moment, place) as n from seen
)
select unit, stay, moment, place as seq, after as state from numbered
union all select unit, stay, null, 0, before from numbered where n = 1 and before is not null;

create or replace table units as
select unit, min(moment) as first_moment,
    first(state.fare order by moment nulls first, {tie}) filter (state is not null) as class
from states group by unit;
"""

CHANGES = """
create or replace table changes as
with projected as (
    select unit, stay, moment, seq,
        if(state is not null and coalesce({where}, false) and {usable}, {cell}, null) as cell,
        if(cell is null, null, {value}) as v
    from states
), chained as (
    select *, lag(cell) over chain as old_cell, lag(v) over chain as old_v from projected
    window chain as (partition by unit, stay order by moment nulls first, seq)
), numbered as (
    select *, row_number() over (partition by unit order by moment nulls first, {tie}) as k from chained
    where cell is distinct from old_cell or v is distinct from old_v
)
select *, if(moment is null or moment < $start, -1, (moment - $start) // $every) as day,
    row_number() over (partition by unit, stay order by moment nulls first, seq) as place
from numbered join units using (unit)
where {allowed} and (moment is null or moment < $start + $days * $every);
"""

NUMBERS = """
with events as (
    select 'change' as kind, day, cell, 1 as sign, v from changes where cell is not null
    union all select 'change', day, old_cell, -1, old_v from changes where old_cell is not null
    union all (select distinct on (unit, stay, day, cell) 'entered', day, cell, 1, v from changes
        where cell is not null and cell is distinct from old_cell order by place)
    union all (select distinct on (unit, stay, day, old_cell) 'left', day, old_cell, 1, old_v from changes
        where old_cell is not null and cell is distinct from old_cell order by place)
), told as (
    select * from events
    union all select 'level', until.day, cell, sign, v from events, range($days) as until(day)
    where kind = 'change' and events.day <= until.day
    union all select 'sliding', since.day, cell, sign, v from events, range($days) as since(day)
    where kind = 'change' and events.day between since.day and since.day + 2
), sums as (
    select kind, day, cell, sum(sign) as n, sum(sign * v) as s, sum(sign * v * v) as q from told group by all
)
select kind, day, cell, {statistic} as value
from (
    select * from (select unnest({kinds}) as kind), range($days) as days(day), (select unnest({cells}) as cell)
) left join sums using (kind, day, cell)
where kind <> 'sliding' or (day % 2 = 0 and day + 3 <= $days)
"""

SLIDING = "{sliding: 3d, every: 2d}"
"""The sliding windows of the SQL, as a spec asks for them; `day` is their first."""

STATISTICS = {
    "count": "coalesce(n, 0)::double",
    "sum": "coalesce(s, 0)::double",
    "mean": "if(n > 0, s / n, null)",
    "second_moment": "if(n > 0, q / n, null)",
    "variance": "if(n > 0, q / n - (s / n) * (s / n), null)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query as the spec says it, and what the SQL needs of it.

    Attributes:
        spec: the query's entry in the spec, as YAML on one line.
        by: keys in the order of their names, each with its cells.
        low, high, invalid: of the measured column, if there is one.
    """

    name: str
    spec: str
    statistic: str
    kinds: tuple[str, ...]
    by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    where: str = "true"
    column: str | None = None
    low: float = 0.0
    high: float = 0.0
    invalid: float | None = None

    def parts(self) -> dict[str, str]:
        """Return the parts of the SQL."""
        keys = [
            f"if(state.{key} in {(*values, '')}, state.{key}, {repr('other') if 'other' in values else 'null'})"
            for key, values in self.by
        ]
        missing = f"(state.{self.column} is null or isnan(state.{self.column}))"
        clamped = f"greatest(least(state.{self.column}, {self.high}), {self.low})"
        cells = [[]]
        for _, values in self.by:
            cells = [[*cell, value] for cell in cells for value in values]
        return {
            "where": _states(self.where, ("n", "care", "ward")),
            "usable": f"{missing} is false" if self.column is not None and self.invalid is None else "true",
            "cell": _whole(keys),
            "value": "1" if self.column is None else f"if({missing}, {self.invalid or 0.0}, {clamped})",
            "cells": repr(["|".join(cell) for cell in cells]),
            "kinds": repr(list(self.kinds)),
            "statistic": STATISTICS[self.statistic],
        }


def _whole(keys: list[str]) -> str:
    """The keys as one text; null as soon as one of them is."""
    return " || '|' || ".join(keys) or "''"


def _states(condition: str, columns: tuple[str, ...]) -> str:
    return " ".join(f"state.{word}" if word in columns else word for word in condition.split())


def expected(
    changelog: pa.Table,
    queries: tuple[Asked, ...],
    *,
    unit: str,
    allowed: str,
    ordered: bool,
    placed: bool = False,
    timeline: dict[str, int],
) -> pa.Table:
    """Every number: query, kind, day, cell, `exact` and `bounded`.

    Args:
        changelog: stay, person, moment (microseconds), seq, before, after.
        allowed: which changes count, in SQL over `k`, `moment`, `first_moment` and `class`.
        ordered: whether `seq` orders mutations of one instant across stays, or only within each.
        placed: whether nothing but the place in the files orders them: then each row is a mutation.
        timeline: `start` and `every` in microseconds, and the number of `days`.
    """
    database = duckdb.connect(config={"threads": 1})
    database.register("changelog", changelog)
    tie = "seq, stay" if ordered else "stay, seq"
    database.execute(CHAINED.format(charged=CHARGED[unit], tie=tie, same="seq," if ordered or placed else ""))
    told = []
    for query in queries:
        variants = []
        for rule in ("true", allowed):
            parts = query.parts()
            database.execute(CHANGES.format(allowed=rule, tie=tie, **parts), timeline)
            variants.append(database.sql(NUMBERS.format(**parts), params={"days": timeline["days"]}).to_arrow_table())
        exact, bounded = (v.sort_by([(n, "ascending") for n in ("kind", "day", "cell")]) for v in variants)
        named = exact.rename_columns(["kind", "day", "cell", "exact"]).append_column("bounded", bounded["value"])
        told.append(named.add_column(0, "query", pa.array([query.name] * named.num_rows)))
    return pa.concat_tables(told)

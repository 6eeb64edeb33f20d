"""Hard values for the columns that a spec reads, from the spec alone: at, next to and beyond every edge."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

from pipelines.spec.load import Spec
from transforms.aggregation.listed_key import OTHER
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query

ColumnValue = str | int | float | bool | None
State = dict[str, Any] | None

MARK = "audit7f3c9"
"""Part of each synthetic key and unlisted value: it must not occur in anything public."""

EXISTS = "audit_exists"
"""Pool that is set in every state, so that a state exists even if all other columns are null."""

OFTEN = 0.75
"""Share of the values that lie inside a query."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A row of a synthetic changelog; without an entry, a truncate.

    Attributes:
        entry: Key of the entry; None for a truncate.
        time: Microseconds since 1970, UTC.
        order: Order among the mutations of one time.
        before, after: States before and after it.
        owner: Owner of the entry; None if the unit is the entry.
    """

    entry: str | None
    time: int
    order: int
    before: State = None
    after: State = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Values of one column.

    Attributes:
        inside: Values that queries count.
        beyond: All others: unlisted, missing, not a number, not finite, out of range.
        kind: `number`, `time`, `whole`, `bool` or `text`.
        alone: Keys to be found in which no other unit ever is.
    """

    inside: tuple[ColumnValue, ...]
    beyond: tuple[ColumnValue, ...]
    kind: str
    alone: tuple[ColumnValue, ...] = ()

    def pick(self, choose: Random, often: float = OFTEN) -> ColumnValue:
        """Return one of the values, most often one inside."""
        return choose.choice(self.inside if choose.random() < often or not self.beyond else self.beyond)


Pools = dict[str, Pool]


def columns_of(spec: Spec) -> Pools:
    """Return the columns of states that the queries and the classes of a spec read."""
    found: Pools = {}
    types = dict(spec.changelog.source.types)
    for query in spec.queries:
        for name, key in query.ordered:
            _add(found, name, _ordered(key))
        for name, cells in query.listed:
            _add(found, name, _listed(cells))
        if query.found_by is not None:
            _add(found, query.found_by, _found(types.get(query.found_by, "string")))
        if query.column is not None:
            _add(found, query.column, _measured(query))
    constraint = spec.privacy.constraint
    if constraint.column is not None:
        _add(found, constraint.column, Pool(constraint.names, (f"{MARK} class", None), "text"))
    for query in spec.queries:
        if query.where is not None:
            for name in sorted(query.where.columns):
                _add(found, name, _compared(query.where.text, types.get(name, "string")), weak=True)
    return found


def state_of(columns: Pools, choose: Random, often: float = OFTEN) -> dict[str, Any]:
    """Return a random state."""
    return {name: column.pick(choose, often) for name, column in columns.items()}


def corners_of(columns: Pools, choose: Random, number: int) -> list[dict[str, Any]]:
    """Return states inside all columns, the one with the first values first, and that with the last values last."""
    first, last = ({n: c.inside[place] for n, c in columns.items()} for place in (0, -1))
    found: list[dict[str, Any]] = [first]
    for _ in range(number - 2):
        state = state_of(columns, choose, 1.0)
        if state not in (*found, last):
            found.append(state)
    return found if last == first else [*found, last]


def cells_of(columns: Pools, measured: Collection[str | None]) -> list[dict[str, Any]]:
    """Return states inside all columns, in as many cells as one column tells apart, with the first measured value."""
    keys = [name for name in columns if name not in measured]
    found: list[dict[str, Any]] = []
    for place in range(max((len(columns[name].inside) for name in keys), default=1)):
        places = {name: place % len(c.inside) if name in keys else 0 for name, c in columns.items()}
        state = {name: c.inside[places[name]] for name, c in columns.items()}
        if state not in found:
            found.append(state)
    return found


def _add(found: Pools, name: str, column: Pool, *, weak: bool = False) -> None:
    """Add a column, or join its values with those that are known; the first use gives the kind."""
    known = found.get(name)
    if known is None:
        found[name] = column
        return
    right = _PYTHON[known.kind]
    fits = [v for v in column.inside if isinstance(v, right) and v not in known.inside]
    inside = known.inside if weak else (*known.inside, *fits)
    beyond = (*known.beyond, *(v for v in (*column.beyond, *fits) if v is None or isinstance(v, right)))
    alone = (*known.alone, *(v for v in column.alone if isinstance(v, right)))
    found[name] = Pool(inside, tuple(dict.fromkeys(v for v in beyond if v not in inside)), known.kind, alone)


_PYTHON: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "whole": (int,),
    "bool": (bool,),
    "text": (str,),
    "time": (int,),
}


def _ordered(key: OrderedKey) -> Pool:
    edges = key.edges(0, key.steps + 1).tolist()
    chosen = [edges[place] for place in sorted({0, 1, len(edges) // 2, len(edges) - 1})]
    if key.moments:
        near = [edge + far for edge in chosen for far in (-1, 1)]
        return Pool((*chosen,), (*near, None), "time")
    near = [math.nextafter(edge, far) for edge in chosen for far in (-math.inf, math.inf)]
    return Pool((*map(float, chosen),), (*near, edges[-1] + 1e9, -math.inf, math.inf, math.nan, None), "number")


def _listed(cells: tuple[Any, ...]) -> Pool:
    values, others = [cell for cell in cells if cell != OTHER], OTHER in cells
    if values and all(type(value) is int for value in values):
        return _with_others((*values[:6], *values[-2:]), max(values) + 1, "whole", others=others)
    if values and all(type(value) is bool for value in values):
        return Pool((*values,), (None,), "bool")
    texts = [str(value) for value in values] or [f"{MARK} only"]
    return _with_others(tuple(dict.fromkeys((*texts[:6], *texts[-2:]))), f"{MARK} other", "text", others=others)


def _with_others(values: tuple[ColumnValue, ...], unlisted: ColumnValue, kind: str, *, others: bool) -> Pool:
    """Return the pool of a listed key: an unlisted value is inside if it has a cell."""
    return Pool((*values, *([unlisted] if others else [])), (None,) if others else (unlisted, None), kind)


def _found(kind: str) -> Pool:
    """Return keys that may be found; in whole runs, those with `MARK` are not, so that their names stay private."""
    if kind in ("int64", "float64"):
        return Pool((1, 2, 3), (7, None), "whole", (8, 9))
    if kind == "bool":
        return Pool((True, False), (None,), "bool")
    alone = tuple(f"{MARK} alone {number}" for number in range(4))
    return Pool(("key 1", "key 2", "key 3"), (f"{MARK} key", f"{MARK} é", None), "text", alone)


def _measured(query: Query) -> Pool:
    low, high = query.measure.low, query.measure.high
    inside = (high, (low + high) / 2, 0.0 if low < 0 < high else high, low)  # the ends are those of a pool
    beyond = (high + 1 + abs(high) * 9, low - 1 - abs(low) * 9, math.inf, -math.inf, math.nan, 1e308, -1e308, None)
    return Pool(tuple(dict.fromkeys(map(float, inside))), beyond, "number")


def _compared(condition: str, kind: str) -> Pool:
    """Return values near the constants of a condition."""
    texts = re.findall(r"'([^']*)'", condition)
    numbers = [float(text) for text in re.findall(r"(?<![\w.'])\d+(?:\.\d+)?(?![\w'])", condition)]
    if kind in ("int64", "float64"):
        near = [n + far for n in numbers or [0.0] for far in (0, 1, -1)]
        return Pool(tuple(near), (None,), "number")
    if kind == "bool":
        return Pool((True, False), (None,), "bool")
    return Pool((*texts, *(f"{n:g}" for n in numbers), "1"), ("", f"{MARK} text", None), "text")

"""The slow, obvious version: one mutation at a time, plain dictionaries. What the kernels are held against."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from privacy.constraint import AtMost, ByClass, Constraint
from transforms.queries import OTHER, Query, Timeline

State = dict[str, Any] | None


@dataclass(frozen=True)
class Mutation:
    entry: str
    time: int
    seq: int
    before: State
    after: State
    owner: str | None = None


def project_state(state: State, query: Query) -> tuple[int, int] | None:
    """(cell, value in grid steps), or None where the state contributes nothing. `where` is not looked at."""
    if state is None:
        return None
    cell = 0
    for key, values in query.by:
        found = state[key] if state[key] in values and state[key] != OTHER else OTHER
        if found not in values:
            return None
        cell = cell * len(values) + values.index(found)
    if query.column is None:
        return cell, 0
    value = state[query.column]
    if value is None or np.isnan(value):
        if query.invalid == "drop":
            return None
        value = query.measure.low if query.invalid == "min" else query.measure.high
    return cell, round(min(max(value, query.measure.low), query.measure.high) / query.measure.grid)


def leaf_sums(
    mutations: Iterable[Mutation],
    query: Query,
    family: str,
    timeline: Timeline,
    constraint: Constraint | None,
) -> np.ndarray:
    """[components, 1 + windows, cells]; constraint None: all changes."""
    components = query.measure.components
    sums = np.zeros((len(components), timeline.windows + 1, query.cells), dtype=np.int64)
    by_unit: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        by_unit[mutation.owner or mutation.entry].append(mutation)
    for unit in by_unit.values():
        events = _events(unit)
        first_time = min(m.time for m in unit)
        allowed = constraint
        if isinstance(constraint, ByClass):
            states = [state for _, _, state in events if state is not None]
            named = states[0][constraint.column] if states else None
            allowed = dict(constraint.classes).get(named, AtMost.__new__(AtMost))
            if named not in constraint.names:
                continue
        current: dict[str, tuple[int, int] | None] = {}
        seen: set[tuple[str, int, int]] = set()
        used = 0
        for time, entry, state in events:
            old, new = current.get(entry), project_state(state, query)
            current[entry] = new
            if old == new:
                continue
            used += 1
            if isinstance(allowed, AtMost) and used > allowed.changes:
                continue
            if (
                allowed is not None
                and not isinstance(allowed, AtMost)
                and time is not None
                and time > first_time + allowed.span
            ):
                continue
            if time is not None and time >= timeline.until:
                continue
            window = 0 if time is None or time < timeline.start else (time - timeline.start) // timeline.every + 1
            if family == "net":
                _add(sums, query, window, new, 1)
                _add(sums, query, window, old, -1)
                continue
            moved = (old and old[0]) != (new and new[0]) or (old is None) != (new is None)
            what = new if family == "entered" else old
            if moved and what is not None and window > 0 and (entry, window, what[0]) not in seen:
                seen.add((entry, window, what[0]))
                _add(sums, query, window, what, 1)
    return sums


def _events(unit: list[Mutation]) -> list[tuple[int | None, str, State]]:
    """(time, entry, state after) of one unit in order; None is the time of a state from before the changelog."""
    by_entry: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in unit:
        by_entry[mutation.entry].append(mutation)
    openings, rest = [], []
    for entry, chain in sorted(by_entry.items()):
        once = {(m.time, m.seq): m for m in chain}
        ordered = [once[key] for key in sorted(once)]
        if ordered[0].before is not None:
            openings.append((None, entry, ordered[0].before))
        rest += [(m.time, m.seq, entry, m.after) for m in ordered]
    rest.sort(key=lambda event: event[:3])
    return openings + [(time, entry, state) for time, _, entry, state in rest]


def _add(sums: np.ndarray, query: Query, window: int, what: tuple[int, int] | None, sign: int) -> None:
    if what is None:
        return
    cell, value = what
    for component, steps in enumerate(query.measure.contributions(np.array([value]), 1)):
        sums[component, window, cell] += sign * int(steps[0])


def batch_table(
    mutations: list[Mutation],
    columns: dict[str, pa.DataType],
    *,
    before: bool = True,
    seq: bool = True,
) -> pa.Table:
    """The mutations as a normalised table, as `transforms.changelog` gives them."""
    table: dict[str, Any] = {
        "entry": pa.array([m.entry for m in mutations], type=pa.string()),
        "time": pa.array([m.time for m in mutations], type=pa.int64()),
    }
    if seq:
        table["order.0"] = pa.array([m.seq for m in mutations], type=pa.int64())
    if any(m.owner for m in mutations):
        table["owner"] = pa.array([m.owner for m in mutations], type=pa.string())
    for side in ("before", "after") if before else ("after",):
        states = [getattr(m, side) for m in mutations]
        table[side] = pa.array([state is not None for state in states], type=pa.bool_())
        for name, kind in columns.items():
            table[f"{side}.{name}"] = pa.array([state[name] if state else None for state in states], type=kind)
    return pa.table(table)

"""The slow reference implementation: one mutation at a time, in plain dictionaries. Tests compare kernels with it."""

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from privacy.constraint import AtMost, AtOnce, ByClass, Constraint, Within
from transforms.aggregation.listed_key import OTHER
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline

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
    """Return (cell, value in grid steps), or None if the state contributes nothing. Ignores the query's `where`."""
    if state is None:
        return None
    cell = 0
    for name, key in query.by:
        place = _range(state[name], key) if isinstance(key, OrderedKey) else _listed(state[name], key)
        if place is None:
            return None
        cell = cell * len(key) + place
    if query.column is None:
        return cell, 0
    value = state[query.column]
    if value is None or np.isnan(value):
        if query.invalid == "drop":
            return None
        value = query.measure.low if query.invalid == "min" else query.measure.high
    return cell, round(min(max(value, query.measure.low), query.measure.high) / query.measure.grid)


def _listed(value: Any, values: tuple[Any, ...]) -> int | None:
    found = value if value in values and value != OTHER else OTHER
    return values.index(found) if found in values else None


def _range(value: float | None, key: OrderedKey) -> int | None:
    """Return the number of edges that are at most the value."""
    if value is None or np.isnan(value):
        return None
    edges = (Fraction(key.start + i * key.step, 10**key.digits) for i in range(key.steps + 1))
    return sum(float(edge) <= value for edge in edges)


Runs = list[tuple[list[Mutation], int]]
"""Rows that arrived before each run, and the number of windows closed after it."""


Event = tuple[int | None, str, State]
"""Effective time (None for the initial level), entry, state after."""


def leaf_sums(
    mutations: Iterable[Mutation],
    query: Query,
    family: str,
    timeline: Timeline,
    constraint: Constraint | None,
) -> np.ndarray:
    """Return the sums of one run over all mutations, int64[components, 1 + windows, cells].

    Args:
        mutations: Rows of the changelog, in any order.
        query: The query whose sums to return.
        family: `net`, `entered` or `left`.
        timeline: Windows of the release.
        constraint: Bound on a unit's contribution; None counts all changes.
    """
    return leaf_sums_of_runs([(list(mutations), timeline.windows)], query, family, timeline, constraint)


def leaf_sums_of_runs(
    runs: Runs,
    query: Query,
    family: str,
    timeline: Timeline,
    constraint: Constraint | None,
    *,
    ordered: bool = True,
) -> np.ndarray:
    """Return the sums of several runs, int64[components, 1 + windows, cells].

    Args:
        runs: Rows and closed windows of each run.
        query: The query whose sums to return.
        family: `net`, `entered` or `left`.
        timeline: Windows of the release.
        constraint: Bound on a unit's contribution; None counts all changes.
        ordered: Whether `seq` orders changes at one time. Otherwise no two changes of an entry have the same time.
    """
    sums = np.zeros((len(query.measure.components), timeline.windows + 1, query.cells), dtype=np.int64)
    units = {m.owner or m.entry for rows, _ in runs for m in rows}
    for unit in sorted(units):
        mine = [([m for m in rows if (m.owner or m.entry) == unit], windows) for rows, windows in runs]
        events = _events(mine, timeline, ordered)
        times = [time for time, _, _ in events if time is not None]
        distinct = query.measure.distinct and any(m.owner for rows, _ in mine for m in rows)
        if isinstance(constraint, AtOnce) and family != "net" and constraint.changes is None:
            visits = _add_visits_of_unit if distinct else _add_visits
            visits(sums, events, query, family, timeline, constraint.entries)
            continue
        if isinstance(constraint, AtOnce):
            _add_window_ends(sums, events, query, family, timeline, constraint, distinct=distinct)
            continue
        allowed = constraint
        if isinstance(constraint, ByClass):
            states = [state for _, _, state in events if state is not None]
            named = states[0][constraint.column] if states else None
            if named not in constraint.names:
                continue
            allowed = dict(constraint.classes)[named]
        current: dict[str, tuple[int, int] | None] = {}
        seen: set[tuple[str, int, int]] = set()
        used = 0
        counted: list[Change] = []
        crowded = _crowded(events, query, allowed)
        for number, (time, entry, state) in enumerate(events):
            old, new = current.get(entry), project_state(state, query)
            current[entry] = new
            if old == new:
                continue
            used += 1
            if isinstance(allowed, AtMost) and (used > allowed.changes or number >= crowded):
                continue
            if isinstance(allowed, Within) and time is not None and time > times[0] + allowed.span:
                continue
            if distinct:
                counted.append((time, old, new))
                continue
            window = _window(time, timeline)
            if family == "net":
                _add(sums, query, window, new, 1)
                _add(sums, query, window, old, -1)
                continue
            moved = (old and old[0]) != (new and new[0]) or (old is None) != (new is None)
            what = new if family == "entered" else old
            if moved and what is not None and window > 0 and (entry, window, what[0]) not in seen:
                seen.add((entry, window, what[0]))
                _add(sums, query, window, what, 1)
        _add_unit(sums, counted, query, family, timeline)
    return sums


Change = tuple[int | None, tuple[int, int] | None, tuple[int, int] | None]
"""Effective time, and the projected state of an entry before and after it."""


def _add_unit(
    sums: np.ndarray, counted: list[Change], query: Query, family: str, timeline: Timeline, most: int | None = None
) -> None:
    """Add when the first entry of a unit comes into a cell, and when the last one leaves; at one time, come first.

    Of the events of a window, the first `most` count if the unit comes, and the last `most` if it leaves.
    """
    number: dict[int, int] = defaultdict(int)
    found: dict[int, list[int]] = defaultdict(list)
    for time, instant in itertools.groupby(counted, key=lambda change: change[0]):
        told = list(instant)
        window = _window(time, timeline)
        for came, states in ((1, [new for _, _, new in told]), (-1, [old for _, old, _ in told])):
            for state in states:
                if state is None:
                    continue
                number[state[0]] += came
                if number[state[0]] == (came > 0):
                    if family == "net":
                        _add(sums, query, window, state, came)
                    elif (came > 0) == (family == "entered"):
                        found[window].append(state[0])
    for window, cells in found.items():
        once = list(dict.fromkeys(cells if family == "entered" else reversed(cells)))
        for cell in once[:most] if window > 0 else ():
            _add(sums, query, window, (cell, 0), 1)


def _add_visits_of_unit(
    sums: np.ndarray, events: list[Event], query: Query, family: str, timeline: Timeline, most: int
) -> None:
    states: dict[str, tuple[int, int] | None] = {}
    changes: list[Change] = []
    for time, entry, state in events:
        new = project_state(state, query)
        if new != states.get(entry):
            changes.append((time, states.get(entry), new))
        states[entry] = new
    _add_unit(sums, changes, query, family, timeline, most)


def _window(time: int | None, timeline: Timeline) -> int:
    if time is None or time < timeline.start:
        return 0
    if timeline.ends is not None:
        return 1 + sum(end <= time for end in timeline.ends)
    return (time - timeline.start) // timeline.every + 1


def end_of(timeline: Timeline, windows: int) -> int:
    """Return the end of the last of the first `windows` windows."""
    if timeline.ends is not None:
        return ([timeline.start, *timeline.ends])[windows]
    return timeline.start + windows * timeline.every


def _add_window_ends(
    sums: np.ndarray,
    events: list[Event],
    query: Query,
    family: str,
    timeline: Timeline,
    constraint: AtOnce,
    *,
    distinct: bool,
) -> None:
    """Add the difference between a unit's counted state at the end of each window and at the end of the one before."""
    states: dict[str, tuple[int, int] | None] = {}
    counted: dict[str, tuple[int, int] | None] = {}
    used = 0  # changes in a block, for a unit that is one entry
    for window in range(timeline.windows + 1):
        states |= {
            entry: project_state(state, query) for time, entry, state in events if _window(time, timeline) == window
        }
        there = sorted(entry for entry, state in states.items() if state is not None)
        before, counted = counted, {entry: states[entry] for entry in there[: constraint.entries]}
        if (
            constraint.changes is not None
            and constraint.block is not None
            and window % (block := constraint.block // timeline.every)
        ):
            used = used if window % block > 1 else 0
            if before.keys() != counted.keys() or before != counted:
                counted, used = (counted, used + 1) if used < constraint.changes - 1 else (before, used)
        if distinct:
            was, now = ({state[0] for state in states.values() if state} for states in (before, counted))
            for cell in now - was if family != "left" else was - now:
                if family == "net" or window > 0:
                    _add(sums, query, window, (cell, 0), 1)
            for cell in was - now if family == "net" else ():
                _add(sums, query, window, (cell, 0), -1)
            continue
        for entry in sorted(before | counted):
            old, new = before.get(entry), counted.get(entry)
            if family == "net":
                _add(sums, query, window, new, 1)
                _add(sums, query, window, old, -1)
            elif window > 0 and (old and old[0]) != (new and new[0]):
                _add(sums, query, window, new if family == "entered" else old, 1)


def _add_visits(
    sums: np.ndarray, events: list[Event], query: Query, family: str, timeline: Timeline, most: int
) -> None:
    """Add the first `most` events of a unit in each window if they enter, and the last `most` if they leave."""
    states: dict[str, tuple[int, int] | None] = {}
    found: dict[int, list[tuple[str, tuple[int, int]]]] = defaultdict(list)
    for time, entry, state in events:
        old, new = states.get(entry), project_state(state, query)
        states[entry] = new
        what = new if family == "entered" else old
        if what is not None and (old and old[0]) != (new and new[0]):
            found[_window(time, timeline)].append((entry, what))
    for window, told in found.items():
        once: dict[tuple[str, int], tuple[int, int]] = {}
        for entry, what in told if family == "entered" else reversed(told):
            once.setdefault((entry, what[0]), what)
        for what in list(once.values())[:most] if window > 0 else ():
            _add(sums, query, window, what, 1)


def _events(runs: Runs, timeline: Timeline, ordered: bool) -> list[Event]:
    """Return the events of one unit, in the order in which they take effect."""

    def source(m: Mutation) -> tuple[int, ...]:
        return (m.time, m.seq) if ordered else (m.time,)

    events: list[Event] = []
    known: set[str] = set()
    last: dict[str, tuple[int, ...]] = {}
    pending: list[Mutation] = []
    released = 0
    for rows, windows in runs:
        closed, until = end_of(timeline, released), end_of(timeline, windows)
        by_entry: dict[str, dict[tuple[int, ...], Mutation]] = defaultdict(dict)
        for m in pending + rows:
            if source(m) > last.get(m.entry, ()):  # otherwise the row is a repetition, or older than the known state
                by_entry[m.entry][source(m)] = m
        pending, told = [], []
        for entry, chain in sorted(by_entry.items()):
            first = chain[min(chain)]
            if entry not in known and first.before is not None:
                if released == 0:
                    events.append((None, entry, first.before))
                    known.add(entry)
                elif first.time < until:
                    told.append(((*source(first), entry, 0), max(first.time, closed), first.before))
            for key, m in sorted(chain.items()):
                if m.time >= until:
                    pending.append(m)
                    continue
                known.add(entry)
                last[entry] = key
                told.append(((*key, entry, 1), max(m.time, closed) if released else m.time, m.after))
        told.sort(key=lambda event: event[0])
        events += [(time, key[-2], state) for key, time, state in told]
        released = windows
    return events


def _crowded(events: list[Event], query: Query, allowed: Constraint | None) -> int:
    """Return the number of the first event that does not count, since too many entries would exist at once."""
    there: dict[str, tuple[int, int] | None] = {}
    used = begin = 0
    for _, instant in itertools.groupby(events, key=lambda event: event[0]):
        told = list(instant)
        for _, entry, state in told:
            new = project_state(state, query)
            used += there.get(entry) != new
            if isinstance(allowed, AtMost) and used <= allowed.changes:
                there[entry] = new
        together = sum(state is not None for state in there.values())
        if isinstance(allowed, AtMost) and allowed.entries is not None and together > allowed.entries:
            return begin
        begin += len(told)
    return len(events)


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
    owned: bool = False,
) -> pa.Table:
    """Return the mutations as a normalised table, as `transforms.sources.changelog` does.

    Args:
        mutations: Rows of the table.
        columns: Arrow types of the columns of a state.
        before: Whether the table holds the states before each change.
        seq: Whether the table holds `seq`, which orders changes at one time.
        owned: Whether the table has a column of owners; it also has one if any mutation has an owner.
    """
    table: dict[str, Any] = {
        "entry": pa.array([m.entry for m in mutations], type=pa.string()),
        "time": pa.array([m.time for m in mutations], type=pa.int64()),
    }
    if seq:
        table["order.0"] = pa.array([m.seq for m in mutations], type=pa.int64())
    if owned or any(m.owner for m in mutations):
        table["owner"] = pa.array([m.owner for m in mutations], type=pa.string())
    for side in ("before", "after") if before else ("after",):
        states = [getattr(m, side) for m in mutations]
        table[side] = pa.array([state is not None for state in states], type=pa.bool_())
        for name, kind in columns.items():
            table[f"{side}.{name}"] = pa.array([state[name] if state else None for state in states], type=kind)
    return pa.table(table)

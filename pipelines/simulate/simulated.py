"""A synthetic changelog: entries arrive, change and leave at public rates, with the columns of a spec.

Times are drawn uniformly in *busy time*, in which the length of a window is its activity. The activity has a gamma
distribution with mean 1 and the burstiness as its variance, so 0 is an even flow. Lengths of stay are exponential. At
the start there are as many entries as there are on average later. Nothing is read but the spec.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.spec.load import Spec
from transforms.aggregation.listed_key import OTHER
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Timeline
from transforms.common.errors import SpecError

Ints = np.ndarray

ENTRY, TIME, STATE = "simulated_entry", "simulated_at", "simulated"
"""Columns: the entry, the time of a change, and a column that is not null while the entry exists."""

INVENTED = 1_000
"""Number of invented values of a key that is found."""

BEYOND = 0.05
"""Share of the values of an ordered key that lie outside its ranges, on each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates of events, all of them public and not taken from any data.

    Attributes:
        arrivals: Mean number of entries that arrive in a window.
        stay: Mean length of stay of an entry, in microseconds.
        change: Mean microseconds between two changes of an entry; None: entries do not change.
        burstiness: Variance of the activity of windows, relative to a mean of 1.
        entries: Mean number of entries of one owner.
    """

    arrivals: float
    stay: int
    change: int | None = None
    burstiness: float = 0.0
    entries: float = 1.0


def simulated(spec: Spec, timeline: Timeline, rates: Rates, rng: np.random.Generator) -> pa.Table:
    """Return rows in the order of time: an entry's key, a time, and its new state, or no state if it is deleted.

    Args:
        spec: Spec whose columns the changelog has.
        timeline: Windows of the changelog.
        rates: Rates of events.
        rng: Source of random numbers.

    Raises:
        SpecError: A condition reads a column that a simulated changelog does not have.
    """
    _refuse_unknown(spec)
    edges = np.array([timeline.bounds.end(window) for window in range(timeline.windows + 1)])
    busy = np.ones(timeline.windows)
    if rates.burstiness > 0:
        busy = rng.gamma(1 / rates.burstiness, rates.burstiness, timeline.windows)
    lengths = np.diff(edges)
    clock = np.concatenate([[0.0], np.cumsum(busy * lengths)])
    every = float(lengths.mean())

    there = rng.poisson(rates.arrivals * rates.stay / every)
    new = rng.poisson(rates.arrivals * clock[-1] / every)
    came = np.sort(np.interp(rng.uniform(0, clock[-1], new), clock, edges).astype(np.int64))
    came = np.concatenate([np.sort(edges[0] - 1 - rng.integers(0, int(every), there)), came])
    left = np.maximum(came, edges[0]) + 1 + rng.exponential(rates.stay, len(came)).astype(np.int64)

    first, last = (np.interp(np.clip(time, edges[0], edges[-1]), edges, clock) for time in (came, left))
    times = np.zeros(len(came), dtype=np.int64)
    if rates.change is not None:
        times = rng.poisson((last - first) / rates.change)
    mine = np.arange(len(came)).repeat(times)
    moved = np.interp(rng.uniform(first[mine], last[mine]), clock, edges).astype(np.int64)
    moved = np.clip(moved, came[mine] + 1, left[mine] - 1)
    gone = np.flatnonzero(left < edges[-1])

    entry = np.concatenate([np.arange(len(came)), mine, gone])
    time = np.concatenate([came, moved, left[gone]])
    exists = np.arange(len(entry)) < len(came) + len(mine)
    order = np.lexsort([~exists, time])  # an entry that has left does not change
    entry, time, exists = entry[order], time[order], exists[order]
    owner = rng.integers(0, max(1, round(len(came) / rates.entries)), len(came))[entry]
    columns = {ENTRY: pa.array(entry), TIME: pa.array(time, pa.timestamp("us", "UTC"))}
    if spec.privacy.owner is not None:
        columns[spec.privacy.owner] = pa.array(owner)
    for name, values in {STATE: pa.array(exists), **dict(_columns(spec, entry, owner, rng))}.items():
        columns[name] = pc.if_else(pa.array(exists), values, pa.scalar(None, values.type))
    return pa.table(columns)


def _columns(spec: Spec, entry: Ints, owner: Ints, rng: np.random.Generator) -> Iterator[tuple[str, pa.Array]]:
    constraint = spec.privacy.constraint
    if constraint.column is not None:
        # A unit's class is that of its first state: the same in all of them.
        unit = entry if spec.privacy.owner is None else owner
        yield constraint.column, pa.array(constraint.names).take(pa.array(unit % len(constraint.names)))
    listed: dict[str, list[object]] = {}
    for query in spec.queries:
        for name, key in query.ordered:
            yield name, _in_order(key, len(entry), rng)
        for name, cells in query.listed:  # values outside all listed cells are null
            known = listed.setdefault(name, [])
            known += [value for cell in cells if (value := None if cell == OTHER else cell) not in known]
        if query.column is not None:
            yield query.column, pa.array(rng.uniform(query.measure.low, query.measure.high, len(entry)))
    for name in (query.found_by for query in spec.queries if query.found_by is not None):
        listed.setdefault(name, [f"{name} {number}" for number in range(1, INVENTED + 1)])
    for name, values in listed.items():
        chances = 1 / np.arange(1, len(values) + 1)
        drawn = rng.choice(len(values), len(entry), p=chances / chances.sum())
        yield name, pa.array(values).take(pa.array(drawn))


def _in_order(key: OrderedKey, rows: int, rng: np.random.Generator) -> pa.Array:
    low, width = key.start, key.step * key.steps
    units = np.floor(low + width * rng.uniform(-BEYOND, 1 + BEYOND, rows)).astype(np.int64)
    if key.moments:
        return pa.array(units, pa.timestamp("us", "UTC"))
    return pa.array(units) if key.digits == 0 else pa.array(units / 10.0**key.digits)


def _refuse_unknown(spec: Spec) -> None:
    read = {name for query in spec.queries for name, _ in query.by} | {query.column for query in spec.queries}
    for query in spec.queries:
        unknown = sorted((query.where.columns if query.where is not None else frozenset()) - read)
        if unknown:
            raise SpecError(
                f"{spec.path}: query {query.name}: where: reads {', '.join(unknown)}, and a simulated changelog has "
                "only the columns of by: and of measures; simulate a copy of the spec without that condition"
            )

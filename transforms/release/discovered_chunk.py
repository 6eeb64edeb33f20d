"""Chunk whose keys nobody lists: keys have noise in private, and those with a large noisy count are shown.

The rule. A key is a *candidate* at the end of a window if at least one counted entry is in it then. A candidate whose
noisy level is at least the threshold of the plan is *found*: it is shown from this window on, with or without entries.
If other keys of the query are listed, a key has several cells, its level is their sum, and all of them are shown.
Entries are counted, or values from 0 on added up. Other components of the measure, and `entered` and `left`, have
separate nodes and noise for each key, and their numbers are shown with those of the levels. Nothing else about keys
leaves this module: public bytes are a function of the noisy numbers of found keys.

Neighbours, sensitivity, guarantee and source: privacy.discovery.threshold and docs/proofs/discovery.md. The release
behaves as if the strategy ran for each possible key. A key without an entry so far is never shown, so its noise is
sampled when its first entry comes: for the nodes of all windows so far at once. From then on its state is kept, even
if its entries leave. If it were dropped, a second sample of noise would be used for the same entries.

The state is a Parquet file with one row, of the form and the name of other chunks' states (noise_state): keys, exact
levels, windows of discovery, and the carry of the strategy for each key. It is the most secret file of all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.planning.discovered_part import DiscoveredPart, FoundParts
from privacy.planning.linear_part import LinearPart
from privacy.series import Ints, Series
from privacy.strategies.base import Carry, Nodes
from transforms.aggregation.discovered_key import KeySums, decode_sums, layers_of
from transforms.aggregation.node_sums import Aggregation, NodeKey
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.parquet_state import list_of, to_parquet
from transforms.release import noise
from transforms.release.discovered_tables import found_table
from transforms.release.noise_state import described, opened

LEVEL = Series(kind="level")

AT_ONCE = 2**20
"""Approximate number of levels that are processed at once: keys times windows."""


def shown_schema(components: int) -> pa.Schema:
    """Return the columns of public rows.

    They are the place of the series among those of all parts, the window at whose end the number ends, the key, and
    the value of each component in grid steps: `value`, `value.1` and so on. If a key has several cells, its rows of a
    number are in the order of the cells.
    """
    values = [("value" if not place else f"value.{place}", pa.float64()) for place in range(components)]
    return pa.schema([("series", pa.int64()), ("window", pa.int64()), ("key", pa.string()), *values])


NOT_FOUND = 0
"""Window of discovery of a key that is not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningKeys:
    """Private state that a step leaves for the next one, of all keys that ever had an entry.

    Attributes:
        windows: Number of closed windows.
        keys: Text of each key, [keys].
        level: Exact level of each cell at the end of the last window, int64 [keys * cells].
        found: Window of discovery, int64 [keys].
        carry: Arrays of the strategies' carries, int64 or float64 [rows, keys * cells], by layer and name (`0.levels`).
    """

    windows: int
    keys: pa.Array
    level: Ints
    found: Ints
    carry: Mapping[str, np.ndarray]

    @classmethod
    def new(cls, keys: pa.Array, cells: int) -> "RunningKeys":
        """Return the state of new keys with `cells` cells each before the start, which has the number -1."""
        level, found = (np.zeros(len(keys) * each, dtype=np.int64) for each in (cells, 1))
        return cls(windows=-1, keys=keys, level=level, found=found, carry={})

    @classmethod
    def none(cls) -> "RunningKeys":
        """Return the state of no key at the start."""
        return replace(cls.new(pa.array([], pa.string()), 1), windows=0)

    @classmethod
    def joined(cls, parts: Sequence["RunningKeys"], windows: int) -> "RunningKeys":
        """Return the state of the keys of several states after these windows."""
        if not parts:
            return replace(cls.none(), windows=windows)
        return cls(
            windows=windows,
            keys=pa.concat_arrays([part.keys for part in parts]),
            level=np.concatenate([part.level for part in parts]),
            found=np.concatenate([part.found for part in parts]),
            carry={name: np.concatenate([part.carry[name] for part in parts], axis=1) for name in parts[0].carry},
        )

    def carried(self, layer: int) -> Carry:
        """Return the carry of a layer's strategy for these keys."""
        begin = f"{layer}."
        own = {name.removeprefix(begin): rows for name, rows in self.carry.items() if name.startswith(begin)}
        return Carry(
            windows=self.windows,
            integers={name: rows for name, rows in own.items() if rows.dtype == np.int64},
            floats={name: rows for name, rows in own.items() if rows.dtype == np.float64},
        )

    def of(self, keys: slice, cells: int) -> "RunningKeys":
        """Return some of the keys, which have `cells` cells each."""
        own = slice(keys.start * cells, keys.stop * cells)
        carry = {name: rows[:, own] for name, rows in self.carry.items()}
        return replace(self, keys=self.keys[keys], level=self.level[own], found=self.found[keys], carry=carry)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSums:
    """Exact sums of some windows.

    Attributes:
        windows: Number of closed windows with these.
        sums: Sums of keys.
    """

    windows: int
    sums: KeySums


@dataclass(frozen=True, slots=True)
class DiscoveredChunk:
    """The numbers of a query.

    Attributes:
        parts: Parts of the query: first the one with the levels, which finds keys.
    """

    parts: FoundParts

    def blocks(self, aggregation: Aggregation, key: NodeKey, payloads: Iterable[bytes]) -> Iterator[NewSums]:
        """Yield all new windows at once (see `Chunk.blocks`)."""
        yield NewSums(windows=aggregation.timeline.windows, sums=decode_sums(payloads))

    def opened(self, payload: bytes, *, windows: int, plan: str) -> RunningKeys:
        """Return the state that `kept` has written (see `Chunk.opened`)."""
        table = opened(payload, windows=windows, plan=plan)
        try:
            columns = {name: table[name].combine_chunks().values for name in table.column_names}
            keys, level, found = columns.pop("keys"), columns.pop("level").to_numpy(), columns.pop("found").to_numpy()
            rows = sum(part.strategy.carried(windows, part.series) for part, *_ in layers(self.parts))
            carry = {
                name.removeprefix("carry."): each.to_numpy().reshape(-1, len(level)) for name, each in columns.items()
            }
        except (KeyError, ValueError):
            raise _incomplete() from None
        fits = len(level) == len(keys) * self.parts[0].cells and len(found) == len(keys)
        if not fits or (len(keys) and sum(map(len, carry.values())) != rows):
            raise _incomplete()
        return RunningKeys(windows=windows, keys=keys, level=level, found=found, carry=carry)

    def step(self, held: RunningKeys | None, leaves: NewSums) -> tuple[RunningKeys, bytes]:
        """Publish some windows (see `Chunk.step`)."""
        after, shown = publish(self.parts, held, leaves)
        return after, to_bytes(shown)

    def kept(self, held: RunningKeys, *, windows: int, plan: str) -> bytes:
        """Return the state for the next run (see `Chunk.kept`)."""
        columns = {"keys": list_of(held.keys), "level": list_of(held.level), "found": list_of(held.found)}
        columns |= {f"carry.{name}": list_of(rows.ravel()) for name, rows in held.carry.items()}
        return to_parquet(columns, metadata=described(windows=windows, plan=plan))

    def nodes(self, content: bytes, aggregation: Aggregation, first_cell: int) -> None:
        """Return None: nodes that end before a key is found are never published (`Chunk.nodes`)."""
        return

    def estimates(self, content: bytes, aggregation: Aggregation, first_cell: int) -> pa.Table:
        """Return the published table of numbers (see `Chunk.estimates`)."""
        return found_table(from_bytes(content), aggregation, self.parts)


def layers(parts: FoundParts) -> Iterator[tuple[LinearPart, int, int]]:
    """Yield for each layer of sums (`layers_of`) its part, the component, and the layer."""
    families = [part.family for part in parts]
    for part in parts:
        for component, layer in enumerate(layers_of(families, len(part.noise), part.family)):
            yield part, component, layer


def publish(parts: FoundParts, held: RunningKeys | None, new: NewSums) -> tuple[RunningKeys, pa.Table]:
    """Find keys by some windows.

    Neighbours, sensitivity, guarantee and source: as in the module.

    Args:
        parts: Parts of the query.
        held: State of the previous step; None in the first.
        new: Exact sums of the windows.

    Returns:
        State for the next step; and the public rows of found keys (`shown_schema`), in the order of their columns.
    """
    held = RunningKeys.none() if held is None else held
    place = pc.index_in(new.sums.keys, value_set=held.keys)
    fresh = new.sums.keys.filter(place.is_null())
    at = place.fill_null(0).to_numpy().astype(np.int32)  # of many rows, so that each byte counts
    at[place.is_null().to_numpy(zero_copy_only=False)] = len(held.keys) + np.arange(len(fresh))
    keys, key = pa.concat_arrays([held.keys, fresh]), at[new.sums.key]
    by_key = _ByKey(new.sums, order := np.argsort(key, kind="stable"), key[order])
    del key

    schema = shown_schema(len(parts[0].noise))
    after, shown = [], [schema.empty_table()]
    each, later = parts[0].cells, range(held.windows + 1, new.windows + 1)
    for some in _slices(0, len(held.keys), len(later) * each):
        running, rows = step(parts, held.of(some, each), partial(by_key.dense, some, later, each))
        after.append(running)
        shown.append(rows)
    for some in _slices(len(held.keys), len(keys), (new.windows + 1) * each):
        every = range(new.windows + 1)
        running, rows = step(parts, RunningKeys.new(keys[some], each), partial(by_key.dense, some, every, each))
        after.append(running)
        shown.append(rows)
    del by_key
    public = pa.concat_tables(shown).sort_by([(name, "ascending") for name in schema.names[:3]])
    return RunningKeys.joined(after, new.windows), public


def _slices(first: int, last: int, levels: int) -> Iterator[slice]:
    """Yield slices of keys that are processed at once, if each has this number of levels."""
    size = max(1, AT_ONCE // max(1, levels))
    return (slice(at, min(at + size, last)) for at in range(first, last, size))


@dataclass(frozen=True, slots=True)
class _ByKey:
    """Sums in the order of their keys: `order` [n] has the row of each place, and `key` [n] the key of each place."""

    sums: KeySums
    order: Ints
    key: Ints

    def dense(self, keys: slice, windows: range, cells: int, layer: int) -> Ints:
        """Return the sums of some keys and windows in a layer, int64 [windows, keys * cells]."""
        filled = np.zeros((len(windows), (keys.stop - keys.start) * cells), dtype=np.int64)
        places = slice(*np.searchsorted(self.key, np.array([keys.start, keys.stop], dtype=self.key.dtype)))
        own = self.sums.of_layer(self.order[places], layer)
        rows = self.order[places][own]
        column = self.sums.columns(self.key[places][own] - keys.start, rows, cells)
        np.add.at(filled, (self.sums.window[rows] - windows.start, column), self.sums.sum[rows])
        return filled


def step(parts: FoundParts, held: RunningKeys, leaves: Callable[[int], Ints]) -> tuple[RunningKeys, pa.Table]:
    """Return the next state of some keys and their public rows.

    Args:
        parts: Parts of the query.
        held: State of the keys. New ones are in the state before the start.
        leaves: Returns the exact sums of a layer, int64 [windows, keys * cells]; of new keys, row 0 is the initial
            level.
    """
    begins, part = held.windows < 0, parts[0]
    numbers: list[list[np.ndarray]] = []
    carry: dict[str, np.ndarray] = {}
    exact = held.level[None]
    for own, component, layer in layers(parts):

        def sample(nodes: Nodes, own: LinearPart = own, component: int = component) -> Ints:
            return noise.sample_noise(own.noise[component], nodes, component=component, cells=len(held.level))

        new = leaves(layer)
        before = None if begins else held.carried(layer)
        _, found, after = own.strategy.step(before, new, series=own.series, sample=sample)
        carry |= {f"{layer}.{name}": rows for name, rows in {**after.integers, **after.floats}.items()}
        numbers.append([*found])
        if layer == 0:
            exact = (held.level + np.cumsum(new, axis=0))[int(begins) :]
    since, windows = max(0, held.windows), max(0, held.windows) + len(exact)
    window = since + 1 + np.arange(len(exact))
    noisy = numbers[0][part.series.index(LEVEL)]
    crossing = candidates(_of_keys(exact, part)) & (_of_keys(noisy, part) >= part.threshold)
    now = np.where(crossing.any(axis=0), window[crossing.argmax(axis=0)], NOT_FOUND)
    found_in = np.where(held.found == NOT_FOUND, now, held.found)
    series, by_component = [one for own in parts for one in own.series], len(part.noise)
    values = [
        [numbers[place * by_component + component][at] for component in range(by_component)]
        for place, own in enumerate(parts)
        for at in range(len(own.series))
    ]
    shown = [
        _shown(place, one.ends(windows)[len(one.ends(since)) :], of, found_in, held.keys, one)
        for place, (one, of) in enumerate(zip(series, values, strict=True))
    ]
    running = RunningKeys(windows=windows, keys=held.keys, level=exact[-1], found=found_in, carry=carry)
    return running, pa.concat_tables(shown)


def candidates(levels: Ints) -> np.ndarray:
    """Return which keys may be found at the end of each window, bool [windows, keys]: those with entries then.

    Keys that had entries before must not stay candidates: under a span, the noise of a key of one unit would get a new
    chance in each later window, without end (docs/proofs/discovery.md, "What breaks it").
    """
    return levels > 0


def _of_keys(levels: np.ndarray, part: DiscoveredPart) -> np.ndarray:
    """Return the sum over the cells of each key, [windows, keys], of levels [windows, keys * cells]."""
    if part.cells == 1:
        return levels
    summed: np.ndarray = levels.reshape(len(levels), -1, part.cells).sum(axis=2)
    return summed


def _shown(
    place: int, ends: Ints, values: Sequence[np.ndarray], found: Ints, keys: pa.Array, series: Series
) -> pa.Table:
    """Return the public rows of one series: its numbers that begin and end while their key is listed.

    Args:
        place: Place of the series among those of all parts.
        ends: Window at whose end each number ends, int64 [numbers].
        values: Numbers of each component, float64 [numbers, keys * cells].
        found: Window of discovery of each key, int64 [keys].
        keys: Texts of the keys.
        series: The series.
    """
    begins = ends if series.kind == "level" else ends - series.width
    row, key = np.nonzero((found != NOT_FOUND) & (begins[:, None] >= found))
    shown = [each.reshape(len(each), len(keys), -1)[row, key] if len(row) else each[:0] for each in values]
    row, key = (np.repeat(each, shown[0].shape[1]) for each in (row, key))
    columns = [np.full(len(row), place), ends[row], keys.take(pa.array(key)), *(each.ravel() for each in shown)]
    return pa.table([pa.array(column) for column in columns], schema=shown_schema(len(values)))


def _incomplete() -> ValueError:
    return ValueError("the state of keys is incomplete")

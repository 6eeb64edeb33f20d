"""Keys that nobody lists: a query has cells for every text that its column holds, and finds keys by noisy counts.

A key has one cell, or one for each combination of the values of the query's other keys, which are listed.

The cells of such a query are texts in projected rows, in the state of a shard and in its sums. A shard numbers the
texts of one run while it processes them: `coded` replaces texts with codes, and `texts_of` replaces codes again. So no
code outlives a run, and no code is public. All of it is private, above all which keys exist
(transforms.release.discovered_chunk).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.discovery.rules import ANY
from privacy.series import Family
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.keys import number
from transforms.common.kinds import one_chunk, to_key

Ints = np.ndarray

FAMILIES: tuple[Family, ...] = ("net", "entered", "left")
"""Order of the families in sums."""


@dataclass(frozen=True, slots=True)
class DiscoveredKey:
    """Key whose values are found privately.

    Attributes:
        keys: Number of cells: `ANY`, or the number of codes in one run of one shard.
    """

    keys: int = ANY

    def __len__(self) -> int:
        return self.keys


def cell_texts(column: pa.ChunkedArray | pa.Array, cell: Ints | None) -> pa.Array:
    """Return the cell of each state as text: its key, after its cell among those of the key; null without a key.

    Args:
        column: Keys.
        cell: Cell of each state among those of its key, int [states]; None: a key has one cell, which is left out.

    >>> cell_texts(pa.array([7.0, None, 0.5]), None).to_pylist()
    ['7', None, '0.5']
    >>> cell_texts(pa.array(["New York", None]), np.array([2, 0])).to_pylist()
    ['2 New York', None]
    """
    texts = to_key(one_chunk(column), "string")[0]
    return texts if cell is None else pc.binary_join_element_wise(pa.array(cell).cast(pa.string()), texts, " ")


def split_texts(texts: pa.Array) -> tuple[pa.Array, Ints]:
    """Return key and cell, int64 [texts], of texts that `cell_texts` made with cells.

    >>> [each.tolist() for each in split_texts(pa.array(["2 New York", "0 "]))]
    [['New York', ''], [2, 0]]
    """
    both = pc.split_pattern(texts, " ", max_splits=1).flatten()
    return both[1::2], both[::2].cast(pa.int64()).to_numpy()


@dataclass(frozen=True, slots=True)
class Coded:
    """Rows of a shard with codes in place of texts.

    Attributes:
        rows: Projected rows.
        carried: Last known states of entries, or None.
        texts: For each query that finds keys, by its number, the text of each code.
    """

    rows: pa.Table
    carried: pa.Table | None
    texts: dict[int, pa.Array]


def coded(rows: pa.Table, carried: pa.Table | None, queries: Sequence[int]) -> Coded:
    """Replace the texts of some queries' cells with codes 0, 1, ...; -1 for no cell.

    Args:
        rows: Projected rows.
        carried: Last known states of entries before the run, or None.
        queries: Numbers of the queries that find keys.
    """
    texts = {}
    for query in queries:
        sides = [name for name in (f"before.{query}.cell", f"after.{query}.cell") if name in rows.column_names]
        known = f"after.{query}.cell"
        columns = [one_chunk(rows[name]) for name in sides]
        if carried is not None:
            columns.append(one_chunk(carried[known]))
        codes, texts[query] = _numbered(columns)
        for name, code in zip(sides, codes, strict=False):
            rows = rows.set_column(rows.column_names.index(name), name, pa.array(code))
        if carried is not None:
            carried = carried.set_column(carried.column_names.index(known), known, pa.array(codes[-1]))
    return Coded(rows, carried, texts)


def _numbered(columns: Sequence[pa.Array]) -> tuple[list[Ints], pa.Array]:
    """Return the code of each text of some columns, and the texts by code."""
    whole = pa.concat_arrays([column.cast(pa.string()) for column in columns])
    there = whole.is_valid().to_numpy(zero_copy_only=False)
    code = np.full(len(whole), -1, dtype=np.int64)
    found, keys = number(whole.drop_null())
    code[there] = found
    return np.split(code, np.cumsum([len(column) for column in columns])[:-1]), keys.all()


def texts_of(codes: pa.ChunkedArray, texts: pa.Array) -> pa.Array:
    """Return the texts of some codes; null for -1."""
    at = codes.to_numpy()
    return texts.take(pa.array(at, mask=at < 0))


def layers_of(families: Sequence[Family], components: int, family: Family) -> range:
    """Return the numbers of the sums of a family, one for each component; a query has them for all its families.

    Args:
        families: Families of the query.
        components: Number of components of its measure.
        family: One of the families.

    >>> layers_of(("entered", "net"), 2, "net")
    range(0, 2)
    """
    place = [one for one in FAMILIES if one in families].index(family)
    return range(place * components, (place + 1) * components)


@dataclass(frozen=True, slots=True)
class KeySums:
    """Exact sums of keys, sparse: for each row a key, a window, a sum in grid steps, and the cell of the key.

    A query with several families of numbers, or components, has several layers of sums (`layers_of`).

    Attributes:
        keys: Distinct keys, text [keys].
        key: Place of the key of each row, int64 [n].
        window: Window of each row, 0 for the initial level, int64 [n].
        sum: Sum of each row, int64 [n].
        cell: Cell of each row among those of its key, int64 [n]; None if each key has one.
        layer: Layer of each row, int [n]; None if all are of layer 0.
    """

    keys: pa.Array
    key: Ints
    window: Ints
    sum: Ints
    cell: Ints | None = None
    layer: Ints | None = None

    def among(self, keys: pa.Array) -> "KeySums":
        """Return the same sums with other keys, among which are its own."""
        return replace(self, keys=keys, key=pc.index_in(self.keys, value_set=keys).to_numpy()[self.key])

    def of_layer(self, rows: Ints, layer: int) -> np.ndarray | slice:
        """Return which of some rows are of a layer."""
        if self.layer is None:
            return slice(None) if layer == 0 else slice(0)
        return self.layer[rows] == layer

    def columns(self, place: Ints, rows: Ints | slice, cells: int) -> Ints:
        """Return the column of some rows if each key has `cells` columns, one after another, int64 [rows].

        Args:
            place: Place of the key of each of these rows.
            rows: The rows.
            cells: Number of cells of each key.
        """
        return place if self.cell is None else place * cells + self.cell[rows]

    def dense(self, keys: pa.Array, windows: int, cells: int = 1, layer: int = 0) -> Ints:
        """Return the sums of some keys in a layer, int64 [1 + windows, keys * cells]; row 0 is the initial level."""
        place = pc.index_in(self.keys, value_set=keys).fill_null(-1).to_numpy()[self.key]
        filled, rows = np.zeros((1 + windows, len(keys) * cells), dtype=np.int64), np.flatnonzero(place >= 0)
        rows = rows[self.of_layer(rows, layer)]
        np.add.at(filled, (self.window[rows], self.columns(place[rows], rows, cells)), self.sum[rows])
        return filled


def encode_sums(node: Ints, sums: Mapping[int, Ints], texts: pa.Array, *, celled: bool) -> bytes:
    """Return sums of a shard as an Arrow IPC stream.

    Args:
        node: window * codes + code, int64 [n].
        sums: Sum in grid steps of each node, int64 [n], by layer.
        texts: Text of each code.
        celled: Whether the texts have cells.
    """
    window, code = (np.tile(each, len(sums)) for each in np.divmod(node, len(texts)))
    keys, cell = split_texts(texts) if celled else (texts, None)
    cells = {} if cell is None else {"cell": cell[code]}
    layer = np.repeat(np.array([*sums], dtype=np.int8), len(node))
    columns = {"window": window, "sum": np.concatenate([*sums.values()]), "layer": layer}
    return to_bytes(pa.table({"key": keys.take(pa.array(code)), **columns, **cells}))


def decode_sums(payloads: Iterable[bytes]) -> KeySums:
    """Return the sums of some shards; a key, cell and window may occur several times."""
    tables = [from_bytes(payload) for payload in payloads]
    none = pa.table({"key": pa.array([], pa.string()), **dict.fromkeys(("window", "sum", "layer"), np.zeros(0, int))})
    table = pa.concat_tables(tables or [none]).combine_chunks()
    key, keys = number(one_chunk(table["key"]))
    cell = table["cell"].to_numpy() if "cell" in table.column_names else None
    layer = table["layer"].to_numpy()
    one = layer if layer.any() else None
    return KeySums(keys.all(), key, table["window"].to_numpy(), table["sum"].to_numpy(), cell, one)

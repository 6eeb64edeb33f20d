"""Projection of states to what queries read: a cell and a value, as integer columns.

    in    Batch(file, first_row, table)     normalised states (transforms.sources.changelog)
    out   pa.Table, one row a mutation      `unit` (owners only), `entry`, `time`, `until` (of
                                            intervals), `order.*`, and for query i
                                            `after.<i>.cell` (-1: contributes nothing; text or null if keys are found,
                                            transforms.aggregation.discovered_key) and, if a column
                                            is measured, `after.<i>.value` (grid steps; 0 without a cell), as
                                            the narrowest integers that hold cells and bounds;
                                            the same with `before.`; `after.class` with a class constraint;
                                            `image.<side>` (transforms.common.images), or `file` with positions
    dead  pa.Table(file, row, reason)       states whose owner is unknown

Everything is private. Values are clamped here: the value of a state is clamped, never a difference, since clamped
differences do not add up. A truncate (transforms.aggregation.truncates) stays a row without entry, unit and states.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.discovered_key import cell_texts
from transforms.aggregation.expression import evaluate
from transforms.aggregation.grid_steps import grid_steps
from transforms.aggregation.listed_key import ListedKey, places_in
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.common.batches import DEAD, FILE, POSITION, Batch, dead_letters
from transforms.common.images import IMAGE, digest, shared
from transforms.common.intervals import UNTIL
from transforms.common.joined import given, giving
from transforms.common.kinds import one_chunk, to_mask, valid
from transforms.common.several import Collections
from transforms.common.source import Source

GONE = -2
"""Class of a state that does not exist (-1: a class that is not listed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Columns that are read from each state.

    Attributes:
        queries: Queries, in the order that numbers their columns.
        owner: Column that names the owner, of the mutation (`owner` of the batch) or else of the states; None if the
            unit is the entry. Queries read it as a column of the states in either case.
        by_class: Column and listed values of a class constraint.
    """

    queries: tuple[Query, ...]
    owner: str | None = None
    by_class: tuple[str, tuple[str, ...]] | None = None


class Project(beam.PTransform):
    """Transform from batches of states to projected states, with dead letters under the tag `DEAD`.

    Raises:
        ValueError: The batches are read for another privacy unit.
    """

    def __init__(self, projection: Projection) -> None:
        super().__init__()
        self._projection = projection

    def expand(self, batches: beam.PCollection) -> Collections:
        source = given(batches, Source)
        if source is not None and source.owner != self._projection.owner:
            raise ValueError(
                f"the changelog is read for units by {source.owner or 'entry'}, and they are to be bounded by "
                f"{self._projection.owner or 'entry'}; name one owner in Source and Aggregation"
            )
        kernel = _ProjectDoFn(self._projection, own=source is None)
        outputs = batches | "ProjectStates" >> beam.ParDo(kernel).with_outputs(DEAD, main="projected")
        giving(outputs["projected"], self._projection)
        return outputs


class _ProjectDoFn(beam.DoFn):
    def __init__(self, projection: Projection, *, own: bool) -> None:
        self._projection, self._own = projection, own

    def process(self, batch: Batch) -> Iterator[pa.Table | beam.pvalue.TaggedOutput[Literal["dead"], pa.Table]]:
        if self._own:
            refuse_form(batch.table, self._projection)
        table, rows, reason = project(batch.table, self._projection)
        if table.num_rows:
            yield table
        if len(rows):
            yield beam.pvalue.TaggedOutput(DEAD, dead_letters(batch.file, batch.row_numbers(rows), reason))


def refuse_form(table: pa.Table, projection: Projection) -> None:
    """Refuse a batch of a source outside this library that lacks the form that docs/pipelines.md describes.

    A row without a key would be a truncate, which deletes all entries: one row would change what all others count.

    Raises:
        ValueError: A column is missing or has another type, or a key or a time is null.
    """
    names = {*table.column_names}
    sides = [side for side in ("before", "after") if side in names]
    read = {column for query in projection.queries for column in query.columns}
    read |= {projection.by_class[0]} if projection.by_class else set()
    if "owner" in names and projection.owner is None:
        raise ValueError("the rows name owners, and the privacy unit is the entry; name the owner in Aggregation")
    if projection.owner is not None:
        read = read - {projection.owner} if "owner" in names else read | {projection.owner}
    wanted = ["entry", "time", *(sides or ["after"]), *sorted(f"{side}.{name}" for side in sides for name in read)]
    if missing := [name for name in wanted if name not in names]:
        raise ValueError(f"a batch has no column {missing[0]!r}; docs/pipelines.md lists the columns")
    if table["time"].type != pa.int64():
        raise ValueError(f"column 'time' has type {table['time'].type}; expected microseconds since 1970 as int64")
    if nulls := [name for name in ("entry", "time") if table[name].null_count]:
        raise ValueError(f"column {nulls[0]!r} has nulls; leave out changes without a key or a time, and count them")


def project(table: pa.Table, projection: Projection) -> tuple[pa.Table, np.ndarray, str]:
    """Project the states of a table.

    Clamping bounds the value of every state: |steps| is at most the largest contribution of the query's measure, on
    which the sensitivity rests (privacy.measure).

    Returns:
        Projected rows; numbers of unusable rows, int64 [n]; and the reason why they are unusable.
    """
    sides = [side for side in ("before", "after") if side in table.column_names]
    kept = ("entry", "time", UNTIL, FILE)
    columns = {name: table[name] for name in table.column_names if name in kept or name.startswith("order.")}
    columns |= _images(table, sides)
    for side in sides:
        columns |= _project_side(table, side, projection)
    if "owner" in table.column_names:
        return pa.table({"unit": table["owner"], **columns}), np.zeros(0, np.int64), ""
    if projection.owner is None:
        return pa.table(columns), np.zeros(0, np.int64), ""
    owners = [table[f"{side}.{projection.owner}"] for side in sides]
    return _split_by_owner(pa.table(columns), owners, sides)


def _images(table: pa.Table, sides: list[str]) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Return digests of the whole images; they are computed from the table's columns if the reader gives none."""
    if POSITION in table.column_names:
        return {}
    images = {side: f"{IMAGE}.{side}" for side in sides}
    if all(name in table.column_names for name in images.values()):
        return {name: table[name] for name in images.values()}
    names = {
        side: [n.removeprefix(f"{side}.") for n in table.column_names if n.startswith(f"{side}.")] for side in sides
    }
    both = shared(names.values())
    return {
        images[side]: digest(((name, one_chunk(table[f"{side}.{name}"])) for name in both), to_mask(table[side]))
        for side in sides
    }


def _project_side(table: pa.Table, side: str, projection: Projection) -> dict[str, np.ndarray]:
    exists = to_mask(table[side])
    prefix = f"{side}."
    names = [name for name in table.column_names if name.startswith(prefix)]
    states = (
        pa.table({name.removeprefix(prefix): table[name] for name in names}) if names else pa.table({side: table[side]})
    )
    if "owner" in table.column_names and projection.owner not in (None, *states.column_names):  # of both states
        owner = pc.if_else(table[side], table["owner"], pa.scalar(None, table["owner"].type))
        states = states.append_column(projection.owner, owner)
    conditions = list(dict.fromkeys(q.where for q in projection.queries if q.where is not None))
    satisfied = dict(zip(conditions, evaluate(conditions, states), strict=True)) if conditions else {}
    projected: dict[str, np.ndarray] = {}
    for number, query in enumerate(projection.queries):
        inside = exists if query.where is None else exists & satisfied[query.where]
        cell, texts = cell_codes(states, query.known), None
        if query.found_by is not None:
            texts = cell_texts(states[query.found_by], cell if query.known else None)
            inside = inside & valid(texts) & (cell >= 0)
        if query.column is not None:
            value, usable = grid_steps(states[query.column], query)
            inside = inside & usable & (cell >= 0)
            low, high = query.measure.project(np.array([query.measure.low, query.measure.high])).tolist()
            projected[f"{side}.{number}.value"] = value.astype(_narrowest(low, high)) * inside
        if texts is not None:
            projected[f"{side}.{number}.cell"] = pc.if_else(pa.array(inside), texts, pa.scalar(None, pa.string()))
            continue
        cell = cell.astype(_narrowest(-1, query.cells))
        cell += 1
        cell *= inside  # a product takes a fifth of the time of np.where
        cell -= 1
        projected[f"{side}.{number}.cell"] = cell
    if projection.by_class is not None:
        column, names_listed = projection.by_class
        code = places_in(states[column], names_listed, range(len(names_listed)), -1)
        projected[f"{side}.class"] = np.where(exists, code, GONE)
    return projected


def _narrowest(low: int, high: int) -> type[np.signedinteger]:
    """Return the narrowest integer type for a range that includes 0.

    >>> _narrowest(-1, 127), _narrowest(-129, 0)
    (<class 'numpy.int8'>, <class 'numpy.int16'>)
    """
    kinds = (np.int8, np.int16, np.int32, np.int64)
    return next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def cell_codes(states: pa.Table, by: Sequence[tuple[str, ListedKey | OrderedKey]]) -> np.ndarray:
    """Return the cell of each row for the listed values and ranges of `by`, int64 [rows]; -1 outside all cells.

    >>> states = pa.table({"ward": ["a", "x", None], "n": [1, 2, 1]})
    >>> cell_codes(states, [("ward", ListedKey(("a", "other"))), ("n", ListedKey((1, 2)))]).tolist()
    [0, 3, 2]
    """
    cell: np.ndarray | None = None
    for column, key in by:
        code = key.codes(states[column])
        cell = code if cell is None else np.where((cell >= 0) & (code >= 0), cell * len(key) + code, -1)
    return np.zeros(states.num_rows, dtype=np.int32) if cell is None else cell


def _split_by_owner(
    projected: pa.Table, owners: list[pa.ChunkedArray], sides: list[str]
) -> tuple[pa.Table, np.ndarray, str]:
    """Give each row its owner; a change of owner becomes a deletion for the old and an insertion for the new one."""
    known = [valid(one_chunk(owner)) for owner in owners]
    texts = [one_chunk(owner.cast(pa.string())) for owner in owners]
    truncates = to_mask(projected["entry"].is_null())
    # A state that exists without an owner, or a row without any state, cannot be charged to anyone.
    if len(sides) == 1:
        usable = known[0] | truncates
        return (
            projected.filter(usable).add_column(0, "unit", texts[0].filter(usable)),
            np.flatnonzero(~usable),
            _NO_OWNER,
        )
    before, after = known
    usable = before | after | truncates
    same = pc.fill_null(pc.equal(texts[0], texts[1]), False).to_numpy(zero_copy_only=False)
    moved = before & after & ~same
    whole = usable & ~moved
    unit = pc.if_else(pa.array(after), texts[1], texts[0])
    kept = projected.filter(whole).add_column(0, "unit", unit.filter(whole))
    if not moved.any():
        return kept, np.flatnonzero(~usable), _NO_OWNER
    leaving = _without(projected.filter(moved), "after").add_column(0, "unit", texts[0].filter(moved))
    coming = _without(projected.filter(moved), "before").add_column(0, "unit", texts[1].filter(moved))
    return pa.concat_tables([kept, leaving, coming]), np.flatnonzero(~usable), _NO_OWNER


_NO_OWNER = "no state of this row names its owner: give before images, or an owner column of the mutation itself"


def _without(projected: pa.Table, side: str) -> pa.Table:
    """Return the rows with no state on one side."""
    for place, name in enumerate(projected.column_names):
        if name.startswith(f"{side}.") or name == f"{IMAGE}.{side}":
            column = nothing(name, projected.schema.field(place).type, projected.num_rows)
            projected = projected.set_column(place, name, column)
    return projected


def nothing(name: str, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a projected column, such as `after.0.cell`, of states that do not exist.

    Args:
        name: Name of the column.
        kind: Type of the column.
        rows: Number of rows.
    """
    if pa.types.is_string(kind):
        return pa.nulls(rows, kind)
    empty = 0 if name.startswith(f"{IMAGE}.") else {"cell": -1, "value": 0, "class": GONE}[name.rsplit(".", 1)[1]]
    return pa.repeat(pa.scalar(empty, kind), rows)

"""The treatment of each row of a few files, read as a run reads them: dead, skipped, or its values up to cells."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from privacy.measure import Measure
from tests.fates import formats
from tests.fates.rows import KINDS, Row, plain
from transforms.aggregation.expression import Condition
from transforms.aggregation.projection import Projection, project
from transforms.aggregation.queries import Query
from transforms.common.batches import FILE, POSITION, Batch
from transforms.common.errors import InputError, SpecError
from transforms.common.source import Source
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped
from transforms.sources.files.listing import Listed
from transforms.sources.formats import csv, json_lines
from transforms.sources.inspection import inspect

Fate = tuple[Any, ...]
Write = Callable[[Sequence[Row], Path, Random], list[int]]


class RefusedError(Exception):
    """The run ends before anything is published, which may depend on any row."""


@dataclass(frozen=True)
class Case:
    """A format and the part of a spec that determines how it is read."""

    write: Write
    extension: str
    format: str
    source: dict[str, Any]
    compressed: bool = True


_FLAT = {"entry": "id", "time": "at", "before": "before_", "after": "after_"}
_NESTED = {"entry": "id", "time": "at", "before": "before", "after": "after"}
_NEW = {"entry": "id", "time": "at", "before": None, "after": None}
_OWN = {"entry": "id", "time": None, "before": None, "after": None}
CASES = {
    "csv": Case(formats.csv, "csv", "csv", _FLAT),
    "csv in quotes": Case(partial(formats.csv, quoted=True), "csv", "csv", {**_FLAT, "nulls": ("", "null")}),
    "csv of new values": Case(partial(formats.csv, before=False), "csv", "csv", _NEW),
    "csv with marks": Case(
        partial(formats.csv, before=False), "csv", "csv", {**_NEW, "deleted": ("ok", ("true", "1"))}
    ),
    "json with prefixes": Case(formats.json_flat, "jsonl", "jsonl", _FLAT),
    "json of new values": Case(partial(formats.json_flat, before=False), "jsonl", "jsonl", _NEW),
    "csv of stays": Case(partial(formats.csv, before=False), "csv", "csv", {**_NEW, "until": "seen"}),
    "json of stays": Case(partial(formats.json_flat, before=False), "jsonl", "jsonl", {**_NEW, "until": "seen"}),
    "json of a log": Case(partial(formats.json_flat, before=False), "jsonl", "jsonl", {**_NEW, "expires": 10**9}),
    "json with objects": Case(formats.json_structs, "jsonl", "jsonl", _NESTED),
    "debezium": Case(formats.debezium, "jsonl", "debezium", _OWN),
    "datastream": Case(formats.datastream, "jsonl", "datastream", _OWN),
    "avro": Case(formats.avro, "avro", "datastream", _OWN, compressed=False),
    "parquet with prefixes": Case(formats.parquet, "parquet", "parquet", _FLAT, compressed=False),
    "parquet with structs": Case(
        partial(formats.parquet, structs=True), "parquet", "parquet", _NESTED, compressed=False
    ),
}
TYPES = (("n", "int64"), ("ok", "bool"), ("seen", "timestamp"))

CONDITIONS = (
    *("w = 'a'", "w::INT > 0", "w IN ('a', '1', '')", "w::DECIMAL(9,2) >= 1 OR ok", "w LIKE '%a%'", "w IS NULL"),
    *("n * n > 0", "10 // n > 1", "n::TINYINT > 0", "CASE WHEN n = 0 THEN false ELSE 10 % n > 0 END", "n IN (0, 1)"),
    *("x > 1", "x::BIGINT > 0", "sqrt(x) > 1", "isnan(x)", "round(x, n::INT) > 0", "x = n", "NOT ok", "ok = (n > 0)"),
    *(
        "extract(year FROM seen) = 2013",
        "seen + to_days(n::INT) > seen",
        "strftime(seen, w) = '2013'",
        "seen > w::DATE",
    ),
)
WITH_CONDITION = 0.05
"""Share of the queries with a condition: the engine takes most of the time, and has separate tests."""

_CELLS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    *(("w", ("a", "1", "other")), ("w", ("1.5", "abc")), ("n", (0, 1, "other")), ("n", (-5, 9007199254740993))),
    *(("ok", (True, "other")), ("u", ("anna", "other"))),
)


@dataclass(frozen=True)
class Spec:
    """A case with all other parts of a spec that determine the treatment of a row."""

    case: Case
    source: dict[str, Any]
    projection: Projection

    @classmethod
    def of(cls, case: Case, choose: Random) -> "Spec":
        own = case.source["time"] is None
        columns: dict[str, Any] = {"timezone": choose.choice([None, "America/New_York"])}
        text = case.format != "parquet" and case.extension != "avro"
        columns["types"] = choose.choice([TYPES, tuple(sorted(KINDS.items()))]) if text else ()
        if not own and "until" not in case.source and choose.random() < 0.5:
            columns["order"] = ("seq",)
        unit = choose.choice([None, "u"] if own else [None, "u", "owner"])
        if unit == "owner" and case.format == "jsonl" and case.source["after"] is not None:
            columns["forms"] = (("owner", "mutation"),)  # outside the states
        measures = [Measure(kind="count"), Measure(kind="sum", low=-3, high=500), Measure(kind="mean", low=0, high=9)]
        queries = tuple(
            Query(
                name=f"q{number}",
                measure=measure,
                column=None
                if measure.kind == "count"
                else choose.choice(["x", "n"] if case.format == "parquet" else ["x"]),
                invalid=choose.choice(["drop", "min", "max"]),
                where=Condition.parse(choose.choice(CONDITIONS)) if choose.random() < WITH_CONDITION else None,
                by=tuple(choose.sample(_CELLS, choose.choice([0, 1, 2]))),
            )
            for number, measure in enumerate(measures)
        )
        projection = Projection(
            queries=queries,
            owner="u" if unit == "u" else None,
            by_class=("w", ("a", "abc")) if choose.random() < 0.3 and unit != "owner" else None,
        )
        return cls(case, {**case.source, **columns, "owner": unit}, projection)

    def projection_of(self, layout: Layout) -> Projection:
        """Return the projection; an owner's column that belongs to the mutation is not one of the states."""
        if layout.owner is None:
            return self.projection
        queries = [
            replace(query, by=tuple((column, cells) for column, cells in query.by if column != layout.source.owner))
            for query in self.projection.queries
        ]
        return replace(self.projection, owner=None, queries=tuple(queries))

    def look(self, folder: Path) -> Layout:
        """Inspect as a first run does.

        Raises:
            RefusedError: No run would start.
        """
        source = Source(format=self.case.format, paths=(f"{folder}/*",), **self.source)
        try:
            return inspect(source, frozenset({"x"}), frozenset(KINDS) - {"x"})
        except (InputError, SpecError) as error:
            raise RefusedError(str(error)) from None


def write(spec: Spec, rows: Sequence[Row], path: Path, choose: Random) -> list[int]:
    """Write a file of the rows, possibly compressed, and return the keys' numbers in the order of the file."""
    if spec.case.compressed and choose.random() < 0.1:
        path = path.with_suffix(f".{spec.case.extension}.gz")
    spec.case.write(rows, path, choose)
    return [row.entry for row in rows]


def fates(spec: Spec, layout: Layout, file: Listed, entries: Sequence[int], choose: Random) -> dict[int, Fate]:
    """Return the treatment of each row of a file, by its key's number.

    Raises:
        RefusedError: The run would end.
    """
    found: dict[int, Fate] = dict.fromkeys(entries, ("skipped",))
    batch_rows = choose.choice([2, 1000, 1000])
    with _blocks(choose):
        for split in splits(Place(file.path, 0), layout.source.format):
            for part in read_split(layout, split, batch_rows):
                if isinstance(part, Batch):  # of a stay with an end, the end comes last
                    found |= {entries[row - 1]: fate for row, fate in _used(part, spec.projection_of(layout))}
                elif not isinstance(part, Skipped):
                    for letter in part.to_pylist():
                        if letter["row"] is None:
                            raise RefusedError(letter["reason"])
                        found[entries[letter["row"] - 1]] = ("dead", letter["reason"])
    return found


def _used(batch: Batch, projection: Projection) -> Iterator[tuple[int, Fate]]:
    numbers = batch.row_numbers(np.arange(batch.table.num_rows)).tolist()
    try:
        projected, unusable, _ = project(batch.table, projection)
    except InputError as error:
        raise RefusedError(str(error)) from None
    seen: dict[Any, list[str]] = {}
    for values in _rows(projected):
        seen.setdefault(values["entry"], []).append(repr(sorted(values.items())))
    for place, (number, values) in enumerate(zip(numbers, _rows(batch.table), strict=True)):
        told = ("no owner",) if place in unusable else tuple(sorted(seen[values["entry"]]))
        yield number, (tuple(values.items()), told)


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = {
        name: map(
            plain,
            (table[name].cast(pa.int64()) if pa.types.is_timestamp(table[name].type) else table[name]).to_pylist(),
        )
        for name in table.column_names
        if name not in (FILE, POSITION)  # its position
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@contextmanager
def _blocks(choose: Random) -> Iterator[None]:
    """Read in blocks of one line, of a few lines, or of the usual size."""
    kept = json_lines._BLOCK, csv._BLOCK
    json_lines._BLOCK = choose.choice([300, 1000, kept[0], kept[0]])
    csv._BLOCK = choose.choice([3000, kept[1]])
    try:
        yield
    finally:
        json_lines._BLOCK, csv._BLOCK = kept


__all__ = ["CASES", "Case", "Fate", "RefusedError", "Spec", "fates", "write"]

"""Rules for a reader on one changelog file of any bytes.

Each row of the file is output exactly once: in a batch, with the values of a plain reader (tests.fuzz.plain), as a dead
letter, or counted as skipped. Smaller blocks and batches give the same rows. As the first file it is read, or refused
with one of the project's errors.
"""

import io
import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from tests.fuzz import avro, plain
from tests.fuzz.seeds import SEEDS
from tests.fuzz.values import DEAD
from transforms.common.batches import Batch
from transforms.common.errors import InputError, SpecError
from transforms.common.source import Source
from transforms.sources.changelog import read_split
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped
from transforms.sources.formats import csv, json_lines
from transforms.sources.formats.format import Split
from transforms.sources.inspection import inspect

TYPES = (("n", "int64"), ("ok", "bool"), ("seen", "timestamp"))
_EXTENSIONS = {"avro": "avro", "csv": "csv"}
_FLAT = {"entry": "id", "time": "at", "before": "before_", "after": "after_", "order": ("seq",)}
_SOURCES: dict[str, dict[str, Any]] = {
    "csv": {"format": "csv", **_FLAT},
    "jsonl": {"format": "jsonl", **_FLAT},
    "objects": {"format": "jsonl", "entry": "id", "time": "at", "before": "before", "after": "after"},
    "debezium": {"format": "debezium", "entry": "id", "time": None, "before": None, "after": None},
    "datastream": {"format": "datastream", "entry": "id", "time": None, "before": None, "after": None},
    "avro": {"format": "datastream", "entry": "id", "time": None, "before": None, "after": None},
}


class Read:
    """All output of a reader for a file."""

    def __init__(self, parts: Iterator[Batch | pa.Table | Skipped]) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self.dead: dict[int, str] = {}
        self.skipped = 0
        self.fault: str | None = None
        for part in parts:
            if isinstance(part, Skipped):
                self.skipped += part.rows
            elif isinstance(part, Batch):
                numbers = part.row_numbers(np.arange(part.table.num_rows)).tolist()
                self._add(self.rows, dict(zip(numbers, _values(part.table), strict=True)))
            else:
                for letter in part.to_pylist():
                    if letter["row"] is None:
                        assert self.fault is None, "two dead letters of one file"
                        self.fault = letter["reason"]
                    else:
                        self._add(self.dead, {letter["row"]: letter["reason"]})

    def _add(self, kept: dict[int, Any], new: dict[int, Any]) -> None:
        twice = new.keys() & (self.rows.keys() | self.dead.keys())
        assert not twice, f"rows {sorted(twice)} come twice"
        kept.update(new)

    @property
    def told(self) -> tuple[Any, ...]:
        return _plain(self.rows), self.dead, self.skipped, self.fault


def check(format_: str, data: bytes) -> Read | None:
    """Read the bytes as a file of the format, and check all rules; return None for an empty file.

    Raises:
        AssertionError: A rule is broken.
    """
    if not data:
        return None
    path = _folder() / f"file.{_EXTENSIONS.get(format_, 'jsonl')}"
    path.write_bytes(data)
    with _nothing_forgotten():
        layout = fixed_layout(format_)
        found = _read(layout, path)
        _compare(format_, data, found)
        _same_in_pieces(layout, path, data, found)
        try:
            first = inspect(_source(format_, path), frozenset({"cost", "n"}), frozenset({"ok", "seen", "ward"}))
        except (SpecError, InputError) as error:
            told = str(error)
        else:
            told = ""
            _covers(format_, data, _read(first, path))
        assert "\n" not in told, "an error of several lines"
    return found


@contextmanager
def _nothing_forgotten() -> Iterator[None]:
    """Raise errors of callbacks, which would only be printed."""
    forgotten: list[str] = []
    kept, sys.unraisablehook = sys.unraisablehook, lambda found: forgotten.append(repr(found.exc_value))
    try:
        yield
    finally:
        sys.unraisablehook = kept
    assert not forgotten, forgotten


@cache
def fixed_layout(format_: str) -> Layout:
    """Return the layout of a valid first file."""
    path = _folder() / f"first.{_EXTENSIONS.get(format_, 'jsonl')}"
    path.write_bytes(SEEDS[format_][0])
    return inspect(_source(format_, path), frozenset({"cost", "n"}), frozenset({"ok", "seen", "ward"}))


@cache
def _folder() -> Path:
    # Kept alive until the process ends.
    _folder.kept = tempfile.TemporaryDirectory(prefix="slackwater-fuzz-")  # type: ignore[attr-defined]
    return Path(_folder.kept.name)  # type: ignore[attr-defined]


def _source(format_: str, path: Path) -> Source:
    return Source(paths=(str(path),), types=TYPES, **_SOURCES[format_])


def _read(layout: Layout, path: Path, batch_rows: int = 1000) -> Read:
    return Read(read_split(layout, Split(Place(str(path), 0), None), batch_rows))


def _compare(format_: str, data: bytes, found: Read) -> None:
    expected = _expected(format_, data, found)
    if expected is None:
        return
    for number, row in found.rows.items():
        assert number in expected, f"row {number} is not a row of the file"
        wanted = expected[number]
        assert wanted not in (DEAD, plain.SKIPPED), f"row {number} should not be used: {row}"
        row = {name: row.get(name, "absent") for name in wanted}
        assert _plain(row) == _plain(wanted), f"row {number}: {row} is not {wanted}"
    for number, reason in found.dead.items():
        assert number in expected, f"dead row {number} is not a row of the file"
        assert expected[number] is DEAD, f"row {number} should not be dead ({reason}): {expected[number]}"
    if found.fault is None:
        left = expected.keys() - found.rows.keys() - found.dead.keys()
        assert all(expected[number] is plain.SKIPPED for number in left), f"of rows {sorted(left)} some are lost"
        assert len(left) == found.skipped


def _expected(format_: str, data: bytes, found: Read) -> plain.Reading | None:
    """Return the expected result of each row; None if the whole file is refused before its first row."""
    if format_ == "avro":
        records = _records(data)
        assert (records is None) <= (found.fault is not None), "a spoilt file without a dead letter"
        if records is None or not avro.is_ours(data):
            return None
        return {number: avro.reading(record) for number, record in enumerate(records, 1)}
    if format_ == "csv":
        if found.fault is not None and not (found.rows or found.dead):
            return None
        expected, within = plain.csv(data)
        assert within == (found.fault is not None and "quotes" in found.fault), found.fault
        return expected
    assert found.fault is None, found.fault
    return plain.lines(data, getattr(plain, {"jsonl": "flat"}.get(format_, format_)))


def _covers(format_: str, data: bytes, found: Read) -> None:
    """Assert that rows are numbered from 1 without gaps, or are existing lines."""
    if found.fault is not None:
        return
    told = found.rows.keys() | found.dead.keys()
    if format_ in ("avro", "csv"):
        rows = len(_records(data) or ()) if format_ == "avro" else len(plain.csv(data)[0])
        assert told == set(range(1, rows + 1)), "a row is lost"
    else:
        rows = plain.lines(data, lambda _: None).keys()  # type: ignore[assignment]
        assert told <= set(rows)  # type: ignore[arg-type]
        assert len(told) + found.skipped == len(rows), "a line is lost"  # type: ignore[arg-type]


def _records(data: bytes) -> list[Any] | None:
    try:
        return list(fastavro.reader(io.BytesIO(data)))
    except Exception:
        return None


def _same_in_pieces(layout: Layout, path: Path, data: bytes, found: Read) -> None:
    """Assert equal rows for blocks of a line or half the file, and batches of two rows."""
    longest = max(map(len, data.replace(b"\r", b"\n").split(b"\n")))
    with _small_blocks(64 if len(data) % 4 == 0 else len(data) // 2 + 1, 2 * longest + 64):
        pieces = _read(layout, path, batch_rows=2)
    if layout.source.format == "csv" and pieces.fault != found.fault:
        return  # a row in quotes that is longer than a block
    assert pieces.told == found.told, "smaller blocks are read otherwise"


@contextmanager
def _small_blocks(of_lines: int, of_csv: int) -> Iterator[None]:
    kept = json_lines._BLOCK, csv._BLOCK
    json_lines._BLOCK, csv._BLOCK = of_lines, of_csv
    try:
        yield
    finally:
        json_lines._BLOCK, csv._BLOCK = kept


def _values(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with times as integers, since Python's own times have a smaller range."""
    columns = {
        name: (table[name].cast(pa.int64()) if pa.types.is_timestamp(table[name].type) else table[name]).to_pylist()
        for name in table.column_names
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    """Return values that are equal if the readings are equal: NaN equals NaN, 0 equals -0, 1 and True differ."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return (type(value).__name__, value) if isinstance(value, bool | float | int) else value

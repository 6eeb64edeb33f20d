"""A marker in each place of a file that can hold a value or an unexpected name: no message of a reader shows it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz import avro, harness
from tests.fuzz.seeds import SEEDS
from tests.searches import TIMES
from transforms.aggregation.projection import Projection
from transforms.common.batches import Batch
from transforms.common.errors import InputError, SpecError
from transforms.common.source import Source
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped
from transforms.sources.files.opening import UNREADABLE
from transforms.sources.first_file import FirstFile
from transforms.sources.inspection import inspect
from transforms.streams.file_batches import read_file

MARK = b"Zq7marker"
"""Text that no program writes by itself; alone, and within other pieces below."""

CASES = 10

_TOKENS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[^\s,{}\[\]:"]+')
_PIECES = {
    "csv": (MARK, b'"' + MARK, MARK + b'"', MARK + b"\xff", MARK + b"\0", MARK + b"," + MARK, MARK + b"\n" + MARK),
    "json": (
        b'"' + MARK + b'"',
        MARK,
        b'"' + MARK,
        b'"' + MARK + b'\xff"',
        b'"' + MARK + b'\\ud800"',
        b'{"' + MARK + b'":"' + MARK + b'"}',
        b'["' + MARK + b'"]',
    ),
}
"""Replacements of each token of a file: a value, broken quotes, a wrong encoding, more cells, nested values."""


def marked(data: bytes, pieces: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yield the file with each of its tokens replaced, and then cut off after the marker."""
    for token in _TOKENS.finditer(data):
        for piece in pieces:
            yield data[: token.start()] + piece + data[token.end() :]
        yield data[: token.start()] + pieces[0]


def reasons(layout: Layout, path: str, format_: str) -> Iterator[str]:
    """Return all messages of the readers about a file: dead letters and skipped rows."""
    try:
        parts = [part for split in splits(Place(path, 0), format_) for part in read_split(layout, split, 1000)]
    except UNREADABLE as error:
        yield type(error).__name__
        return
    for part in parts:
        if isinstance(part, Skipped):
            yield part.reason
        elif not isinstance(part, Batch):
            yield from (letter["reason"] for letter in part.to_pylist())


def streamed(layout: Layout, path: str) -> Iterator[str]:
    """Return the message with which a stream refuses a file, if it does."""
    try:
        read_file(layout, Projection(queries=()), Place(path, 0), 0.0)
    except InputError as error:
        yield str(error)


def told(source: Source, layout: Layout | None, path: str, columns: frozenset[str]) -> list[str]:
    """Return the messages about a file as a later file, and as the first one."""
    found = [] if layout is None else [*reasons(layout, path, source.format), *streamed(layout, path)]
    for numbers in (frozenset({"cost", "n"}), frozenset[str]()):
        try:
            first = inspect(source, numbers, columns - numbers)
        except (SpecError, InputError) as error:
            found.append(str(error))
        else:
            found += reasons(first, path, source.format)
    return found


def assert_unseen(found: list[str]) -> None:
    assert [line for line in found if MARK.decode().lower() in line.lower()] == []


@pytest.mark.hypothesis  # `make search` selects by this mark
@pytest.mark.parametrize("format_", ["csv", "jsonl", "objects", "debezium", "datastream"])
def test_no_text_of_a_file_is_in_a_message(format_: str, capfd: pytest.CaptureFixture[str]) -> None:
    layout = harness.fixed_layout(format_)
    path = harness._folder() / f"marked.{'csv' if format_ == 'csv' else 'jsonl'}"
    data = b"\n".join(SEEDS[format_][0].split(b"\n")[:4]) + b"\n"
    source, seen = harness._source(format_, path), set[str]()
    files = [*marked(data, _PIECES["csv" if format_ == "csv" else "json"])]
    chosen = Random(1).sample(files, min(CASES * TIMES, len(files)))

    for content in chosen:
        path.write_bytes(content)
        found = told(source, layout, str(path), frozenset({"ok", "seen", "ward", "cost", "n"}))
        assert_unseen(found)
        seen |= set(found)

    assert len(seen) >= 6, "hardly anything was wrong with these files"
    assert_unseen(list(capfd.readouterr()))


def test_no_name_in_a_csv_or_json_file_is_in_a_message(tmp_path: Path) -> None:
    assert names_shown(tmp_path) == []


@pytest.mark.parametrize("leak", ["_told", "_hint"])
def test_a_message_with_a_name_of_the_file_would_be_found(
    leak: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {"_told": lambda _, type_: str(type_), "_hint": lambda _, column, names: f"{column}: {names}"}
    monkeypatch.setattr(FirstFile, leak, shown[leak])

    assert names_shown(tmp_path) != []


def names_shown(tmp_path: Path) -> list[str]:
    """Return messages that show such a name, about files whose names are values."""
    shown = []
    mark, column = MARK.decode(), MARK.decode()[:-1] + "x"  # so similar that a message could propose it
    files = {
        "a.csv": f"{mark},16381,Surgery\n",
        "b.csv": f"{mark};at;{mark}\n",
        "c.jsonl": f'{{"{mark}": 1, "at": {{"{mark}": 2}}}}\n',
        "d.jsonl": f'{{"id": {{"{mark}": 1}}, "at": ["{mark}"], "after": {{"{mark}": {{"{mark}": 1}}}}}}\n',
        "e.jsonl": f'{{"id": 1, "at": "2026-01-01T00:00:00Z", "after{mark}": 1}}\n',
    }
    flat: dict[str, Any] = {"before": None, "after": None, "entry": "id", "time": "at"}
    for name, content in files.items():
        path = tmp_path / name
        path.write_text(content)
        for roles in (flat, flat | {"entry": column}, flat | {"after": "after"}, flat | {"time": column}):
            source = Source(format=path.suffix[1:], paths=(str(path),), **roles)
            found = told(source, None, str(path), frozenset({column, "ward"}))
            assert found
            shown += [line for line in found if mark in line]
    envelopes = [
        ("debezium", f'{{"op": "c", "source": {{"ts_ms": 1}}, "before": null, "after": {{"{mark}": 1}}}}\n'),
        ("datastream", f'{{"source_timestamp": "2026-01-01T00:00:00Z", "payload": {{"{mark}": 1}}}}\n'),
    ]
    for format_, content in envelopes:
        (tmp_path / "f.jsonl").write_text(content)
        for entry in ("id", column):
            source = Source(
                format=format_, paths=(f"{tmp_path}/f.jsonl",), entry=entry, time=None, before=None, after=None
            )
            found = told(source, None, f"{tmp_path}/f.jsonl", frozenset({column}))
            assert found
            shown += [line for line in found if mark in line]
    return shown


def test_no_value_of_a_parquet_or_avro_file_is_in_a_message(tmp_path: Path) -> None:
    mark = MARK.decode()
    good = {"id": [1, 2], "at": pa.array([0, 1], pa.timestamp("us", "UTC")), "ward": ["a", "b"], "n": [1, 2]}
    odd: list[Any] = [[mark, mark], [mark.encode() + b"\xff", None], [[mark], []], [{"x": mark}, None]]
    path = str(tmp_path / "a.parquet")
    source = Source(format="parquet", paths=(path,), entry="id", time="at", before=None, after=None)
    pq.write_table(pa.table(good), path)
    layout = inspect(source, frozenset({"n"}), frozenset({"ward"}))
    seen = set[str]()
    for column in good:
        for values in odd:
            pq.write_table(pa.table(good | {column: values}), path)
            found = told(source, layout, path, frozenset({"ward"}))
            assert_unseen(found)
            seen |= set(found)
        content = (tmp_path / "a.parquet").read_bytes()
        for end in range(4, len(content), len(content) // 40):
            (tmp_path / "a.parquet").write_bytes(content[:end] + content[end + 1 :])
            assert_unseen(told(source, layout, path, frozenset({"ward"})))
    assert len(seen) >= 8

    layout = harness.fixed_layout("avro")
    for path_, member in [
        (("payload", "ward"), mark),
        (("sort_keys",), [mark]),
        (("source_metadata", "change_type"), mark),
    ]:
        changed = {name: dict(value) if isinstance(value, dict) else value for name, value in _AVRO.items()}
        holder = changed[path_[0]] if len(path_) == 2 else changed
        holder[path_[-1]] = member
        content = avro.write([changed])
        for end in (*range(len(content) - 60, len(content), 2), None):
            file = tmp_path / "a.avro"
            file.write_bytes(content[:end] + (content[end + 1 :] if end is not None else b""))
            source = harness._source("avro", file)
            assert_unseen(told(source, layout, str(file), frozenset({"ok", "seen", "ward"})))


def test_no_part_of_a_schema_but_names_of_columns_is_in_a_message(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Symbols, defaults, documentation, names of types, and metadata."""
    mark, seen = MARK.decode(), set[str]()
    layout, columns = harness.fixed_layout("avro"), frozenset({"ok", "seen", "ward"})
    for place in _AVRO_PLACES:
        for type_, value in _AVRO_TYPES:
            file = tmp_path / "a.avro"
            file.write_bytes(avro.write_with(place, type_, value, _AVRO))
            found = told(harness._source("avro", file), layout, str(file), columns)
            assert_unseen(found)
            seen |= set(found)
    assert len(seen) >= 6

    path = str(tmp_path / "a.parquet")
    source = Source(format="parquet", paths=(path,), entry="id", time="at", before=None, after=None)
    plain = {"id": pa.int64(), "at": pa.timestamp("us", "UTC"), "ward": pa.string()}
    for odd in (pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.string()), pa.map_(pa.string(), pa.string())):
        for column in plain:
            metadata = {mark: mark, "ARROW:extension:name": mark, "pandas": mark}
            fields = [pa.field(name, type_, metadata=metadata) for name, type_ in (plain | {column: odd}).items()]
            table = pa.schema(fields, metadata=metadata).empty_table()
            pq.write_table(table, path)
            assert_unseen(told(source, None, path, frozenset({"ward"})))
    assert_unseen(list(capfd.readouterr()))


_AVRO_PLACES = (
    *(("payload", name) for name in ("id", "ward", "n", "seen")),
    *(("source_timestamp",), ("sort_keys",), ("source_metadata", "change_type")),
)
_ENUM = {"type": "enum", "name": "Zq7markerE", "symbols": ["Zq7marker"], "default": "Zq7marker", "doc": "Zq7marker"}
_AVRO_TYPES: tuple[tuple[Any, Any], ...] = (
    (_ENUM | {"namespace": "Zq7marker", "aliases": ["Zq7marker"]}, "Zq7marker"),
    ({"type": "fixed", "name": "Zq7markerF", "size": 9}, b"Zq7marker"),
    ({"type": "array", "items": _ENUM}, ["Zq7marker"]),
    ({"type": "map", "values": "string"}, {"Zq7marker": "Zq7marker"}),
    ({"type": "string", "logicalType": "Zq7marker", "Zq7marker": "Zq7marker"}, "Zq7marker"),
    ({"type": "string", "logicalType": "timestamp-micros"}, "Zq7marker"),
    (["null", "string", _ENUM], "Zq7marker"),
)
"""Types with the marker everywhere, and a value of each."""

_AVRO: dict[str, Any] = {
    "source_timestamp": datetime(2025, 11, 5, tzinfo=UTC),
    "sort_keys": [5, "0/1"],
    "source_metadata": {"change_type": "INSERT", "is_deleted": False},
    "payload": {"id": 1, "ward": "a", "cost": 1.5, "n": 3, "ok": True, "seen": datetime(2013, 2, 1, tzinfo=UTC)},
}

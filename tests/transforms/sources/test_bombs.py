"""Small files with large claims or contents: a clear dead letter, with little memory and time."""

import gzip
import io
import json
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz import avro
from transforms.common import batches
from transforms.common.batches import Batch
from transforms.common.errors import InputError
from transforms.common.source import Source
from transforms.sources import changelog
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.normalise import Place
from transforms.sources.files.opening import UNREADABLE, open_stream
from transforms.sources.formats import avro_blocks, avro_memory, avro_unpacked, csv, json_lines, parquet, parquet_pages
from transforms.sources.inspection import inspect

MIB = 1 << 20
SIDES = ("before_", "after_")
NOON = "2026-01-01T12:00:00Z"
AT = pa.array([0], pa.timestamp("us", "UTC"))


def zipped(path: Path, *parts: bytes) -> None:
    with gzip.open(path, "wb", 1) as file:
        for part in parts:
            file.write(part)


def a_line_without_end(folder: Path) -> None:
    zipped(folder / "a.jsonl.gz", b'{"id": "', *[b"a" * MIB] * 80)


def a_quote_without_end(folder: Path) -> None:
    zipped(folder / "a.csv.gz", f'id,at,ward\n1,{NOON},"'.encode(), *[b"a" * MIB] * 40)


def a_header_without_end(folder: Path) -> None:
    zipped(folder / "a.csv.gz", b"id,at,ward", *[b"," * MIB] * 9)


def a_header_with_a_line_end_in_quotes(folder: Path) -> None:
    zipped(folder / "a.csv.gz", b'"\n",id,at,ward', *[b"," * MIB] * 9)


def a_name_without_end(folder: Path) -> None:
    zipped(folder / "a.csv.gz", b'"' + b"\n" * MIB, b'",id,at,ward\n')


def a_large_page(folder: Path) -> None:
    table = pa.table({"id": ["k"], "at": AT, "ward": ["a" * (257 * MIB)]})
    pq.write_table(table, folder / "a.parquet", compression="zstd", use_dictionary=False, write_statistics=False)


def a_large_page_of_snappy(folder: Path) -> None:
    """Its column takes about 12 MiB: Snappy can hardly shrink a page more."""
    table = pa.table({"id": ["k"], "at": AT, "ward": ["a" * (257 * MIB)]})
    pq.write_table(table, folder / "a.parquet", compression="snappy", use_dictionary=False, write_statistics=False)


def a_long_key_in_each_row(folder: Path) -> None:
    rows = 2000
    key = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["k" * MIB]))
    table = pa.table({"id": key, "at": pa.repeat(AT[0], rows), "ward": ["a"] * rows})
    pq.write_table(table, folder / "a.parquet", compression="zstd", store_schema=rows % 2 == 0)


def before_and_after(folder: Path, note: pa.Array) -> None:
    """Write rows of a key and two states, with a column that no query reads."""
    rows = len(note)
    states = {f"{side}{name}": column for side in SIDES for name, column in (("ward", ["a"] * rows), ("note", note))}
    table = pa.table({"id": ["k"] * rows, "at": pa.repeat(AT[0], rows), **states})
    pq.write_table(table, folder / "both.parquet", compression="zstd", write_statistics=False)


def a_large_page_for_digests(folder: Path) -> None:
    before_and_after(folder, pa.array(["a" * (257 * MIB)]))


def long_bytes_for_digests(folder: Path) -> None:
    zeros = pa.array(np.zeros(2000, dtype=np.int32))
    before_and_after(folder, pa.DictionaryArray.from_arrays(zeros, pa.array([b"k" * MIB])))


def event(ward: str) -> dict[str, object]:
    return {
        "source_timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "sort_keys": [1],
        "source_metadata": {"change_type": "INSERT", "is_deleted": False},
        "payload": {"id": 1, "ward": ward, "cost": 1.0, "n": 1, "ok": True, "seen": datetime(2026, 1, 1, tzinfo=UTC)},
    }


def a_large_deflated_block(folder: Path) -> None:
    (folder / "a.avro").write_bytes(avro.write([event("a" * (60 * MIB))], codec="deflate"))


def a_large_bzip2_block(folder: Path) -> None:
    (folder / "a.avro").write_bytes(avro.write([event("a" * (20 * MIB))], codec="bzip2"))


def a_block_that_claims_a_size(folder: Path) -> None:
    good = avro.write([], sync_marker=b"0123456789abcdef")
    (folder / "a.avro").write_bytes(good + b"\x02" + b"\xfe" * 8 + b"\x01" + b"data")


def record(name: str, **members: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": type_} for n, type_ in members.items()]}


def an_avro_file(folder: Path, block: bytes, members: dict[str, Any], *, records: int = 1) -> None:
    """Write a file with one deflated block. Its records have these members, after those of an event."""
    event_members = {member["name"]: member["type"] for member in avro.SCHEMA["fields"]}  # type: ignore[index, call-overload]
    schema = record("hostile", **event_members | members)
    begin = avro_unpacked._MAGIC + long(2)
    for text in (b"avro.schema", json.dumps(schema).encode(), b"avro.codec", b"deflate"):
        begin += long(len(text)) + text
    sync = b"0123456789abcdef"
    out = io.BytesIO()
    fastavro.schemaless_writer(out, avro.SCHEMA, event("a"))
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    data = packer.compress((out.getvalue() + block) * records) + packer.flush()
    (folder / "a.avro").write_bytes(begin + long(0) + sync + long(records) + long(len(data)) + data + sync)


def long(value: int) -> bytes:
    return avro_unpacked._long(value)


def an_array_of_nulls(folder: Path) -> None:
    an_avro_file(folder, long(1 << 40) + long(0), {"many": {"type": "array", "items": "null"}})


def an_array_of_empty_records(folder: Path) -> None:
    empty = record("outer", inner=record("empty"), nothing={"type": "fixed", "name": "none", "size": 0})
    an_avro_file(folder, long(1 << 40) + long(0), {"many": {"type": "array", "items": empty}})


def records_of_records_of_nulls(folder: Path) -> None:
    """Each level has a hundred members of the level before: a hundred million nulls in no bytes."""
    type_: Any = "null"
    for level in range(4):
        first = record(f"level{level}", **{"n0": type_})
        more = f"level{level - 1}" if level else "null"
        first["fields"] += [{"name": f"n{n}", "type": more} for n in range(1, 100)]
        type_ = first
    an_avro_file(folder, b"", {"deep": type_})


def a_type_that_contains_itself(folder: Path) -> None:
    an_avro_file(folder, b"\x02" * (1 << 20) + b"\x00", {"chain": record("link", next=["null", "link"])})


def many_small_records_in_an_array(folder: Path) -> None:
    items = 1 << 23
    many = {"type": "array", "items": record("small", n="int")}
    an_avro_file(folder, long(items) + bytes(items) + long(0), {"many": many})


def a_decimal_of_many_digits(folder: Path) -> None:
    digits = 1 << 21
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    an_avro_file(folder, long(digits) + b"\x7f" * digits, {"cost": decimal})


def a_deep_schema(folder: Path) -> None:
    type_: Any = "int"
    for _ in range(100):
        type_ = {"type": "array", "items": type_}
    an_avro_file(folder, b"", {"deep": type_})


def a_header_of_many_members(folder: Path) -> None:
    members = b"".join(long(4) + number.to_bytes(4) + long(0) for number in range(1 << 18))
    (folder / "a.avro").write_bytes(avro_unpacked._MAGIC + long(1 << 18) + members + long(0) + bytes(16))


BOMBS: dict[Callable[[Path], None], str] = {
    a_line_without_end: "a line is longer than 64 MiB; write each change as a line",
    a_quote_without_end: "a row is longer than 4 MiB; an unclosed quote joins all rows after it",
    a_header_without_end: "the header is longer than 1 MiB or has more than 65,536 columns",
    a_header_with_a_line_end_in_quotes: "the header is longer than 1 MiB or has more than 65,536 columns",
    a_name_without_end: "the header is longer than 1 MiB or has more than 65,536 columns",
    a_large_page: "row group 1 has a page of more than 256 MiB; write smaller pages",
    a_large_page_of_snappy: "row group 1 has a page of more than 256 MiB; write smaller pages",
    a_long_key_in_each_row: "row group 1 has more than 1 GiB of text in column 'id'; write smaller row groups",
    a_large_page_for_digests: "row group 1 has a page of more than 256 MiB; write smaller pages",
    long_bytes_for_digests: "row group 1 has more than 1 GiB of text in column 'before_note'; write smaller row groups",
    a_large_deflated_block: "a block of the Avro file is larger than 16 MiB; write smaller blocks",
    a_large_bzip2_block: "a block of the Avro file is larger than 16 MiB; write smaller blocks",
    a_block_that_claims_a_size: "a block of the Avro file is larger than 16 MiB; write smaller blocks",
    an_array_of_nulls: "a record of the Avro file has no largest size in memory; write another schema",
    an_array_of_empty_records: "a record of the Avro file has no largest size in memory; write another schema",
    records_of_records_of_nulls: "a record of the Avro file has no largest size in memory; write another schema",
    a_type_that_contains_itself: "a type in the schema of the Avro file contains itself; write another schema",
    many_small_records_in_an_array: "a block of the Avro file could take more than 256 MiB of memory; write smaller "
    "blocks",
    a_decimal_of_many_digits: "the file cannot be read to its end (ArrowInvalid)",
    a_deep_schema: "the schema of the Avro file has more than 64 levels; write a flatter one",
    a_header_of_many_members: "the header of the Avro file is larger than 4 MiB",
}


def reading(path: Path) -> Source:
    format_ = {".avro": "datastream", ".gz": path.suffixes[0][1:]}.get(path.suffix, path.suffix[1:])
    time = None if format_ == "datastream" else "at"
    sides = SIDES if path.stem.endswith("both") else (None, None)
    return Source(format=format_, paths=(str(path),), entry="id", time=time, before=sides[0], after=sides[1])


def good(folder: Path, like: Path) -> Path:
    """Write a small valid file of the format, as the first one."""
    stem = "good_both" if like.stem == "both" else "good"
    path = folder / (f"{stem}." + (like.suffixes[0][1:] if like.suffix == ".gz" else like.suffix[1:]))
    if path.suffix == ".parquet":
        names = [f"{side}{name}" for side in SIDES for name in ("ward", "note")] if like.stem == "both" else ["ward"]
        pq.write_table(pa.table({"id": ["k"], "at": AT} | {name: ["a"] for name in names}), path)
    elif path.suffix == ".avro":
        path.write_bytes(avro.write([event("a")]))
    else:
        line = {"id": "k", "at": NOON, "ward": "a"}
        path.write_text(f"id,at,ward\nk,{NOON},a\n" if path.suffix == ".csv" else json.dumps(line) + "\n")
    return path


def read(folder: Path, path: Path) -> tuple[int, list[tuple[int | None, str]]]:
    """Return the number of rows read, and the dead letters."""
    layout = inspect(reading(good(folder, path)), frozenset(), frozenset({"ward"}))
    rows, dead = 0, []
    for split in splits(Place(str(path), 0), layout.source.format):
        for part in read_split(layout, split, 1 << 18):
            if isinstance(part, Batch):
                rows += part.table.num_rows
            else:
                assert isinstance(part, pa.Table)
                dead += [(letter["row"], letter["reason"]) for letter in part.to_pylist()]
    return rows, dead


def read_all(folder: Path) -> None:
    """Print the dead letters of the file in each folder, and the growth of the process in MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {}
    for one in sorted(folder.iterdir()):
        (path,) = one.iterdir()
        found[one.name] = read(one, path)[1]
    print(json.dumps([found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024]), flush=True)


@pytest.mark.slow
def test_each_bomb_is_one_dead_letter_in_little_memory(tmp_path: Path) -> None:
    """It runs in a separate process: memory that this one has freed would hide the use."""
    for bomb in BOMBS:
        (tmp_path / bomb.__name__).mkdir()
        bomb(tmp_path / bomb.__name__)
    code = "import sys, pathlib, tests.transforms.sources.test_bombs as t; t.read_all(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)

    found, grown = json.loads(done.stdout)
    assert {name: dead[-1][1] for name, dead in found.items()} == {b.__name__: reason for b, reason in BOMBS.items()}
    assert grown < 300


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [a_header_without_end, a_quote_without_end, a_line_without_end])
def test_a_bomb_as_the_first_file_is_refused_or_inspected(bomb: Callable[[Path], None], tmp_path: Path) -> None:
    bomb(tmp_path)
    (path,) = tmp_path.iterdir()
    if bomb is a_quote_without_end:
        assert inspect(reading(path), frozenset(), frozenset({"ward"})).entry == "string"
        return
    with pytest.raises(InputError, match=str(path)):
        inspect(reading(path), frozenset(), frozenset({"ward"}))


@pytest.mark.parametrize(("suffix", "line"), [("csv", "x\n"), ("jsonl", "x\n"), ("csv", f"k,{NOON[1:]},a\n")])
def test_a_file_of_broken_rows_ends_with_a_dead_letter_of_the_file(
    suffix: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog, "MOST_DEAD", 50)
    monkeypatch.setattr(csv, "MOST_DEAD", 50)
    path = tmp_path / f"a.{suffix}"
    path.write_text(("id,at,ward\n" if suffix == "csv" else "") + line * 60)

    _, dead = read(tmp_path, path)

    assert dead[-1] == (None, batches.TOO_MANY_DEAD)
    assert len(dead) <= 51


def test_long_texts_of_a_state_are_read_as_a_dictionary(tmp_path: Path) -> None:
    """Only their dictionary is held in memory, so they may be longer than those of a key."""
    ward = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, dtype=np.int32)), pa.array(["k" * MIB]))
    table = pa.table({"id": ["k"] * 2000, "at": pa.repeat(AT[0], 2000), "ward": ward})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", store_schema=False)

    assert read(tmp_path, tmp_path / "a.parquet") == (2000, [])


@pytest.mark.slow
def test_empty_lines_take_little_time(tmp_path: Path) -> None:
    line = json.dumps({"id": "k", "at": NOON, "ward": "a"}).encode() + b"\n"
    zipped(tmp_path / "a.jsonl.gz", line, *[b"\n" * MIB, b" \n" * MIB, b"\r\n" * MIB] * 2, line)

    assert read(tmp_path, tmp_path / "a.jsonl.gz") == (2, [])


def test_a_line_that_is_nested_very_deeply_is_one_dead_letter(tmp_path: Path) -> None:
    deep = {"id": "k", "at": NOON, "ward": "a"}
    line = json.dumps(deep)[:-1] + ', "x": ' + "[" * 500_000 + "]" * 500_000 + "}"
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(deep)}\n{line}\n")

    assert read(tmp_path, tmp_path / "a.jsonl") == (1, [(2, json_lines.NOT_JSON)])


def test_a_row_group_of_very_many_rows_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is that of reading it at once."""
    rows, choose = 1000, np.random.default_rng(3)
    found = {
        "id": pa.array(choose.integers(0, 9, rows).astype(str), mask=choose.random(rows) < 0.01),
        "at": pa.array(np.arange(rows)).cast(pa.timestamp("us", "UTC")),
        "after_ward": pa.array(choose.integers(0, 3, rows).astype(str), mask=choose.random(rows) < 0.5),
        "after_note": pa.array(choose.random(rows), mask=choose.random(rows) < 0.5),
        "before_ward": pa.array(choose.integers(0, 3, rows).astype(str), mask=choose.random(rows) < 0.5),
        "before_note": pa.array(choose.random(rows), mask=choose.random(rows) < 0.5),
    }
    pq.write_table(pa.table(found), tmp_path / "a.parquet", row_group_size=rows)
    source = Source(
        format="parquet",
        paths=(str(tmp_path / "a.parquet"),),
        entry="id",
        time="at",
        before="before_",
        after="after_",
    )
    layout = inspect(source, frozenset(), frozenset({"ward"}))

    def all_rows() -> tuple[list[dict[str, object]], list[int]]:
        parts = [
            part
            for split in splits(Place(str(tmp_path / "a.parquet"), 0), "parquet")
            for part in read_split(layout, split, 100)
        ]
        dead = [row for part in parts if isinstance(part, pa.Table) for row in part["row"].to_pylist()]
        kept = [part for part in parts if isinstance(part, Batch)]
        numbers = [part.row_numbers(np.arange(part.table.num_rows)).tolist() for part in kept]
        read = [row for part in kept for row in part.table.to_pylist()]
        return [row | {"row": number} for row, number in zip(read, chain(*numbers), strict=True)], sorted(dead)

    at_once = all_rows()
    monkeypatch.setattr(parquet, "_MOST_ROWS", 10)
    monkeypatch.setattr(parquet, "_RUN_ROWS", 64)

    assert all_rows() == at_once
    assert at_once[1]


@pytest.mark.slow
def test_a_file_with_an_altered_footer_is_read_or_one_dead_letter(tmp_path: Path) -> None:
    """Each byte of the footer gets its highest bits set, so that it claims very large sizes, counts and places."""
    table = pa.table({"id": ["k", "l"], "at": pa.concat_arrays([AT, AT]), "ward": ["a", "b"]})
    out = io.BytesIO()
    pq.write_table(table, out, store_schema=False)
    whole = out.getvalue()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path = tmp_path / "a.parquet"
    for place in range(len(whole) - footer, len(whole) - 4, 3):
        for byte in (0xFE, 0x7F):
            path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            with suppress(*UNREADABLE):
                rows, dead = read(tmp_path, path)
                assert rows <= 2 or dead


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("pages", ["1.0", "2.0"])
def test_the_headers_of_pages_are_read_as_writers_write_them(version: str, pages: str, tmp_path: Path) -> None:
    texts = [f"{number % 7}" * 100 for number in range(5000)]
    table = pa.table({"id": texts, "at": pa.repeat(AT[0], 5000), "s": [{"x": text, "y": [1, 2]} for text in texts]})
    pq.write_table(table, tmp_path / "a.parquet", version=version, data_page_version=pages, data_page_size=500)
    duckdb.connect().execute(f"COPY (SELECT * FROM '{tmp_path}/a.parquet') TO '{tmp_path}/b.parquet' (CODEC zstd)")

    for name in ("a", "b"):
        with pa.memory_map(f"{tmp_path}/{name}.parquet") as stream:
            group = pq.read_metadata(stream).row_group(0)
            for place in range(group.num_columns):
                chunk = group.column(place)
                sizes = [page.size for page in parquet_pages._pages(stream, chunk)]
                assert 0 < sum(sizes) < chunk.total_uncompressed_size  # which has the headers too
                assert chunk.path_in_schema != "id" or name == "b" or len(sizes) > 3


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize(
    ("texts", "length"),
    [
        (["abc", "abd", "abe"], 3),
        (["", ""], 0),
        (["k" * 70_000], 70_000),
        (["abc", "abcd", "ab"], None),
        (["abc", "abd", "a" * 10], None),  # its bytes are a multiple of the first entry's
        (["", "\0" * 4], None),
        (["\0" * 4, "\4\0\0\0" * 3], None),
    ],
)
def test_the_only_length_of_a_dictionary_is_that_of_each_of_its_texts(
    texts: list[str], length: int | None, compression: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": texts}), tmp_path / "a.parquet", compression=compression)
    with pa.memory_map(f"{tmp_path}/a.parquet") as stream:
        file = pq.ParquetFile(stream)
        chunk = file.metadata.row_group(0).column(0)
        dictionary = next(parquet_pages._pages(stream, chunk))

        assert parquet_pages._only_length(stream, chunk.compression, dictionary) == length
        assert parquet_pages._longest_text(stream, file, 0, "id") == max(map(len, texts))


def test_avro_blocks_with_more_records_than_bytes_are_refused(tmp_path: Path) -> None:
    """Records of nulls take no bytes, so that a block can claim any number of them."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "null"}]}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [{"n": None}] * 3, sync_marker=b"0123456789abcdef")
    (tmp_path / "a.avro").write_bytes(out.getvalue().replace(b"\x06\x00", b"\xfe\xff\xff\xff\x0f\x00"))

    assert read(tmp_path, tmp_path / "a.avro") == (0, [(None, "the file cannot be read to its end (ArrowInvalid)")])


@pytest.mark.slow
def test_few_records_of_many_nulls_are_in_memory_at_once(tmp_path: Path) -> None:
    """Their nulls take no bytes of the file."""
    an_avro_file(tmp_path, b"", {f"n{number}": "null" for number in range(6000)}, records=1000)
    with open_stream(str(tmp_path / "a.avro")) as stream:
        taken = [(len(records), sum(map(sys.getsizeof, records))) for records, _ in avro_blocks.blocks(stream)]

    assert sum(records for records, _ in taken) == 1000
    assert max(memory for _, memory in taken) < avro_memory.MOST_MEMORY

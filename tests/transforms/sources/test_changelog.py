from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from hypothesis import given
from hypothesis import strategies as st

from tests.searches import examples
from tests.transforms.writing import NOON, UTC, dead, look, read, seen, write_csv, write_jsonl, write_parquet
from transforms.common import progress
from transforms.sources.changelog import DEAD, READ, ReadChangelog
from transforms.sources.columns.layout import Layout

EPOCH = datetime(1970, 1, 1, tzinfo=UTC_ZONE)


def run(layout: Layout, into: Path, batch_rows: int = 131_072) -> dict[str, list[str]]:
    """Return the three outputs of the transform as lines in any order."""
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        outputs = pipeline | ReadChangelog(layout, batch_rows)
        lines = {
            "rows": outputs["rows"]
            | "Rows" >> beam.FlatMap(lambda b: map(repr, b.table.select(seen(b.table)).to_pylist())),
            DEAD: outputs[DEAD] | "Dead" >> beam.FlatMap(lambda table: map(repr, table.to_pylist())),
            READ: outputs[READ] | "Read" >> beam.Map(repr),
        }
        for name, collection in lines.items():
            collection | f"Write{name}" >> beam.io.WriteToText(str(into / name), shard_name_template="")
    return {name: sorted((into / name).read_text().splitlines()) for name in lines}


@pytest.mark.slow
def test_the_transform_gives_the_rows_dead_letters_and_counts_of_all_files(tmp_path):
    write_csv(tmp_path / "a.csv", ["id", "at", "after_x"], [["a", NOON, 1], [None, NOON, 1], ["b", NOON, 2]])
    write_csv(tmp_path / "b.csv", ["id", "at", "after_x"], [["c", NOON, 3]])
    layout = look(tmp_path / "*.csv", "csv", numbers="x", before=None)
    progress.reset()

    outputs = run(layout, tmp_path, batch_rows=1)

    assert outputs["rows"] == sorted(map(repr, read(layout)))
    assert outputs[DEAD] == [repr({"file": f"{tmp_path}/a.csv", "row": 2, "reason": "column 'id': entry is null"})]
    assert outputs[READ] == [repr((f"{tmp_path}/a.csv", 3, 1, ())), repr((f"{tmp_path}/b.csv", 1, 0, ()))]
    assert progress.seen("read") == 3


@pytest.mark.slow
def test_files_that_vanish_or_break_after_inspection_are_dead_letters(tmp_path):
    at = pa.array([EPOCH], UTC)
    for name in "abc":
        write_parquet(tmp_path / f"{name}.parquet", {"id": [name], "at": at, "after_x": [1]})
    layout = look(tmp_path / "*.parquet", numbers="x", before=None)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "c.parquet").write_bytes((tmp_path / "c.parquet").read_bytes()[:-10])

    outputs = run(layout, tmp_path)

    assert len(outputs["rows"]) == 1
    assert [("b.parquet" in line, "c.parquet" in line, "'row': None" in line) for line in outputs[DEAD]] == [
        (True, False, True),
        (False, True, True),
    ]


@pytest.mark.slow
def test_a_parquet_file_is_read_in_runs_of_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("transforms.sources.formats.parquet._RUN_ROWS", 4)
    columns = {"id": list(range(11)), "at": pa.array([EPOCH] * 11, UTC), "after_x": list(range(11))}
    path = write_parquet(tmp_path / "a.parquet", columns, row_group_size=2)
    layout = look(path, numbers="x", before=None)

    outputs = run(layout, tmp_path)

    assert [line.rsplit(", ", 3)[1] for line in outputs[READ]] == ["3", "4", "4"]
    assert outputs["rows"] == sorted(map(repr, read(layout)))
    assert [row["order.position"] for row in read(layout)] == list(range(1, 12))


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00\x1a", exclude_categories=["Cs"]), min_size=1)
states = st.none() | st.fixed_dictionaries(
    {
        "x": st.none() | st.integers(-(2**53), 2**53),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32),
        "w": st.none() | words,
        "ok": st.booleans(),
        "seen": st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),  # noqa: DTZ001
    }
)
mutations = st.fixed_dictionaries(
    {
        "id": words,
        "at": st.integers(-(10**15), 4 * 10**15),
        "lsn": st.integers(0, 2**62),
        "before": states,
        "after": states,
    }
)
TYPES = (("f", "float64"), ("ok", "bool"), ("seen", "timestamp"), ("w", "string"), ("x", "int64"), ("lsn", "int64"))
ARROW = {"f": pa.float64(), "ok": pa.bool_(), "seen": UTC, "w": pa.string(), "x": pa.int64()}


@examples(15)
@given(st.lists(mutations, min_size=1, max_size=20))
def test_one_changelog_gives_equal_rows_in_every_format(changes):
    with TemporaryDirectory() as folder:
        paths = write_all(changes, Path(folder))
        needs = {"numbers": "x f", "others": "w ok seen", "order": ("lsn",), "types": TYPES}
        flat = [look(path, format_, **needs) for format_, path in paths if "nested" not in path.name]
        nested = [
            look(path, format_, before="before", after="after", **needs)
            for format_, path in paths
            if "nested" in path.name
        ]
        first, *others = [read(layout, batch_rows=7) for layout in flat + nested]

        assert [row["entry"] for row in first] == [change["id"] for change in changes]
        assert [row["time"] for row in first] == [change["at"] for change in changes]
        assert [row["after"] for row in first] == [change["after"] is not None for change in changes]
        assert all(other == first for other in others)
        assert not any(dead(layout) for layout in flat + nested)


def write_all(changes: list[dict], folder: Path) -> list[tuple[str, Path]]:
    flat = [
        {"id": change["id"], "at": change["at"], "lsn": change["lsn"]}
        | {f"{side}_{name}": (change[side] or {}).get(name) for side in ("before", "after") for name in ARROW}
        for change in changes
    ]
    roles = {"id": pa.string(), "at": UTC, "lsn": pa.int64()}
    prefixed = {f"{side}_{name}": type_ for side in ("before", "after") for name, type_ in ARROW.items()}
    struct = pa.struct(list(ARROW.items()))
    as_text = [{name: text(value, name) for name, value in row.items()} for row in flat]
    objects = [
        {name: text(change[name], name) for name in ("id", "at", "lsn")}
        | {side: change[side] and {n: text(v, n) for n, v in change[side].items()} for side in ("before", "after")}
        for change in changes
    ]
    table = pa.Table.from_pylist(flat, pa.schema(list((roles | prefixed).items())))
    structs = pa.Table.from_pylist(changes, pa.schema([*roles.items(), ("before", struct), ("after", struct)]))
    cells = [[str(v).lower() if isinstance(v, bool) else v for v in row.values()] for row in as_text]
    return [
        ("parquet", write_parquet(folder / "flat.parquet", dict(zip(table.column_names, table.columns, strict=True)))),
        ("parquet", write_parquet(folder / "nested.parquet", {n: structs[n] for n in structs.column_names})),
        ("csv", write_csv(folder / "flat.csv", list(as_text[0]), cells)),
        ("jsonl", write_jsonl(folder / "flat.jsonl.gz", as_text)),
        ("jsonl", write_jsonl(folder / "nested.jsonl", objects)),
    ]


def text(value: object, name: str) -> object:
    """Return a value as text formats have it."""
    if name == "at":
        return (EPOCH + timedelta(microseconds=value)).isoformat()
    return value.isoformat() + "Z" if isinstance(value, datetime) else value

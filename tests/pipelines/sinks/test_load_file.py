"""The load file of an epoch: of every format the same rows, its own alone, and nothing that the spec does not name."""

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.sinks.load_file import load_schema, rows_of, write_load_file
from pipelines.spec.sinks import TableSide
from pipelines.store.loads import Loads
from pipelines.store.local import LocalFolder
from tests.pipelines.spec_text import GOOD, loaded
from tests.pipelines.store.releases import DAY, record
from transforms.common.errors import RefusedError
from transforms.common.output_formats import OUTPUT_FORMATS
from transforms.common.sinks import write_table
from transforms.release.published_columns import TIME

SECOND = replace(record(2), attempt="000002-8d1f0c22aa93b7e4")


def public(side: TableSide, tmp_path: Path, *, format_: str = "parquet", extra: bool = False) -> bytes:
    """A file of three epochs with one row each, of which the first has no begin; more columns if asked."""
    schema = schema_of(side, tmp_path)
    columns = {}
    for field in [field for field in schema if field.name not in ("release", "epoch")]:
        if pa.types.is_string(field.type):
            values: list[object] = ["a", None, "c, d"]
        elif field.type == TIME:
            ends = field.name.endswith("_end")
            values = [DAY, 2 * DAY, 3 * DAY] if ends else [None, DAY, 2 * DAY]
        else:
            values = [0, 1, None]
        columns[field.name] = pa.array(values).cast(field.type)
    if extra:
        columns["exact"] = pa.array([7, 7, 7])
    path = tmp_path / f"file.{format_}"
    write_table(pa.table(columns), str(path), format_=format_)
    return path.read_bytes()


def schema_of(side: TableSide, tmp_path: Path) -> pa.Schema:
    return load_schema(side, loaded(tmp_path, GOOD).queries)


@pytest.mark.parametrize("format_", OUTPUT_FORMATS)
@pytest.mark.parametrize("side", ["estimates", "nodes"])
def test_the_rows_of_an_epoch_are_the_same_from_every_format(side: TableSide, format_: str, tmp_path: Path) -> None:
    content, schema = public(side, tmp_path, format_=format_, extra=True), schema_of(side, tmp_path)
    ends = "window_end" if side == "estimates" else "node_end"

    every = rows_of(content, SECOND, side=side, format_=format_, schema=schema, mixed=False)
    own = rows_of(content, SECOND, side=side, format_=format_, schema=schema, mixed=True)
    first = rows_of(content, record(1), side=side, format_=format_, schema=schema, mixed=True)
    file = io.BytesIO()

    assert write_load_file([own, first], file, schema) == 2
    assert pq.read_table(file).schema == schema  # `exact` is not there
    assert every.num_rows == 3
    assert own.column("release").to_pylist() == ["wards"]
    assert own.column("epoch").to_pylist() == [2]
    assert [table[ends].cast(pa.int64()).to_pylist() for table in (first, own)] == [[DAY], [2 * DAY]]
    numbers = [field.name for field in schema if pa.types.is_floating(field.type)]
    assert own.select(numbers).to_pylist() == [dict.fromkeys(numbers, 1.0)]


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    schema = schema_of("estimates", tmp_path)
    of_nodes = public("nodes", tmp_path)
    other = pq.read_table(pa.BufferReader(public("estimates", tmp_path)))
    place = other.column_names.index("value")
    file = io.BytesIO()
    pq.write_table(other.set_column(place, "value", other["value"].cast(pa.int64())), file)

    for content in (of_nodes, file.getvalue(), b"torn"):
        with pytest.raises(RefusedError, match="of epoch 2 has other columns than the spec says"):
            rows_of(content, SECOND, side="estimates", format_="parquet", schema=schema, mixed=False)


def test_a_record_of_loads_never_goes_back_and_is_read_strictly(tmp_path: Path) -> None:
    loads = Loads(LocalFolder(str(tmp_path), private=True))

    assert loads.done("house-1.wards.all") == 0
    for epochs in (2, 3, 1):
        loads.note("house-1.wards.all", epochs)
    assert loads.done("house-1.wards.all") == 3

    (tmp_path / "loads/house-1.wards.all.json").write_text("{}")
    with pytest.raises(RefusedError, match="not a record of loads"):
        loads.done("house-1.wards.all")

"""An output format is one entry of one table: what it writes is shown, audited, read again and compacted."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

import slackwater
from pipelines.spec.load import load
from transforms.common.errors import SpecError
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.output_formats import OUTPUT_FORMATS, OutputFormat, Types, read_published

SPEC = """\
release: toy
changelog: {format: csv, path: "*.csv", entry: stay, time: at, before: before_, after: after_}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-03T00:00:00Z}
output: {public: public, private: private, format: toy}
privacy: {epsilon: 10000000, constraint: {at_most: 2}}
queries:
  - {name: wards, measure: count, by: {ward: [a, b]}, publish: [level], strategy: disjoint}
"""


class Toy(OutputFormat):
    """Arrow IPC streams."""

    name = "toy"

    def write(self, table: pa.Table, file: BinaryIO) -> None:
        file.write(to_bytes(table))

    def read(self, file: pa.BufferReader, types: Types | None) -> pa.Table:
        table = from_bytes(file.read())
        return table if types is None else table.select([*types])

    def join(self, contents: Sequence[bytes]) -> bytes:
        return to_bytes(pa.concat_tables(map(from_bytes, contents)))


@pytest.mark.slow
def test_a_format_in_the_table_is_published_from_a_spec_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(SPEC)
    Path("stays.csv").write_text("stay,at,before_ward,after_ward\n1,2026-01-01T08:00:00Z,,a\n")
    with pytest.raises(SpecError, match=r"output.format: expected one of parquet, csv, jsonl, not 'toy'"):
        load("spec.yaml")

    monkeypatch.setitem(OUTPUT_FORMATS, "toy", Toy())
    slackwater.run("spec.yaml", until="2026-01-02T00:00:00Z")
    slackwater.run("spec.yaml", until="2026-01-03T00:00:00Z")
    assert {path.suffix for path in Path("public/estimates").iterdir()} == {".toy"}
    before = slackwater.show("public").table
    assert [round(value) for value in before.column("value").to_pylist()] == [1, 0, 1, 0]
    assert slackwater.audit(public="public").passed
    slackwater.compact("spec.yaml")

    assert len([*Path("public/estimates").iterdir()]) == 1
    assert slackwater.show("public").table == before


@pytest.mark.parametrize("name", OUTPUT_FORMATS)
def test_a_table_without_rows_is_read_again(name: str) -> None:
    """As in an epoch in which no key is found."""
    types = {"town": pa.string(), "value": pa.float64()}
    table = pa.schema(types.items()).empty_table()
    file = pa.BufferOutputStream()

    OUTPUT_FORMATS[name].write(table, file)

    assert read_published(file.getvalue().to_pybytes(), name, types).equals(table)

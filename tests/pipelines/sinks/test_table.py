"""A sink is one entry of one table, a module and a section of the spec."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq
import pytest

import pipelines.spec.load
import slackwater
from pipelines.sinks.base import SinkTable
from pipelines.sinks.table import SINKS
from pipelines.spec.load import load
from pipelines.spec.models import OutputSection, SpecModel
from pipelines.spec.sinks import SinkSection
from tests.e2e.specs import published
from transforms.common.errors import RefusedError

SPEC = """\
release: toy
changelog: {format: csv, path: "*.csv", entry: stay, time: at, before: before_, after: after_}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-03T00:00:00Z}
output: {public: public, private: private, toy: {estimates: levels}}
privacy: {epsilon: 1, constraint: {at_most: 2}}
queries:
  - {name: wards, measure: count, by: {ward: [a, b]}, publish: [level], strategy: disjoint}
"""


class Toy(SinkTable):
    """A table that is a folder below `toys`, with a file for each job."""

    def refuse_unusable(self, *, loaded: int, last: str | None = None) -> None:
        if not Path("toys").is_dir():
            raise RefusedError(f"{self.name}: there is no folder toys")

    def load_once(self, id_: str, write: Callable[[BinaryIO], int], file: BinaryIO) -> None:
        rows = write(file)
        target = Path("toys", self.name, id_)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(file.read())
        Path("toys", "rows.json").write_text(json.dumps(rows))


class ToyOutput(OutputSection):
    toy: SinkSection | None = None


class ToySpec(SpecModel):
    output: ToyOutput


@pytest.mark.slow
def test_a_sink_in_the_table_is_loaded_from_a_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(SPEC)
    Path("stays.csv").write_text("stay,at,before_ward,after_ward\n1,2026-01-01T08:00:00Z,,a\n")
    monkeypatch.setattr(pipelines.spec.load, "SpecModel", ToySpec)
    monkeypatch.setitem(SINKS, "toy", Toy)

    with pytest.raises(RefusedError, match="levels: there is no folder toys"):
        slackwater.run("spec.yaml", until="2026-01-02T00:00:00Z")
    assert not Path("private").exists()
    Path("toys").mkdir()
    slackwater.run("spec.yaml", until="2026-01-02T00:00:00Z")
    slackwater.run("spec.yaml", until="2026-01-03T00:00:00Z")

    loaded = [pq.read_table(path) for path in sorted(Path("toys/levels").iterdir())]
    assert [table.column("epoch").unique().to_pylist() for table in loaded] == [[1], [2]]
    values = [value for table in loaded for value in table.column("value").to_pylist()]
    assert sorted(values) == sorted(published(tmp_path, "estimates").column("value").to_pylist())
    with_sink = load("spec.yaml").sha256
    Path("spec.yaml").write_text(SPEC.replace(", toy: {estimates: levels}", ""))
    assert load("spec.yaml").sha256 == with_sink  # a running release may add a sink

"""BigQuery tables hold each published epoch once, also if a run dies, a job fails or a table is in the way.

The tables are those of an emulator that Google's own client speaks to, and no client of ours is replaced.
"""

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute
import pytest
from google.cloud import bigquery

import pipelines.sinks.bigquery
import slackwater
from pipelines.epochs.flags import options_of
from pipelines.sinks.bigquery import EMULATOR, BigQueryTable
from pipelines.sinks.epochs import job_id, refuse_unusable_tables
from pipelines.spec.load import load
from pipelines.store.commit import Commit
from pipelines.store.loads import Loads
from pipelines.store.store import Store
from tests.bigquery.emulator import DATASET, PROJECT, emulator
from tests.e2e.specs import (
    DAY,
    REPEATED,
    SECRETS,
    START,
    CommandLine,
    changelog,
    contents,
    published,
    write,
    write_spec,
)
from tests.e2e.test_streaming import by_day, stream
from transforms.common import cloud
from transforms.common.errors import RefusedError
from transforms.release.published_columns import TIME

pytestmark = [pytest.mark.xdist_group("bigquery"), pytest.mark.slow]

DAYS = ("2026-01-02", "2026-01-04", "2026-01-06")
"""Ends of three epochs."""

TYPES = {"STRING": pa.string(), "INTEGER": pa.int64(), "FLOAT": pa.float64(), "TIMESTAMP": TIME}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, bigquery.Client]]:
    with emulator(tmp_path_factory.mktemp("bigquery")) as started:
        yield started


@dataclass(frozen=True, slots=True)
class Release:
    """A release with separate tables."""

    folder: Path
    slackwater: CommandLine
    client: bigquery.Client
    name: str

    def spec(self, *changes: tuple[str, str], nodes: bool = False) -> None:
        tables = f"estimates: {self.table('estimates')}" + (f", nodes: {self.table('nodes')}" if nodes else "")
        write_spec(self.folder, ("private: private\n", f"private: private\n  bigquery: {{{tables}}}\n"), *changes)

    def table(self, side: str) -> str:
        return f"{PROJECT}.{DATASET}.{self.name}_{side}"

    def run(self, until: str, code: int = 0) -> str:
        """Run the release until a day; return its stderr."""
        said = self.slackwater("run", "spec.yaml", "--until", f"{until}T00:00:00Z")
        assert said.code == code, said.err
        return said.err

    def rows(self, side: str = "estimates") -> pa.Table:
        """Return the rows of a table, with the types of its schema."""
        table = self.client.get_table(self.table(side))
        schema = pa.schema([(field.name, TYPES[field.field_type]) for field in table.schema])
        return pa.Table.from_pylist([dict(row) for row in self.client.list_rows(table)], schema=schema)

    def commits(self) -> list[Path]:
        return sorted((self.folder / "private/commits").glob("*.json"))


@pytest.fixture
def release(
    service: tuple[str, bigquery.Client],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Release:
    address, client = service
    monkeypatch.setenv(EMULATOR, address)
    write(tmp_path / "data/part.parquet", changelog())
    name = f"t{abs(hash(request.node.name)):x}"
    return Release(tmp_path, CommandLine(tmp_path, capsys), client, name)


def as_published(release: Release, side: str) -> pa.Table:
    """The rows of the files, with release and epoch, as the table should have them."""
    end = "window_end" if side == "estimates" else "node_end"
    table = published(release.folder, side)
    days = pa.compute.strftime(table.column(end), format="%Y-%m-%d").to_pylist()
    epochs = [1 + sum(day > until for until in DAYS) for day in days]
    table = table.add_column(0, "epoch", pa.array(epochs, pa.int64()))
    table = table.add_column(0, "release", pa.array(["wards"] * len(epochs)))
    if "layer" in table.column_names:
        table = table.set_column(table.column_names.index("layer"), "layer", table.column("layer").cast(pa.int64()))
    return table


def in_order(table: pa.Table) -> list[dict[str, object]]:
    return sorted(table.to_pylist(), key=repr)


def test_each_epoch_is_loaded_once_with_its_types_and_nothing_else(release: Release) -> None:
    release.spec(nodes=True)
    told = [release.run(day) for day in (*DAYS, DAYS[-1])]

    metrics = release.slackwater("metrics", "spec.yaml").out
    for side in ("estimates", "nodes"):
        assert in_order(release.rows(side)) == in_order(as_published(release, side))
        assert [told[epoch].count(f"epoch {epoch + 1}: {side} loaded into") for epoch in range(3)] == [1, 1, 1]
        made = release.client.get_table(release.table(side))
        assert made.schema[:2] == [
            bigquery.SchemaField("release", "STRING"),
            bigquery.SchemaField("epoch", "INTEGER"),
        ]
        assert made.time_partitioning.type_ == "MONTH"
        assert f'slackwater_epochs_not_loaded{{release="wards",table="{release.table(side)}"}} 0.0' in metrics
        assert not any(secret in str(release.rows(side).to_pylist()) for secret in SECRETS)
    assert "loaded" not in told[3]
    assert not any("house-data" in str(content) for content in contents(release.folder / "public").values())


def test_the_next_run_loads_epochs_of_a_dead_run_though_no_window_is_due(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run dies before a load, or after a load and before its record; or the record is lost."""
    release.spec(("public: public", "public: public\n  format: csv"))

    class KilledError(BaseException):
        """Exception that no code of the program catches."""

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as killed:
        killed.setattr(BigQueryTable, "load_once", die)
        with pytest.raises(KilledError):
            release.run(DAYS[0])
    assert len(release.commits()) == 1
    assert release.rows().num_rows == 0

    with monkeypatch.context() as killed:
        killed.setattr(Loads, "note", die)
        with pytest.raises(KilledError):
            release.run(DAYS[0])
    first = release.rows()
    assert first.num_rows > 0

    assert "epoch 1: estimates loaded" in release.run(DAYS[0])
    assert release.rows().num_rows == first.num_rows
    release.run(DAYS[1])
    (record,) = (release.folder / "private/loads").iterdir()
    record.unlink()
    release.run(DAYS[2])

    whole = release.rows()
    assert sorted(set(whole.column("epoch").to_pylist())) == [1, 2, 3]
    assert whole.num_rows == published(release.folder, "estimates").num_rows
    assert in_order(whole.filter(pa.compute.equal(whole["epoch"], 1))) == in_order(first)


def test_a_failed_job_is_reported_and_repeated_under_another_id(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.spec()
    load_once = BigQueryTable.load_once

    def fail(table: Any, id_: str, write: object, file: io.BytesIO) -> None:
        load_once(table, id_, lambda made: made.write(b"no Parquet"), file)

    with monkeypatch.context() as broken:
        broken.setattr(BigQueryTable, "load_once", fail)
        told = release.run(DAYS[0], code=1)
        release.run(DAYS[1], code=1)
    assert len(release.commits()) == 2, "files do not wait for a table"
    assert f"{release.table('estimates')}: BigQuery did not load job slackwater-wards-000001-" in told
    assert "published files stay, and the next run loads the rest" in told
    assert not any(secret in told for secret in SECRETS)

    release.run(DAYS[1])

    commits = Store(str(release.folder / "public"), str(release.folder / "private")).commits()
    id_ = job_id(commits, commits[0], release.table("estimates"))
    assert [release.client.get_job(f"{id_}-{number}").error_result is None for number in range(3)] == [
        False,
        False,
        True,
    ]
    assert in_order(release.rows()) == in_order(as_published(release, "estimates"))


def test_epochs_that_are_compacted_while_they_are_loaded_are_loaded_as_they_were(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first loses its files between their names and their content, all others are found in joined ones."""
    write_spec(release.folder)
    for day in DAYS[:2]:
        release.run(day)
    files_of, compacted = Store.files_of, []

    def then_compact(store: Store, commit: Commit, side: str) -> Any:
        found = files_of(store, commit, side)
        if not compacted:
            compacted.append(Store(store.public, store.private).compact())
        return found

    monkeypatch.setattr(Store, "files_of", then_compact)
    release.spec(nodes=True)
    release.run(DAYS[2])

    assert [done.made.last for done in compacted] == [3]
    for side in ("estimates", "nodes"):
        assert in_order(release.rows(side)) == in_order(as_published(release, side))


def test_an_unsuitable_table_is_reported_before_noise_is_sampled(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.spec()
    name = release.table("estimates")
    columns = [bigquery.SchemaField("release", "STRING"), bigquery.SchemaField("epoch", "STRING")]
    release.client.create_table(bigquery.Table(name, schema=columns))
    other = release.run(DAYS[0], code=1)
    assert f"{name}: has other columns than this release publishes (first epoch: STRING in the table" in other

    release.spec((f"{DATASET}.", "nowhere."))
    assert f"there is no dataset {PROJECT}.nowhere" in release.run(DAYS[0], code=2)

    release.spec()
    with monkeypatch.context() as away:
        away.setenv(EMULATOR, "http://127.0.0.1:9")
        away.setattr(cloud, "PATIENCE", 0.5)
        assert f"{name}: no answer from Google" in release.run(DAYS[0], code=4)
    with monkeypatch.context() as bare:
        bare.setitem(sys.modules, "google.cloud.bigquery", None)
        bare.delattr("google.cloud.bigquery")
        assert "run `pip install '.[bigquery]'`" in release.run(DAYS[0], code=2)

    assert release.commits() == []


def test_a_deleted_table_is_not_created_again_without_its_epochs(release: Release) -> None:
    release.spec()
    release.run(DAYS[0])
    release.client.delete_table(release.table("estimates"))

    assert "is gone, with 1 epoch" in release.run(DAYS[1], code=1)

    assert len(release.commits()) == 1
    (record,) = (release.folder / "private/loads").iterdir()
    record.unlink()  # so that nobody knows but BigQuery, which made a new table
    told = release.run(DAYS[1], code=1)
    assert "loaded its rows before the table was made" in told
    assert "loaded into" not in told


def test_a_recreated_table_is_refused_though_the_record_exists(release: Release) -> None:
    release.spec()
    release.run(DAYS[0])
    old = release.client.get_table(release.table("estimates"))
    release.client.delete_table(old)
    new = bigquery.Table(release.table("estimates"), schema=old.schema)
    new.time_partitioning = old.time_partitioning
    release.client.create_table(new)

    assert "loaded its rows before the table was made" in release.run(DAYS[1], code=1)

    assert len(release.commits()) == 1


def test_a_stream_does_not_wait_for_a_table_and_loads_with_its_next_window(
    release: Release, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release.spec()
    (release.folder / "data/part.parquet").unlink()
    days = by_day(changelog())[:2]
    write(release.folder / "data/day-0.parquet", days[0])  # columns are read from the first files
    monkeypatch.chdir(release.folder)
    refuse_unusable_tables(load("spec.yaml"), Store("public", "private"))
    load_once, asked = BigQueryTable.load_once, []

    def refuse_first(*arguments: Any) -> None:
        asked.append(arguments[1])
        if len(asked) == 1:
            raise RefusedError("the table is away")
        load_once(*arguments)

    monkeypatch.setattr(BigQueryTable, "load_once", refuse_first)
    stream(days)

    assert "the table is away; published files stay" in capsys.readouterr().err
    assert len(release.commits()) == 2
    assert asked[0] == asked[1]
    assert release.rows().num_rows == published(release.folder, "estimates").num_rows > 0
    assert set(release.rows().column("epoch").to_pylist()) == {1, 2}


def test_a_job_that_another_run_sent_in_the_meantime_is_reused(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have asked before either has sent: BigQuery answers 409 to the second."""
    release.spec()
    release.run(DAYS[0])
    rows = release.rows().num_rows
    (record,) = (release.folder / "private/loads").iterdir()
    record.unlink()
    known, blind = pipelines.sinks.bigquery._known, [False, True]
    monkeypatch.setattr(pipelines.sinks.bigquery, "_known", lambda *asked: None if blind.pop() else known(*asked))

    assert "epoch 1: estimates loaded" in release.run(DAYS[0])

    assert blind == []
    assert release.rows().num_rows == rows > 0


def test_a_release_in_a_user_pipeline_is_loaded_once_even_if_its_step_is_repeated(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.spec()
    monkeypatch.chdir(release.folder)

    with beam.Pipeline(options=options_of([REPEATED])) as pipeline:
        pipeline | slackwater.Release("spec.yaml", until=START + 2 * DAY, shards=1)

    assert len(release.commits()) == 1
    assert release.rows().num_rows == published(release.folder, "estimates").num_rows > 0


def test_a_new_release_adds_its_rows_to_the_same_table_under_its_own_name(release: Release) -> None:
    release.spec()
    release.run(DAYS[0])
    before = in_order(release.rows())

    said = release.slackwater("run", "spec.yaml", "--new-release", "again", "--until", f"{DAYS[0]}T00:00:00Z")

    assert said.code == 0, said.err
    rows = in_order(release.rows())
    assert [row for row in rows if row["release"] == "wards"] == before
    mine = {"release": "again", "value": None, "ci_low": None, "ci_high": None}
    assert [row | mine for row in rows if row["release"] == "again"] == [row | mine for row in before]

"""`slackwater.Release`: rows in, estimates out; the same release as the command's, committed once."""

import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple, Optional

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.dataframe.schemas import generate_proxy
from apache_beam.testing.util import assert_that

import slackwater
from pipelines.epochs.flags import options_of
from pipelines.epochs.within import Epoch, epoch_of, publish_parts
from pipelines.spec.times import microseconds
from pipelines.store.store import Store
from slackwater.transform import _estimates, row_type
from tests.e2e.specs import DAY, NO_NOISE, REPEATED, START, changelog, contents, write, write_spec
from transforms.aggregation.shard_state import STATE, file_of
from transforms.common.batches import DEAD_SCHEMA, Batch
from transforms.common.instants import NOT_UNDERSTOOD
from transforms.common.ipc import to_bytes
from transforms.sources.changelog import DEAD, READ
from transforms.sources.inspection import inspect_rows
from transforms.sources.rows import read_rows, schema_of, source_of

END = START + 5 * DAY


class Change(NamedTuple):
    stay: str
    at: str
    before_ward: Optional[str]  # noqa: UP045
    before_age: Optional[int]  # noqa: UP045
    after_ward: Optional[str]  # noqa: UP045
    after_age: Optional[int]  # noqa: UP045


def changes(since: datetime | None = None, until: datetime = END) -> list[Change]:
    rows = [row for row in changelog() if (since is None or row["at"] >= since) and row["at"] < until]
    return [Change(**{**row, "at": row["at"].isoformat()}) for row in rows]


def released(rows: list[Change] | None, *flags: str, until: datetime = END) -> list[dict[str, Any]]:
    """What a pipeline gets, in the order of windows; None: it reads the spec's changelog."""
    with beam.Pipeline(options=options_of(flags)) as pipeline:
        begin = pipeline if rows is None else pipeline | beam.Create(rows).with_output_types(Change)
        estimates = begin | slackwater.Release("spec.yaml", until=until, shards=2)
        # Only rows with a schema have columns to select.
        values = estimates | beam.Select("kind", "window_start", "window_end", "ward", "value")
        assert_that(values, _keep)  # in a worker
    found: list[dict[str, Any]] = json.loads(Path("found.json").read_text())
    return sorted(found, key=lambda row: (row["kind"] != "level", row["window_end"]))


def _keep(rows: list[Any]) -> None:
    Path("found.json").write_text(json.dumps([row._asdict() for row in rows]))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with chdir(tmp_path):
        yield tmp_path


@pytest.mark.slow
def test_rows_in_two_epochs_have_the_estimates_of_the_same_changelog_in_files(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_spec(folder, NO_NOISE, ("public: public", "public: a/public"), ("private: private", "private: a/private"))
    middle = START + 2 * DAY
    write(folder / "data/a.parquet", [row for row in changelog() if row["at"] < middle])
    slackwater.run("spec.yaml", until=middle)
    write(folder / "data/b.parquet", [row for row in changelog() if row["at"] >= middle])
    slackwater.run("spec.yaml", until=END)
    expected = slackwater.show("spec.yaml").table
    rmtree(".slackwater")  # else the same spec with other folders is refused
    write_spec(folder, NO_NOISE)

    with caplog.at_level(logging.WARNING):
        first = released(changes(until=middle), until=middle)
    second = released(changes(since=middle - DAY))  # with the rows of a day once more

    assert len(first) == expected.num_rows * 2 // 5
    own = slackwater.show("spec.yaml").table
    assert own.drop_columns(["stddev", "ci_low", "ci_high"]).equals(
        expected.drop_columns(["stddev", "ci_low", "ci_high"])
    )
    assert [row["value"] for row in second] == expected["value"].to_pylist()
    assert [row["ward"] for row in second] == expected["ward"].to_pylist()
    assert second[0]["window_end"] == "2026-01-02T00:00:00Z"
    assert not [record for record in caplog.records if "hint" in record.getMessage()]


@pytest.mark.slow
def test_no_rows_have_the_numbers_of_an_empty_changelog(folder: Path) -> None:
    """Whether a release exists never depends on whether anybody is in it."""
    write_spec(folder, NO_NOISE)

    rows = released([])

    assert len(rows) == slackwater.show("spec.yaml").table.num_rows == 5 * 3 * 2
    assert {row["value"] for row in rows} == {0}


@pytest.mark.slow
def test_noise_is_sampled_once_if_a_runner_repeats_steps(folder: Path) -> None:
    write(folder / "data/all.parquet", changelog())
    write_spec(folder)

    first = released(None, REPEATED)
    again = released(changes())

    assert len(Store("public", "private").commits()) == 1
    assert first == again
    assert [row["value"] for row in first] == slackwater.show("public").table["value"].to_pylist()
    # Rounded to whole numbers, noise of this size is zero in all of them with probability below 1e-6.
    assert len({row["value"] for row in first}) > 5


def published(spec: slackwater.Spec, epoch: Epoch) -> dict[str, bytes]:
    """Return the public files after the last step, for a changelog without rows."""
    assert epoch.job is not None
    publish_parts(spec, epoch.job, epoch.past, [(STATE, (file_of(0), b""))])
    return contents(Path("public"))


def test_the_last_step_shows_committed_epochs_and_refuses_overtaken_ones(folder: Path) -> None:
    """As runners repeat it: at once, where it died after the commit, and where another run or release was first."""
    write(folder / "data/all.parquet", changelog())
    spec = slackwater.load(write_spec(folder))
    first, late, others = (
        epoch_of(spec, until=microseconds(START + days * DAY), shards=shards, rows=None)
        for days, shards in ((2, 1), (5, 1), (5, 2))
    )

    once = published(spec, first)
    assert published(spec, first) == once
    shutil.rmtree("public")
    assert published(spec, first) == once

    another = slackwater.load(write_spec(folder, ("epsilon: 1.0", "epsilon: 2.0")))
    for asked, epoch, why in (
        (spec, late, "published 2 windows in the meantime"),
        (spec, others, "begun this release in the meantime, with other shards"),
        (another, first, "made from another spec"),
    ):
        with pytest.raises(slackwater.RefusedError, match=why):
            published(asked, epoch)
    with pytest.raises(slackwater.RefusedError, match="made from another spec"):
        epoch_of(another, until=microseconds(END), shards=1, rows=None)
    assert contents(Path("public")) == once
    assert len(Store("public", "private").commits()) == 1

    lost = folder / "private/attempts/000001-0123456789abcdef"  # of a run that died, where another one was first
    lost.mkdir()
    (lost / "exact").write_text("what nobody needs")
    epoch_of(spec, until=microseconds(END), shards=1, rows=None)
    assert not lost.exists()


def test_windows_wait_for_a_source_that_has_not_passed_them(folder: Path) -> None:
    write_spec(folder, ("  time: at\n", "  time: at\n  freshness: {file: progress}\n"))
    write(folder / "data/part.parquet", changelog())

    for said, due in ((START, 0), (START + 2 * DAY, 2)):
        Path("progress").write_text(said.isoformat())
        job = epoch_of(slackwater.load("spec.yaml"), until=microseconds(END), shards=1, rows=None).job
        assert (0 if job is None else job.aggregation.timeline.windows) == due


def test_an_epoch_of_rows_that_cannot_be_used_is_not_published(folder: Path) -> None:
    write(folder / "data/all.parquet", changelog())
    spec = slackwater.load(write_spec(folder))
    epoch = epoch_of(spec, until=microseconds(END), shards=1, rows=None)
    dead = pa.Table.from_pylist([{"file": "a", "row": 1, "reason": "column 'at': time is null"}], DEAD_SCHEMA)
    assert epoch.job is not None

    with pytest.raises(slackwater.InputError, match="nothing new was published"):
        publish_parts(spec, epoch.job, epoch.past, [(DEAD, to_bytes(dead)), (READ, ("a", 1, 1, ()))])

    assert Store("public", "private").commits() == []
    assert not Path("public/manifest.json").exists()


def test_windows_that_are_not_over_are_refused(folder: Path) -> None:
    write(folder / "data/all.parquet", changelog())
    spec = slackwater.load(write_spec(folder, ("until: 2026-01-06", "until: 2999-01-06")))

    with pytest.raises(slackwater.SpecError, match="are not over; published numbers are final"):
        epoch_of(spec, until=microseconds(datetime(2999, 1, 1, tzinfo=UTC)), shards=1, rows=None)


def layout_of(folder: Path, element_type: Any) -> Any:
    source = slackwater.load(write_spec(folder)).changelog.source
    schema = schema_of(element_type, source)
    return inspect_rows(source_of(source), schema, frozenset({"age"}), frozenset({"ward"}))


def test_beams_data_frames_take_estimates_with_their_types(folder: Path) -> None:
    spec = slackwater.load(write_spec(folder))
    frame = generate_proxy(row_type(spec))

    assert [*_estimates(None, spec)] == []  # as long as nothing is published
    types = {name: str(type_) for name, type_ in frame.dtypes.items()}
    assert types == {
        **dict.fromkeys(("query", "kind", "window_start", "window_end", "ward"), "string"),
        **dict.fromkeys(("value", "stddev", "ci_low", "ci_high"), "float64"),
    }


def test_a_row_is_converted_independently_of_its_neighbours(folder: Path) -> None:
    layout = layout_of(folder, Change)
    rows = pa.Table.from_pylist([row._asdict() for row in changes()])
    bad = rows.slice(3, 1).set_column(1, "at", pa.array(["yesterday"]))

    (whole,) = read_rows(rows, layout)
    (alone,) = read_rows(rows.slice(7, 1), layout)
    found = [*read_rows(pa.concat_tables([rows, bad]), layout)]

    assert isinstance(whole, Batch)
    assert isinstance(alone, Batch)
    assert alone.table.to_pylist()[0] in whole.table.to_pylist()
    assert whole.table.num_rows == rows.num_rows
    (dead,) = (part for part in found if isinstance(part, pa.Table))
    assert dead["reason"].to_pylist() == [f"column 'at': {NOT_UNDERSTOOD}"]


def test_a_null_in_a_column_that_is_declared_without_nulls_is_a_dead_letter(folder: Path) -> None:
    """Beam converts the None of a field of type `int` all the same."""
    layout = layout_of(folder, Change)
    row = pa.Table.from_pylist([row._asdict() for row in changes()]).slice(0, 1)
    fields = [field.with_nullable(False) for field in row.schema]
    key = row.schema.names.index(layout.source.entry)
    columns = [pa.nulls(1, field.type) if place == key else row[place] for place, field in enumerate(fields)]

    (dead,) = read_rows(pa.Table.from_arrays(columns, schema=pa.schema(fields)), layout)

    assert dead["reason"].to_pylist() == [f"column '{layout.source.entry}': entry is null"]


def test_rows_that_do_not_fit_the_spec_are_refused_before_any_data_is_read(folder: Path) -> None:
    class Wrong(NamedTuple):
        stay: str
        at: int

    with pytest.raises(slackwater.SpecError, match="no schema that Arrow can hold"):
        layout_of(folder, Any)
    with pytest.raises(slackwater.SpecError, match="is int64; write timestamps"):
        layout_of(folder, Wrong)
    with pytest.raises(slackwater.SpecError, match="has no column 'before_age'"):
        layout_of(folder, NamedTuple("Short", [("stay", str), ("at", str), ("after_ward", str)]))
    assert not (folder / "private").exists()

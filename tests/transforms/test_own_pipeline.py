"""The example of docs/pipelines.md: the transforms in a pipeline without the command line."""

import math
import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that

from examples import own_pipeline
from examples.elsewhere import bounded
from tests.dense import dense
from transforms.aggregation.bounded_sums import SUMS, BoundedSums
from transforms.aggregation.node_sums import NodeKey
from transforms.aggregation.projection import Project
from transforms.common.errors import InputError, RefusedError, SlackwaterError
from transforms.common.source import Source
from transforms.sources.changelog import ReadChangelog
from transforms.sources.inspection import inspect

DAY = 86_400_000_000
STORM = 38  # the day, from 0
BAD = 1_000
FALSE_ALARM = 1e-6
CELLS = 3 * 365


def write_changelog(path: Path, keys: Sequence[str | None]) -> Path:
    """Write cancellations at Newark on the day of the storm, one for each key."""
    rows = len(keys)
    start = own_pipeline.AGGREGATION.timeline.start + STORM * DAY
    times = pa.array(start + np.arange(rows), type=pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = {"entry_id": pa.array(keys, type=pa.string()), "event_time": times}
    for side, status in (("before", "scheduled"), ("after", "cancelled")):
        columns |= {f"{side}_status": pa.array([status] * rows), f"{side}_origin": pa.array(["EWR"] * rows)}
    pq.write_table(pa.table(columns), path)
    return path


def alarms(folder: Path) -> list[tuple[str, int]]:
    (path,) = (folder / "public").iterdir()
    told = pyarrow.csv.read_csv(path)
    start = told["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    days = (start - own_pipeline.AGGREGATION.timeline.start) // DAY
    return list(zip(told["origin"].to_pylist(), days.tolist(), strict=True))


@pytest.mark.slow
def test_only_the_day_and_airport_of_the_storm_raise_an_alarm(tmp_path: Path) -> None:
    changelog = write_changelog(tmp_path / "flights.parquet", [f"flight {n}" for n in range(BAD)])

    sentence = own_pipeline.run(str(changelog), tmp_path)

    # A false alarm needs noise beyond MANY, a missed one noise beyond BAD - MANY minus half an interval;
    # P(|noise| > x) <= exp(-x / scale) for the discrete Laplace distribution.
    distribution = own_pipeline.plan().parts[0].noise[0]
    far = min(own_pipeline.MANY, BAD - own_pipeline.MANY - distribution.half_width(1, 0.95))
    assert CELLS * math.exp(-far / distribution.scale) <= FALSE_ALARM
    assert alarms(tmp_path) == [("EWR", STORM)]
    assert sentence.startswith("(0.5, 0)-differential privacy")


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("keys", "error", "released_before"), [(["a", None], InputError, False), (["a"], RefusedError, True)]
)
def test_bad_rows_and_a_second_release_publish_nothing(
    tmp_path: Path, keys: Sequence[str | None], error: type[SlackwaterError], released_before: bool
) -> None:
    changelog = write_changelog(tmp_path / "flights.parquet", keys)
    if released_before:
        (tmp_path / "public").mkdir()

    with pytest.raises(error):
        own_pipeline.run(str(changelog), tmp_path)

    assert list(tmp_path.glob("public/*")) == []


def flights(count: int) -> pa.Table:
    """Return changes with a struct on each side: flights are planned, cancelled, planned again, and some end."""
    chance = random.Random(1)
    rows = []
    for flight in range(count):
        states = [
            {"status": status, "origin": chance.choice(["EWR", "JFK", "BOS"])} for status in ["plan", "cancelled"]
        ]
        lives = [None, *(state for _ in range(chance.randint(1, 3)) for state in states), None][: chance.randint(2, 7)]
        at = own_pipeline.AGGREGATION.timeline.start - DAY
        for before, after in pairwise(lives):
            at += chance.choice([0, DAY // 3, 40 * DAY])
            rows.append({"flight": f"flight {flight}", "at": at, "before": before, "after": after})
    chance.shuffle(rows)
    state = pa.struct([("status", pa.string()), ("origin", pa.string())])
    kinds = {"flight": pa.string(), "at": pa.timestamp("us", "UTC"), "before": state, "after": state}
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


@pytest.mark.slow
def test_a_changelog_from_another_source_has_the_sums_of_its_copy_in_files(tmp_path: Path) -> None:
    changes, aggregation = flights(300), own_pipeline.AGGREGATION
    pq.write_table(changes, tmp_path / "flights.parquet")
    source = Source(
        format="parquet", paths=(str(tmp_path / "*"),), entry="flight", time="at", before="before", after="after"
    )
    layout = inspect(source, numbers=frozenset(), others=aggregation.queries[0].columns)

    def sums(made: beam.PCollection, name: str) -> beam.PCollection:
        def whole(keyed: tuple[NodeKey, Iterable[bytes]]) -> tuple[NodeKey, list[object]]:
            return keyed[0], dense(keyed[1], aggregation, keyed[0]).tolist()

        return made | f"Gather{name}" >> beam.GroupByKey() | f"Whole{name}" >> beam.Map(whole)

    def agree(found: list[tuple[NodeKey, dict[str, list[object]]]]) -> None:
        assert len(found) == 1
        for _, both in found:
            assert both["files"] == both["rows"] != []
            assert np.sum(both["files"]) > 20

    with beam.Pipeline() as pipeline:
        read = pipeline | ReadChangelog(layout)
        projected = read["rows"] | "ProjectFiles" >> Project(aggregation.projection)
        files = projected["projected"] | "SumFiles" >> BoundedSums(aggregation, shards=2)
        parts = [changes.slice(0, 50), changes.slice(50)]
        rows = bounded(pipeline | beam.Create(parts), aggregation)
        both = {"files": sums(files[SUMS], "Files"), "rows": sums(rows, "Rows")} | beam.CoGroupByKey()
        assert_that(both, agree)

"""Shards close windows with the files before a mark, in any order of arrival."""

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from pipelines.epochs.flags import begin_pipeline
from pipelines.epochs.stream import stream_job
from pipelines.spec.load import load
from pipelines.store.store import Store
from tests.e2e import prism
from tests.e2e.specs import DAY, START, WINDOWS, changelog, write, write_spec
from transforms.aggregation.node_sums import Aggregation
from transforms.sources.files.listing import Listed
from transforms.streams.close_windows import CloseWindows, Proposal, _CloseDoFn, file_batch, mark

LAG = timedelta(hours=1)


def moment(windows: int) -> int:
    """Return the time at which a number of windows and the lag are over, in microseconds."""
    return int((START + windows * DAY + LAG).timestamp()) * 1_000_000


def file(number: int) -> bytes:
    return file_batch(number, Listed(str(number), 1, 0.0), b"")


FOUND = [file(0), mark(1, moment(1) - 1), file(2), mark(3, moment(1)), file(4), mark(5, moment(3)), file(6)]
EXPECTED = [(1, ["0", "2"]), (2, ["4"]), (3, [])]
ORDERS = {
    "as found": FOUND,
    "marks first": [*FOUND[1::2], *FOUND[::2]],
    "backwards": FOUND[::-1],
}


@pytest.fixture
def aggregation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Aggregation:
    """Return the aggregation of a small spec with a few windows."""
    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path)
    write(tmp_path / "data/0.parquet", changelog())
    spec = load("spec.yaml")
    made = stream_job(spec, Store(spec.output.public, spec.output.private)).aggregation
    return replace(made, timeline=replace(made.timeline, windows=WINDOWS))


def test_a_day_of_23_hours_closes_an_hour_earlier_and_none_beyond_the_calendar(aggregation: Aggregation) -> None:
    ends = tuple(moment(number) - moment(0) - (number > 1) * 3_600_000_000 for number in (1, 2, 3))
    timeline = replace(aggregation.timeline, start=0, ends=ends, windows=3)
    closes = _CloseDoFn(replace(aggregation, timeline=timeline), 5, nothing)._closes

    assert [closes(number + 1, end + 4) for number, end in enumerate(ends)] == [False] * 3
    assert [closes(number + 1, end + 5) for number, end in enumerate(ends)] == [True] * 3
    assert not closes(4, 2**60)


def nothing(windows: int, shard: int, base: str | None) -> None:
    """Return None: nothing is committed."""


def told(proposal: tuple[int, bytes]) -> tuple[int, list[str]]:
    return proposal[0], [file.path for file in Proposal.from_bytes(proposal[1]).files]


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_a_window_closes_with_the_files_before_its_mark_in_any_order_of_arrival(order, aggregation):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        elements = pipeline | beam.Create([order]) | beam.FlatMap(lambda parts: [(0, part) for part in parts])
        closed = elements | CloseWindows(aggregation, lag=3_600_000_000, last_state=nothing) | beam.Map(told)
        assert_that(closed | beam.Map(lambda window: (window[0], sorted(window[1]))), equal_to(EXPECTED))


@pytest.mark.slow
def test_a_window_waits_for_its_files(aggregation):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        elements = pipeline | beam.Create([[*FOUND[:4], *FOUND[5:]]]) | beam.FlatMap(lambda ps: [(0, p) for p in ps])
        closed = elements | CloseWindows(aggregation, lag=3_600_000_000, last_state=nothing) | beam.Map(told)
        assert_that(closed | beam.Map(lambda window: (window[0], sorted(window[1]))), equal_to(EXPECTED[:1]))


def begun_slowly(windows: int, shard: int, base: str | None) -> None:
    """Return None slowly: nothing is committed. Prism would split off the rest of the bundle."""
    if base is None:
        time.sleep(1)


@pytest.mark.slow
@prism.WITH_GO
@pytest.mark.xdist_group("live")
def test_a_slow_worker_of_prism_loses_no_file_or_mark(aggregation):
    with begin_pipeline(prism.flags()) as pipeline:
        elements = pipeline | beam.Create([FOUND]) | beam.FlatMap(lambda parts: [(0, part) for part in parts])
        closed = elements | CloseWindows(aggregation, lag=3_600_000_000, last_state=begun_slowly) | beam.Map(told)
        assert_that(closed, equal_to(EXPECTED))

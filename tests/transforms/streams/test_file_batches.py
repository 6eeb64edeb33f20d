"""Files that a stream takes at each poll, and the files that it remembers."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from apache_beam.utils.timestamp import Timestamp

from tests.runner_states import Bag, Cell, States, states
from tests.transforms.writing import look as layout_of
from tests.transforms.writing import write_parquet
from transforms.common.errors import InputError
from transforms.common.payloads import unpack
from transforms.sources.columns.layout import Layout
from transforms.sources.files.listing import Listed
from transforms.sources.freshness import NEVER, Freshness
from transforms.streams.file_batches import _FindDoFn


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return a layout of files that no run has read; one file exists."""
    at = pa.array([0], pa.timestamp("us", "UTC"))
    write_parquet(tmp_path / "0.parquet", {"id": ["a"], "at": at, "before_x": [1], "after_x": [2]})
    return replace(layout_of(tmp_path / "*.parquet"), files=())


def polled(find: _FindDoFn, kept: States, at: float = 0) -> list[Any]:
    """Return the output of a tick: (number, place, name) of files, and (number, moment) of marks."""
    told = []
    for place, payload in find.process((0, b""), Timestamp(at), **kept):
        if place < 0:
            mark = json.loads(unpack(payload)[0])
            told.append((mark["number"], mark["moment"] / 1e6))
        else:
            number, path, *_ = json.loads(payload)
            told.append((number, place, Path(path).name))
    return told


def test_a_file_is_taken_when_two_polls_find_the_same(layout: Layout, tmp_path: Path) -> None:
    find = _FindDoFn(layout, 0)
    kept = states(find)

    assert polled(find, kept, 1) == []
    growing, empty = tmp_path / "1.parquet", tmp_path / "2.parquet"
    growing.write_bytes(b"x")
    empty.touch()
    assert polled(find, kept, 2) == [(0, 0, "0.parquet"), (1, 1)]
    growing.write_bytes(b"xx")
    assert polled(find, kept, 3) == [(2, 2)]
    assert polled(find, kept, 4) == [(3, 1, "1.parquet"), (4, 3)]
    empty.write_bytes(b"x")
    (tmp_path / "0.parquet").unlink()  # files that were read may disappear
    assert polled(find, kept, 5) == [(5, 4)]
    assert polled(find, kept, 6) == [(6, 2, "2.parquet"), (7, 5)]


def test_a_mark_is_not_later_than_the_sources_progress_at_the_previous_poll(layout: Layout, tmp_path: Path) -> None:
    first, progress = tmp_path / "0.parquet", tmp_path / "progress"
    os.utime(first, (2, 2))
    newer = _FindDoFn(layout, 0, Freshness(by="newer_file"))
    kept = states(newer)

    assert [polled(newer, kept, at) for at in (1, 4, 5)] == [[], [(0, 0, "0.parquet"), (1, 1)], [(2, 2)]]

    told = _FindDoFn(layout, 0, Freshness(by="file", path=str(progress)))
    kept = states(told)
    assert polled(told, kept, 1) == []
    progress.write_text("1970-01-01T00:00:03Z")
    found = [polled(told, kept, at) for at in (4, 5, 6)]
    assert [mark[1] for marks in found for mark in marks if len(mark) == 2] == [NEVER / 1e6, 3, 3]


def test_files_that_earlier_runs_have_read_are_not_taken_again(layout: Layout, tmp_path: Path) -> None:
    there = tmp_path / "0.parquet"
    read = Listed(str(there), there.stat().st_size, there.stat().st_mtime)
    find = _FindDoFn(replace(layout, files=(read,)), 0)
    kept = states(find)
    (tmp_path / "1.parquet").write_bytes(b"x")

    assert polled(find, kept, 1) == []
    assert polled(find, kept, 2) == [(0, 1, "1.parquet"), (1, 1)]
    for path in (there, tmp_path / "1.parquet"):  # read by an earlier run, and by this one
        os.utime(path, (1, 1))
        with pytest.raises(InputError, match=rf"{path.name}: has changed since it was read"):
            polled(find, kept, 3)
        os.utime(path, (read.updated, read.updated))


def test_only_the_first_of_simultaneous_ticks_counts(layout: Layout) -> None:
    find = _FindDoFn(layout, 3_600_000_000)
    kept = states(find)

    polled(find, kept)
    once = (kept["polled"].read(), kept["taken"].read())
    assert polled(find, kept) == []
    assert (kept["polled"].read(), kept["taken"].read()) == once


def test_a_poll_without_new_files_does_not_rewrite_the_list(layout: Layout, tmp_path: Path) -> None:
    find = _FindDoFn(layout, 0)
    kept = states(find)
    last, taken = kept["polled"], kept["taken"]
    assert isinstance(last, Cell)
    assert isinstance(taken, Bag)
    for number in range(1, 500):
        (tmp_path / f"{number}.parquet").write_bytes(b"x")
    polled(find, kept, 1)
    assert len(polled(find, kept, 2)) == 501

    (tmp_path / "new.parquet").write_bytes(b"x")
    before = list(taken.values)
    assert polled(find, kept, 3) == [(501, 2)]
    assert taken.values == before
    assert polled(find, kept, 4) == [(502, 500, "new.parquet"), (503, 3)]
    assert taken.values[: len(before)] == before
    assert len(b"".join(taken.values[len(before) :])) < 1_000
    assert len(last.value or b"") < 1_000

"""Rows that pass through files: complete, closed to other users, and removed when the pipeline has ended."""

import errno
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.closed import close_below
from transforms.aggregation.sharding import received, shard_table
from transforms.common.exchange import MAPPED, folder_in, get, put

ROWS = pa.table(
    {"entry": [f"e{n}" for n in range(100)], "time": range(100), "image.after": pa.array(range(100), pa.uint32())}
)


def test_each_shard_gets_its_rows_from_one_file_that_other_users_cannot_read(tmp_path: Path) -> None:
    with folder_in(str(tmp_path)) as folder:
        parts = {number: received(place, folder) for number, place in shard_table(ROWS, shards=3, exchange=folder)}
        (file,) = Path(folder).iterdir()
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (Path(folder), file)]

    sent = {number: received(payload) for number, payload in shard_table(ROWS, shards=3)}
    assert {number: part.to_pylist() for number, part in parts.items()} == {n: p.to_pylist() for n, p in sent.items()}
    assert [part.schema for part in parts.values()] == [ROWS.schema] * 3
    assert modes == [0o700, 0o600]


def test_a_step_that_runs_again_writes_another_file(tmp_path: Path) -> None:
    first, again = (next(put([(0, ROWS.slice(begin))], str(tmp_path))) for begin in (0, 50))

    assert get(first[1]).num_rows == 100
    assert get(again[1]).num_rows == 50


def test_small_parts_are_not_mapped_because_mappings_are_limited(tmp_path: Path) -> None:
    large = pa.concat_tables([ROWS] * (MAPPED // 800))
    parts = [ROWS, ROWS.slice(98), large]

    held = [get(place) for _, place in put([(0, part) for part in parts], str(tmp_path))]

    assert [table.to_pylist() for table in held] == [part.to_pylist() for part in parts]
    assert [table.schema for table in held] == [ROWS.schema] * 3
    assert Path("/proc/self/maps").read_text().count(str(tmp_path)) == 1


def test_no_file_remains_whether_or_not_the_pipeline_fails(tmp_path: Path) -> None:
    def killed() -> None:
        with folder_in(str(tmp_path)) as folder:
            list(put([(0, ROWS)], folder))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_closed_is_named_with_a_number_of_the_system(tmp_path: Path) -> None:
    def parts() -> Iterator[tuple[int, pa.Table]]:
        yield 0, ROWS
        close_below(tmp_path)

    with pytest.raises(OSError, match="Input/output error") as failed:
        list(put(parts(), str(tmp_path)))

    (file,) = tmp_path.iterdir()
    assert (failed.value.errno, failed.value.filename) == (errno.EIO, str(file))

"""Tables and arrays in the files of the private state, of any length, and damaged files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transforms.common import parquet_state as kept

KEYS = [f"entry {i}" for i in range(10)]


def table(rows: int) -> pa.Table:
    return pa.table(
        {"key": pa.array(KEYS[:rows], type=pa.string()), "time": pa.array([None, *range(9)][:rows], type=pa.int64())}
    )


TABLES = {"units": table(10), "frozen": table(3), "entries": table(4), "pending": table(0), "none": pa.table({})}


@pytest.mark.parametrize(("piece", "rows"), [(1, 10), (3, 4), (5, 2), (9, 2), (10, 1), (11, 1)])
def test_tables_longer_than_a_piece_are_read_complete_and_in_order(
    piece: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "PIECE", piece)
    payload = kept.to_parquet(kept.lists_of(TABLES), metadata={})
    found = kept.from_parquet(payload)

    assert pq.ParquetFile(pa.BufferReader(payload)).num_row_groups == found.num_rows == rows
    assert {name: kept.table_of(found[name]) for name in TABLES} == TABLES


def test_tables_of_many_chunks_are_read_with_equal_rows() -> None:
    chunked = pa.concat_tables([table(2), table(0), table(7)])
    found = kept.from_parquet(kept.to_parquet(kept.lists_of({"units": chunked}), metadata={}))

    assert kept.table_of(found["units"]).equals(chunked)


@pytest.mark.parametrize("numbers", [[], [0], [2**63 - 1, -(2**63), 7]])
def test_arrays_are_read_with_equal_numbers(numbers: list[int]) -> None:
    payload = kept.to_parquet({"noise": kept.list_of(np.array(numbers, dtype=np.int64))}, metadata={b"a": b"b"})
    found = kept.from_parquet(payload)

    assert found["noise"].to_pylist() == [numbers]
    assert found.schema.metadata[b"a"] == b"b"


@pytest.mark.slow
def test_a_byte_that_changed_is_noticed_or_changes_nothing() -> None:
    payload = kept.to_parquet(kept.lists_of(TABLES), metadata={})
    footer = 8 + int.from_bytes(payload[-8:-4], "little")
    noticed = 0

    for place in range(4, len(payload) - footer):
        damaged = bytearray(payload)
        damaged[place] ^= 0xFF
        try:
            found = kept.from_parquet(bytes(damaged))
        except ValueError:
            noticed += 1
        else:
            assert {name: kept.table_of(found[name]) for name in TABLES} == TABLES

    assert noticed > (len(payload) - footer) / 2


def test_a_truncated_file_is_refused() -> None:
    payload = kept.to_parquet(kept.lists_of(TABLES), metadata={})
    for length in (0, 3, len(payload) // 2, len(payload) - 1):
        with pytest.raises(ValueError, match="Parquet"):
            kept.from_parquet(payload[:length])

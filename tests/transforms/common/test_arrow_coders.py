"""Tables and batches are sent to other workers unchanged, and in few bytes."""

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

from transforms.common.arrow_coders import BatchCoder, TableCoder
from transforms.common.batches import Batch

TABLE = pa.table(
    {
        "entry": ["a", "b", "c"],
        "time": pa.array([1, None, 2**62], pa.int64()),
        "after": [True, False, True],
        "after.ward": pa.array(["x", None, "x"]).dictionary_encode(),
        "after.at": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
    }
)


def test_beam_uses_the_coders_wherever_a_type_is_known() -> None:
    assert isinstance(beam.coders.registry.get_coder(pa.Table), TableCoder)
    assert isinstance(beam.coders.registry.get_coder(Batch), BatchCoder)


@pytest.mark.parametrize("table", [TABLE, TABLE.slice(1, 1), TABLE.schema.empty_table()], ids=["all", "slice", "empty"])
def test_a_table_survives_encoding(table: pa.Table) -> None:
    coder = TableCoder()

    assert coder.decode(coder.encode(table)).equals(table)


@pytest.mark.parametrize("gaps", [None, np.array([4, 9, 11])], ids=["without gaps", "with gaps"])
def test_a_batch_survives_encoding(gaps: np.ndarray | None) -> None:
    coder = BatchCoder()
    batch = Batch("gs://in/part of Zoë.parquet", 4, TABLE, gaps)

    back = coder.decode(coder.encode(batch))

    assert (back.file, back.first_row) == (batch.file, batch.first_row)
    assert back.table.equals(TABLE, check_metadata=True)
    positions = np.arange(3)
    assert back.row_numbers(positions).tolist() == batch.row_numbers(positions).tolist()
    assert (back.gaps is None) == (gaps is None)


def test_a_slice_is_encoded_without_the_rest_of_its_table() -> None:
    large = pa.table({"entry": [f"{number}" * 40 for number in range(20_000)]})

    assert len(TableCoder().encode(large.slice(3, 2))) < 2_000
    assert len(BatchCoder().encode(Batch("a", 3, large.slice(3, 2)))) < 2_000


def test_sizes_are_estimated_without_encoding() -> None:
    large = pa.table({"x": np.arange(10_000)})

    assert TableCoder().estimate_size(large) == 80_000
    assert BatchCoder().estimate_size(Batch("a", 1, large)) == 80_000
    assert TableCoder().estimate_size(large.slice(0, 100)) == 800

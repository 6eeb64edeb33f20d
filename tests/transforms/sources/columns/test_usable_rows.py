import numpy as np
import pyarrow as pa

from transforms.common.batches import Batch, dead_file, dead_letters
from transforms.sources.columns.normalise import Skipped
from transforms.sources.columns.usable_rows import UsableRows


def test_batches_come_one_by_one_and_other_rows_are_collected() -> None:
    first, second = (Batch("a", row, pa.table({"x": [row]})) for row in (1, 5))
    letters = [dead_letters("a", np.array(rows), "no time") for rows in ([2, 3], [6])]
    read = UsableRows([letters[0], first, Skipped("a tombstone", 2), second, letters[1], Skipped("a tombstone", 1)])

    assert list(read) == [first, second]
    assert read.dead["row"].to_pylist() == [2, 3, 6]
    assert read.skipped == {"a tombstone": 3}
    assert read.fault is None


def test_a_dead_file_is_a_fault_of_all_its_rows() -> None:
    read = UsableRows([dead_letters("a", np.array([1]), "no time"), dead_file("a", "it is truncated")])

    assert list(read) == []
    assert read.fault == "it is truncated"

"""What the readers hand on: batches of normalised rows, and dead letters for the rest. Both are private."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

DEAD = "dead"
"""Tag of the output that holds dead letters."""

READ = "read"
"""Tag of the output that holds (file, rows read, rows dead) of each split."""

POSITION = "order.position"
"""The column that settles what else is tied where there are no images before: where the row stood in the files."""

ROW_BITS = 40
"""A position is the number of the file, in the order in which files are read, and in so many bits that of the row."""

FILE = "file"
"""A digest of the file's path beside each position: with the row's number it recognises a row that is read again."""

DEAD_SCHEMA = pa.schema([("file", pa.string()), ("row", pa.int64()), ("reason", pa.string())])


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of one file in the order of the file.

    Attributes:
        file: path of the file.
        first_row: number of the first row; the first of a file (after a header) has number 1.
        table: normalised columns, see `transforms.sources.columns.normalise`.
        gaps: numbers of all rows where dead letters were left out between them; None if there are no gaps.
    """

    file: str
    first_row: int
    table: pa.Table
    gaps: np.ndarray | None = None

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        """Numbers in the file of the rows at `positions` of the table.

        >>> Batch("a", 5, pa.table({"x": [7, 8]})).row_numbers(np.array([1])).tolist()
        [6]
        """
        return self.first_row + positions if self.gaps is None else self.gaps[positions]


def dead_letters(file: str, rows: np.ndarray, reason: str) -> pa.Table:
    """One dead letter for each row number; the table has `DEAD_SCHEMA`."""
    return DEAD_SCHEMA.empty_table() if len(rows) == 0 else _table(file, pa.array(rows, pa.int64()), reason)


def dead_file(file: str, reason: str) -> pa.Table:
    """The dead letter of a file that cannot be read to its end, whatever rows it holds."""
    return _table(file, pa.nulls(1, pa.int64()), reason)


def _table(file: str, rows: pa.Array, reason: str) -> pa.Table:
    texts = [pa.repeat(pa.scalar(text, pa.string()), len(rows)) for text in (file, reason)]
    return pa.Table.from_arrays([texts[0], rows, texts[1]], schema=DEAD_SCHEMA)

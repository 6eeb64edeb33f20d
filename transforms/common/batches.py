"""Output of the readers: batches of normalised rows, and dead letters for other rows. Both are private."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

DEAD = "dead"
"""Tag of the output that holds dead letters."""

READ = "read"
"""Tag of the output that holds (file, rows read, rows dead) of each split."""

POSITION = "order.position"
"""Column with the position of a row in the files; it breaks all other ties if there are no before images."""

ROW_BITS = 40
"""Bits of a position that hold the row's number; the higher bits hold the file's number, in reading order."""

FILE = "file"
"""Column with a digest of the file's path; with the row's number it identifies a row that is read again."""

MOST_DEAD = 1_000_000
"""Most dead letters of a part of a file that one worker reads. A file with more is a dead letter as a whole."""

TOO_MANY_DEAD = f"more than {MOST_DEAD:,} rows of the file cannot be used; it may be of another format"

DEAD_SCHEMA = pa.schema([("file", pa.string()), ("row", pa.int64()), ("reason", pa.string())])


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of one file in the order of the file.

    Attributes:
        file: Path of the file.
        first_row: Number of the first row; the first row of a file (after a header) has number 1.
        table: Normalised columns, see `transforms.sources.columns.normalise`.
        gaps: Numbers of all rows if dead letters between them were left out, int64 [rows]; None if there are no gaps.
    """

    file: str
    first_row: int
    table: pa.Table
    gaps: np.ndarray | None = None

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        """Return the numbers in the file of the rows at `positions` of the table, int64 [n].

        >>> Batch("a", 5, pa.table({"x": [7, 8]})).row_numbers(np.array([1])).tolist()
        [6]
        """
        return self.first_row + positions if self.gaps is None else self.gaps[positions]


def dead_letters(file: str, rows: np.ndarray, reason: str) -> pa.Table:
    """Return one dead letter for each row number; the table has `DEAD_SCHEMA`.

    Args:
        file: Path of the file.
        rows: Numbers of the unusable rows, int64 [n].
        reason: Why they are unusable.
    """
    return DEAD_SCHEMA.empty_table() if len(rows) == 0 else _table(file, pa.array(rows, pa.int64()), reason)


def dead_file(file: str, reason: str) -> pa.Table:
    """Return the dead letter of a file that cannot be read to its end; it replaces all rows of the file."""
    return _table(file, pa.nulls(1, pa.int64()), reason)


def _table(file: str, rows: pa.Array, reason: str) -> pa.Table:
    texts = [pa.repeat(pa.scalar(text, pa.string()), len(rows)) for text in (file, reason)]
    return pa.Table.from_arrays([texts[0], rows, texts[1]], schema=DEAD_SCHEMA)

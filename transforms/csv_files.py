"""CSV changelogs, streamed in blocks; every cell is read as bytes and converted afterwards, row by row if need be."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.csv

from transforms import files
from transforms.batches import Batch, dead_file, dead_letters
from transforms.kinds import one_chunk
from transforms.layout import Layout
from transforms.normalise import Place, normalise
from transforms.parquet_files import any_valid

_BLOCK = 1 << 23  # bytes
_END = "\x03end of file\x03"


def read_csv(layout: Layout, place: Place, batch_rows: int) -> Iterator[Batch | pa.Table]:
    """Batches and dead letters of a file; a fault of the file is one dead letter.

    An empty cell is null, a quoted empty one is an empty text. Lines without anything are not rows.
    """
    rows = _Rows()
    try:
        with files.open_stream(place.file) as stream:
            reader = _open(_WithEnd(stream), rows)
            fault = layout.fault(pa.schema([(name, pa.null()) for name in reader.schema.names]))
            if fault is not None:
                yield dead_file(place.file, fault)
                return
            for batch in reader:
                numbers = rows.number(batch.num_rows)
                raw = _raw(pa.Table.from_batches([batch]), layout)
                yield from normalise(raw, numbers, layout, place, batch_rows)
                yield dead_letters(place.file, rows.wrong(), "the row has not as many cells as the header")
    except files.UNREADABLE as error:
        yield dead_file(place.file, f"the file cannot be read to its end ({type(error).__name__})")
        return
    yield dead_letters(place.file, rows.wrong(), "the row has not as many cells as the header")
    if not rows.ended:
        yield dead_file(place.file, "the file ends within quotes; it is truncated, or a quote is not closed")


@dataclass(slots=True)
class _Rows:
    """Numbers of the rows: the parser leaves out rows with a wrong number of cells and only reports them."""

    next: int = 1
    skipped: list[int] = field(default_factory=list)  # not yet passed by `next`
    told: list[int] = field(default_factory=list)  # passed or not, not yet a dead letter
    ended: bool = False

    def skip(self, row: pyarrow.csv.InvalidRow) -> str:
        if row.text.strip('"') == _END:
            self.ended = True
        else:
            number = row.number - 1  # the header is the parser's row 1
            self.skipped.append(number)
            self.told.append(number)
        return "skip"

    def number(self, rows: int) -> np.ndarray:
        """Numbers of the next rows that the parser kept."""
        candidates = np.arange(self.next, self.next + rows + len(self.skipped))
        numbers = candidates[~np.isin(candidates, self.skipped)][:rows]
        if rows:
            self.next = int(numbers[-1]) + 1
        self.skipped = [number for number in self.skipped if number >= self.next]
        return numbers

    def wrong(self) -> np.ndarray:
        """Numbers of the rows left out since the last call."""
        told, self.told = self.told, []
        return np.array(told, dtype=np.int64)


class _WithEnd(io.RawIOBase):
    """A stream with one more line, which the parser reports as a row of too few cells, unless a quote is open."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._tail = f"\n{_END}\n".encode()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        while len(data) < size and self._tail:
            more = self._stream.read(size - len(data))
            if not more:
                more, self._tail = self._tail[: size - len(data)], self._tail[size - len(data) :]
            data += more
        return data


def _open(stream: _WithEnd, rows: _Rows) -> pyarrow.csv.CSVStreamingReader:
    return pyarrow.csv.open_csv(
        stream,
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=rows.skip),
        convert_options=pyarrow.csv.ConvertOptions(
            default_column_type=pa.binary(),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _raw(table: pa.Table, layout: Layout) -> pa.Table:
    """The raw table (see `normalise`) of one block."""
    columns = {name: table[column] for name, column in layout.roles.items()}
    roles = set(layout.roles.values())
    for side in layout.sides:
        own = [side.path(column) for column, _ in layout.states]
        seen = [name for name in own if name not in roles] + layout.rest(side, table.column_names)
        columns[side.side] = pa.array(any_valid([one_chunk(table[name]) for name in seen], table.num_rows))
        columns |= {f"{side.side}.{column}": table[side.path(column)] for column, _ in layout.states}
    return pa.table(columns)

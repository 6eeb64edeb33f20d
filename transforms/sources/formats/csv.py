"""CSV changelogs, streamed in blocks; every cell is read as bytes and converted afterwards, row by row if necessary."""

import codecs
import csv
import io
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from transforms.common.batches import MOST_DEAD, TOO_MANY_DEAD, Batch, dead_file, dead_letters
from transforms.common.images import IMAGE, digest, shared
from transforms.common.kinds import any_valid, one_chunk, to_mask
from transforms.common.memory import scaled
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import normalise
from transforms.sources.files.opening import FIRST_BYTES, UNREADABLE, OversizeError, first_lines, open_stream, why
from transforms.sources.formats.csv_parser import CsvParser
from transforms.sources.formats.format import FirstRows, Format, Split

_BLOCK, _LEAST_BLOCK = 1 << 23, 1 << 22  # bytes: the most, and the least if memory is scarce; no row may be longer
_HEADER = 1 << 20
_MOST_COLUMNS = 1 << 16
_NO_HEADER = f"the header is longer than {_HEADER >> 20} MiB or has more than {_MOST_COLUMNS:,} columns"
_LONG_ROW = f"a row is longer than {_LEAST_BLOCK >> 20} MiB; an unclosed quote joins all rows after it"
_MOST_BROKEN = 100_000  # rows at the beginning of a file
_SUBSTITUTE = b"\x1a"  # ASCII's substitute for an unreadable character
_LINE = re.compile(rb"[^\r\n]*")
_ESCAPED = re.compile("[\udc80-\udcff]")


def _read(layout: Layout, split: Split, batch_rows: int) -> Iterator[Batch | pa.Table]:
    """Yield batches and dead letters of a file; a fault of the file is one dead letter.

    * An empty cell is null, a quoted empty one is an empty text; texts that the source lists as null are null, in
      quotes or not. Empty lines are not rows.
    * Integers are decimal digits with an optional minus, or bits as in 0x1F; floats can be nan or inf, and are inf
      beyond their range; any other character in a number's cell, even a blank, is an error. An empty text is a valid
      key.
    * A needed cell that is not UTF-8, or holds NUL or U+001A, is a dead letter.
    """
    rows, place = _Rows(), split.place
    try:
        with open_stream(place.file) as stream, _parser(whole := _WithEnd(stream, rows.end), rows) as parser:
            fault = layout.fault(pa.schema([(name, pa.null()) for name in parser.schema.names]))
            if fault is not None:
                yield dead_file(place.file, fault)
                return
            for batch in parser:
                if batch.num_rows and _holds(batch.column(batch.num_columns - 1)[-1], rows.end):
                    batch = batch.slice(0, batch.num_rows - 1)  # the file's last row has an open quote
                numbers = rows.number(batch.num_rows)
                raw = _raw(pa.Table.from_batches([batch]), layout, substituted=whole.substituted)
                yield from normalise(raw, numbers, layout, place, batch_rows)
                yield dead_letters(place.file, rows.wrong(), "the row has a different number of cells than the header")
    except UNREADABLE as error:
        usual = "the file cannot be read to its end ({})"
        if rows.broken > MOST_DEAD:
            usual = TOO_MANY_DEAD
        elif "straddling" in str(error):
            usual = _LONG_ROW
        yield dead_file(place.file, why(error, usual))
        return
    yield dead_letters(place.file, rows.wrong(), "the row has a different number of cells than the header")
    if not rows.ended:
        yield dead_file(place.file, "the file ends within quotes; it is truncated, or a quote is unclosed")


@dataclass(slots=True)
class _Rows:
    """Numbers of the rows: the parser leaves out rows with a wrong number of cells and only reports them."""

    next: int = 1
    skipped: list[int] = field(default_factory=list)  # those that `next` has not passed
    unreported: list[int] = field(default_factory=list)  # those that are not yet dead letters
    end: str = field(default_factory=lambda: f"end {uuid.uuid4()}")  # a text that is in no file
    ended: bool = False
    broken: int = 0

    def skip(self, row: pyarrow.csv.InvalidRow) -> str:
        if row.text.strip('",') == self.end:
            self.ended = True
        else:
            number = row.number - 1  # the header is the parser's row 1
            self.skipped.append(number)
            self.unreported.append(number)
            self.broken += 1
        return "skip" if self.broken <= MOST_DEAD else "error"

    def number(self, rows: int) -> np.ndarray:
        """Return the numbers of the next rows that the parser kept, int64 [rows]."""
        candidates = np.arange(self.next, self.next + rows + len(self.skipped))
        numbers = candidates[~np.isin(candidates, self.skipped)][:rows]
        if rows:
            self.next = int(numbers[-1]) + 1
        self.skipped = [number for number in self.skipped if number >= self.next]
        return numbers

    def wrong(self) -> np.ndarray:
        """Return the numbers of the rows left out since the last call, int64 [n]."""
        wrong, self.unreported = self.unreported, []
        return np.array(wrong, dtype=np.int64)


class _WithEnd:
    """Stream with one more line, which the parser reports as a row of wrong length, unless a quote is open.

    Bytes that are not UTF-8 are substituted, since the parser cannot report their rows; NUL as well, since the parser
    can miss a comma, a quote or the end of a row near it.
    """

    def __init__(self, stream: pa.NativeFile, end: str) -> None:
        self._stream = stream
        self._end = end
        self._tail: bytes | None = None
        self._cut = b""  # the beginning of a character or of CR LF
        self.substituted = False

    def read(self, size: int) -> bytes:
        data = self._cut
        while len(data) < size and (more := self._stream.read(size - len(data))):
            data += more
        if self._tail is None:
            self._tail = f"\n{self._end}{',' if _cells(data) == 1 else ''}\n".encode()
        data = self._whole(data, final=len(data) < size)
        room = size - len(data) - len(self._cut)
        more, self._tail = self._tail[:room], self._tail[room:]
        return data + more

    def _whole(self, data: bytes, *, final: bool) -> bytes:
        """Return complete UTF-8 characters. If CR LF is cut in two, the parser drops the LF, even within quotes."""
        end = len(data)
        if not final:
            end -= data.endswith(b"\r")
            last = data[max(0, end - 4) : end]
            end -= len(last) - codecs.utf_8_decode(last, "surrogateescape")[1]
        data, self._cut = data[:end], data[end:]
        if not data.isascii() and not _is_utf8(data):
            data = _ESCAPED.sub(_SUBSTITUTE.decode(), data.decode(errors="surrogateescape")).encode()
        data = data.replace(b"\0", _SUBSTITUTE)
        self.substituted |= _SUBSTITUTE in data
        return data


def _is_utf8(data: bytes) -> bool:
    offsets = pa.py_buffer(np.array([0, len(data)], dtype=np.int32))
    try:
        pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(data)]).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _holds(cell: pa.Scalar, text: str) -> bool:
    return cell.is_valid and text.encode() in cell.as_py()


def _cells(data: bytes) -> int:
    """Return the number of cells of the header.

    Raises:
        UnicodeDecodeError: One of them is not UTF-8.
        OversizeError: There are more than a parser has memory for.
    """
    lines = io.StringIO(data[:_HEADER].decode("latin-1"), newline="")
    try:
        cells = next(filter(None, csv.reader(lines)), [])
    except csv.Error:  # a name longer than 131,072 characters
        raise OversizeError(_NO_HEADER) from None
    if len(cells) > _MOST_COLUMNS or (len(data) > _HEADER and lines.tell() >= _HEADER):
        raise OversizeError(_NO_HEADER)
    return len([cell.encode("latin-1").decode() for cell in cells])


def _parser(stream: _WithEnd, rows: _Rows) -> CsvParser:
    convert = pyarrow.csv.ConvertOptions(
        default_column_type=pa.binary(), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return CsvParser(stream, rows.skip, block=max(_LEAST_BLOCK, scaled(_BLOCK)), convert=convert)


def _raw(table: pa.Table, layout: Layout, *, substituted: bool) -> pa.Table:
    """Return the raw table (see `normalise`) of one block."""

    nulls = pa.array([text.encode() for text in layout.source.nulls], pa.binary())

    def values_of(place: str | int) -> pa.Array:
        values = one_chunk(table[place])
        return pc.if_else(pc.is_in(values, value_set=nulls), None, values) if len(nulls) else values

    def cells(name: str) -> pa.Array:
        values = values_of(name)
        return pc.replace_substring(values, _SUBSTITUTE, b"\xff") if substituted else values

    columns = {name: cells(column) for name, column in layout.roles.items()}
    roles = set(layout.roles.values())
    for side in layout.sides:
        own = [side.path(column) for column, _ in layout.states]
        seen = {name for name in own if name not in roles} | set(layout.rest(side, table.column_names))
        members = [values_of(place) for place, name in enumerate(table.column_names) if name in seen]
        columns[side.side] = pa.array(any_valid(members, table.num_rows))
        columns |= {f"{side.side}.{column}": cells(side.path(column)) for column, _ in layout.states}
    if len(layout.sides) == 2:
        both = shared(
            [name.removeprefix(side.name) for name in layout.members(side, table.column_names)] for side in layout.sides
        )
        for side in layout.sides:
            images = ((name, cells(side.path(name))) for name in both)
            columns[f"{IMAGE}.{side.side}"] = digest(images, to_mask(columns[side.side]))
    return pa.table(columns)


def _sample(source: Source, path: str) -> FirstRows:
    with open_stream(path) as stream:
        table = _first_rows(source, first_lines(stream))
    return pa.schema([(name, pa.string()) for name in table.column_names]), table


def _first_rows(source: Source, head: bytes) -> pa.Table:
    _cells(head)
    header = len(_LINE.match(head)[0])  # type: ignore[index]  # it can match nothing
    head = head[:header] + head[header:].decode(errors="replace").encode()  # the parser cannot skip other rows
    convert = pyarrow.csv.ConvertOptions(
        default_column_type=pa.string(),
        strings_can_be_null=True,
        null_values=["", *source.nulls],
        quoted_strings_can_be_null=bool(source.nulls),
    )

    def wrong_row(row: pyarrow.csv.InvalidRow) -> str:
        return "skip" if (row.number or 0) <= _MOST_BROKEN else "error"

    with CsvParser(io.BytesIO(head), wrong_row, block=FIRST_BYTES, convert=convert) as parser:
        for batch in parser:
            if batch.num_rows:
                return pa.Table.from_batches([batch])
        return parser.schema.empty_table()


RESTS_ON = (
    "Programs that write the CSV files double each quote within a quoted cell: otherwise a cell that begins with a "
    "quote takes the rows that follow into itself, other people's rows too."
)

CSV = Format(
    name="csv", kind="a CSV file", sample=_sample, read=_read, endings=(".csv",), cells=True, rests_on=RESTS_ON
)

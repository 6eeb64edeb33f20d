"""Arrow's parser of CSV, none of whose threads calls Python after its end.

Arrow reads ahead in another thread, even after an error. There it calls Python to read the stream, and to release
memory and objects of Python. A thread that calls Python while the interpreter ends aborts the process. So Arrow gets
its own copy of what it reads, and the parser waits at its end until Arrow has released all objects.
"""

import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.csv

_BUFFER = 1 << 16  # bytes; larger reads go past it
_PATIENCE = 60.0  # seconds; a stream returns one block in less


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; none at the end."""


class CsvParser:
    """Context manager with the batches of a stream.

    Args:
        stream: The stream; it begins with the names of the columns.
        wrong_row: Takes a row with a wrong number of cells, and returns `skip` or `error`.
        block: Number of bytes of a block; no row may be longer.
        convert: Types and nulls of the cells.

    Raises:
        pa.ArrowInvalid: The first block is not CSV; raised on entry.
    """

    def __init__(
        self,
        stream: Readable,
        wrong_row: Callable[[pyarrow.csv.InvalidRow], str],
        *,
        block: int,
        convert: pyarrow.csv.ConvertOptions,
    ) -> None:
        self._stream = stream
        self._wrong_row = wrong_row
        self._block = block
        self._convert = convert
        self._stopped = False
        self._held: list[weakref.ref[Any]] = []
        # Its `put` is not Python code, so the thread that calls it does not lose the interpreter's lock in between.
        self._released: SimpleQueue[Any] = SimpleQueue()

    def __enter__(self) -> Self:
        try:
            # No variable holds an object that Arrow calls: the traceback of an error would keep it.
            self._reader: pyarrow.csv.CSVStreamingReader | None = pyarrow.csv.open_csv(
                self._input(),
                read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=self._block),
                parse_options=self._parse_options(),
                convert_options=self._convert,
            )
        except BaseException:
            self._wait()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader = None
        self._wait()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        assert self._reader is not None
        return self._reader.schema

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        assert self._reader is not None
        return self._reader.read_next_batch()

    def read(self, size: int) -> bytes:
        """Return the next bytes; none after the end of the parser."""
        return b"" if self._stopped else self._stream.read(size)

    def _input(self) -> pa.NativeFile:
        source = _Source(self.read)
        self._held.append(weakref.ref(source, self._released.put))
        return pa.BufferedInputStream(pa.PythonFile(source, mode="r"), _BUFFER)

    def _parse_options(self) -> pyarrow.csv.ParseOptions:
        def wrong_row(row: pyarrow.csv.InvalidRow) -> str:
            return self._wrong_row(row)

        self._held.append(weakref.ref(wrong_row, self._released.put))
        return pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=wrong_row)

    def _wait(self) -> None:
        """Wait until Arrow has released all objects."""
        self._stopped = True
        with suppress(Empty):
            for _ in self._held:
                self._released.get(timeout=_PATIENCE)


class _Source:
    """The stream as Arrow reads it. No frame of its `read` holds it, which the traceback of an error would keep."""

    closed = False

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read

    def close(self) -> None:
        """Do nothing: the stream's owner closes it."""

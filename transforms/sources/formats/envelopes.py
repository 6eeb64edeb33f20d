"""Records that wrap a row's state in an envelope: the common part of Debezium's and Datastream's formats.

    in    Columns                      values of many records by path, e.g. ("source", "lsn")
    out   Unwrapped                    the raw table that `normalise` reads, and the rows that are no changes

A module for one envelope has `fields(layout)`, the paths that it reads, and `unwrap(columns, layout)`. Its decision
about a record depends on that record alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.batches import Batch, dead_letters
from transforms.common.instants import Bad
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped, normalise

FieldPath = tuple[str, ...]


Fields = dict[FieldPath, pa.DataType]
"""What is read at each path: `TEXT` or `TEXTS` (any scalars), or an `OBJECT`."""

TEXT = pa.string()
TEXTS = pa.list_(TEXT)
OBJECT = pa.struct([])


def _no_line(row: int) -> bytes:
    raise LookupError(f"row {row} is in no line")


@dataclass(frozen=True, slots=True)
class Columns:
    """Values of many records.

    Attributes:
        rows: Number of records.
        values: Path to values, in the order of the records; null if a record does not have the path. Lines have texts,
            Avro the types of its schema.
        exists: Path of an object to whether a record has it, bool [rows].
        lines: The quoted lines (transforms.sources.formats.json_text); None for Avro.
        line: Function from a row to its unchanged line, for the few rows that are read again alone.
    """

    rows: int
    values: dict[FieldPath, pa.Array]
    exists: dict[FieldPath, np.ndarray]
    lines: pa.Buffer | None = None
    line: Callable[[int], bytes] = _no_line


@dataclass(slots=True)
class Verdicts:
    """Rows that are not read as changes, with reasons; the first of several reasons counts."""

    rows: int
    reasons: list[tuple[str, bool]] = field(default_factory=list)
    codes: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.codes = np.zeros(self.rows, dtype=np.int16)

    def dead(self, mask: np.ndarray, reason: str) -> None:
        """Mark rows (bool [rows]) that should be changes but are unusable."""
        self._add(mask, reason, skipped=False)

    def dead_at(self, bad: Bad, column: str | None = None) -> None:
        """Mark rows with a value that could not be converted."""
        for positions, reason in bad:
            mask = np.zeros(self.rows, dtype=bool)
            mask[positions] = True
            self.dead(mask, reason if column is None else f"column {column!r}: {reason}")

    def skip(self, mask: np.ndarray, reason: str) -> None:
        """Mark rows (bool [rows]) that are valid but are no changes."""
        self._add(mask, reason, skipped=True)

    @property
    def open(self) -> np.ndarray:
        """Rows without a verdict so far."""
        return self.codes == 0

    def _add(self, mask: np.ndarray, reason: str, *, skipped: bool) -> None:
        found = mask & self.open
        if found.any():
            self.reasons.append((reason, skipped))
            self.codes[found] = len(self.reasons)


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """Raw table with all rows, and the rows to leave out of it."""

    raw: pa.Table
    verdicts: Verdicts


def emit(
    unwrapped: Unwrapped, rows: np.ndarray, layout: Layout, place: Place, batch_rows: int
) -> Iterator[Batch | pa.Table | Skipped]:
    """Yield batches of the changes, dead letters, and counts of skipped rows.

    Args:
        unwrapped: Rows and verdicts.
        rows: Numbers of the rows in the file, int64 [rows].
        layout: How the files are read.
        place: The file.
        batch_rows: Most rows of a batch.
    """
    codes = unwrapped.verdicts.codes
    for code, (reason, skipped) in enumerate(unwrapped.verdicts.reasons, 1):
        found = rows[codes == code]
        yield Skipped(reason, len(found)) if skipped else dead_letters(place.file, found, reason)
    kept = codes == 0
    raw = unwrapped.raw if kept.all() else unwrapped.raw.filter(pa.array(kept))
    yield from normalise(raw, rows[kept], layout, place, batch_rows)


def state_fields(layout: Layout, path: FieldPath) -> Fields:
    """Return the needed columns of a state, and its key."""
    return {(*path, column): TEXT for column in (layout.source.entry, *(column for column, _ in layout.states))}


def under(prefix: FieldPath, fields: Fields) -> Fields:
    """Return the fields inside an object."""
    return {prefix + path: type_ for path, type_ in fields.items()}


def where(values: pa.Array) -> np.ndarray:
    """Return rows that are true, bool [rows]; null is false."""
    return pc.fill_null(values, False).to_numpy(zero_copy_only=False)


# A file's name has a character that hexadecimal numbers (such as Oracle's places in the redo log) do not have.
_NUMBERED = r"^(?P<head>|.*[G-WYZg-wyz_-].*[.])(?P<digits>[0-9]+)$"
_LSN = r"^(?P<high>[0-9A-Fa-f]{1,8})/(?P<low>[0-9A-Fa-f]{1,8})$"


def sortable(values: pa.Array) -> pa.Array:
    """Return log positions as texts that sort as the positions do; null is the first.

    Numbers, numbered files and PostgreSQL's positions get a fixed width; other positions have one already.

    >>> sortable(pa.array(["9", "binlog.000010", "A/1F", "a01b.000c.0010", None])).to_pylist()
    ['00000000000000000009', 'binlog.00000000000000000010', '0000000A0000001F', 'a01b.000c.0010', '']
    """
    texts = values.cast(TEXT)
    if pc.all(pc.ascii_is_decimal(texts), min_count=0).as_py():
        return pc.fill_null(_pad(texts, 20), "")
    number = pc.extract_regex(texts, _NUMBERED)
    lsn = pc.extract_regex(pc.utf8_upper(texts), _LSN)
    padded = pc.binary_join_element_wise(number.field("head"), _pad(number.field("digits"), 20), "")
    halves = pc.binary_join_element_wise(_pad(lsn.field("high"), 8), _pad(lsn.field("low"), 8), "")
    texts = pc.case_when(pc.make_struct(pc.is_valid(number), pc.is_valid(lsn)), padded, halves, texts)
    return pc.fill_null(texts, "")


def _pad(digits: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(digits, width, "0")
